# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the places that give tokens of Microsoft Entra ID, as strict as what is
documented: every header, parameter and value is looked at, and anything else is refused as there.
The assertion of a client certificate is verified with the certificate, its claims are checked.

entra.py PORT_FILE SOCKET OBJECT_ID LIVES LOG: writes the loopback port it listens on to PORT_FILE.
Each token becomes the only password of the user OBJECT_ID at the Redis server behind SOCKET, as a
token that ended would be refused there; it says that it lives for LIVES seconds. What happened is
written to LOG, one line each, without tokens. ENTRA_SECRET is the assertion that is taken,
ENTRA_CLIENT_SECRET the client's secret, ENTRA_CERTIFICATE the file of its certificate, ENTRA_HEADER
what App Service wants as X-IDENTITY-HEADER, and ENTRA_TROUBLE how many requests get 429, 500 and
404 first, as the metadata service may do.
"""
import base64
import hashlib
import http.server
import json
import os
import subprocess
import sys
import tempfile
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


def decoded(part):
    if "=" in part:
        raise ValueError("padded")
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


used_ids = set()


def wrong_with(assertion, audience):
    """What is wrong with the JWT of a client certificate; None: nothing."""
    path = os.environ["ENTRA_CERTIFICATE"]
    der = subprocess.run(["openssl", "x509", "-in", path, "-outform", "DER"], check=True,
                         capture_output=True).stdout
    try:
        head, body, signature = assertion.split(".")
        header, claims = json.loads(decoded(head)), json.loads(decoded(body))
        signature = decoded(signature)
    except ValueError as error:
        return f"it is no JWT: {error}"
    thumbprint = base64.urlsafe_b64encode(hashlib.sha256(der).digest()).decode().rstrip("=")
    if header != {"alg": "PS256", "typ": "JWT", "x5t#S256": thumbprint}:
        return f"the header is {header}"
    if set(claims) != {"aud", "iss", "sub", "jti", "nbf", "iat", "exp"}:
        return f"the claims are {sorted(claims)}"
    if claims["aud"] != audience or claims["iss"] != CLIENT or claims["sub"] != CLIENT:
        return "aud, iss or sub"
    now = time.time()
    if not (claims["nbf"] <= now <= claims["exp"] <= claims["nbf"] + 600):
        return "its time"
    if not claims["jti"] or claims["jti"] in used_ids:
        return "jti was used before"
    used_ids.add(claims["jti"])
    with tempfile.TemporaryDirectory() as folder:
        key, signed = os.path.join(folder, "key"), os.path.join(folder, "signature")
        with open(key, "wb") as out:
            out.write(subprocess.run(["openssl", "x509", "-in", path, "-pubkey", "-noout"],
                                     check=True, capture_output=True).stdout)
        with open(signed, "wb") as out:
            out.write(signature)
        verified = subprocess.run(
            ["openssl", "dgst", "-sha256", "-sigopt", "rsa_padding_mode:pss", "-sigopt",
             "rsa_pss_saltlen:digest", "-verify", key, "-signature", signed],
            input=f"{head}.{body}".encode(), capture_output=True)
    return None if verified.returncode == 0 else "the signature"


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

    def give_app(self, asked):  # in App Service and Functions
        if self.headers.get("X-IDENTITY-HEADER") != os.environ.get("ENTRA_HEADER"):
            self.refuse(401, "unauthorized", "X-IDENTITY-HEADER is missing or wrong")
        elif self.headers.get("Metadata"):
            self.refuse(400, "invalid_request", "this is not the metadata service")
        elif asked.pop("api-version", None) != "2019-08-01":
            self.refuse(400, "invalid_request", "bad api-version")
        elif asked.pop("resource", None) != AUDIENCE:
            self.refuse(400, "invalid_resource", "the resource is not known")
        elif asked.pop("client_id", CLIENT) != CLIENT:
            self.refuse(400, "invalid_request", "No User Assigned Identity found")
        elif asked:
            self.refuse(400, "invalid_request", f"what is {sorted(asked)}?")
        else:
            log("token app")
            self.answer(200, {"access_token": new_token(), "client_id": CLIENT,
                              "expires_on": str(int(time.time()) + int(LIVES)),
                              "resource": AUDIENCE, "token_type": "Bearer"})

    def do_GET(self):  # a managed identity
        url = urllib.parse.urlsplit(self.path)
        asked = dict(urllib.parse.parse_qsl(url.query, strict_parsing=bool(url.query)))
        if url.path == "/msi/token":
            self.give_app(asked)
        elif url.path == "/for-the-cli":  # of the stand-in for az
            log("token cli")
            self.answer(200, {"token": new_token(), "ends": int(time.time()) + int(LIVES)})
        elif url.path != "/metadata/identity/oauth2/token":
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

    def do_POST(self):  # all others
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
                  "scope": AUDIENCE + "/.default"}
        assertion, secret = asked.pop("client_assertion", None), asked.pop("client_secret", None)
        if assertion is not None:
            wanted["client_assertion_type"] = ASSERTION_TYPE
        audience = f"http://127.0.0.1:{self.server.server_address[1]}{self.path}"
        signed = assertion is not None and "." in assertion
        wrong = wrong_with(assertion, audience) if signed else None
        if asked != wanted or (assertion is None) == (secret is None):
            self.refuse(400, "invalid_request", f"AADSTS900144: not as documented: {asked}")
        elif wrong is not None:
            self.refuse(401, "invalid_client", f"AADSTS700027: assertion refused: {wrong}")
        elif secret is not None and secret != os.environ.get("ENTRA_CLIENT_SECRET"):
            self.refuse(401, "invalid_client", "AADSTS7000215: Invalid client secret provided")
        elif secret is None and not signed and assertion != os.environ.get("ENTRA_SECRET"):
            self.refuse(401, "invalid_client", "AADSTS700211: No matching federated identity")
        else:
            token = new_token()
            log("token form")
            self.answer(200, {"token_type": "Bearer", "expires_in": int(LIVES),
                              "ext_expires_in": int(LIVES), "access_token": token})


listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Places)
with open(PORT_FILE + ".new", "w") as out:
    out.write(str(listener.server_address[1]))
os.rename(PORT_FILE + ".new", PORT_FILE)
listener.serve_forever()
