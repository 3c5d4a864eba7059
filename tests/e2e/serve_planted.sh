#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each planted hole of src/face/daemon/may.h must be found by the table of rights: serve_planted.sh
# PROGRAM, which is built with -Dmutants=true. Without a hole the table must pass. Prints TAP.
set -euo pipefail

program=$(realpath "${1:?usage: serve_planted.sh PROGRAM}")
here=$(realpath "$(dirname "$0")")
# shellcheck source=tests/e2e/kit.sh
. "$here/kit.sh"

mapfile -t holes < <(sed -n '/^#define MAY_HOLE_LIST/,/^$/s/^    X(\([A-Z_]*\),.*/\1/p' \
    "$here/../../src/face/daemon/may.h")

# reap: waits for the first table that was started. Its output is $work/NAME, its status
# $work/NAME.status.
names=()
reap() {
    local status=0
    wait "${started[0]}" || status=$?
    printf '%s\n' "$status" >"$work/${names[0]}.status"
    started=("${started[@]:1}")
    names=("${names[@]:1}")
}

table_passes() {
    grep -A 20 '^not ok' "$work/none" || true
    [[ $(<"$work/none.status") == 0 ]]
}

# It fails to its end.
hole_is_found() {
    grep -m 3 '^not ok' "$work/$1"
    grep '^1\.\.' "$work/$1"
    [[ $(<"$work/$1.status") == 1 && $(grep -c '^ok' "$work/$1") -gt 10 ]]
}

there_are_holes() {
    ((${#holes[@]} >= 10))
    if "$program" serve --store memory: --listen 127.0.0.1:0 --unix off --planted NO_SUCH; then
        return 1
    fi
}

# Four at a time, because they mostly wait.
for name in none "${holes[@]}"; do
    ((${#started[@]} < 4)) || reap
    options=()
    [[ $name == none ]] || options=(--planted "$name")
    "$here/serve_rights.py" "$program" "${options[@]}" >"$work/$name" 2>&1 &
    started+=($!)
    names+=("$name")
done
while ((${#started[@]} > 0)); do reap; done

case_of 'there are planted holes' there_are_holes
case_of 'the table passes without a hole' table_passes
for hole in "${holes[@]}"; do
    case_of "$hole is found" hole_is_found "$hole"
done
finish
