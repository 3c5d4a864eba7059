#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes every target of build/fuzz: fuzz.sh [--proof]. For each of them: the whole corpus runs
# through, a fresh run finds nothing, and the same target with a planted bug finds that bug within a
# minute, starting from a corpus that does not trigger it. Findings of a fresh run are kept in
# build/fuzz/found. Prints TAP.
set -euo pipefail

cd "$(dirname "$0")/.."
fresh_s=10
plant_s=60
[[ ${1:-} != --proof ]] || fresh_s=120
found=build/fuzz/found
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
number=0
wrong=0

verdict() { # verdict TRUE|FALSE WHAT, with what was said in $work/said
    number=$((number + 1))
    if $1; then
        printf 'ok %d - %s\n' "$number" "$2"
    else
        wrong=1
        printf 'not ok %d - %s\n' "$number" "$2"
        tail -n 40 "$work/said" | sed 's/^/# /'
    fi
}

says() { # says COMMAND…: true when it succeeds, its output kept
    "$@" >"$work/said" 2>&1
}

fuzz() { # fuzz PROGRAM NAME SECONDS: a run on a copy, so that the tree's corpus stays as it is
    local dictionary=()
    [[ ! -f tests/fuzz/$2.dict ]] || dictionary=(-dict="tests/fuzz/$2.dict")
    rm -rf "$work/grown" "$work/found"
    mkdir "$work/grown" "$work/found"
    says "$1" -max_total_time="$3" -artifact_prefix="$work/found/" "${dictionary[@]}" \
        "$work/grown" "tests/fuzz/corpus/$2"
}

try_target() { # try_target NAME
    local target=build/fuzz/tests/fuzz_$1 ok began files=("tests/fuzz/corpus/$1"/*)
    ok=true
    says "$target" "${files[@]}" && says "${target}_planted" "${files[@]}" || ok=false
    verdict $ok "fuzz $1: all ${#files[@]} files of the corpus run through"

    ok=true
    if ! fuzz "$target" "$1" "$fresh_s"; then
        ok=false
        mkdir -p "$found"
        cp "$work/found"/* "$found" 2>/dev/null || true
        printf 'kept in %s: %s\n' "$found" "$(ls "$work/found")" >>"$work/said"
    fi
    verdict $ok "fuzz $1: $fresh_s s of fresh inputs find nothing"

    ok=false
    began=$SECONDS
    if ! fuzz "${target}_planted" "$1" "$plant_s" && grep -q 'assertion failed' "$work/said"; then
        ok=true
    fi
    verdict $ok "fuzz $1: the planted bug is found within $plant_s s"
    printf '# after %d s\n' "$((SECONDS - began))"
}

for program in build/fuzz/tests/fuzz_*_planted; do
    name=${program##*/fuzz_}
    try_target "${name%_planted}"
done
printf '1..%d\n' "$number"
exit "$wrong"
