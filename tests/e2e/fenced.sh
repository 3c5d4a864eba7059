#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the very commands of a document: fenced.sh PROGRAM PAGE. All blocks that begin with ```sh are
# one script; what it prints must be what its lines say behind "# prints ". Prints TAP.
set -euo pipefail

program=$(realpath "$1")
page=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/place"
ln -s "$program" "$work/bin/leasehold"
export PATH=$work/bin:$PATH HOME=$work LEASEHOLD_STORE=file:$work/locks.log
unset LEASEHOLD_TTL LEASEHOLD_CONFIG XDG_CONFIG_HOME

sed -n '/^```sh$/,/^```$/{ /^```/!p }' "$page" >"$work/script"
sed -n 's/.*# prints //p' "$work/script" >"$work/wanted"
status=0
(cd "$work/place" && bash -euo pipefail "$work/script") >"$work/said" 2>"$work/err" </dev/null ||
    status=$?

number=0
wrong=0
verdict() { # verdict WHAT COMMAND...
    local what=$1
    shift
    number=$((number + 1))
    if "$@" >"$work/why" 2>&1; then
        printf 'ok %d - %s\n' "$number" "$what"
    else
        printf 'not ok %d - %s\n' "$number" "$what"
        sed 's/^/# /' "$work/why" "$work/err"
        wrong=1
    fi
}
verdict "${page##*/} says what its commands print" test "$(wc -l <"$work/wanted")" -ge 5
verdict "the commands of ${page##*/} run" test "$status" = 0
verdict 'they print what it says' diff "$work/wanted" "$work/said"
verdict 'the file is the one of the current writer' grep -qx new "$work/place/report.txt"
verdict 'the late writer was told why' grep -q '^stale: report has seen token' "$work/err"
printf '1..%d\n' "$number"
exit "$wrong"
