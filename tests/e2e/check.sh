#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# leasehold check with real commands: check.sh PROGRAM KILLS. One command at a time for each key,
# held while any process of the command is left, no token forgotten, and no admission when the fence
# cannot be trusted. Prints TAP.
set -euo pipefail

program=$(realpath "$1")
kills=$2
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
export LEASEHOLD_STORE=file:$work/locks.log HOME=$work

case_of() { # case_of WHAT FUNCTION: in a folder of its own
    local good=true
    mkdir "$work/$number"
    # In the background, because within a condition the shell does not stop at the first failure.
    (
        set -e
        cd "$work/$number"
        "$2"
    ) >"$work/said" 2>&1 &
    wait $! || good=false
    tell "$good" "$1"
    grep '^figure: ' "$work/said" | sed 's/^figure:/#/' || true
}

gives() { # gives STATUS COMMAND...
    local wanted=$1 got=0
    shift
    "$@" || got=$?
    [[ $got == "$wanted" ]] || {
        printf '%s gave %s, not %s\n' "$*" "$got" "$wanted"
        return 1
    }
}

check() { "$program" check --guard guard "$@"; }

the_command_runs_as_it_is() {
    gives 0 check --key k --token 5 -- true
    gives 3 check --key k --token 5 -- sh -c 'exit 3'
    gives 137 check --key k --token 5 -- sh -c 'kill -KILL $$'
    [[ $(printf 'from stdin' | check --key k --token 5 -- cat) == 'from stdin' ]]
    [[ $(check --key k --token 5 -- printf '%s|' 'two words' '' --key) == 'two words||--key|' ]]
    gives 78 check --key k --token 4 -- touch no
    gives 127 check --key k --token 9 -- /no/such/program
    gives 126 check --key k --token 9 -- /etc/passwd
    gives 64 check --key k --token 9 --
    # None of the last three changed anything.
    gives 0 check --key k --token 6
    [[ ! -e no ]]
}

the_guard_stands_beside_the_store() {
    "$program" check --key k --token 5
    [[ -e $work/locks.log.guard ]]
    gives 78 "$program" check --key k --token 4 --guard "$work/locks.log.guard"
    gives 64 "$program" check --key k --token 5 --store memory:
    gives 0 "$program" check --key k --token 5 --store memory: --guard guard
}

# Each records its start and end; a stale token is refused instead.
growing_tokens_take_turns() {
    local pids=() pid token status refused=0
    for token in $(seq 1 40 | shuf); do
        check --key k --token "$token" -- \
            sh -c "echo begin $token >>order; sleep 0.02; echo end $token >>order" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        status=0
        wait "$pid" || status=$?
        [[ $status == 0 || $status == 78 ]]
        ((status == 0)) || refused=$((refused + 1))
    done
    awk '{ if (NR % 2 == 1) { if ($1 != "begin" || $2 <= last) exit 1; last = $2 }
           else if ($1 != "end" || $2 != last) exit 1 }
         END { exit last != 40 || NR % 2 == 1 }' order
    [[ $(($(wc -l <order) / 2 + refused)) == 40 ]]
    printf 'figure: %d of 40 let in one after the other, %d refused\n' \
        "$(($(wc -l <order) / 2))" "$refused"
}

keys_do_not_wait_for_each_other() {
    check --key a/b --token 5 -- sh -c 'until [ -e go ]; do sleep 0.02; done' &
    first=$!
    timeout 20 "$program" check --guard guard --key a-b --token 3 -- touch go
    wait "$first"
}

what_is_left_of_a_command_keeps_the_guard() {
    "$program" check --guard guard --key k --token 5 -- \
        bash -c 'sleep 1000 & echo $! >left; mv left child; wait' &
    first=$!
    until [[ -s child ]]; do sleep 0.02; done
    gives 75 check --key k --token 6 -n
    kill -KILL "$first"
    wait "$first" || true
    gives 75 check --key k --token 6 --wait 100ms -- touch no
    "$program" --json check --guard guard --key k --token 6 -n 2>said || true
    grep -q '"outcome":"busy"' said
    # A stale token is refused at once.
    gives 78 check --key k --token 4
    check --key k --token 7 -- touch yes &
    second=$!
    kill -KILL "$(<child)"
    wait "$second"
    [[ -e yes && ! -e no ]]
    # A waiter that gave up left no token behind: 7 is the highest, not 6 before it.
    gives 78 check --key k --token 6
}

# At any moment, with a command that records its admission.
a_killed_check_lowers_nothing() {
    local token pid last let_in died=0
    : >seen
    for ((token = 10; token < 10 + kills; token++)); do
        "$program" check --guard guard --key k --token "$token" -- sh -c "echo $token >>seen" &
        pid=$!
        sleep "0.00$((RANDOM % 10))"
        ((token == 10)) || kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || died=$((died + 1))
        last=$(tail -1 seen)
        [[ -z $last ]] || gives 78 check --key k --token $((last - 1)) 2>/dev/null
    done
    let_in=$(wc -l <seen)
    printf 'figure: %d checks killed, %d before the end of their command; %d were let in\n' \
        "$kills" "$died" "$let_in"
    ((let_in > 0 && died > 0))
}

a_disk_that_takes_nothing_lets_nobody_in() {
    gives 0 check --key k --token 5
    # In blocks of 1 KiB: the records begin behind the fourth.
    gives 69 bash -c "ulimit -f 4; '$program' check --guard guard --key k --token 7 -- touch no"
    gives 69 bash -c "ulimit -f 0; '$program' check --guard other --key k --token 7 -- touch no" \
        2>/dev/null # which is a file here, too
    gives 69 check --guard /no/such/folder/guard --key k --token 7 -- touch no
    [[ ! -e no ]]
    gives 78 check --key k --token 4
    gives 0 check --key k --token 6
}

damage_lets_nobody_in() {
    gives 0 check --key k --token 5
    gives 0 check --key k --token 6
    size=$(tr -d '\0' <guard | wc -c)
    ((size > 200))
    for at in 8 4100 4200 4300; do
        cp guard copy
        printf 'X' | dd of=copy bs=1 seek="$at" conv=notrunc status=none
        gives 69 check --guard copy --key k --token 5 -- touch no
    done
    rm guard
    gives 69 check --key k --token 5 -- touch no
    printf 'not ours, but long enough to be looked at\n' >guard
    gives 69 check --key k --token 5 -- touch no
    "$program" acquire some --ttl 1h >/dev/null
    gives 69 "$program" check --guard "$work/locks.log" --key k --token 5 -- touch no
    "$program" status some | grep -q '^held'
    [[ ! -e no ]]
}

case_of 'the command gets what it was given, and its status goes through' the_command_runs_as_it_is
case_of 'without --guard it is beside the store' the_guard_stands_beside_the_store
case_of 'commands of one key take turns, and tokens only grow' growing_tokens_take_turns
case_of 'commands of two keys do not wait for each other' keys_do_not_wait_for_each_other
case_of 'the guard is held while anything of the command is left' \
    what_is_left_of_a_command_keeps_the_guard
case_of 'a check that is killed lowers no token' a_killed_check_lowers_nothing
case_of 'when a write fails nobody is let in' a_disk_that_takes_nothing_lets_nobody_in
case_of 'a damaged, removed or foreign guard lets nobody in' damage_lets_nobody_in

finish
