#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures and compiles one shape of the tree: build.sh SHAPE [--configure-only]. This is the only
# list of shapes; `release` is built in build/, any other in build/SHAPE. A second call only
# compiles changed files.
set -euo pipefail

cd "$(dirname "$0")/.."
shape=${1:?usage: build.sh SHAPE [--configure-only]}
dir=build/$shape
warnings=(-Dwerror=true)
checks=(-Ddebug=true '-Db_sanitize=address,undefined')

case $shape in
release) # what users get
    dir=build
    [[ ${CI:-} == true ]] || warnings=(-Dwerror=false)
    # libdir: without dpkg-dev meson would choose lib64, which Debian does not search.
    options=(-Dbuildtype=release -Doptimization=2 -Dharness=false
        -Dprefix="${PREFIX:-/usr/local}" -Dlibdir=lib) ;;
asan) # unit tests and stories, with memory and arithmetic checked
    export CC=gcc
    options=(-Doptimization=1 "${checks[@]}" -Dharness=true -Dtests=true) ;;
tsan) # threads, with races looked for
    export CC=gcc
    options=(-Doptimization=1 -Ddebug=true -Db_sanitize=thread -Dtests=true) ;;
sim) # long simulated runs, fast
    export CC=gcc
    options=(-Doptimization=2 -Ddebug=true -Dharness=true) ;;
bench) # what users get, and the programs that measure it
    options=(-Dbuildtype=release -Doptimization=2 -Dharness=true) ;;
mutants) # planted bugs that the harnesses must catch
    export CC=gcc
    options=(-Doptimization=2 -Ddebug=true -Dharness=true -Dmutants=true) ;;
fuzz) # libFuzzer targets
    export CC=clang-14
    options=(-Doptimization=1 "${checks[@]}" -Db_lundef=false -Dfuzz=true) ;;
coverage) # counters for scripts/coverage.sh
    export CC=gcc
    options=(-Doptimization=0 -Ddebug=true -Db_coverage=true -Dharness=true -Dtests=true) ;;
tidy) # never compiled: gives clang-tidy the flags of every file
    export CC=clang-14
    options=(-Doptimization=1 -Db_lundef=false -Dharness=true -Dtests=true -Dfuzz=true
        -Dmutants=true) ;;
*)
    printf 'build.sh: unknown shape %s\n' "$shape" >&2
    exit 1 ;;
esac

configure() {
    meson setup "$@" "$dir" "${warnings[@]}" "${options[@]}" >"$dir/setup.log" 2>&1 || {
        cat "$dir/setup.log"
        exit 1
    }
}

# Ninja detects edits of meson.build; only a change of our own options needs a reconfigure.
mkdir -p "$dir"
stamp=$dir/configured-with
if [[ ! -f $dir/build.ninja ]]; then
    configure
elif [[ $(cat "$stamp" 2>/dev/null) != "${warnings[*]} ${options[*]}" ]]; then
    configure --reconfigure
fi
printf '%s\n' "${warnings[*]} ${options[*]}" >"$stamp"

goal=all
[[ ${2:-} != --configure-only ]] || goal=build.ninja
ninja -C "$dir" "$goal"
