#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A holder is stopped past the end of its lease, a second one writes, the first continues and writes
# through check: fencing.sh PROGRAM ROUNDS. Every such write must be refused, and each must have
# been attempted. Odd rounds hold with acquire, even ones with run. Prints TAP.
set -euo pipefail

program=$(realpath "$1")
rounds=$2
at_once=20
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
# Only processes that an aborted round may have left stopped.
at_end() {
    local pid
    for pid in $(cat "$work"/*/pids 2>/dev/null); do kill -KILL "$pid" 2>/dev/null || true; done
}
cd "$work"
export LEASEHOLD_STORE=${LEASEHOLD_TEST_STORE:-file:$work/locks.log} HOME=$work
guard=$work/guard

# The first holder's part, after its grant: it reports it, is stopped, and writes.
write_late() { # write_late KEY TOKEN
    # A pause without a child process: every process can be stopped.
    mkfifo pause
    exec 9<>pause
    printf '%s\n' "$2" >token
    until [[ -e go ]]; do read -rt 0.02 -u 9 _ || true; done
    local status=0
    if [[ -e unguarded ]]; then
        printf 'late %s\n' "$2" >data
    else
        "$program" check --guard "$guard" --key "$1" --token "$2" -- \
            sh -c "echo late $2 >data" 2>said || status=$?
    fi
    printf '%s\n' "$status" >status.new
    mv status.new status
}
export -f write_late
export program guard

hold_by_acquire() { write_late "$1" "$("$program" acquire "$1" --ttl 1s)"; }
hold_by_run() {
    # It is only warned of its loss, so it continues and tries to write.
    "$program" run "$1" --ttl 2s --on-lost warn -- \
        bash -c 'write_late "$LEASEHOLD_KEY" "$LEASEHOLD_TOKEN"' || true
}

# A process and all below it.
tree_of() {
    local child
    printf '%s\n' "$1"
    for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do tree_of "$child"; done
}

play() { # play ROUND HOW: leaves what the first holder's write came to in ROUND/status
    local key=job-$1 first pids second
    mkdir -p "$1"
    cd "$1"
    [[ $2 != unguarded ]] || : >unguarded
    if [[ $2 == run ]]; then hold_by_run "$key" >/dev/null 2>&1 & else hold_by_acquire "$key" & fi
    first=$!
    await token
    pids=$(tree_of "$first")
    printf '%s\n' "$pids" >pids
    kill -STOP $pids # parents first: nothing new can start meanwhile
    second=$("$program" acquire "$key" --ttl 1m --wait 1m)
    "$program" check --guard "$guard" --key "$key" --token "$second" -- \
        sh -c "echo current $second >data"
    : >go
    kill -CONT $pids
    await status
    wait "$first" || true
    printf '%s %s\n' "$(<token)" "$second" >tokens
    rm pids
}

attempted=0 refused=0 accepted=0 odd=0
count() { # count ROUND
    local status first second
    if [[ ! -s $1/status || ! -s $1/tokens ]]; then
        odd=$((odd + 1))
        return
    fi
    status=$(<"$1/status")
    read -r first second <"$1/tokens"
    ((first < second)) || odd=$((odd + 1))
    attempted=$((attempted + 1))
    if [[ $(<"$1/data") != "current $second" ]]; then
        accepted=$((accepted + 1))
    elif [[ $status == 78 ]]; then
        refused=$((refused + 1))
    else
        odd=$((odd + 1))
        sed 's/^/# /' "$1/said" 2>/dev/null || true
    fi
}

# Without the fence the late write succeeds: proves that the round can fail.
(play control unguarded)
count control
verdict 'without check the late write is taken' test "$attempted $accepted $odd" = '1 1 0'

attempted=0 accepted=0
for ((round = 1; round <= rounds; round++)); do
    how=acquire
    ((round % 2)) || how=run
    (play "$round" "$how") 2>"$work/said-$round" &
    started+=($!)
    if ((round % at_once == 0 || round == rounds)); then
        for pid in "${started[@]}"; do wait "$pid" || true; done
        started=()
    fi
done
for ((round = 1; round <= rounds; round++)); do
    count "$round"
    sed 's/^/# /' "$work/said-$round"
done
printf '# %d rounds: %d stale writes attempted, %d refused, %d accepted; %d went another way\n' \
    "$rounds" "$attempted" "$refused" "$accepted" "$odd"
verdict 'every round tried a stale write' test "$attempted $odd" = "$rounds 0"
verdict 'every stale write was refused, and none accepted' test "$refused $accepted" = "$rounds 0"
finish
