#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the programs of examples/ and checks their effects: examples.sh BUILD. Prints TAP.
set -euo pipefail

cd "$(dirname "$0")/../.."
examples=$PWD/${1:?usage: examples.sh BUILD}/examples
# shellcheck source=tests/e2e/kit.sh
. tests/e2e/kit.sh
cd "$work"

store() { # store NAME: a file of this name, or the store that is to be tried
    printf '%s\n' "${LEASEHOLD_TEST_STORE:-file:$1.log}"
}

pool_in_memory() {
    "$examples/worker_pool" memory: 40 | sed 's/ by.*//' | sort >done
    [[ $(wc -l <done) == 40 && -z $(uniq -d done) ]]
}

pools_of_three_processes() {
    local pids=() pid
    for i in 1 2 3; do
        "$examples/worker_pool" "$(store pool)" 40 >"did-$i" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid"; done
    sed 's/ by.*//' did-* | sort >done
    [[ $(wc -l <done) == 40 && -z $(uniq -d done) ]]
}

stale_writer_is_refused() {
    "$examples/fenced_writer" "$(store writer)" data >told
    cat told data
    grep -q '^first by slow: written' told
    grep -q '^third by slow: refused' told
    grep -q '^quick.s release: ok' told
    grep -q '^[0-9]* second by quick$' data
}

# lines PATTERN COUNT: waits until the server has printed that many.
lines() {
    local since=$SECONDS
    until (($(grep -c "$1" told) >= $2)); do
        ((SECONDS - since < 60)) || return 1
        sleep 0.05
    done
}
server_answers_out_of_order() {
    : >told
    {
        printf 'lock a\nlock b\nlock a\n'
        lines '^[ab] [0-9]*$' 2
        printf 'unlock b\nunlock a\nunlock c\n'
        lines '^a [0-9]*$' 2
        printf 'unlock a\n'
    } | "$examples/event_server" "$1" >>told
    cat told
    [[ $(grep -c '^a [0-9]*$' told) == 2 && $(grep -c '^b [0-9]*$' told) == 1 ]]
    [[ $(grep -c ' ok$' told) == 3 && $(grep -c '^c refused$' told) == 1 ]]
    # The second holder of a entered after the first one left, with a greater token.
    [[ $(grep -n '^a ok' told | head -1 | cut -d: -f1) -lt \
        $(grep -n '^a [0-9]' told | tail -1 | cut -d: -f1) ]]
    grep '^a [0-9]' told | cut -d' ' -f2 | sort -nc
}
server_in_memory() { server_answers_out_of_order memory:; }
server_on_store() { server_answers_out_of_order "$(store server)"; }

leaders_take_turns() {
    local first second
    "$examples/leader" "$(store leader)" anna 3 >anna &
    first=$!
    "$examples/leader" "$(store leader)" bert 3 >bert &
    second=$!
    wait "$first"
    wait "$second"
    sort -n -k2 anna bert | tee terms
    [[ $(wc -l <terms) == 6 && -z $(cut -d' ' -f2 terms | uniq -d) ]]
    # No process leads three times in a row while the other is a candidate.
    [[ $(cut -d' ' -f1 terms | uniq | wc -l) -ge 3 ]]
}

poller_misses_nothing() {
    mkdir source
    printf '%s\n' '900 a' '1000 b' '1000 c' >source/events
    echo 1000 >source/clock
    printf '%s\n' '1000 c' 'nonsense' '1100 d' '1100 d' |
        "$examples/poller" "$(store poller)" source 2 >told-1
    # Restarted: events of the webhook are in the polls now, one event is late, one is new.
    printf '%s\n' '1100 d' '950 late' '4600000 e' >>source/events
    echo 4600000 >source/clock
    "$examples/poller" "$(store poller)" source 3 <<<'4600000 e' >told-2
    cat told-1 told-2
    [[ $(sort told-1) == $'a by poll\nb by poll\nc by webhook\nd by webhook' ]]
    [[ $(sort told-2) == $'e by webhook\nlate by poll' ]]
    # It is where the last poll began: an event from before the overlap is not read again.
    printf '%s\n' '4597999 older' '4598000 as-old' >>source/events
    [[ $("$examples/poller" "$(store poller)" source 1 </dev/null) == 'as-old by poll' ]]
}

case_of 'a pool does every job once' pool_in_memory
case_of 'three pools on one store do every job once' pools_of_three_processes
case_of 'the guard refuses a stale writer' stale_writer_is_refused
case_of 'a server with its own loop, in memory' server_in_memory
case_of 'a server with its own loop, on a store that is shared' server_on_store
case_of 'leaders yield to each other' leaders_take_turns
case_of 'a poller with webhooks goes on where it was, and misses nothing' poller_misses_nothing

finish
