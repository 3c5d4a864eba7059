#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every benchmark program of the optimised build, one after another so that none disturbs
# the next. Having nothing to run is an error: silence must not look like a result.
set -euo pipefail

cd "$(dirname "$0")/.."
ran=0
for program in build/tests/bench_*; do
    [[ -f $program && -x $program ]] || continue
    printf '== %s\n' "${program##*/bench_}"
    "$program"
    ran=$((ran + 1))
done
if ((ran == 0)); then
    printf 'bench: this tree has no build/tests/bench_* program, so nothing was measured\n' >&2
    exit 1
fi
