#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The number of Redis commands for uncontended keys: redis-count.sh BUILD. The server itself counts
# (INFO commandstats), and shows external commands (MONITOR). Prints TAP.
set -euo pipefail

build=$(realpath "$1")
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/redis-kit.sh
. scripts/redis-kit.sh
# shellcheck source=tests/e2e/kit.sh
. tests/e2e/kit.sh
monitor='' verbs_PID=''
at_end() {
    [[ -z $monitor ]] || kill "$monitor" 2>/dev/null || true
    [[ -z $verbs_PID ]] || kill "$verbs_PID" 2>/dev/null || true
    redis_end
}
redis_begin "$work"

ask() { # ask VERB COUNT: of the one client
    local answer
    printf '%s %s\n' "$1" "$2" >&"${verbs[1]}"
    read -r answer <&"${verbs[0]}" && [[ $answer == "$1 done" ]]
}

calls_of() { # calls_of COMMAND: how often since the count was set to 0
    redis_cli one info commandstats | tr -d '\r' |
        sed -n "s/^cmdstat_$1:calls=\([0-9]*\),.*/\1/p" | grep . || printf '0\n'
}

# External commands since a mark; commands inside a script do not count, nor our own, nor those that
# open a connection.
heard() {
    redis_cli one echo "end of $1" >/dev/null
    redis_until 'the monitor has seen it' grep -q "end of $1" "$work/monitor"
    sed "1,/begin of $1/d; /end of $1/,\$d" "$work/monitor" | grep -v ' lua\] ' |
        grep -civ '"info"\|"config"\|"hello"' || true
}

count() { # count VERB COUNT
    redis_cli one config resetstat >/dev/null
    redis_cli one echo "begin of $1" >/dev/null
    ask "$1" "$2" || { verdict "$1" false; return; }
    local called asked
    called=$(calls_of evalsha)
    asked=$(heard "$1")
    printf '# %s %s times: %s evalsha, %s commands in all\n' "$1" "$2" "$called" "$asked"
    verdict "$1: one evalsha each" test "$called" = "$2"
    verdict "$1: and nothing else" test "$asked" = "$2"
}

# A separate process, which has only the token. A renewal needs the revision, so it reads first.
count_cold() { # count_cold COUNT VERB ARGUMENT…
    local count=$1 verb=$2 called asked
    shift
    redis_cli one config resetstat >/dev/null
    redis_cli one echo "begin of cold $verb" >/dev/null
    "$build/leasehold" "$@" --store "redis://127.0.0.1:${redis_port[one]}" >/dev/null ||
        { verdict "cold $verb" false; return; }
    called=$(calls_of evalsha)
    asked=$(heard "cold $verb")
    printf '# cold %s: %s evalsha, %s commands in all\n' "$verb" "$called" "$asked"
    verdict "cold $verb by token: $count evalsha" test "$called" = "$count"
    verdict "cold $verb by token: and nothing else" test "$asked" = "$count"
}

redis_start one
coproc verbs { exec "$build/tests/paced_verbs" "redis://127.0.0.1:${redis_port[one]}"; }
(cd "$work/one" && exec redis-cli -s socket monitor >"$work/monitor") &
monitor=$!
redis_until 'the monitor is there' test -s "$work/monitor"
# The first ones load the scripts and open the connection.
ask acquire 1 && ask renew 1 && ask release 1
count acquire 50
count renew 50
count release 50
token=$("$build/leasehold" acquire cold --ttl 1m --store "redis://127.0.0.1:${redis_port[one]}")
count_cold 2 renew cold --token "$token"
count_cold 1 release cold --token "$token"
verdict 'a free key costs nothing' test "$(redis_cli one --scan --pattern 'lock:*' | wc -l)" = 0
finish
