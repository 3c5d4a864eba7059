#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Requests of the GitHub store, counted at the server: on-github.sh front github_counts.sh PROGRAM
# SECONDS. All times are divided by 60, so that 60 s are an hour; with fewer SECONDS the counts are
# multiplied. Prints TAP, and the figures.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
program=$(realpath "$2")
seconds=$3
# shellcheck source=tests/e2e/kit.sh
. "$here/kit.sh"
# shellcheck source=tests/e2e/github_kit.sh
. "$here/github_kit.sh"
export HOME=$work
store=${1%%\?*}
free='pace=0&writes=1000000&budget=1000000'
scaled="poll=1s&$free"          # of 1 min
five="stale=5s&heartbeat=1666ms" # 5 min and 100 s
ten="stale=10s&heartbeat=3333ms" # 10 min and 200 s
times=$((60 / seconds))
[[ $times == 1 ]] || printf '# counted for %s s, and multiplied by %s\n' \
    "$seconds" "$times"

# hold TOKEN OPTIONS KEY…: in the background, until the end of the script
hold() {
    GITHUB_TOKEN=$1 "$program" --store "$store?$2" run "${@:3}" -- \
        sh -c "echo held >$work/$3; exec sleep 600" &
    started+=($!)
}

# count TOKEN METHODS [STATUS]: requests in the hour
count() {
    awk -v from="$from" -v to="$to" -v token="$1" -v methods="^($2)\$" -v status="${3:-.}" '
        $1 >= from && $1 < to && $7 == token && $3 ~ methods && $5 ~ status { n++ }
        END { print n + 0 }' "$GITHUB_LOG"
}
writes='POST|PATCH|PUT|DELETE'

all_live() { # each of `started`
    local pid
    for pid in "${started[@]}"; do kill -0 "$pid" || return 1; done
}

# ---- one lock ----

issue=$(api POST issues '{"title":"counted"}' | gives 'it["number"]')
costs() { # costs MOST OPTIONS: writes of `run` on an issue, without the four of its worker
    local all made
    : >"$GITHUB_LOG"
    "$program" --store "$store?stale=5m&$free$2" run "$issue" -- sleep 1
    from=0 to=1e18
    all=$(count tok_alice '.*') made=$(count tok_alice "$writes")
    awk '{ print $3, $4, $5 }' "$GITHUB_LOG"
    printf '# run%s: %s requests, of them %s writes, with the start and end of its worker\n' \
        "${2:+ with ${2#&}}" "$all" "$made" >&3
    (((made - 4) <= $1))
}
exec 3>&1
case_of 'run: at most 12 writes with everything shown' costs 12 ''
case_of 'run: at most 6 with show=off' costs 6 '&show=off'

# ---- an hour ----

last=0
for ((i = 0; i < 8; i++)); do
    first=$((last + 1))
    last=$((first + (i < 4 ? 12 : 11)))
    # shellcheck disable=SC2046 # keys
    hold tok_alice_2 "$ten&$scaled" $(seq -f 'lock-%g' "$first" "$last")
done
for ((i = 0, first = 1; i < 8; i++)); do
    await "$work/lock-$first" || await "$work/lock-$first" # 13 locks, on a slow machine
    first=$((first + (i < 4 ? 13 : 12)))
done
hold tok_alice "$five&$scaled" worker
await "$work/worker"
GITHUB_TOKEN=tok_bob "$program" --store "$store?$five&$scaled" run worker -- true 2>/dev/null &
started+=($!)
until [[ $(message_of worker) == *', 1 waiting'* ]]; do sleep 0.1; done
sleep 2 # until the waiter has polled

from=$(tail -n 1 "$GITHUB_LOG" | awk '{ print $1 }')
sleep "$seconds"
to=$(awk -v from="$from" -v seconds="$seconds" 'BEGIN { print from + seconds }')

beats=$(count tok_alice "$writes")
printf '# a worker: %s writes an hour\n' $((beats * times))
verdict 'a worker-hour has at most 80 writes, and some' \
    test $((beats * times)) -le 80 -a "$beats" -gt 0
reads=$(count tok_bob GET) unchanged=$(count tok_bob GET 304) wrote=$(count tok_bob "$writes")
workers=$(awk -v from="$from" -v to="$to" '$1 >= from && $1 < to && $7 == "tok_bob" &&
    $4 ~ "leasehold/w/" { n++ } END { print n + 0 }' "$GITHUB_LOG")
printf '# a waiter: %s reads an hour, of them %s unchanged, %s of a new heartbeat; %s writes\n' \
    $((reads * times)) $((unchanged * times)) $((workers * times)) $((wrote * times))
verdict 'a waiter-hour has at most 90 reads, and no write' \
    test $((reads * times)) -le 90 -a "$reads" -gt 0 -a "$wrote" == 0
# A new heartbeat is a ref and a commit. It is read when the last one has become too old.
verdict 'all but changes are 304' test $((reads - unchanged)) -le $((2 * workers))
verdict 'heartbeats are read only when the last one is stale' \
    test $((workers * 5)) -le "$((seconds + 5))"
beats=$(count tok_alice_2 "$writes")
printf '# 8 workers with 100 locks: %s writes an hour\n' $((beats * times))
verdict '8 workers with 100 locks have at most 300 writes an hour, and some' \
    test $((beats * times)) -le 300 -a "$beats" -gt 0
verdict 'and none of them has lost a lock' all_live
kill -TERM "${started[@]}" # with KILL, CMD would live on for a while
wait "${started[@]}" || true
started=()
finish
