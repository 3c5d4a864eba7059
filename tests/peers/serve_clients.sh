#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Clients that others wrote on the daemon, unmodified: serve_clients.sh PROGRAM. redis-cli with
# RESP2 and RESP3, redis-py of Debian, ioredis of npm. Prints TAP.
set -euo pipefail

program=$(realpath "${1:?usage: serve_clients.sh PROGRAM}")
here=$(realpath "$(dirname "$0")")
# shellcheck source=tests/e2e/kit.sh
. "$here/../e2e/kit.sh"

"$program" serve --store memory: --listen 127.0.0.1:0 --http off --unix "$work/sock" \
    >"$work/ready" \
    2>"$work/log" &
started+=($!)
await "$work/ready"
port=$(sed -n 's/^listening on 127\.0\.0\.1://p' "$work/ready")

cli() { redis-cli -p "$port" "$@"; }
after() { sed -n "/^$1\$/{n;p}"; } # after NAME: of RESP2, where a map is a list

redis_cli_calls() { # redis_cli_calls [-3]
    local token reply
    if [[ $* == *-3* ]]; then # a map is shown as "name value"
        after() { sed -n "s/^$1 //p"; }
    fi
    [[ $(cli "$@" PING) == PONG ]]
    reply=$(cli "$@" LOCK.ACQUIRE "cli/k $*" me 60000)
    printf '%s\n' "$reply"
    [[ $(after outcome <<<"$reply") == ok && $(after holder <<<"$reply") == me ]]
    token=$(after token <<<"$reply")
    [[ $token =~ ^[0-9]+$ ]]
    [[ $(cli "$@" LOCK.ACQUIRE "cli/k $*" you 60000 | after outcome) == busy ]]
    [[ $(cli "$@" LOCK.RELEASE "cli/k $*" "$token" | after outcome) == ok ]]
    cli "$@" LOCK.ACQUIR k | tee /dev/stderr | grep -q 'did you mean LOCK.ACQUIRE?'
}

redis_cli_pipes() {
    local i
    for ((i = 0; i < 200; i++)); do
        printf '*4\r\n$12\r\nLOCK.ACQUIRE\r\n$%d\r\npipe/%d\r\n$1\r\nw\r\n$5\r\n60000\r\n' \
            $((5 + ${#i})) "$i"
    done | cli --pipe | tee /dev/stderr | grep -q 'errors: 0, replies: 200'
}

redis_cli_waits() {
    local token
    token=$(cli LOCK.ACQUIRE cli/w first 60000 | after token)
    cli LOCK.ACQUIRE cli/w second 60000 WAIT 60000 >"$work/second" &
    until cli LOCK.STATUS cli/w | after waiters | grep -qx 1 ||
        cli INFO | grep -q '^blocked_clients:1'; do sleep 0.02; done
    cli LOCK.RELEASE cli/w "$token"
    wait $!
    [[ $(after outcome <"$work/second") == ok ]]
}

redis_cli_subscribes() {
    local pid
    cli SUBSCRIBE cli/watched/ >"$work/stream" &
    pid=$!
    await "$work/stream"
    cli LOCK.ACQUIRE cli/watched/k me 60000
    until grep -q '"key":"cli/watched/k","kind":"lock","state":"held"' "$work/stream"; do
        sleep 0.02
    done
    kill "$pid"
}

redis_cli_on_the_unix_socket() {
    [[ $(redis-cli -s "$work/sock" ECHO hello) == hello ]]
    redis-cli -s "$work/sock" INFO server | grep -q '^server:leasehold'
}

cases_of() { # cases_of NAME COMMAND…: the cases of its own output
    local name=$1 line
    shift
    "$@" >"$work/cases" 2>&1 || true
    : >"$work/said"
    grep -v '^ok' "$work/cases" >"$work/said" || true
    while IFS= read -r line; do
        case $line in
        'ok '*) tell true "$name: ${line#ok * - }" ;;
        'not ok '*) tell false "$name: ${line#not ok * - }" ;;
        esac
    done <"$work/cases"
    verdict "$name: to its end" grep -q '^1\.\.4' "$work/cases"
}

case_of 'redis-cli with RESP2' redis_cli_calls
case_of 'redis-cli with RESP3' redis_cli_calls -3
case_of 'redis-cli --pipe' redis_cli_pipes
case_of 'redis-cli waits' redis_cli_waits
case_of 'redis-cli subscribes' redis_cli_subscribes
case_of 'redis-cli on the unix socket' redis_cli_on_the_unix_socket
cases_of redis-py "$here/serve_redis_py.py" "$port"
if node=$("$here/../../scripts/peer.sh" node 2>"$work/why"); then
    cases_of ioredis env NODE_PATH="$node/node_modules" node "$here/serve_ioredis.js" "$port"
else
    number=$((number + 1))
    printf 'ok %d - ioredis # SKIP %s\n' "$number" "$(tail -n 1 "$work/why")"
fi
finish
