# SPDX-License-Identifier: Apache-2.0
"""A mutating admission webhook that changes our Leases while they are written.

webhook.py CERT KEY: speaks TLS on a free port of the loopback and says "port N". How a Lease is
changed is told by its name: strip-… loses the annotation with the record, short-… half of it,
holder-… gets another holder, spec-… another duration, late-… is stripped when it is changed, not
when it is created. All others stay as they are. It ends with its stdin.
"""
import base64
import http.server
import json
import ssl
import sys
import threading

CERT, KEY = sys.argv[1:]
RECORD = "/metadata/annotations/leasehold~1record"


def patch_of(request):
    lease = request["object"]
    kind = lease["metadata"]["name"].split("-")[0]
    record = lease["metadata"].get("annotations", {}).get("leasehold/record", "")
    if record and (kind == "strip" or (kind == "late" and request["operation"] == "UPDATE")):
        return [{"op": "remove", "path": RECORD}]
    if record and kind == "short":
        return [{"op": "replace", "path": RECORD, "value": record[: len(record) // 2]}]
    if kind == "holder" and lease["spec"].get("holderIdentity"):
        return [{"op": "replace", "path": "/spec/holderIdentity", "value": "webhook"}]
    if kind == "spec" and lease["spec"].get("holderIdentity"):
        return [{"op": "replace", "path": "/spec/leaseDurationSeconds", "value": 3600}]
    return []


class Webhook(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        patch = json.dumps(patch_of(review["request"])).encode()
        answer = {"uid": review["request"]["uid"], "allowed": True, "patchType": "JSONPatch",
                  "patch": base64.b64encode(patch).decode()}
        body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                           "response": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERT, KEY)
server.socket = context.wrap_socket(server.socket, server_side=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("port", server.server_port, flush=True)
sys.stdin.read()
