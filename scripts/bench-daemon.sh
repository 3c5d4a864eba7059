#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the daemon beside other servers on the same disk: bench-daemon.sh [REQUESTS [PART…]].
# Parts: memory, file (beside Redis), etcd, pairs, handover, http; all by default. Servers run on
# core 0, generators on core 1, and the two sides alternate: a ratio is the median of seven rounds
# in which both were measured, with the smallest and the largest one. Aims are never enforced.
set -euo pipefail

cd "$(dirname "$0")/.."
requests=${1:-100000}
parts=(memory file etcd pairs handover http)
(($# < 2)) || parts=("${@:2}")
rounds=7
load=build/bench/tests/daemon_load
# In build/ and not in /tmp, which can be a tmpfs: the benchmark measures a disk.
work=$(mktemp -d "$PWD/build/bench-daemon.XXXXXX")
servers=()
clean_up() {
    local pid
    for pid in "${servers[@]}"; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

# start NAME COMMAND…: on core 0, its stdout in $work/NAME.
start() {
    local name=$1
    shift
    taskset -c 0 "$@" >"$work/$name" 2>"$work/$name.log" </dev/null &
    servers+=($!)
}

free_port() {
    local port
    while :; do
        port=$((10000 + SRANDOM % 10000))
        (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    printf '%s\n' "$port"
}

await_port() { # await_port NAME PORT
    local i
    for ((i = 0; i < 500; i++)); do
        ! (: <>"/dev/tcp/127.0.0.1/$2") 2>/dev/null || return 0
        sleep 0.02
    done
    cat "$work/$1.log" >&2
    return 1
}

start_daemon() { # start_daemon NAME STORE: sets port
    local i
    start "$1" build/bench/leasehold serve --store "$2" --listen 127.0.0.1:0 --http off \
        --unix off
    for ((i = 0; i < 500; i++)); do
        [[ ! -s $work/$1 ]] || break
        sleep 0.02
    done
    port=$(grep -om 1 '[0-9]*$' "$work/$1")
}

start_redis() { # start_redis NAME OPTION…: sets port
    local name=$1
    shift
    port=$(free_port)
    mkdir "$work/$name.data"
    start "$name" redis-server --bind 127.0.0.1 --port "$port" --dir "$work/$name.data" \
        --save '' "$@"
    await_port "$name" "$port"
}

# rate PORT PIPELINE COMMAND…: requests per second of 64 clients.
rate() {
    local port=$1 pipeline=$2
    shift 2
    timeout 300 taskset -c 1 redis-benchmark -h 127.0.0.1 -p "$port" -c 64 -n "$requests" \
        -P "$pipeline" -r 100000000 --csv "$@" 2>/dev/null | awk -F '","' 'END { print $2 }'
}

# spread: of the numbers on stdin, their median, the smallest and the largest.
spread() {
    sort -g | awk '{ all[NR] = $1 } END {
        printf all[1] < 100 ? "%.2f (%.2f to %.2f)" : "%.0f (%.0f to %.0f)",
            all[int((NR + 1) / 2)], all[1], all[NR] }'
}

# judge AIM MUST: of the ratios on stdin.
judge() {
    sort -g | awk -v aim="$1" -v must="$2" '
        function met(least) { return ratio >= least ? "reached" : "missed" }
        { all[NR] = $1 }
        END {
            ratio = all[int((NR + 1) / 2)]
            printf "  ratio %.2f (%.2f to %.2f); at least %s: %s", ratio, all[1], all[NR], must,
                met(must)
            if (aim != must)
                printf "; aim %s: %s", aim, met(aim)
            print ""
        }'
}

acquire=(LOCK.ACQUIRE key:__rand_int__ holder 30000)
set_nx=(SET key:__rand_int__ holder NX PX 30000)

# compare WHAT OURS THEIRS AIM MUST: ports. The empty server, whose PING asks no store, is the
# limit.
compare() {
    local what=$1 ours=$2 theirs=$3 i
    rm -f "$work"/{ours,theirs,empty}.rate
    for ((i = 0; i < rounds; i++)); do
        rate "$theirs" 1 "${set_nx[@]}" >>"$work/theirs.rate"
        rate "$ours" 1 "${acquire[@]}" >>"$work/ours.rate"
        rate "$ours" 1 PING key:__rand_int__ >>"$work/empty.rate"
    done
    printf '== %s, 64 clients, acquire only, requests per second\n' "$what"
    printf '  daemon %s, Redis %s, empty server %s\n' "$(spread <"$work/ours.rate")" \
        "$(spread <"$work/theirs.rate")" "$(spread <"$work/empty.rate")"
    paste "$work/ours.rate" "$work/theirs.rate" | awk '{ print $1 / $2 }' | judge "$4" "$5"
    printf '  16 commands pipelined: daemon %.0f, Redis %.0f\n' \
        "$(rate "$ours" 16 "${acquire[@]}")" \
        "$(rate "$theirs" 16 "${set_nx[@]}")"
}

pairs() { # pairs WHAT PORT
    local clients
    printf '== %s, acquire and release, pairs per second\n' "$1"
    for clients in 1 16 64 256; do
        printf '  %3d clients: %.0f\n' "$clients" \
            "$(timeout 300 taskset -c 1 "$load" pairs "$2" "$clients" $((requests / 4)))"
    done
}

# handover WHAT PORT AIM MUST: between two clients, in bare round trips.
handover() {
    local waiters i
    for waiters in 2 1000; do
        for ((i = 0; i < rounds; i++)); do
            timeout 300 taskset -c 1 "$load" handover "$2" "$echo_port" "$waiters" 500
        done >"$work/handover.rate"
        printf '== %s, hand-over with %d waiters\n' "$1" "$waiters"
        printf '  %s us beside bare round trips of %s us: %s round trips; at most %s, aim %s\n' \
            "$(cut -d ' ' -f 1 "$work/handover.rate" | spread)" \
            "$(cut -d ' ' -f 2 "$work/handover.rate" | spread)" \
            "$(awk '{ print $1 / $2 }' "$work/handover.rate" | spread)" "$4" "$3"
    done
}

# The lock API of etcd: by 64 connections of its JSON gateway.
compare_etcd() { # compare_etcd OURS
    local client peer i
    client=$(free_port)
    peer=$(free_port)
    start etcd etcd --name bench --data-dir "$work/etcd.data" --log-level error \
        --listen-client-urls "http://127.0.0.1:$client" \
        --advertise-client-urls "http://127.0.0.1:$client" \
        --listen-peer-urls "http://127.0.0.1:$peer" \
        --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
        --initial-cluster "bench=http://127.0.0.1:$peer"
    await_port etcd "$client"
    rm -f "$work"/{ours,theirs}.rate
    for ((i = 0; i < rounds; i++)); do
        timeout 300 taskset -c 1 build/bench/tests/etcd_load "$client" 64 $((requests / 50)) \
            >>"$work/theirs.rate"
        rate "$1" 1 "${acquire[@]}" >>"$work/ours.rate"
    done
    printf '== file: beside the lock API of etcd, 64 clients, acquire only\n'
    printf '  daemon %s, etcd %s\n' "$(spread <"$work/ours.rate")" "$(spread <"$work/theirs.rate")"
    paste "$work/ours.rate" "$work/theirs.rate" | awk '{ print $1 / $2 }' | judge 10 10
}

# HTTP beside RESP, by the same generator, at a daemon of its own.
compare_http() { # compare_http NAME STORE
    local name=web-$1 resp web i
    start "$name" build/bench/leasehold serve --store "$2" --listen 127.0.0.1:0 \
        --http 127.0.0.1:0 --unix off
    for ((i = 0; i < 500; i++)); do
        ! grep -qs http: "$work/$name" || break
        sleep 0.02
    done
    resp=$(sed -n '1s/.*://p' "$work/$name")
    web=$(sed -n 's/.*http:.*://p' "$work/$name")
    rm -f "$work"/{http,resp}.rate
    for ((i = 0; i < rounds; i++)); do
        timeout 300 taskset -c 1 "$load" http "$web" 64 "$requests" >>"$work/http.rate"
        timeout 300 taskset -c 1 "$load" acquire "$resp" 64 "$requests" >>"$work/resp.rate"
    done
    printf '== %s:, HTTP keep-alive, 64 connections: %s acquisitions per second' "$1" \
        "$(spread <"$work/http.rate")"
    printf ' beside RESP'\''s %s\n' "$(spread <"$work/resp.rate")"
    printf '  ratio %s\n' \
        "$(paste "$work/http.rate" "$work/resp.rate" | awk '{ print $1 / $2 }' | spread)"
}

start echo "$load" echo
start_daemon memory memory:
memory=$port
start_daemon file "file:$work/locks.log"
file=$port
start_redis volatile --appendonly no
volatile=$port
start_redis durable --appendonly yes --appendfsync always
durable=$port
echo_port=$(<"$work/echo")

for part in "${parts[@]}"; do
    case $part in
    memory)
        compare 'memory: beside Redis without persistence' "$memory" "$volatile" 0.95 0.95 ;;
    file) compare 'file: beside Redis with appendfsync always' "$file" "$durable" 1.3 1.1 ;;
    etcd) compare_etcd "$file" ;;
    pairs)
        pairs memory: "$memory"
        pairs file: "$file" ;;
    handover)
        handover memory: "$memory" 2 3
        handover file: "$file" 2 3 ;;
    http)
        compare_http memory memory:
        compare_http file "file:$work/web.log" ;;
    *)
        printf 'bench-daemon.sh: unknown part %s\n' "$part" >&2
        exit 1 ;;
    esac
done
