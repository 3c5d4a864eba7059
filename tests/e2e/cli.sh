#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program as a user meets it: cli.sh PROGRAM. What it prints, where it prints it, and the exit
# status are a contract, so they are compared letter for letter.
set -euo pipefail

program=$1
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"

# expect WHAT STATUS STDOUT STDERR [ARGUMENT...]
expect() {
    local what=$1 status=$2 out=$3 err=$4 got=0 good=false
    shift 4
    "$program" "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
    [[ $got != "$status" || $(<"$work/out") != "$out" || $(<"$work/err") != "$err" ]] || good=true
    {
        printf 'exit %s, wanted %s\n' "$got" "$status"
        sed 's/^/out: /' "$work/out"
        sed 's/^/err: /' "$work/err"
    } >"$work/said"
    tell "$good" "$what"
}

help=$("$program" help)
version=$'leasehold 0.1.0\nstores: file k8s memory redis rediss'

expect 'version says what is built in' 0 "$version" '' version
expect '--version is understood' 0 "$version" '' --version
expect 'help lists the commands' 0 "$help" '' help
expect '--help is understood' 0 "$help" '' --help
expect 'no command is a usage error' 64 '' \
    "leasehold: say what to do; 'leasehold help' lists the commands"
expect 'an unknown command names the closest one' 64 '' \
    "leasehold: unknown command 'verison'; the closest is 'version'" verison
expect 'a word too many is a usage error' 64 '' \
    "leasehold: version takes no argument, but got 'now'" version now

status=0
"$program" version >/dev/full 2>"$work/said" || status=$?
verdict 'an answer that cannot be written is an error' test "$status" = 70

# One descriptor is free. The leak checker of a sanitizer needs more, and is not what is tested.
with_one_descriptor() (
    export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 LEASEHOLD_STORE=file:$work/locks.log
    ulimit -n 4
    exec "$program" "$@"
)
for call in 'acquire k -n' 'run k -- true' 'status k' 'list' 'mark id' 'watermark get name'; do
    read -ra words <<<"$call"
    verdict "without descriptors: $call" says 70 'raise the limit|Too many open files' \
        with_one_descriptor "${words[@]}"
done
finish
