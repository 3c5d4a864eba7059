#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every unit test program of a build folder: units.sh build/asan. A program that dies between
# two cases has said nothing wrong, so its death is written down as a failed case.
set -euo pipefail

export CMOCKA_MESSAGE_OUTPUT=TAP
wrong=0
for program in "$1"/tests/unit_*; do
    [[ -f $program && -x $program ]] || continue
    status=0
    said=$("$program" 2>&1) || status=$?
    printf '# %s\n%s\n' "${program##*/}" "$said"
    ((status == 0)) && continue
    wrong=1
    grep -q '^not ok' <<<"$said" || printf 'not ok - %s ended with %s\n' "${program##*/}" "$status"
done
exit "$wrong"
