#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Killed containers on the file store: container.sh PROGRAM ROUNDS. Holders and waiters run in pid,
# network and mount namespaces of their own. Each round kills all processes of the holder at once:
# none is left to send a message, and the first waiter must enter long before its poll. The second
# waiter is then the first, and the next round kills the one before it. Then the same with a
# semaphore, whose holders die in any order. Prints TAP and the times.
set -euo pipefail

program=$(realpath "$1")
rounds=$2
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
cd "$work"
PATH=$(dirname "$program"):$PATH
export LEASEHOLD_STORE=file:$work/locks.log
aim_ms=50    # the median, where no other process is busy
late_ms=1000 # the median that a busy machine may need, and the maximum; a poll comes after 5 s
most_ms=4000

apart=(unshare --pid --net --mount-proc --fork --kill-child)
((EUID == 0)) || apart+=(--user --map-root-user)
if ! "${apart[@]}" true 2>/dev/null; then
    printf '1..0 # SKIP this user may not create namespaces\n'
    exit 0
fi

# line_up NAME KEY OPTION…: a container that writes the time at which it has the lock, and keeps it.
declare -A container
line_up() {
    local name=$1
    shift
    # shellcheck disable=SC2016 # the inner shell expands these
    "${apart[@]}" leasehold run --quiet --holder "$name" --wait forever --ttl 10m "$@" -- \
        bash -c 'printf "%s\n" "$EPOCHREALTIME" >"$1"; exec sleep 600' - "$work/in.$name" \
        2>/dev/null &
    container[$name]=$!
    started+=($!)
}
in_line() { # in_line NAME KEY
    local i
    for ((i = 0; i < 1000; i++)); do
        ! leasehold status "$2" --json | grep -q "\"queue\":.*\"$1\"" || return 0
        sleep 0.01
    done
    fail "$1 does not wait"
    return 1
}
us() { printf '%s\n' "${1/[!0-9]/}"; }

# replace OLD NEXT: kills the one; appends to `took` how long it takes until the other has the lock.
replace() {
    local killed_us took_us pid=${container[$1]}
    sleep "0.0$((RANDOM % 6 + 3))"
    [[ ! -e in.$2 ]] || fail "$2 entered beside $1"
    killed_us=$(us "$EPOCHREALTIME")
    { kill -KILL "$pid" && wait "$pid"; } 2>/dev/null || true
    await "in.$2" || return 1
    took_us=$(($(us "$(<"in.$2")") - killed_us))
    printf '%d\n' $((took_us / 1000)) >>took
}

# judge COUNT WHAT
judge() {
    local count median_ms longest_ms
    count=$(wc -l <took)
    median_ms=$(sort -n took | sed -n "$((count / 2 + 1))p")
    longest_ms=$(sort -n took | tail -n 1)
    printf '# %s: the next one is in after %s ms (median), %s ms (maximum), %d kills; aim %d ms\n' \
        "$2" "$median_ms" "$longest_ms" "$count" "$aim_ms"
    ((count == $1)) || fail "$count of $1 in time"
    ((${median_ms:-99999} <= late_ms && ${longest_ms:-99999} <= most_ms)) || fail 'too late'
    say "$2: the next one enters at once"
    : >took
}

: >took
line_up c0 key
await in.c0
line_up c1 key
in_line c1 key || true
for ((i = 0; i < rounds; i++)); do
    line_up "c$((i + 2))" key
    in_line "c$((i + 2))" key || break
    replace "c$i" "c$((i + 1))" || break
done
judge "$rounds" 'a container is killed'

for name in s0 s1 s2; do
    line_up "$name" slots --limit 3
    await "in.$name"
done
line_up s3 slots --limit 3
in_line s3 slots || true
replace s1 s3 || true
line_up s4 slots --limit 3
in_line s4 slots || true
replace s2 s4 || true
judge 2 'one of three holders is killed'
finish
