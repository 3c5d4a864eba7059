#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Functions for scripts with a GitHub of their own, the emulator of scripts/peer.sh; to be sourced,
# in the root of the tree. It listens on a free loopback port and keeps its state in memory, so it
# cannot be restarted with its data. The caller names the folder: github_begin FOLDER, and calls
# github_end in its trap. What there is:
#   alice/locks     public, with one commit; alice owns it, bob may write, carol may only read
#   alice/empty     without any commit          alice/archived  read-only
#   alice/secret    private, alice's alone
#   tok_alice, tok_alice_2 … tok_alice_40       tokens: 5,000 requests an hour each
#   tok_bob, tok_carol                          tok_bob_2 … tok_bob_8
#   GitHub App 4711, installation 815           may write contents and issues of alice/locks; its
#                                               key is in FOLDER/app.pem
# shellcheck disable=SC2034 # what is set here is for the caller
set -euo pipefail

github_options_default='stale=20s&heartbeat=2s&poll=1s&pace=0&writes=100000&budget=100000'
github_options_short='stale=6s&heartbeat=2s&poll=1s&pace=0&writes=1000000&budget=1000000'
github_app=4711
github_installation=815

# github_begin FOLDER: false, with a reason on stderr, if the emulator cannot be had.
github_begin() {
    github_root=$1
    declare -gA github_pid=() github_port=()
    github_package=$(scripts/peer.sh github)
}

github_end() {
    local name
    for name in "${!github_pid[@]}"; do github_kill "$name"; done
}

# Below the ephemeral port range, so that a port stays free for a restart.
github_free_port() {
    local port
    while :; do
        port=$((10000 + SRANDOM % 10000))
        (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    printf '%s\n' "$port"
}

github_write_tokens() { # github_write_tokens LOGIN COUNT
    local i name
    for ((i = 1; i <= $2; i++)); do
        name=tok_$1
        ((i == 1)) || name+=_$i
        printf '  %s: {login: %s, scopes: [repo, user]}\n' "$name" "$1"
    done
}

github_write_seed() {
    openssl genrsa -traditional -out "$github_root/app.pem" 2048 2>/dev/null
    printf 'tokens:\n'
    github_write_tokens alice 40
    github_write_tokens bob 8
    github_write_tokens carol 1
    cat <<SEED
github:
  users: [{login: alice, name: Alice}, {login: bob, name: Bob}, {login: carol, name: Carol}]
  repos:
    - {owner: alice, name: locks, auto_init: true}
    - {owner: alice, name: empty, auto_init: false}
    - {owner: alice, name: archived, auto_init: true}
    - {owner: alice, name: secret, auto_init: true, private: true}
  apps:
    - app_id: $github_app
      slug: leasehold-test
      name: leasehold test
      permissions: {contents: write, issues: write, metadata: read}
      installations:
        - installation_id: $github_installation
          account: alice
          repository_selection: selected
          repositories: [alice/locks]
      private_key: |
$(sed 's/^/        /' "$github_root/app.pem")
SEED
}

# The seed has no fields for these: bob may write, alice/archived is archived.
github_finish_seed() { # github_finish_seed PORT
    python3 - "$1" <<'SEED'
import http.client
import json
import sys

github = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=20)
for method, path, body in (
        ("PUT", "/repos/alice/locks/collaborators/bob", {"permission": "push"}),
        ("PATCH", "/repos/alice/archived", {"archived": True})):
    github.request(method, path, json.dumps(body), {"Authorization": "Bearer tok_alice_40"})
    reply = github.getresponse()
    reply.read()
    if reply.status not in (200, 201, 204):
        sys.exit(f"{method} {path}: {reply.status}")
SEED
}

# github_await NAME LINE: until its log has that line; false when it ended instead
github_await() {
    local i
    for ((i = 0; i < 1000; i++)); do
        ! grep -qxF "$2" "$github_root/$1.log" 2>/dev/null || return 0
        kill -0 "${github_pid[$1]}" 2>/dev/null || return 1
        sleep 0.02
    done
    return 1
}

# github_launch NAME COMMAND…: tried on several ports, as {port} in the command, until its log says
# "listening on PORT". Its pid is in the file NAME.pid.
github_launch() {
    local name=$1 try port
    shift
    for ((try = 0; try < 20; try++)); do
        port=${github_port[$name]:-$(github_free_port)}
        "${@//\{port\}/$port}" >"$github_root/$name.log" 2>&1 </dev/null &
        github_pid[$name]=$!
        printf '%s\n' "$!" >"$github_root/$name.pid"
        if github_await "$name" "listening on $port"; then
            github_port[$name]=$port
            return 0
        fi
        github_kill "$name"
        grep -qi 'EADDRINUSE\|address already in use' "$github_root/$name.log" || break
        unset "github_port[$name]"
    done
    tail -n 20 "$github_root/$name.log" >&2
    return 1
}

github_start() {
    mkdir -p "$github_root"
    github_write_seed >"$github_root/seed.yaml"
    sed -n 's/^  \(tok_[a-z0-9_]*\): {login: \([a-z]*\),.*/\1 \2/p' "$github_root/seed.yaml" \
        >"$github_root/tokens"
    github_launch emulator node --require ./tests/peers/github_loopback.cjs \
        "$github_package/node_modules/emulate/dist/index.js" start --service github \
        --port '{port}' --seed "$github_root/seed.yaml"
    github_finish_seed "${github_port[emulator]}"
}

# github_start_front ARGUMENT…: before the emulator; on the same port after a restart. Its log of
# requests is FOLDER/requests.
github_start_front() {
    github_launch front python3 tests/peers/github_front.py --port '{port}' \
        --emulator "${github_port[emulator]}" --tokens "$github_root/tokens" \
        --log "$github_root/requests" "$@"
}

github_kill() { # github_kill NAME [SIGNAL]: and reaps it
    local pid=${github_pid[$1]:-}
    [[ -n $pid ]] || return 0
    kill -CONT "$pid" 2>/dev/null || true
    kill "-${2:-KILL}" "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    unset "github_pid[$1]"
}

# github_url REPOSITORY: the store's URL; GITHUB_OPTIONS replaces its options.
github_url() {
    printf 'github://%s?%s\n' "$1" "${GITHUB_OPTIONS:-$github_options_default}"
}

# github_use NAME: the program's environment, for the server of that name. A token of the real
# GitHub in GITHUB_TOKEN is not used.
github_use() {
    export GITHUB_API_URL=http://127.0.0.1:${github_port[$1]}
    export GITHUB_TOKEN=${GITHUB_TEST_TOKEN:-tok_alice}
    export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
    unset GH_TOKEN GITHUB_REPOSITORY
}
