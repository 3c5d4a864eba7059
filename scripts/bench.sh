#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the optimised build: times, which are noisy, and instructions, which are not. A decision
# must cost the same for any number of live keys; a difference above a tenth is a failure, and so is
# a claim of an id that costs a fifth more. Times have aims, and each line reports whether its aim
# was met.
set -euo pipefail

cd "$(dirname "$0")/.."
program=build/bench/tests/bench_decisions
# In build/ and not in /tmp, which can be a tmpfs: the benchmark measures a disk.
work=$(mktemp -d build/bench.XXXXXX)
redis=
clean_up() {
    if [[ -n $redis ]]; then
        kill "$redis" 2>/dev/null || true
        wait "$redis" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

# Counts the instructions of a program within its measured functions.
count_instructions() {
    valgrind --tool=callgrind --collect-atstart=no '--toggle-collect=measured_*' \
        --callgrind-out-file="$work/out" "$@" >/dev/null 2>"$work/log" ||
        { cat "$work/log" >&2; exit 1; }
    callgrind_annotate --inclusive=yes "$work/out" >"$work/inclusive"
}

# Instructions of one acquire+release beside $1 live keys, in total and in the pure core alone.
count() {
    local pairs=2000
    count_instructions "$program" "$1" "$pairs"
    awk -v pairs="$pairs" '
        /PROGRAM TOTALS/ { gsub(",", "", $1); all = $1 }
        /:lease_step / { gsub(",", "", $1); if (core == "") core = $1 }
        END { printf "%d %d\n", all / pairs, core / pairs }' "$work/inclusive"
}

# A real server with the same durability as the file store, on the same disk.
start_redis() {
    mkdir "$work/redis"
    (cd "$work/redis" && exec redis-server --port 0 --unixsocket "$PWD/socket" --save '' \
        --appendonly yes --appendfsync always >log) &
    redis=$!
    for ((i = 0; i < 100; i++)); do
        [[ ! -S $work/redis/socket ]] || return 0
        sleep 0.05
    done
    cat "$work/redis/log" >&2
    return 1
}

# One part of the file store's benchmark in a folder of its own.
measure_file() {
    mkdir "$work/$1"
    build/bench/tests/bench_file "$1" "$work/$1" "$work/redis/socket"
    rm -rf "${work:?}/$1"
}

printf '== time of a pair on the in-memory store, codec and table included\n'
"$program"

build/bench/tests/bench_memory

printf '== connections of a server, without a store\n'
for part in idle echo parse; do
    build/bench/tests/bench_streams "$part"
done

measure_file pairs
start_redis
measure_file flight
kill "$redis"
wait "$redis" || true
redis=
for part in processes handover million pause run; do
    measure_file "$part"
done

# On a server with the same durability, over TCP as is usual.
scripts/on-redis.sh plain build/bench/tests/bench_redis

scripts/bench-daemon.sh

if scripts/kube-apiserver.sh --paths >/dev/null; then
    scripts/on-k8s.sh build/bench/tests/bench_k8s
else
    printf '== k8s: not measured: there is no API server; make test-full builds one\n'
fi

# The same for a plain lock inside the process, through the public calls.
count_light() { # count_light LIVE [PROGRAM]
    local pairs=20000 # as in bench_memory.c
    count_instructions "build/bench/tests/${2:-bench_memory}" pairs "$1"
    awk -v pairs="$pairs" '/PROGRAM TOTALS/ { gsub(",", "", $1); printf "%d\n", $1 / pairs }' \
        "$work/inclusive"
}

printf '== instructions of a plain pair inside the process (callgrind)\n'
few=$(count_light 1000)
many=$(count_light 1000000)
awk -v few="$few" -v many="$many" 'BEGIN {
    ratio = many / few
    printf "     1000 live keys: %6d instructions\n", few
    printf "  1000000 live keys: %6d instructions\n", many
    printf "== most against least: %.3f (flat means at most 1.1)\n", ratio
    exit ratio > 1.1
}'

# Instructions of one pair of bench_walk on memory:, by the difference of two numbers of pairs.
count_walk() {
    local pairs totals=()
    for pairs in 1000 3000; do
        valgrind --tool=callgrind --callgrind-out-file="$work/out" build/bench/tests/bench_walk \
            memory: "$1" "$pairs" >/dev/null 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
        totals+=("$(awk '/Collected/ { print $4 }' "$work/log")")
    done
    printf '%d\n' $(((totals[1] - totals[0]) / 2000))
}

printf '== a pair through the library, one after the other (callgrind)\n'
for how in plain named; do
    printf '  %-6s pair: %6d instructions\n' "$how" "$(count_walk "$how")"
done
printf '== a pair on file: in memory, 64 in flight\n'
folder=$(mktemp -d /dev/shm/leasehold-bench.XXXXXX)
for _ in 1 2 3; do build/bench/tests/bench_walk "file:$folder/locks.log" together 64000; done
rm -rf "$folder"

printf '== metrics in a plain pair inside the process (callgrind)\n'
counted=$(count_light 1000 bench_counted)
uncounted=$(count_light 1000 bench_uncounted)
awk -v counted="$counted" -v uncounted="$uncounted" 'BEGIN {
    cost = (counted - uncounted) * 100 / uncounted
    printf "     with metrics: %6d instructions\n", counted
    printf "  without metrics: %6d instructions\n", uncounted
    printf "== metrics cost %.2f %%; aim at most 1: %s\n", cost, cost <= 1 ? "reached" : "missed"
}'

# Claims of ids: of a random done one, and of a new one that is cancelled again.
count_claims() {
    local claims=10000 # as in bench_memory.c
    count_instructions build/bench/tests/bench_memory claims "$1"
    awk -v claims="$claims" '
        /:measured_live_claims/ { gsub(",", "", $1); if (live == "") live = $1 }
        /:measured_new_claims/ { gsub(",", "", $1); if (new == "") new = $1 }
        END { printf "%d %d\n", live / claims, new / claims }' "$work/inclusive"
}

printf '== claims of ids inside the process\n'
for ids in 1000 1000000; do build/bench/tests/bench_memory claims "$ids"; done
printf '== instructions of a claim (callgrind)\n'
for ids in 1000 30000 1000000; do
    counted=$(count_claims "$ids")
    printf '%d %s\n' "$ids" "$counted"
done | awk '
    NR == 1 { few_live = $2; few_new = $3 }
    { printf "%9d live ids: %6d for one of them, %6d for a new one and back\n", $1, $2, $3 }
    function judge(what, ratio) {
        printf "== %s, against the first: %.3f (at most 1.2)\n", what, ratio
        if (ratio > 1.2)
            missed = 1
    }
    END {
        judge("a claim of a live id", $2 / few_live)
        judge("a new claim and back", $3 / few_new)
        exit missed
    }'

printf '== instructions of a pair (callgrind)\n'
least=0 most=0
for keys in 1000 30000 1000000; do
    read -r all core < <(count "$keys")
    printf '%9d live keys: %6d instructions, of which %d in lease_step\n' "$keys" "$all" "$core"
    ((least == 0 || core < least)) && least=$core
    ((core > most)) && most=$core
done
awk -v least="$least" -v most="$most" 'BEGIN {
    ratio = most / least
    printf "== decision cost, most against least: %.3f (flat means below 1.1)\n", ratio
    exit ratio >= 1.1
}'
