#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Switches on each planted bug of src/core/mutant.h in turn and lets the general harnesses hunt it:
# mutants.sh SEEDS [all]. Prints TAP and a table: who caught it, after how many seeds or states,
# and how. Without `all` the exploration, which takes minutes, hunts what the simulation missed.
# A harness is believed only because of this.
set -euo pipefail

seeds=${1:?usage: mutants.sh SEEDS [all]}
both=${2:-}
dir=build/mutants
cd "$(dirname "$0")/.."
mapfile -t mutants < <(sed -n 's/^    X(\([A-Z_]*\),.*/\1/p' src/core/mutant.h)

# "seeds: words" or "missed" of one harness; 3 is its exit status for a catch.
hunt() {
    local status=0 line
    line=$("$@" 2>/dev/null) || status=$?
    case $status in
    3) sed -n 's/^caught .* after \([0-9]* [a-z]*\): \(.*\)$/\1: \2/p' <<<"$line" | tail -n 1 ;;
    0) echo missed ;;
    *) echo "the harness itself failed with $status" && return 1 ;;
    esac
}

number=0
failed=0
for mutant in "${mutants[@]}"; do
    number=$((number + 1))
    simulated=$(hunt "$dir/tests/simulation" --seeds "$seeds" --mutant "$mutant")
    explored='not asked'
    if [[ $both == all || $simulated == missed ]]; then
        explored=$(hunt "$dir/tests/explore" --mutant "$mutant")
    fi
    verdict=ok
    if [[ $simulated == missed && $explored == missed || $simulated$explored == *failed* ]]; then
        verdict='not ok'
        failed=1
    fi
    printf '%s %d - %s is caught\n' "$verdict" "$number" "$mutant"
    printf '#   %-12s %s\n' simulation "$simulated" exploration "$explored"
done
printf '1..%d\n' "$number"
exit "$failed"
