# SPDX-License-Identifier: Apache-2.0
"""Stands before a Kubernetes API server and makes it fail on command.

api_front.py SERVER CA CERT KEY: speaks TLS with CERT and KEY on a free port of the loopback, says
"port N", and passes requests on to SERVER, whose authority is CA. Commands come as lines on stdin;
each is answered by "ok" and the counts. It ends with its stdin. What is passed on is not changed;
what the server itself told as 410 is counted as well.

  pass                  no faults
  answer CODE SHARE     so many of a hundred requests get CODE, and the server never sees them
                        (409: changes; 410: watches; 429: all, to be tried again after a second)
  gone SHARE            so many of a hundred watches begin with the event that tells 410
  double SHARE          so many of a hundred changes are sent twice; the second answer counts
  hide SHARE            so many of a hundred changes are carried out and answered with 504
  cut | cut watches     connections, now
  counts
"""
import collections
import http.client
import http.server
import json
import random
import socket
import ssl
import sys
import threading
import urllib.parse

SERVER, CA, CERT, KEY = sys.argv[1:]
UPSTREAM = urllib.parse.urlsplit(SERVER)
REASONS = {409: "Conflict", 410: "Expired", 429: "TooManyRequests", 504: "Timeout"}
trusts = ssl.create_default_context(cafile=CA)
shows = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
shows.load_cert_chain(CERT, KEY)
lock = threading.Lock()
faults, counts = {}, collections.Counter()
connections = {}  # of each handler: its own and the server's socket, and whether it carries a watch


def status_of(code):
    return json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                       "message": "made to fail", "reason": REASONS[code], "code": code}).encode()


def strikes(fault):
    hit = random.randrange(100) < faults.get(fault, 0)
    counts[fault] += hit
    return hit


class Front(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream = None

    def log_message(self, *words):
        pass

    def setup(self):
        super().setup()
        with lock:
            connections[self] = [self.connection, None, False]

    def finish(self):
        with lock:
            del connections[self]
        if self.upstream is not None:
            self.upstream.close()
        super().finish()

    def answer(self, code):
        body = status_of(code)
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if code == 429:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(body)

    def ask(self, body):
        if self.upstream is None:
            self.upstream = http.client.HTTPSConnection(UPSTREAM.hostname, UPSTREAM.port,
                                                        context=trusts)
            self.upstream.connect()
            connections[self][1] = self.upstream.sock
        headers = {name: value for name, value in self.headers.items()
                   if name.lower() not in ("host", "connection")}
        self.upstream.request(self.command, self.path, body, headers)
        return self.upstream.getresponse()

    def begin(self, answer, length):
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        if length is None:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def piece(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def follow(self, answer):
        connections[self][2] = True
        self.begin(answer, None)
        if strikes("gone"):
            self.piece(json.dumps({"type": "ERROR"}).encode()[:-1] + b', "object": ' +
                       status_of(410) + b"}\n")
        else:
            while data := answer.read1(65536):
                counts["told gone"] += data.count(b'"code":410')
                self.piece(data)
        self.piece(b"")
        self.close_connection = True

    def carry(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
        watches, changes = "watch=true" in self.path, self.command != "GET"
        counts["requests"] += 1
        if strikes("429"):
            self.answer(429)
        elif changes and strikes("409"):
            self.answer(409)
        elif watches and strikes("410"):
            self.answer(410)
        else:
            twice = changes and strikes("double")
            if twice:
                self.ask(body).read()
            answer = self.ask(body)
            if watches and answer.status == 200:
                self.follow(answer)
                return
            data = answer.read()
            if changes and strikes("hide"):
                self.answer(504)
                return
            self.begin(answer, len(data))
            self.wfile.write(data)

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (OSError, http.client.HTTPException):
            self.close_connection = True  # whoever asked hears nothing, as from a broken network

    do_GET = do_POST = do_PUT = do_DELETE = carry


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def get_request(self):
        file, where = super().get_request()
        return shows.wrap_socket(file, server_side=True, do_handshake_on_connect=False), where

    def handle_error(self, request, client_address):
        pass  # a client that went away


def cut(watches_only):
    with lock:
        struck = [one for one in connections.values() if one[2] or not watches_only]
        for own, upstream, _ in struck:
            for file in (own, upstream):
                try:
                    if file is not None:
                        socket.socket.shutdown(file, socket.SHUT_RDWR)
                except OSError:
                    pass  # it is gone already
    counts["cut"] += len(struck)


def obey(words):
    if words[0] == "pass":
        faults.clear()
    elif words[0] == "cut":
        cut(words[1:] == ["watches"])
    elif words[0] == "answer":
        faults[words[1]] = int(words[2])
    elif words[0] in ("gone", "double", "hide"):
        faults[words[0]] = int(words[1])
    elif words[0] != "counts":
        return "what?"
    return "ok " + " ".join(f"{name.replace(' ', '-')}={counts[name]}" for name in sorted(counts))


listener = Listener(("127.0.0.1", 0), Front)
threading.Thread(target=listener.serve_forever, daemon=True).start()
print("port", listener.server_port, flush=True)
for line in sys.stdin:
    print(obey(line.split()), flush=True)
