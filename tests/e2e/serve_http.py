#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HTTP face of the daemon as a stranger meets it: serve_http.py PROGRAM. Prints TAP.

Bytes that are no request get a status and the end of their connection; a request that is wrong gets
a status, and the connection goes on; others live on. Cases that wait for seconds run side by side.
"""

import concurrent.futures
import json
import os
import re
import signal
import socket
import sys
import time
import urllib.parse

import serve_events
from serve_kit import Cases, Closed, Daemon, encode, until, waiters
from serve_http_kit import Http, request

PROGRAM = os.path.realpath(sys.argv[1])
HOUR = 3600000
daemon = Daemon(PROGRAM, "memory:", "--host", "locks.example,Other.Example", http="127.0.0.1:0")
witness = Http(daemon.web)
resp = daemon.connect(3)


def connect(receive_buffer=None):
    return Http(daemon.web, receive_buffer)


def head(*lines, target="GET /healthz HTTP/1.1", host="Host: localhost"):
    """A request without a body, from its lines."""
    return "\r\n".join([target, *([host] if host else []), *lines, "", ""]).encode()


def chunked(*chunks, end=b"0\r\n\r\n", path="/v1/locks/raw/clear"):
    return head("Content-Type: application/json", "Transfer-Encoding: chunked",
                target=f"POST {path} HTTP/1.1") + b"".join(chunks) + end


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


# ---- bytes ----

# what is sent | status; each of these ends the connection
BROKEN = [
    # lines
    (b"GET /healthz HTTP/1.1\nHost: localhost\n\n", 400),
    (b"GET /healthz HTTP/1.1\r\nHost: localhost\n\r\n", 400),
    (b"GET /healthz HTTP/1.1\rHost: localhost\r\n\r\n", 400),
    (b"GET /healthz HTTP/1.1\r\n\nHost: localhost\r\n\r\n", 400),
    (head("X: a", " folded"), 400),
    (head("X: a", "\tfolded"), 400),
    (head(" X: a", host=None), 400),
    (head("X: a\0b"), 400),
    (head("X\0: a"), 400),
    (head("X: \x1b[2J"), 400),
    (head("X: \x7f"), 400),
    (head("X"), 400),
    (head(": a"), 400),
    (head("X : a"), 400),
    (head("X Y: a"), 400),
    (head("é: a"), 400),
    (b"\r\n\r\n" + head(), 400),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    (b"*1\r\n$4\r\nPING\r\n", 400),
    # the request line
    (head(target="GET /healthz"), 400),
    (head(target="GET  /healthz HTTP/1.1"), 400),
    (head(target="GET /healthz HTTP/1.1 "), 400),
    (head(target="GET /healthz  HTTP/1.1"), 400),
    (head(target="GET\t/healthz HTTP/1.1"), 400),
    (head(target=" GET /healthz HTTP/1.1"), 400),
    (head(target="G(T /healthz HTTP/1.1"), 400),
    (head(target="A" * 17 + " /healthz HTTP/1.1"), 501),
    (head(target="GET /healthz http/1.1"), 400),
    (head(target="GET /healthz HTTP/1.10"), 400),
    (head(target="GET /healthz HTTP/1.2"), 505),
    (head(target="GET /healthz HTTP/0.9"), 505),
    (head(target="GET /healthz HTTP/2.0"), 505),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    (head(target="GET http://localhost/healthz HTTP/1.1"), 400),
    (head(target="GET healthz HTTP/1.1"), 400),
    (head(target="OPTIONS * HTTP/1.1"), 400),
    (head(target="CONNECT localhost:80 HTTP/1.1"), 400),
    (head(target="GET /heal\0thz HTTP/1.1"), 400),
    (head(target="GET /é HTTP/1.1"), 400),
    (head(target="GET /healthz#top HTTP/1.1"), 400),
    (head(target="GET /v1/locks/% HTTP/1.1"), 400),
    (head(target="GET /v1/locks/%4 HTTP/1.1"), 400),
    (head(target="GET /v1/locks/%zz HTTP/1.1"), 400),
    (head(target="GET /v1/locks/.. HTTP/1.1"), 400),
    (head(target="GET /v1/locks/../once/x HTTP/1.1"), 400),
    (head(target="GET /v1/locks/%2e%2E/x HTTP/1.1"), 400),
    (head(target="GET /./healthz HTTP/1.1"), 400),
    (head(target="GET /" + "a" * 16384 + " HTTP/1.1"), 414),
    # fields that frame the request
    (head(host=None), 400),
    (head("Host: localhost"), 400),
    (head(host="Host: localhost, localhost"), 400),
    (head(host="Host: user@localhost"), 400),
    (head(host="Host: local host"), 400),
    (head(host="Host: localhöst"), 400),
    (head("X: " + "a" * 16384), 431),
    (head(*["X: a"] * 3000), 431),
    (head("Content-Length: 0", "Content-Length: 0"), 400),
    (head("Content-Length: 3", "Content-Length: 4"), 400),
    (head("Content-Length: 3, 3"), 400),
    (head("Content-Length: +3"), 400),
    (head("Content-Length: -3"), 400),
    (head("Content-Length: 0x3"), 400),
    (head("Content-Length: 03"), 400),
    (head("Content-Length: 3 3"), 400),
    (head("Content-Length:"), 400),
    (head("Content-Length: 65537"), 413),
    (head("Content-Length: 99999999999999999999999"), 413),
    (head("Content-Length: 5", "Transfer-Encoding: chunked"), 400),
    (head("Transfer-Encoding: chunked", "Content-Length: 5"), 400),
    (head("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), 400),
    (head("Transfer-Encoding: gzip"), 501),
    (head("Transfer-Encoding: identity"), 501),
    (head("Transfer-Encoding: gzip, chunked"), 501),
    (head("Transfer-Encoding: chunked, chunked"), 501),
    (head("Transfer-Encoding: xchunked"), 501),
    (head("Transfer-Encoding:"), 501),
    (head("Transfer-Encoding: chunked", target="GET /healthz HTTP/1.0"), 400),
    (head("Expect: 200-ok"), 417),
    (head("Connection: a b"), 400),
    # chunks
    (chunked(b"\r\n{}\r\n"), 400),
    (chunked(b"g\r\n{}\r\n"), 400),
    (chunked(b"-2\r\n{}\r\n"), 400),
    (chunked(b"0x2\r\n{}\r\n"), 400),
    (chunked(b" 2\r\n{}\r\n"), 400),
    (chunked(b"2 \r\n{}\r\n"), 400),
    (chunked(b"2\n{}\r\n"), 400),
    (chunked(b"2\r\n{}\n"), 400),
    (chunked(b"2\r\n{}}\r\n"), 400),
    (chunked(b"1\r\n{}\r\n"), 400),
    (chunked(b"10001\r\n"), 413),
    (chunked(b"ffffffffffffffffffff\r\n"), 413),
    (chunked(chunk(b"{" + b" " * 65535), chunk(b"}")), 413),
    (chunked(b"2;" + b"x" * 16384 + b"\r\n{}\r\n"), 400),
    (chunked(chunk(b"{}"), end=b"0\r\nContent-Length: 2\r\n\r\n"), 400),
    (chunked(chunk(b"{}"), end=b"0\r\nHost: other\r\n\r\n"), 400),
    (chunked(chunk(b"{}"), end=b"0\r\nX: " + b"a" * 16384 + b"\r\n\r\n"), 400),
]


def breaks_the_connection(data, status, send):
    """Other requests may be in front; whatever is behind is never read."""
    with connect() as client:
        send(client, head() + data + head(target="DELETE /v1/locks/behind?reason=x HTTP/1.1"))
        assert client.read().status == 200
        response = client.read()
        assert response.status == status and response.closes, (data[:200], response)
        assert client.ends() == b"", (data[:200], client.data)


def each_broken_request_ends_its_connection():
    for data, status in BROKEN:
        breaks_the_connection(data, status, Http.send)
        assert witness.call("GET", "/healthz").status == 200


def byte_by_byte():
    for data, status in BROKEN:
        if len(data) < 300:
            breaks_the_connection(data, status, Http.trickle)
    with connect() as client:
        client.trickle(head() + request("POST", "/v1/locks/bytes/acquire",
                                        {"holder": "é", "ttl_ms": 60000}))
        assert client.read().status == 200
        assert client.read().json["holder"] == "é"


# what is sent | status; the connection goes on
WHOLE = [
    (head(), 200),
    (b"\r\n" + head(), 200),
    (head("X: obs-text é", "X: again", "x-y: \t padded \t"), 200),
    (head("X: " + "a" * (16384 - len(head("X: ")))), 200),
    (head("Content-Length: 0"), 200),
    (head(host="hOsT:localhost"), 200),
    (head(target="GET / HTTP/1.1"), 200),
    (head(target="GET /metrics HTTP/1.1"), 200),
    (head(target="GET /readyz HTTP/1.1"), 200),
    (head(target="GET /openapi.json HTTP/1.1"), 200),
    (head(target="GET /healthz?" + "&" * 100 + " HTTP/1.1"), 200),
    (head("Content-Length: 2") + b"{}", 400),
    (head(target="GET /Healthz HTTP/1.1"), 404),
    (head(target="GET /healthz/ HTTP/1.1"), 404),
    (head(target="GET //healthz HTTP/1.1"), 404),
    (head(target="GET /v1 HTTP/1.1"), 404),
    (head(target="GET /v1/locks/a/b HTTP/1.1"), 404),
    (head(target="GET /v1/%6cocks HTTP/1.1"), 404),
    (head(target="GET /v1/locks/... HTTP/1.1"), 200),
    (head(target="GET /v1/locks/a%2F..%2fb HTTP/1.1"), 200),
    (head(target="GET /v1/locks/ HTTP/1.1"), 400),
    (head(target="GET /v1/locks/%00 HTTP/1.1"), 400),
    (head(target="GET /v1/locks/%0a HTTP/1.1"), 400),
    (head(target="GET /v1/locks/%ff HTTP/1.1"), 400),
    (head(target="GET /v1/locks/%ed%a0%80 HTTP/1.1"), 400),
    (head(target="GET /v1/locks/" + "k" * 512 + " HTTP/1.1"), 200),
    (head(target="GET /v1/locks/" + "k" * 513 + " HTTP/1.1"), 400),
    (head(target="GET /v1/locks/" + "%c3%a9" * 256 + " HTTP/1.1"), 200),
    (head(target="GET /v1/locks/" + "%c3%a9" * 257 + " HTTP/1.1"), 400),
    (head(target="GET /v1/locks/" + "k" * 10000 + " HTTP/1.1"), 400),
    (head(target="GET /v1/once/" + "k" * 512 + " HTTP/1.1"), 400),
    (head(target="GET /v1/watch?prefix=" + "k" * 513 + " HTTP/1.1"), 400),
    (head(target="GET /v1/watch?prefix=%ff HTTP/1.1"), 400),
    (chunked(), 200),
    (chunked(chunk(b"{"), chunk(b"}")), 200),
    (chunked(b"02\r\n{}\r\n"), 200),
    (chunked(b"2;name=value;x=\"y\"\r\n{}\r\n"), 200),
    (chunked(chunk(b"{}"), end=b"0\r\nX-Trailer: a\r\n\r\n"), 200),
    (chunked(chunk(b"{" + b" " * 65534 + b"}")), 200),
]


def each_whole_request_leaves_the_connection():
    """All on one connection, then pipelined: the responses come in order."""
    with connect() as client:
        for data, status in WHOLE:
            client.send(data)
            response = client.read()
            assert response.status == status and not response.closes, (data[:200], response)
        client.send(b"".join(data for data, _ in WHOLE))
        assert [client.read().status for _ in WHOLE] == [status for _, status in WHOLE]


def a_hundred_thousand_chunks_are_refused():
    with connect() as client:
        try:
            client.send(chunked(b"1\r\n \r\n" * 100000))
        except Closed:
            pass
        assert client.read().status in (400, 413)
        assert witness.call("GET", "/healthz").status == 200


def a_body_has_at_most_64_kib():
    with connect() as client:
        body = b"{" + b" " * 65534 + b"}"
        assert client.call("POST", "/v1/locks/big/clear", body).status == 200
        response = client.call("POST", "/v1/locks/big/clear", body + b" ")
        assert response.status == 413 and response.closes and client.ends() == b""


def the_client_may_ask_before_it_sends_the_body():
    with connect() as client:
        data = request("POST", "/v1/locks/expect/clear", b"{}", Expect="100-continue")
        client.send(data[:-2])
        assert client.head() == (100, {})
        client.send(data[-2:])
        assert client.read().status == 200
        client.send(data)  # it did not wait
        assert client.read().status == 200
        client.send(request("POST", "/v1/locks/expect/clear", b"{}", Expect="100-continue",
                            Content_Length=65537)[:-2])
        response = client.read()
        assert response.status == 413 and response.closes


def old_clients_are_served():
    with connect() as client:
        client.send(head(target="GET /healthz HTTP/1.0", host=None))
        response = client.read()
        assert response.status == 200 and response.closes and client.ends() == b""
    with connect() as client:
        for _ in range(2):
            client.send(head("Connection: keep-alive", target="GET /healthz HTTP/1.0", host=None))
            response = client.read()
            assert response.fields["connection"] == "keep-alive", response
    for tokens in ("close", "CLOSE", "keep-alive, close", "x,close,"):
        with connect() as client:
            client.send(head(f"Connection: {tokens}") + head())
            assert client.read().closes and client.ends() == b"", tokens


def head_has_no_body():
    with connect() as client:
        for path, status in (("/healthz", 200), ("/openapi.json", 200), ("/v1/locks/k", 200),
                             ("/v1/locks", 200), ("/nothing", 404), ("/v1/acquire", 405),
                             ("/v1/locks/%ff", 400)):
            length = int(client.call("GET", path).fields["content-length"])
            response = client.call("HEAD", path)
            same = path == "/v1/acquire" or int(response.fields["content-length"]) == length
            assert response.status == status and same, (path, response)


def a_method_that_a_path_lacks_is_named():
    with connect() as client:
        for method, path, allow in (("PATCH", "/v1/locks/k", {"GET", "HEAD", "DELETE"}),
                                    ("POST", "/healthz", {"GET", "HEAD"}),
                                    ("OPTIONS", "/v1/watermarks/w", {"GET", "HEAD", "PUT"}),
                                    ("GET", "/v1/locks/k/acquire", {"POST"}),
                                    ("get", "/", {"GET", "HEAD"})):
            response = client.call(method, path)
            assert response.status == 405, response
            assert set(response.fields["allow"].split(", ")) == allow, response


def many_at_once_keep_their_order():
    """The responses of a pipeline exceed all buffers: a client that reads them gets them all."""
    count, data = 100, head(target="GET /openapi.json HTTP/1.1") + head()
    with connect() as client:
        client.send(data * count)
        for _ in range(count):
            assert client.read().json["openapi"] == "3.0.3"
            assert client.read().json["outcome"] == "ok"


# ---- Host and Origin ----


def only_our_names_are_served():
    port = daemon.web[1]
    good = ["localhost", "LocalHost", f"localhost:{port}", "127.0.0.1", f"127.0.0.1:{port}",
            "127.0.0.1:", "192.0.2.7", "[::1]", f"[::1]:{port}", "locks.example",
            "LOCKS.EXAMPLE:443", "other.example"]
    bad = ["", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "localhost.",
           "locks.example.evil", "xlocks.example", "localhost:80x", "localhost:-1", "localhost:8:8",
           "[::1", "[::1]x", "::1", "[]", ":80", "127.1", "2130706433", "0x7f.0.0.1",
           "127.0.0.1%00", "h" * 300]
    with connect() as client:
        for name in good:
            assert client.call("GET", "/healthz", Host=name).status == 200, name
        for name in bad:
            response = client.call("POST", "/v1/locks/host/acquire",
                                   {"holder": "h", "ttl_ms": 60000}, Host=name)
            assert response.status == 421 and not response.closes, (name, response)
        assert client.call("GET", "/v1/locks/host").json["state"] == "free"


def other_sites_are_refused():
    host = "127.0.0.1:%d" % daemon.web[1]
    good = [f"http://{host}", f"https://{host}", f"HTTP://{host}"]
    bad = ["null", "", "http://", "http://127.0.0.1", f"http://{host}.evil.example", "file://",
           f"http://{host}/", f"{host}", f"ftp://{host}", "http://localhost", f"http://x@{host}",
           f"http://{host} http://{host}", "https://evil.example"]
    with connect() as client:
        for origin in good:
            assert client.call("GET", "/healthz", Host=host, Origin=origin).status == 200, origin
        for origin in bad:
            response = client.call("POST", "/v1/locks/origin/acquire",
                                   {"holder": "h", "ttl_ms": 60000}, Host=host, Origin=origin)
            assert response.status == 403 and not response.closes, (origin, response)
        assert client.call("GET", "/v1/locks/origin").json["state"] == "free"
    for origin in bad:
        with connect() as client:  # nothing to compare it with
            client.send(head(f"Origin: {origin}", target="GET / HTTP/1.0", host=None))
            assert client.read().status == 403, origin


def a_body_must_be_json():
    with connect() as client:
        for kind in ("application/json", "Application/JSON", "application/json; charset=utf-8",
                     "application/json;charset=utf-8", "application/json ; charset=utf-8"):
            response = client.call("POST", "/v1/locks/type/clear", b"{}", Content_Type=kind)
            assert response.status == 200, (kind, response)
        for kind in (None, "", "text/plain", "application/x-www-form-urlencoded",
                     "multipart/form-data", "application/jsonx", "application/json, text/plain",
                     "application/json text/plain", "text/plain; application/json", "json"):
            for body in (b"{}", b""):
                response = client.call("POST", "/v1/locks/type/clear", body, Content_Type=kind)
                assert response.status == 415 and not response.closes, (kind, response)
        response = client.call("PUT", "/v1/watermarks/w", b"{}", Content_Type="text/plain")
        assert response.status == 415, response


# ---- fields ----

ACQUIRE = {"holder": "h", "ttl_ms": 60000}
TAKE = "/v1/locks/fields/acquire"

# method and path | body | what the text names
WRONG = [
    ("POST " + TAKE, {}, "holder is missing"),
    ("POST " + TAKE, b"", "holder is missing"),
    ("POST " + TAKE, {"holder": "h"}, "ttl_ms is missing"),
    ("POST " + TAKE, {"holder": None, "ttl_ms": 1}, "holder is missing"),
    ("POST " + TAKE, {**ACQUIRE, "holder": 7}, "holder must be a string"),
    ("POST " + TAKE, {**ACQUIRE, "holder": ["h"]}, "holder must be a string"),
    ("POST " + TAKE, {**ACQUIRE, "holder": ""}, "holder"),
    ("POST " + TAKE, {**ACQUIRE, "holder": "h" * 129}, "holder"),
    ("POST " + TAKE, {**ACQUIRE, "holder": "h" * 60000}, "holder"),
    ("POST " + TAKE, {**ACQUIRE, "holder": "a\nb"}, "holder"),
    ("POST " + TAKE, {**ACQUIRE, "ttl_ms": "60000"}, "ttl_ms must be a number"),
    ("POST " + TAKE, {**ACQUIRE, "ttl_ms": 0}, "ttl_ms"),
    ("POST " + TAKE, {**ACQUIRE, "ttl_ms": -1}, "ttl_ms"),
    ("POST " + TAKE, {**ACQUIRE, "ttl_ms": 1.5}, "ttl_ms"),
    ("POST " + TAKE, b'{"holder":"h","ttl_ms":1e3}', "ttl_ms"),
    ("POST " + TAKE, {**ACQUIRE, "ttl_ms": 10 ** 30}, "ttl_ms"),
    ("POST " + TAKE, {**ACQUIRE, "ttl_ms": True}, "ttl_ms must be a number"),
    ("POST " + TAKE, {**ACQUIRE, "wait_ms": -1}, "wait_ms must be a number from 0 to 60000"),
    ("POST " + TAKE, {**ACQUIRE, "wait_ms": 60001}, "wait_ms must be a number from 0 to 60000"),
    ("POST " + TAKE, {**ACQUIRE, "wait_ms": 10 ** 20}, "wait_ms must be a number"),
    ("POST " + TAKE, {**ACQUIRE, "wait_ms": "5"}, "wait_ms must be a number"),
    ("POST " + TAKE, {**ACQUIRE, "shared": 1}, "shared must be true or false"),
    ("POST " + TAKE, {**ACQUIRE, "shared": "true"}, "shared must be true or false"),
    ("POST " + TAKE, {**ACQUIRE, "limit": 0}, "limit needs a number from 1 to 64"),
    ("POST " + TAKE, {**ACQUIRE, "limit": "2"}, "limit must be a number"),
    ("POST " + TAKE, {**ACQUIRE, "priority": 101}, "priority needs a number"),
    ("POST " + TAKE, {**ACQUIRE, "cooldown_ms": -1}, "cooldown_ms needs a number"),
    ("POST " + TAKE, {**ACQUIRE, "lock_delay_ms": {}}, "lock_delay_ms must be a number"),
    ("POST " + TAKE, {**ACQUIRE, "meta": "a=b"}, "meta must be an object"),
    ("POST " + TAKE, {**ACQUIRE, "meta": {"a": 1}}, "meta needs a JSON object of at most 16"),
    ("POST " + TAKE, {**ACQUIRE, "meta": {str(i): "" for i in range(17)}}, "meta"),
    ("POST " + TAKE, {**ACQUIRE, "meta": {"a": "x" * 5000}}, "meta"),
    ("POST " + TAKE, {**ACQUIRE, "meta": {"a": "b\nc"}}, "meta"),
    ("POST " + TAKE, {**ACQUIRE, "request_id": ""}, "request_id: an ID must have 1 to 256"),
    ("POST " + TAKE, {**ACQUIRE, "request_id": "i" * 257}, "request_id: an ID must have 1 to 256"),
    ("POST " + TAKE, {**ACQUIRE, "request_id": 5}, "request_id must be a string"),
    ("POST " + TAKE, {**ACQUIRE, "wait": 5}, "unknown field 'wait'; did you mean wait_ms?"),
    ("POST " + TAKE, {**ACQUIRE, "tll_ms": 5}, "unknown field 'tll_ms'; did you mean ttl_ms?"),
    ("POST " + TAKE, {**ACQUIRE, "Holder": "x"}, "unknown field 'Holder'; did you mean holder?"),
    ("POST " + TAKE, {**ACQUIRE, "bind": True}, "unknown field 'bind'"),
    ("POST " + TAKE, {**ACQUIRE, "async": True}, "unknown field 'async'"),
    ("POST " + TAKE, {**ACQUIRE, "key": "other"}, "unknown field 'key'"),
    ("POST " + TAKE, {**ACQUIRE, "": 1}, "unknown field ''"),
    ("POST " + TAKE, {**ACQUIRE, "x\x1b\"\u202e" + "y" * 400: 1}, "unknown field 'x?"),
    ("POST " + TAKE, b'{"holder":"a","ttl_ms":5,"holder":"b"}', "holder is given twice"),
    ("POST " + TAKE, b'{"holder":"a","ttl_ms":5,"hold\\u0065r":"b"}', "holder is given twice"),
    ("POST " + TAKE, {**ACQUIRE, **{f"f{i}": 1 for i in range(63)}}, "at most 64 members"),
    ("POST " + TAKE, {**ACQUIRE, **{f"f{i}": 1 for i in range(62)}}, "unknown field 'f0'"),
    ("POST " + TAKE + "?wait_ms=5", ACQUIRE, "in the body, not in the query"),
    ("POST " + TAKE + "?", ACQUIRE, "in the body, not in the query"),
    ("POST /v1/locks/fields/renew", {}, "token is missing"),
    ("POST /v1/locks/fields/renew", {"token": 2048}, "token must be a string"),
    ("POST /v1/locks/fields/renew", {"token": "x"}, "token must be a number above 0"),
    ("POST /v1/locks/fields/renew", {"token": "1", "ttl_ms": 0}, "ttl_ms"),
    ("POST /v1/locks/fields/release", {"token": "-1"}, "token must be a number above 0"),
    ("POST /v1/locks/fields/release", {"token": "1" * 30}, "token must be a number above 0"),
    ("POST /v1/locks/fields/break", {}, "reason is missing"),
    ("POST /v1/locks/fields/break", {"reason": "r" * 60000}, "reason"),
    ("POST /v1/locks/fields/break", {"reason": "x", "now": None, "nwo": 1}, "did you mean now?"),
    ("DELETE /v1/locks/fields", None, "reason is missing"),
    ("DELETE /v1/locks/fields?reason=x&now=maybe", None, "now must be true or false"),
    ("DELETE /v1/locks/fields?reason=x", {"reason": "y"}, "in the body, not in the query"),
    ("POST /v1/acquire", {**ACQUIRE, "keys": []}, "keys must be a list of 1 to 16 strings"),
    ("POST /v1/acquire", {**ACQUIRE, "keys": "a"}, "keys must be a list of strings"),
    ("POST /v1/acquire", {**ACQUIRE, "keys": ["a", 1]}, "keys must be a list of 1 to 16 strings"),
    ("POST /v1/acquire", {**ACQUIRE, "keys": [str(i) for i in range(17)]}, "keys must be a list"),
    ("POST /v1/acquire", {**ACQUIRE, "keys": ["a", ""]}, "key"),
    ("POST /v1/acquire", {**ACQUIRE, "keys": ["a", "a"]}, "key"),
    ("POST /v1/acquire", {**ACQUIRE, "keys": ["k" * 513]}, "key"),
    ("POST /v1/acquire", {**ACQUIRE, "keys": ["a"], "cached": True}, "unknown field 'cached'"),
    ("POST /v1/once/i/begin", {**ACQUIRE, "payload": 5}, "payload must be a string"),
    ("POST /v1/once/i/begin", {**ACQUIRE, "payload": "p" * 60000}, "payload"),
    ("POST /v1/once/i/begin", {**ACQUIRE, "wait_ms": 5}, "unknown field 'wait_ms'"),
    ("POST /v1/once/i/begin", {**ACQUIRE, "request_id": ""}, "request_id: an ID must have"),
    ("POST /v1/once/i/finish", {"token": "1", "status": 256}, "status needs a number"),
    ("POST /v1/once/i/finish", {"token": "1", "result": 5}, "result must be a string"),
    ("POST /v1/once/i/mark", {"result": "r" * 60000}, "result"),
    ("POST /v1/once/i/mark", {"keep_ms": 0}, "keep_ms needs a number"),
    ("PUT /v1/watermarks/w", {"value": "1"}, "expected is missing"),
    ("PUT /v1/watermarks/w", {"value": "1", "reason": None}, "expected is missing"),
    ("PUT /v1/watermarks/w", {"value": 1, "expected": ""}, "value must be a string"),
    ("PUT /v1/watermarks/w", {"value": "v" * 60000, "expected": ""}, "value"),
    ("PUT /v1/watermarks/w", {"value": "v", "expected": "e" * 60000}, "expected"),
    ("PUT /v1/watermarks/w", {"value": "1", "expected": "", "reason": "x"}, "'expected'"),
    ("GET /v1/locks?cuont=5", None, "unknown field 'cuont'; did you mean count?"),
    ("GET /v1/locks?count=0", None, "count needs a number from 1 to 1000"),
    ("GET /v1/locks?count=x", None, "count needs a number"),
    ("GET /v1/locks?count=", None, "count needs a number"),
    ("GET /v1/locks?raw=2", None, "raw must be true or false"),
    ("GET /v1/locks?prefix=a&prefix=a", None, "prefix is given twice"),
    ("GET /v1/locks?after=" + "k" * 600, None, "cursor"),
    ("GET /v1/locks?prefix=%00", None, "the query is malformed"),
    ("GET /v1/locks?" + "&".join(f"f{i}=" for i in range(65)), None, "64"),
    ("GET /v1/locks/k?rwa=1", None, "did you mean raw?"),
    ("GET /v1/watch?prefxi=a", None, "unknown field 'prefxi'; did you mean prefix?"),
    ("GET /v1/watch?prefix=a&count=1", None, "unknown field 'count'"),
    ("GET /healthz?x=1", None, "unknown field 'x'"),
    ("GET /metrics?access_token=secret", None, "unknown field 'access_token'"),
]

# bodies that are no JSON object
NOT_JSON = [
    b"null", b"[]", b"1", b'"x"', b"{", b"}", b"{}{}", b"{},", b"{}x", b"\xef\xbb\xbf{}", b"{}\0",
    b"\0", b'{"a":1,}', b"{,}", b"{a:1}", b"{'a':1}", b'{"a"}', b'{"a":}', b'{"a":01}',
    b'{"a":+1}', b'{"a":.5}', b'{"a":NaN}', b'{"a":"\n"}', b'{"a":"\\x"}', b'{"a":"\\u00"}',
    b'{"a":"\\u0000"}', b'{"a":"\\ud800"}', b'{"a":"\xff"}', b'{"\xc0\x80":1}',
    b'{"a":"\xed\xa0\x80"}', b'{"a":' + b"[" * 9 + b"]" * 9 + b"}", b'{"a":' + b"[" * 30000,
    b'/**/{}', b'{"a":tru}', b"holder=h&ttl_ms=5",
]


def each_wrong_field_is_named():
    with connect() as client:
        for line, body, named in WRONG:
            response = client.call(*line.split(" ", 1), body)
            assert response.status == 400 and not response.closes, (line, body, response)
            assert named in response.text and response.json["outcome"] == "usage", response
            assert len(response.body) < 800, response
        assert client.call("GET", "/v1/locks/fields").json["state"] == "free"


def a_body_that_is_no_object_is_refused():
    with connect() as client:
        for body in NOT_JSON:
            response = client.call("POST", TAKE, body)
            assert response.status == 400 and "JSON object" in response.text, (body[:50], response)


def fields_are_read_as_json_and_queries_have_them():
    with connect() as client:
        body = b' {"ttl_ms" : 60000 ,\r\n\t"hold\\u0065r":"\\ud83d\\ude00\\/",' \
               b'"meta":{"a":"\\"b"},"wait_ms":null,"shared":false,"limit":null} \n'
        assert client.call("POST", "/v1/locks/read%2Fa%26b/acquire", body).json["holder"] == "😀/"
        assert client.call("POST", "/v1/locks/read%2Fa%20c/acquire", ACQUIRE).status == 200
        view = client.call("GET", "/v1/locks/read%2Fa%26b").json
        assert view["key"] == "read/a&b" and view["meta"] == {"a": '"b'}, view
        for query, keys in (("prefix=read%2Fa%26b&count=1", ["read/a&b"]),
                            ("prefix=read%2Fa+c", ["read/a c"]), ("prefix=read/a%20c", ["read/a c"]),
                            ("&&prefix=read%2F&&raw=true&", ["read/a c", "read/a&b"]),
                            ("prefix=read%2Fa%2Bc", []), ("prefix=zzz", [])):
            page = client.call("GET", "/v1/locks?" + query).json
            assert [view["key"] for view in page["keys"]] == keys, (query, page)
            assert ("record" in str(page)) == ("raw" in query), page
        page = client.call("GET", "/v1/locks?prefix=read%2F&count=1").json
        after = urllib.parse.quote(page["next"], safe="")
        page = client.call("GET", f"/v1/locks?prefix=read%2F&count=1&after={after}").json
        assert [view["key"] for view in page["keys"]] == ["read/a&b"], page
        assert page["next"] is None, page


def keys_are_percent_encoded():
    with connect() as client:
        for key in ("a/b", "a b", "a+b", "a%b", "é😀", "..", ".", "a?b#c", "%2F", "a\\b", "k" * 512,
                    "acquire", "../../etc/passwd", "\"quoted\"", "<script>", "\u202eabc"):
            path = "/v1/locks/" + urllib.parse.quote(key, safe="+")
            if key in (".", ".."):  # clients and proxies remove these: use another key
                assert Http(daemon.web).call("GET", path).status == 400, key
                continue
            reply = client.call("POST", path + "/acquire", ACQUIRE)
            assert reply.status == 200, (key, reply)
            assert resp.call("LOCK.STATUS", key)["holder"] == "h", key
            assert client.call("GET", path).json["key"] == key
            token = {"token": reply.json["token"]}
            assert client.call("POST", path + "/release", token).status == 200
            assert client.call("POST", path + "/release", token).status == 412


# ---- waiting ----


def hold(key):
    return resp.token("LOCK.ACQUIRE", key, "first", HOUR)


def a_waiting_request_holds_back_later_ones():
    token = hold("front")
    with connect() as client, connect() as other:
        client.send(request("POST", "/v1/locks/front/acquire", {**ACQUIRE, "wait_ms": 50000}) +
                    head() + request("GET", "/v1/locks/front"))
        waiters(resp, "front", 1)
        for _ in range(3):
            assert other.call("GET", "/healthz").status == 200
        assert client.quiet(0.1)
        resp.ok("LOCK.RELEASE", "front", token)
        reply = client.read()
        assert reply.status == 200 and reply.json["token"] > token, reply
        assert client.read().text == "ok: running"
        assert client.read().json["token"] == reply.json["token"]


def a_wait_ends():
    token = hold("short")
    with connect() as client:
        began = time.monotonic()
        response = client.call("POST", "/v1/locks/short/acquire", {**ACQUIRE, "wait_ms": 300})
        assert response.status == 409 and response.json["holder"] == "first", response
        assert 0.3 <= time.monotonic() - began < 30
        response = client.call("POST", "/v1/locks/short/acquire", {**ACQUIRE, "wait_ms": 0})
        assert response.status == 409 and response.json["token"] == token, response
        assert client.call("GET", "/healthz").status == 200


def the_end_of_a_client_gives_up_its_wait():
    for end in (Http.close, lambda client: client.socket.shutdown(socket.SHUT_WR)):
        for behind in (b"", head(), head()[:20]):
            hold_token = hold("gone")
            client = connect()
            client.send(request("POST", "/v1/locks/gone/acquire", {**ACQUIRE, "wait_ms": 60000}) +
                        behind)
            waiters(resp, "gone", 1)
            end(client)
            assert waiters(resp, "gone", 0)["waiters"] == 0
            resp.ok("LOCK.RELEASE", "gone", hold_token)
            assert resp.call("LOCK.STATUS", "gone")["state"] == "free"
            client.close()


def a_grant_decided_after_the_end_is_released():
    """The daemon finds the end of the client and the release of the holder in one turn."""
    for _ in range(5):
        token = hold("late")
        client = connect()
        client.send(request("POST", "/v1/locks/late/acquire", {**ACQUIRE, "wait_ms": 60000}))
        waiters(resp, "late", 1)
        daemon.process.send_signal(signal.SIGSTOP)
        client.close()
        resp.send(encode("LOCK.RELEASE", "late", token))
        daemon.process.send_signal(signal.SIGCONT)
        assert resp.read()["outcome"] == "ok"
        until(lambda: resp.call("LOCK.STATUS", "late")["state"] == "free")


def a_repeated_request_id_gets_the_same_grant():
    body = {**ACQUIRE, "request_id": "same"}
    with connect() as first, connect() as second:
        token = first.call("POST", "/v1/locks/id/acquire", body).json["token"]
        assert second.call("POST", "/v1/locks/id/acquire", body).json["token"] == token
        assert second.call("POST", "/v1/locks/other/acquire", body).status == 422
        assert resp.token("LOCK.ACQUIRE", "id", "h", 60000, "ID", "same") == token
        # also while the first still waits, and after its client is gone
        waits = {**ACQUIRE, "holder": "w", "wait_ms": 60000, "request_id": "waits"}
        first.send(request("POST", "/v1/locks/id/acquire", waits))
        waiters(resp, "id", 1)
        response = second.call("POST", "/v1/locks/id/acquire", {**waits, "wait_ms": 0})
        assert response.status == 409 and "wait_ms" in response.text, response
        second.send(request("POST", "/v1/locks/id/acquire", waits))
        response = first.read()
        assert response.status == 409 and "repeated this request id" in response.text, response
        second.close()
        with connect() as third:
            third.send(request("POST", "/v1/locks/id/acquire", waits))
            time.sleep(0.1)
            waiters(resp, "id", 1)
            assert first.call("POST", "/v1/locks/id/release", {"token": token}).status == 200
            granted = third.read().json["token"]
            assert int(granted) > int(token)
            assert first.call("POST", "/v1/locks/id/acquire", waits).json["token"] == granted


# ---- slow, silent and half-open clients ----


def a_half_open_client_gets_its_responses():
    """Like `printf … | nc -N`: no further request follows, but the replies are read."""
    for data, statuses in ((head(), [200]), (head() * 3, [200] * 3),
                           (request("GET", "/v1/locks/half") * 2 + head(), [200] * 3),
                           (request("GET", "/v1/locks") + head()[:30], [200]),
                           (head(target="GET /openapi.json HTTP/1.1") * 40, [200] * 40)):
        with connect() as client:
            client.send(data)
            client.socket.shutdown(socket.SHUT_WR)
            assert [client.read().status for _ in statuses] == statuses
            assert client.ends() == b""


def a_slow_head_gets_408():
    data = head("X: " + "a" * 200)
    with connect() as client:
        began = time.monotonic()
        while time.monotonic() < began + 30:
            client.send(data[:1])
            data = data[1:]
            if not client.quiet(0.2):
                break
        response = client.read()
        assert response.status == 408 and response.closes and client.ends() == b"", response
        assert 9 < time.monotonic() - began < 30


def a_slow_body_gets_408():
    """Also behind a HEAD, whose response has no body."""
    with connect() as client:
        assert client.call("HEAD", "/healthz").status == 200
        began = time.monotonic()
        client.send(request("POST", "/v1/locks/slow/clear", b"{}")[:-1])
        response = client.read()
        assert response.status == 408 and "10 s" in response.text and client.ends() == b""
        assert 9 < time.monotonic() - began < 30


def a_silent_client_is_ended():
    with connect() as client:
        client.ends(timeout=30)
        assert client.data == b"" or client.read().status == 408


def an_idle_connection_stays():
    with connect() as client:
        assert client.call("GET", "/healthz").status == 200
        assert client.quiet(11)
        assert client.call("GET", "/healthz").status == 200


def a_client_that_does_not_read_is_cut():
    with connect(receive_buffer=4096) as client, daemon.connect() as other:
        client.socket.settimeout(1)
        try:
            while True:
                client.socket.sendall(head(target="GET /openapi.json HTTP/1.1") * 10)
        except TimeoutError:  # it is not read any more
            size = int(re.search(r"buffered_bytes:(\d+)", other.call("INFO"))[1])
            assert size < 1 << 20, size
        until(lambda: "cut_connections:1\r" in other.call("INFO"))


def too_many_connections_get_503():
    small = Daemon(PROGRAM, "memory:", "--max-connections", "2", http="127.0.0.1:0")
    with Http(small.web) as first, Http(small.web) as second:
        assert first.call("GET", "/healthz").status == 200
        assert second.call("GET", "/healthz").status == 200
        for _ in range(20):
            with Http(small.web) as third:
                try:
                    third.send(head())
                except Closed:
                    pass
                status, fields = third.head()
                assert status == 503 and int(fields["retry-after"]) > 0, fields
                body = third.take(int(fields["content-length"]), time.monotonic() + 30)
                assert json.loads(body)["outcome"] == "unavailable", body
        assert first.call("GET", "/healthz").status == 200

    def is_accepted():
        with Http(small.web) as fourth:
            try:
                return fourth.call("GET", "/healthz").status == 200
            except (Closed, KeyError):
                return False
    until(is_accepted)


FAST = (
    each_broken_request_ends_its_connection, byte_by_byte,
    each_whole_request_leaves_the_connection, a_hundred_thousand_chunks_are_refused,
    a_body_has_at_most_64_kib, the_client_may_ask_before_it_sends_the_body, old_clients_are_served,
    head_has_no_body, a_method_that_a_path_lacks_is_named, many_at_once_keep_their_order,
    only_our_names_are_served, other_sites_are_refused, a_body_must_be_json,
    each_wrong_field_is_named, a_body_that_is_no_object_is_refused,
    fields_are_read_as_json_and_queries_have_them, keys_are_percent_encoded,
    a_waiting_request_holds_back_later_ones, a_wait_ends, the_end_of_a_client_gives_up_its_wait,
    a_grant_decided_after_the_end_is_released, a_repeated_request_id_gets_the_same_grant,
    a_half_open_client_gets_its_responses, too_many_connections_get_503)
SLOW = (a_slow_head_gets_408, a_slow_body_gets_408, a_silent_client_is_ended,
        an_idle_connection_stays, a_client_that_does_not_read_is_cut)

cases = Cases()
with concurrent.futures.ThreadPoolExecutor(len(SLOW) + len(serve_events.SLOW)) as pool:
    slow = [(function, pool.submit(function)) for function in SLOW]
    slow += [(function, pool.submit(function, PROGRAM)) for function in serve_events.SLOW]
    for function in FAST:
        cases.run(function.__name__.replace("_", " "), function)
    for function in serve_events.FAST:
        cases.run(function.__name__.replace("_", " "), function, PROGRAM)
    for function, future in slow:
        cases.run(function.__name__.replace("_", " "), future.result)
cases.tell(witness.call("GET", "/healthz").status == 200, "the first connection lives on")
cases.tell(daemon.kill(15) == 0, "SIGTERM ends the daemon", daemon.logged())
cases.finish()
