#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `make run` and `make serve` do with the daemon: make_serve.sh PROGRAM. The first one takes
# locks with redis-cli and curl and shows a metric, the second one serves until Ctrl-C and says what
# to type. Neither leaves a process, a file or a socket behind. Prints TAP.
set -euo pipefail

program=$(realpath "$1")
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/kit.sh
. tests/e2e/kit.sh
mkdir "$work/tmp" "$work/tmp-less" "$work/bin"
sessions=()
at_end() {
    local session
    for session in "${sessions[@]}"; do pkill -KILL --session "$session" || true; done
}
export no_proxy=127.0.0.1

# Succeeds if no process of the session is left, zombies aside.
session_is_over() { # session_is_over SESSION
    [[ -z $(ps -o pid=,stat= --sid "$1" | awk '$2 !~ /^Z/') ]]
}

# A tour in a session of its own; its output is in $work/NAME.
tour() { # tour NAME TMPDIR
    TMPDIR=$2 setsid scripts/show.sh "$program" >"$work/$1" 2>&1 &
    local pid=$!
    wait "$pid"
    session_is_over "$pid"
    [[ -z $(ls -A "$2") ]]
}

tour_ends_with_the_daemon() {
    tour full "$work/tmp"
    cat "$work/full"
    grep -A 1 '^\$ redis-cli ' "$work/full" | grep '"outcome":"ok"'
    grep -A 1 '^\$ curl .*/report/acquire' "$work/full" | grep '"outcome":"busy".*held by ann'
    grep -A 1 '^\$ curl .*/invoice/acquire' "$work/full" | grep '"outcome":"ok"'
    grep -x 'leasehold_locks_held 2' "$work/full"
    [[ $(tail -n 1 "$work/full") == '$ kill $!; wait' ]]
}

# All tools of the tour but curl.
tour_says_what_is_missing() {
    local tool
    for tool in bash cat grep ln mkdir mktemp realpath redis-cli rm sed sleep; do
        ln -s "$(type -P "$tool")" "$work/bin/"
    done
    (PATH=$work/bin && TMPDIR=$work/tmp-less bash scripts/show.sh "$program") >"$work/less" 2>&1
    [[ $(tail -n 1 "$work/less") == 'the daemon is not shown: missing curl; '* ]] || {
        cat "$work/less"
        return 1
    }
    grep '^\$ leasehold history' "$work/less"
    [[ -z $(ls -A "$work/tmp-less") ]]
}

# ---- make serve ----

# serve NAME COMMAND…: as from a terminal, in a session and a process group of its own, with its
# output in $work/NAME. Sets `session`; returns when it has said what to type.
serve() {
    local name=$1 i
    shift
    mkdir "$work/tmp-$name"
    TMPDIR=$work/tmp-$name setsid env --default-signal=INT,TERM "$@" >"$work/$name" 2>&1 &
    session=$!
    for ((i = 0; i < 1500; i++)); do
        ! grep -qs '^Ctrl-C ends it' "$work/$name" || return 0
        sleep 0.02
    done
    cat "$work/$name"
    return 1
}

# The commands that it prints work.
types_what_is_said() { # types_what_is_said NAME
    local typed
    cat "$work/$1"
    mapfile -t typed < <(sed -n 's/^  \(redis-cli\|curl\) /\1 /p' "$work/$1")
    [[ ${#typed[@]} == 3 ]]
    eval "${typed[0]}" | grep -x ok
    eval "${typed[1]}" | grep '"outcome":"busy"'
    eval "${typed[2]}" | grep -x 'leasehold_locks_held 1'
}

# Nothing listens at the addresses of NAME, and no process or file is left.
nothing_is_left() { # nothing_is_left NAME SESSION
    local port ports
    session_is_over "$2"
    [[ -z $(ls -A "$work/tmp-$1") ]]
    mapfile -t ports < <(grep -o '127\.0\.0\.1:[0-9]*' "$work/$1" | sort -u | cut -d : -f 2)
    [[ ${#ports[@]} == 2 ]]
    for port in "${ports[@]}"; do
        if (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then return 1; fi
    done
}

started_twice() {
    types_what_is_said first
    types_what_is_said second
    grep '^port [0-9]* is in use; RESP is at port [0-9]*$' "$work/second"
    grep '^port [0-9]* is in use; HTTP is at port [0-9]*$' "$work/second"
}

# A terminal sends SIGINT to its foreground group: make, the script and, were it there, the daemon.
ends_at_ctrl_c() {
    [[ $first_status == 130 ]]
    nothing_is_left first "$first"
}

# SIGTERM is sent to the script alone.
ends_at_a_signal() {
    [[ $second_status == 0 ]]
    nothing_is_left second "$second"
}

serve first make serve || true
first=$session
sessions+=("$first")
serve second scripts/serve.sh "$program" || true
second=$session
sessions+=("$second")
case_of 'two make serve run side by side, and what they say to type works' started_twice
second_status=0
kill -TERM "$second" || true
wait "$second" || second_status=$?
case_of 'SIGTERM ends make serve, and nothing is left' ends_at_a_signal
first_status=0
kill -INT -- "-$first" || true
wait "$first" || first_status=$?
case_of 'Ctrl-C ends make serve, and nothing is left' ends_at_ctrl_c
((wrong)) || sessions=()
case_of 'the tour ends with the daemon, and leaves nothing' tour_ends_with_the_daemon
case_of 'the tour says what is missing' tour_says_what_is_missing
finish
