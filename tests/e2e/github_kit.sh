#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shared by the test scripts on an emulated GitHub (scripts/on-github.sh); to be sourced after
# kit.sh. Calls of the API as a person would make them, and the front's faults.
set -euo pipefail

# api METHOD PATH [BODY]: prints the reply; a path without / in front is one of alice/locks.
api() {
    python3 - "$@" <<'CALL'
import os
import sys
import urllib.request

method, path, body = sys.argv[1], sys.argv[2], sys.argv[3:]
base = os.environ["GITHUB_API_URL"] + ("" if path.startswith("/") else "/repos/alice/locks/")
request = urllib.request.Request(base + path, body[0].encode() if body else None,
                                 {"Authorization": "Bearer tok_alice"}, method=method)
print(urllib.request.urlopen(request).read().decode())
CALL
}
# gives EXPRESSION: of the JSON on stdin, as `it`.
gives() { python3 -c 'import json, sys; it = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"; }

# Of the front: the next requests fail so, or all is as at its start.
fault() { api POST /_front/fault "$1" >/dev/null; }
reset() { api POST /_front/reset '{}' >/dev/null; }

head_of() { api GET "git/ref/leasehold/k/$1" | gives 'it["object"]["sha"]'; }
message_of() { api GET "git/commits/$(head_of "$1")" | gives 'it["message"]'; }
workers() { api GET git/matching-refs/leasehold/w/ | gives 'len(it)'; }
