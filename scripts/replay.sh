#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Repeats one simulated day from its seed: replay.sh SEED [MUTANT]. With a mutant's name the build
# with planted bugs is used, and that one bug is enabled.
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
    simulation=(build/mutants/tests/simulation --mutant "$mutant")
else
    scripts/build.sh sim
    simulation=(build/sim/tests/simulation)
fi
if [[ ! -x ${simulation[0]} ]]; then
    printf 'replay: this tree builds no simulation, so there is nothing to replay\n' >&2
    exit 1
fi
exec "${simulation[@]}" --replay "$seed"
