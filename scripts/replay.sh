#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs one simulated day again from its seed: replay.sh SEED [MUTANT]. With a mutant's name the
# build with planted bugs is used, and that one bug is switched on.
set -euo pipefail

cd "$(dirname "$0")/.."
seed=${1:-}
mutant=${2:-}

if [[ ! $seed =~ ^[0-9]+$ ]]; then
    printf 'replay: give the seed that the simulation printed: make replay SEED=42\n' >&2
    exit 64
fi

scripts/packages.sh build
if [[ -n $mutant ]]; then
    scripts/build.sh mutants
    exec build/mutants/tests/simulation --replay "$seed" --mutant "$mutant"
fi
scripts/build.sh release
exec build/tests/simulation --replay "$seed"
