#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Never printed: secrets.sh PROGRAM. No URL shows its password, whether it parses or not, in errors,
# JSON, --verbose or doctor, nor in the arguments of the process; no text of a server sends control
# characters to the terminal. Prints TAP.
set -euo pipefail

program=$(realpath "$1")
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/kit.sh
. tests/e2e/kit.sh
export HOME=$work
unset "${!AZURE_@}" KUBECONFIG
marker=S3cr3tMarker9
cd "$work"

# ---- URLs ----

malformed=(
    ":user:$marker@127.0.0.1" ":/user:$marker@127.0.0.1" ":$marker@127.0.0.1"
    "//user:$marker@127.0.0.1" ";//user:$marker@127.0.0.1" "://user:$marker" "://:$marker"
    "://user:$marker/0" "://user:$marker%40127.0.0.1:1" "://127.0.0.1:1/$marker"
    "://127.0.0.1:1/0#$marker" "://127.0.0.1:1?$marker" "://127.0.0.1:1?password=$marker"
    "://127.0.0.1:1?token=$marker" "://127.0.0.1:1?db=0;password=$marker"
    "://127.0.0.1:1?password=a@$marker" "://127.0.0.1 $marker" "://127.0.0.1;password=$marker"
    "://user:$marker@127.0.0.1:999999" "://user:$marker@127.0.0.1:x/0" ":user:$marker@127.0.0.1://x"
    ":\\\\user:$marker@127.0.0.1:1" "://user:$marker@127.0.0.1:1/x"
    "://user:$marker@127.0.0.1:1?protocol=9" "://user:$marker@127.0.0.1:1?nonsense=1"
)
urls=("user:$marker@127.0.0.1" "$marker" " redis://user:$marker@127.0.0.1" "'redis://a:$marker@b'")
for scheme in redis rediss k8s rdis; do
    for rest in "${malformed[@]}"; do urls+=("$scheme$rest"); done
done
# These parse, and nothing listens there.
connecting=("redis://user:$marker@127.0.0.1:1" "redis://$marker@127.0.0.1:1"
    "redis://user:$marker@@127.0.0.1:1/3" "redis://:$marker?x@127.0.0.1:1")
verbs=('acquire k -n' 'release k --token 1' 'renew k --token 1' 'break k --now --reason r' 'list'
    'clear k' 'history k' 'run k -n -- true' 'once i -- true' 'seen i' 'mark i' 'watermark get w'
    'check k --token 1' 'name k' 'collect' 'bench --rounds 1')

# try FILE URL VERB: one URL in every place that accepts one, for people and as JSON.
try() {
    local out=$1 url=$2 words
    read -ra words <<<"$3"
    {
        LEASEHOLD_STORE=$url timeout 30 "$program" --json status k &
        LEASEHOLD_STORE=$url timeout 30 "$program" --verbose "${words[@]}" &
        LEASEHOLD_STORE=$url timeout 30 "$program" --json "${words[@]}" &
        timeout 30 "$program" --verbose --store "$url" doctor &
        wait
    } >"$out" 2>&1 </dev/null || true
}

# Requires some output without the secret; a sanitizer's report would be output, too.
no_secret() {
    local bad=0 file
    for file in "$work"/out.*; do
        if grep -qaF "$marker" "$file" || ! [[ -s $file ]]; then
            printf '# %s\n' "$(<"${file/out./url.}")"
            sed 's/^/#   /' "$file"
            bad=1
        fi
    done
    return "$bad"
}

begun=()
at=0
for url in "${connecting[@]}" "${urls[@]}"; do
    printf '%s\n' "$url" >"$work/url.$at"
    try "$work/out.$at" "$url" "${verbs[at % ${#verbs[@]}]}" &
    begun+=($!)
    at=$((at + 1))
    ((at < ${#connecting[@]} || at % 2)) || wait "${begun[-1]}" # two at a time, beside those
done
wait
verdict "$at URLs with a password in them: no verb prints it" no_secret
verdict 'there are a hundred of them' test "$at" -ge 100

# A secret that was never written is not printed either: a report without a key has none.
verdict 'no field shows what is no text' eval '! grep -qaF "\ufffd" "$work"/out.*'
printf 'store: "redis:user:%s@127.0.0.1"\n' "$marker" >config.yaml
verdict 'nor with the URL in the config file' eval \
    '! "$program" --verbose --config config.yaml doctor 2>&1 | grep -qF "$marker"'

# ---- control characters ----

/usr/bin/python3 - "$work/port" <<'SERVER' &
import http.server, json, os, socketserver, sys, threading
WORDS = "evil\x1b]0;title\x07 \x9b31m\r\nnext"
class Api(http.server.BaseHTTPRequestHandler):
    def log_message(self, *words):
        pass
    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        body = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                           "message": WORDS, "reason": WORDS, "code": 403},
                          ensure_ascii=False).encode()
        self.send_response(403)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Warning", '299 - "evil\x1b[31m"')
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer
class Redis(socketserver.StreamRequestHandler):
    def handle(self):
        try:
            while self.rfile.readline():
                self.wfile.write(b"-NOPERM " + WORDS.replace("\r\n", " ").encode() + b"\r\n")
                self.wfile.flush()
        except OSError:
            pass
api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
redis = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Redis)
threading.Thread(target=redis.serve_forever, daemon=True).start()
with open(sys.argv[1] + ".new", "w") as out:
    out.write(f"{api.server_address[1]} {redis.server_address[1]}\n")
os.rename(sys.argv[1] + ".new", sys.argv[1])
api.serve_forever()
SERVER
started+=($!)
await port
read -r api redis <port
cat >kubeconfig <<CONFIG
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:$api"}}]
users: [{name: u, user: {token: t}}]
CONFIG
printf '{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {}}' >job.json
export KUBECONFIG=$work/kubeconfig
# clean WHAT ARGUMENT…: started at once, checked at the end.
cases=()
clean() {
    local file=$work/clean.${#cases[@]}
    cases+=("$1")
    shift
    timeout 12 "$program" "$@" >"$file" 2>&1 </dev/null &
}
for url in k8s://default "redis://127.0.0.1:$redis"; do
    for words in 'status k' 'acquire k -n' 'list' doctor 'break k --now --reason r' 'watch'; do
        for form in --verbose --json; do
            # shellcheck disable=SC2086 # several words
            clean "${url%%:*}: $form $words brings no control characters" \
                --store "$url" $form $words
        done
    done
done
clean 'k8s-run brings no control characters' --store k8s://default k8s-run --target t \
    --file job.json
clean 'nor does a key of the command line' --verbose status $'a\033[31mb'
clean 'nor an option' $'--a\033[31mb'
clean 'nor a command' $'a\xc2\x9b31mb'
for pid in $(jobs -p); do [[ $pid == "${started[0]}" ]] || wait "$pid" || true; done
# No control character but line ends, neither of one byte nor of two.
is_clean() { [[ -s $1 ]] && ! LC_ALL=C grep -qaP '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' "$1"; }
for i in "${!cases[@]}"; do verdict "${cases[i]}" is_clean "$work/clean.$i"; done
finish
