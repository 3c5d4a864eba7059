#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the unit test programs of a build folder, all or the named ones: units.sh build/asan
# [NAME...], where a name may be a pattern. Most of them wait most of the time, so several run in
# parallel. A program that dies between two cases has reported no failure, so its death is reported
# as a failed case. Prints TAP.
set -euo pipefail

# one PROGRAM: runs it and prints its output in one piece, with its name above.
one() {
    local status=0 said
    said=$("$1" 2>&1) || status=$?
    if ((status != 0)) && ! grep -q '^not ok' <<<"$said"; then
        said+=$'\n'"not ok - ${1##*/} ended with $status"
    fi
    flock "$report" printf '# %s\n%s\n' "${1##*/}" "$said"
    return "$((status != 0))"
}

export CMOCKA_MESSAGE_OUTPUT=TAP
dir=$1
shift
(($#)) || set -- '*'
programs=()
for name in "$@"; do
    mapfile -t -O "${#programs[@]}" programs < <(compgen -G "$dir/tests/unit_$name")
done
for i in "${!programs[@]}"; do
    [[ -f ${programs[i]} && -x ${programs[i]} ]] || unset "programs[i]"
done
report=$(mktemp)
trap 'rm -f "$report"' EXIT
trap 'exit 130' INT TERM HUP
export -f one
export report
# shellcheck disable=SC2016 # the inner shell expands it
printf '%s\0' "${programs[@]}" | xargs -0 -n 1 -P 4 bash -c 'one "$1"' one
