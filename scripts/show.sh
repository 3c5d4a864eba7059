#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Demonstrates the program, on a temporary store: show.sh PROGRAM. Every line after a "$" is run as
# printed. The daemon at the end needs redis-cli and curl (packages.sh show).
set -euo pipefail

program=$(realpath "${1:?usage: show.sh PROGRAM}")
work=$(mktemp -d)
clean_up() {
    local pid
    for pid in $(jobs -p); do { kill "$pid" && wait "$pid"; } 2>/dev/null || true; done
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP
cd "$work"
mkdir bin
ln -s "$program" bin/leasehold
export PATH=$work/bin:$PATH LEASEHOLD_STORE=file:$work/locks.log
export no_proxy=127.0.0.1
unset LEASEHOLD_TTL LEASEHOLD_CONFIG LEASEHOLD_HOLDER POD_NAME POD_NAMESPACE

show() {
    printf '\n$ %s\n' "$1"
    eval "$1" 2>&1 || printf '(exit status %d)\n' $?
}

# Two clients of one daemon, on free ports.
# shellcheck disable=SC2016 # shown as it stands, and then run
show_daemon() {
    local missing=() tool i port web body
    for tool in redis-cli curl; do
        [[ -n $(type -P "$tool") ]] || missing+=("$tool")
    done
    if ((${#missing[@]} > 0)); then
        printf '\nthe daemon is not shown: missing %s; scripts/packages.sh show installs it\n' \
            "${missing[*]}"
        return
    fi
    show 'leasehold serve --listen 0 --http 0 --unix off > addresses 2> serve.log &'
    for ((i = 0; i < 500; i++)); do
        ! grep -qs http: addresses || break
        sleep 0.02
    done
    show 'cat addresses'
    port=$(sed -n '1s/.*://p' addresses)
    web=$(sed -n 's/.* \(http:.*\)/\1/p' addresses)
    [[ -n $web ]] || { cat serve.log && exit 1; }
    show "redis-cli -p $port --json LOCK.ACQUIRE report ann 30000"
    body='{"holder":"bob","ttl_ms":30000}'
    show "curl -sw '\n' --json '$body' $web/v1/locks/report/acquire"
    show "curl -sw '\n' --json '$body' $web/v1/locks/invoice/acquire"
    show "curl -s $web/metrics | grep ^leasehold_locks_held"
    show 'kill $!; wait'
}

# shellcheck disable=SC2016 # shown as it stands, and then run
{
    show 'leasehold version'
    show 'T=$(leasehold acquire nightly --holder ann --meta job=backup); echo "$T"'
    show 'leasehold acquire nightly --holder bob --no-wait'
    show 'leasehold status nightly'
    show 'leasehold acquire nightly --holder bob > bobs-token &'
    sleep 0.3
    show 'leasehold status nightly'
    show 'leasehold release nightly --token "$T"; wait; cat bobs-token'
    show 'leasehold renew nightly --token "$T"'
    show 'leasehold release nightly --token "$(cat bobs-token)" --cooldown 5m'
    show 'leasehold acquire nightly --holder cem'
    show 'leasehold history nightly'
    show 'leasehold bench --duration 500ms'
    show_daemon
}
