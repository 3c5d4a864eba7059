#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the unit test programs of a build folder, all or those that are named: units.sh build/asan
# [NAME...], where a name may be a pattern. A program that dies between two cases has said nothing
# wrong, so its death is written down as a failed case.
set -euo pipefail

export CMOCKA_MESSAGE_OUTPUT=TAP
wrong=0
dir=$1
shift
(($#)) || set -- '*'
programs=()
for name in "$@"; do
    mapfile -t -O "${#programs[@]}" programs < <(compgen -G "$dir/tests/unit_$name")
done
for program in "${programs[@]}"; do
    [[ -f $program && -x $program ]] || continue
    status=0
    said=$("$program" 2>&1) || status=$?
    printf '# %s\n%s\n' "${program##*/}" "$said"
    ((status == 0)) && continue
    wrong=1
    grep -q '^not ok' <<<"$said" || printf 'not ok - %s ended with %s\n' "${program##*/}" "$status"
done
exit "$wrong"
