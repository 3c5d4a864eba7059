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
secret=$(head -c 32 /dev/urandom | base64)
hex=$(printf %s "$secret" | sha256sum | cut -d ' ' -f 1)
(umask 077 && printf 'ci sha256:%s take,renew ci/\n' "$hex" >"$work/tokens")
"$program" serve --store memory: --listen 127.0.0.1:0 --unix off --tokens "$work/tokens" \
    >"$work/guarded" 2>"$work/guarded.log" &
started+=($!)
await "$work/guarded"
guarded=$(sed -n 's/^listening on 127\.0\.0\.1://p' "$work/guarded")
export secret guarded

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

# Of a daemon with credentials: by the secret alone, and with the name.
redis_py_sends_auth() {
    /usr/bin/python3 - <<'END'
import os
import redis
secret, port = os.environ["secret"], int(os.environ["guarded"])
for options in ({"password": secret}, {"username": "ci", "password": secret}):
    client = redis.Redis(port=port, decode_responses=True, **options)
    assert client.execute_command("LOCK.ACQUIRE", "ci/k", "w", 60000)[1] in ("ok", "busy")
    try:
        client.execute_command("LOCK.STATUS", "ci/k")
    except redis.exceptions.NoPermissionError as error:
        print(error)
    else:
        raise AssertionError("not denied")
for options in ({}, {"password": "x" + secret}, {"username": "default", "password": "x"},
                {"username": "cd", "password": secret}):
    try:
        redis.Redis(port=port, **options).ping()
    except redis.exceptions.RedisError as error:  # redis-py has no class for WRONGPASS
        assert str(error).startswith(("Authentication required", "WRONGPASS")), error
        print(error)
    else:
        raise AssertionError("accepted")
END
}

ioredis_sends_auth() {
    NODE_PATH=$node/node_modules node - <<'END'
const Redis = require('ioredis'), assert = require('assert');
const { secret, guarded } = process.env;
(async () => {
  for (const options of [{ password: secret }, { username: 'ci', password: secret }]) {
    const redis = new Redis({ port: Number(guarded), ...options });
    assert.match((await redis.call('LOCK.ACQUIRE', 'ci/j', 'w', 60000))[1], /^(ok|busy)$/);
    await assert.rejects(redis.call('LOCK.STATUS', 'ci/j'), /NOPERM ci may not/);
    await redis.quit();
  }
  const wrong = new Redis({ port: Number(guarded), password: 'x', retryStrategy: null });
  wrong.on('error', (error) => console.log(error.message));
  await assert.rejects(wrong.call('PING'));
  wrong.disconnect();
})().catch((error) => { console.log(error); process.exit(1); });
END
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
case_of 'redis-py sends AUTH' redis_py_sends_auth
if node=$("$here/../../scripts/peer.sh" node 2>"$work/why"); then
    cases_of ioredis env NODE_PATH="$node/node_modules" node "$here/serve_ioredis.js" "$port"
    case_of 'ioredis sends AUTH' ioredis_sends_auth
else
    number=$((number + 1))
    printf 'ok %d - ioredis # SKIP %s\n' "$number" "$(tail -n 1 "$work/why")"
fi
finish
