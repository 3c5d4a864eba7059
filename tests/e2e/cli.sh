#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program as a user meets it: cli.sh PROGRAM. What it prints, where it prints it, and the exit
# status are a contract, so they are compared letter for letter.
set -euo pipefail

program=$1
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
number=0
wrong=0

# expect WHAT STATUS STDOUT STDERR [ARGUMENT...]
expect() {
    local what=$1 status=$2 out=$3 err=$4 got=0
    shift 4
    number=$((number + 1))
    "$program" "$@" >"$place/out" 2>"$place/err" </dev/null || got=$?
    if [[ $got == "$status" && $(<"$place/out") == "$out" && $(<"$place/err") == "$err" ]]; then
        printf 'ok %d - %s\n' "$number" "$what"
        return
    fi
    wrong=1
    printf 'not ok %d - %s\n' "$number" "$what"
    printf '# status %s, wanted %s\n' "$got" "$status"
    sed 's/^/# out: /' "$place/out"
    sed 's/^/# err: /' "$place/err"
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

number=$((number + 1))
status=0
"$program" version >/dev/full 2>"$place/err" || status=$?
if ((status == 70)); then
    printf 'ok %d - an answer that cannot be written is an error\n' "$number"
else
    wrong=1
    printf 'not ok %d - an answer that cannot be written is an error (status %s)\n' \
        "$number" "$status"
fi
printf '1..%d\n' "$number"
exit "$wrong"
