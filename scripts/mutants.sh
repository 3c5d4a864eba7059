#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Enables each planted bug of src/core/mutant.h in turn and runs the general harnesses on it:
# mutants.sh SEEDS [all]. Prints TAP and a table: which harness caught it, after how many seeds or
# states, and how. Without `all` the exploration, which takes minutes, only runs on bugs that the
# simulation missed. Bugs of the runtime are left to the simulation with a local queue in each
# process, the only harness that has one. This validates the harnesses.
set -euo pipefail

seeds=${1:?usage: mutants.sh SEEDS [all]}
both=${2:-}
dir=build/mutants
cd "$(dirname "$0")/.."

# The names in one of the lists: CORE or RUNTIME.
names_in() {
    sed -n "/^#define $1_MUTANT_LIST/,/^\$/s/^    X(\([A-Z_]*\),.*/\1/p" src/core/mutant.h
}
mapfile -t core < <(names_in CORE)
mapfile -t runtime < <(names_in RUNTIME)

# "seeds: text" or "missed" of one harness; 3 is its exit status for a catch.
hunt() {
    local status=0 line
    line=$("$@" 2>/dev/null) || status=$?
    case $status in
    3) sed -n 's/^caught .* after \([0-9]* [a-z]*\): \(.*\)$/\1: \2/p' <<<"$line" | tail -n 1 ;;
    0) echo missed ;;
    *) echo "the harness itself failed with $status" && return 1 ;;
    esac
}

# report NAME HARNESS WORDS [HARNESS WORDS]…: one case, and a line for each harness.
number=0
failed=0
report() {
    local mutant=$1 verdict='not ok'
    shift
    local line lines=()
    while (($#)); do
        printf -v line '#   %-12s %s' "$1" "$2"
        lines+=("$line")
        [[ $2 != [0-9]* ]] || verdict=ok
        shift 2
    done
    [[ ${lines[*]} != *failed* ]] || verdict='not ok'
    [[ $verdict == ok ]] || failed=1
    number=$((number + 1))
    printf '%s %d - %s is caught\n' "$verdict" "$number" "$mutant"
    printf '%s\n' "${lines[@]}"
}

for mutant in "${core[@]}"; do
    simulated=$(hunt "$dir/tests/simulation" --seeds "$seeds" --mutant "$mutant")
    explored='not asked'
    if [[ $both == all || $simulated == missed ]]; then
        explored=$(hunt "$dir/tests/explore" --mutant "$mutant")
    fi
    report "$mutant" simulation "$simulated" exploration "$explored"
done
for mutant in "${runtime[@]}"; do
    report "$mutant" 'local queue' \
        "$(hunt "$dir/tests/simulation" --local-queue 1 --seeds "$seeds" --mutant "$mutant")"
done
printf '1..%d\n' "$number"
exit "$failed"
