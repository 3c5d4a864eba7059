# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the two places that give tokens of Microsoft Entra ID, as strict as what is
documented: every header, parameter and value is looked at, and anything else is refused as there.

entra.py PORT_FILE SOCKET OBJECT_ID LIVES LOG: writes the loopback port it listens on to PORT_FILE.
Each token becomes the only password of the user OBJECT_ID at the Redis server behind SOCKET, as a
token that ended would be refused there; it says that it lives for LIVES seconds. What happened is
written to LOG, one line each, without tokens. ENTRA_SECRET is the assertion that is taken, and
ENTRA_TROUBLE how many requests get 429, 500 and 404 first, as the metadata service may do.
"""
import base64
import http.server
import json
import os
import sys
import time
import urllib.parse
import uuid

import redis

PORT_FILE, SOCKET, OBJECT_ID, LIVES, LOG = sys.argv[1:]
AUDIENCE = "https://redis.azure.com"
TENANT, CLIENT = "11111111-2222-3333-4444-555555555555", "99999999-8888-7777-6666-555555555555"
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
server = redis.Redis(unix_socket_path=SOCKET, username="admin",
                     password=os.environ["REDIS_ADMIN_PASSWORD"])
troubles = [429, 500, 404][:int(os.environ.get("ENTRA_TROUBLE", "0"))]


def log(words):
    with open(LOG, "a") as out:
        out.write(words + "\n")


def encoded(claims):
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")


def new_token():
    token = ".".join([encoded({"typ": "JWT", "alg": "RS256"}),
                      encoded({"aud": AUDIENCE, "oid": OBJECT_ID, "jti": uuid.uuid4().hex}),
                      uuid.uuid4().hex])
    server.execute_command("ACL", "SETUSER", OBJECT_ID, "resetpass", ">" + token)
    return token


class Places(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def answer(self, status, members, headers=()):
        body = json.dumps(members).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, error, words):
        log(f"refused {status} {error}: {words}")
        self.answer(status, {"error": error, "error_description": words})

    def do_GET(self):  # a managed identity
        url = urllib.parse.urlsplit(self.path)
        asked = dict(urllib.parse.parse_qsl(url.query, strict_parsing=True))
        if url.path != "/metadata/identity/oauth2/token":
            self.refuse(404, "not_found", "there is no such path")
        elif self.headers.get("Metadata") != "true":
            self.refuse(400, "invalid_request", "Required metadata header not specified")
        elif self.headers.get("X-Forwarded-For"):
            self.refuse(400, "invalid_request", "the request was forwarded")
        elif asked.pop("api-version", None) != "2018-02-01":
            self.refuse(400, "invalid_request", "bad api-version")
        elif asked.pop("resource", None) != AUDIENCE:
            self.refuse(400, "invalid_resource", "the resource is not known")
        elif asked.pop("client_id", CLIENT) != CLIENT:
            self.refuse(400, "invalid_request", "Identity not found")
        elif asked:
            self.refuse(400, "invalid_request", f"what is {sorted(asked)}?")
        elif troubles:
            status = troubles.pop(0)
            log(f"trouble {status}")
            headers = [("Retry-After", "1")] if status == 429 else []
            self.answer(status, {"error": "temporarily_unavailable"}, headers)
        else:
            token = new_token()
            log("token managed")
            ends = int(time.time()) + int(LIVES)
            self.answer(200, {"access_token": token, "refresh_token": "", "expires_in": LIVES,
                              "expires_on": str(ends), "not_before": str(ends - int(LIVES)),
                              "resource": AUDIENCE, "token_type": "Bearer"})

    def do_POST(self):  # a workload identity
        length = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(length).decode()
        kind = self.headers.get("Content-Type")
        if self.path != f"/{TENANT}/oauth2/v2.0/token":
            self.refuse(400, "invalid_request", "AADSTS90002: Tenant not found")
            return
        if kind != "application/x-www-form-urlencoded":
            self.refuse(400, "invalid_request", f"AADSTS900144: the content type is {kind}")
            return
        asked = dict(urllib.parse.parse_qsl(body, strict_parsing=True))
        wanted = {"grant_type": "client_credentials", "client_id": CLIENT,
                  "scope": AUDIENCE + "/.default", "client_assertion_type": ASSERTION_TYPE}
        assertion = asked.pop("client_assertion", None)
        if asked != wanted:
            self.refuse(400, "invalid_request", f"AADSTS900144: not as documented: {asked}")
        elif assertion != os.environ.get("ENTRA_SECRET"):
            self.refuse(401, "invalid_client", "AADSTS700211: No matching federated identity")
        else:
            token = new_token()
            log("token workload")
            self.answer(200, {"token_type": "Bearer", "expires_in": int(LIVES),
                              "ext_expires_in": int(LIVES), "access_token": token})


listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Places)
with open(PORT_FILE + ".new", "w") as out:
    out.write(str(listener.server_address[1]))
os.rename(PORT_FILE + ".new", PORT_FILE)
listener.serve_forever()
