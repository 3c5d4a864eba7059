#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Counts the instructions of each verb (callgrind) in an empty daemon, and in one with many
# connections, waiters on one key and held locks: daemon_cost.sh BUILD CONNECTIONS LOCKS. A verb may
# cost at most 1.2 times as much.
set -euo pipefail

cd "$(dirname "$0")/../.."
. tests/e2e/kit.sh

build=${1:?usage: daemon_cost.sh BUILD CONNECTIONS LOCKS}
locks=${3:?usage: daemon_cost.sh BUILD CONNECTIONS LOCKS}
connections=${2:?usage: daemon_cost.sh BUILD CONNECTIONS LOCKS}
load=$build/tests/daemon_load
count=300
ulimit -n "$(ulimit -Hn)"

# Instructions are counted only while a verb is measured: without that the load takes minutes.
valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file="$work/out" "$build/leasehold" \
    serve --store memory: --listen 127.0.0.1:0 --http off --unix off --max-connections 20000 \
    >"$work/address" 2>"$work/log" &
daemon=$!
started+=("$daemon")
await "$work/address"
port=$(grep -om 1 '[0-9]*$' "$work/address")

control() { timeout 120 callgrind_control "$@" "$daemon" >/dev/null 2>>"$work/control"; }

# Prints verb and instructions of one, a line per verb. A dump sets the counters to 0.
measure_all() {
    local verb
    control -i on
    for verb in PING "${verbs[@]}"; do # the first one warms up
        timeout 300 "$load" verb "$port" "$verb" measured "$count"
        rm -f "$work"/out.*
        control -d
        awk -v verb="$verb" -v count="$count" '
            /^totals:/ { all += $2 }
            END { printf "%s %d\n", verb, all / count }' "$work"/out.*
    done
    control -i off
}

verbs=(pair renew LOCK.STATUS PING)
measure_all >"$work/empty"
"$load" hold "$port" "$locks" "$connections" >"$work/held" &
started+=($!)
await "$work/held"
until grep -q full "$work/held"; do sleep 0.1; done
measure_all >"$work/full"
for verb in "${verbs[@]}"; do
    empty=$(awk -v verb="$verb" '$1 == verb { print $2 }' "$work/empty" | tail -n 1)
    full=$(awk -v verb="$verb" '$1 == verb { print $2 }' "$work/full" | tail -n 1)
    printf '# %s: %d instructions, in an empty daemon %d\n' "$verb" "$full" "$empty"
    verdict "$verb beside $locks locks and $connections waiters costs at most 1.2 times as much" \
        test "$empty" -gt 0 -a $((full * 10)) -le $((empty * 12))
done
finish
