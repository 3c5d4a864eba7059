#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `make run` does with the daemon: make_serve.sh PROGRAM. It takes locks with redis-cli and
# curl, shows a metric, and leaves neither a process nor a file behind. Prints TAP.
set -euo pipefail

program=$(realpath "$1")
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/kit.sh
. tests/e2e/kit.sh
mkdir "$work/tmp" "$work/tmp-less" "$work/bin"
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

case_of 'the tour ends with the daemon, and leaves nothing' tour_ends_with_the_daemon
case_of 'the tour says what is missing' tour_says_what_is_missing
finish
