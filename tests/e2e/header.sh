#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The public interface of the library: header.sh BUILD. Each header compiles alone in C and C++
# under the strictest flags, the shared library exports exactly the declared functions, and a
# program builds against the installed files, through pkg-config. Prints TAP.
set -euo pipefail

cd "$(dirname "$0")/../.."
build=${1:?usage: header.sh BUILD}
# shellcheck source=tests/e2e/kit.sh
. tests/e2e/kit.sh
export LC_ALL=C # names are sorted and matched by bytes

strict=(-Wall -Wextra -Wpedantic -Werror -Wconversion -Wshadow -fsyntax-only -Iinclude)
printf '#include <leasehold.h>\n#include <leasehold.h>
struct lh_open_options open_options = LH_OPEN_OPTIONS_INIT;
struct lh_report report = LH_REPORT_INIT;
struct lh_view view = LH_VIEW_INIT;
struct lh_acquire_options acquire_options = LH_ACQUIRE_OPTIONS_INIT;\n' >"$work/leasehold.c"
printf '#include <leasehold_once.h>\n#include <leasehold_once.h>
struct lh_once_options once_options = LH_ONCE_OPTIONS_INIT;
struct lh_once once = LH_ONCE_INIT;
struct lh_watermark watermark = LH_WATERMARK_INIT;
struct lh_completion completion = LH_COMPLETION_INIT;\n' >"$work/leasehold_once.c"
printf '#include <leasehold_workload.h>\n#include <leasehold_workload.h>
struct lh_workloads_options workloads_options = LH_WORKLOADS_OPTIONS_INIT;
struct lh_workload_options workload_options = LH_WORKLOAD_OPTIONS_INIT;
struct lh_workload workload = LH_WORKLOAD_INIT;
enum lh_outcome outcome = LH_OK;\n' >"$work/leasehold_workload.c"
printf '#include <leasehold_github.h>\n#include <leasehold_github.h>
struct lh_claims_options claims_options = LH_CLAIMS_OPTIONS_INIT;
struct lh_claim_options claim_options = LH_CLAIM_OPTIONS_INIT;
struct lh_claim claim = LH_CLAIM_INIT;
enum lh_outcome outcome = LH_OK;\n' >"$work/leasehold_github.c"
printf '#include <leasehold_admin.h>\n#include <leasehold_admin.h>
struct lh_diagnose_options diagnose_options = LH_DIAGNOSE_OPTIONS_INIT;
struct lh_epoch epoch = LH_EPOCH_INIT;
struct lh_collect_options collect_options = LH_COLLECT_OPTIONS_INIT;
struct lh_collected collected = LH_COLLECTED_INIT;
struct lh_holder holder = LH_HOLDER_INIT;
struct lh_waiter waiter = LH_WAITER_INIT;\n' >"$work/leasehold_admin.c"
for header in leasehold leasehold_admin leasehold_github leasehold_once leasehold_workload; do
    cp "$work/$header.c" "$work/$header.cc"
    for standard in c99 c11 c17; do
        for compiler in gcc clang-14; do
            case_of "$header.h alone, $compiler, $standard" \
                "$compiler" -std="$standard" -Wstrict-prototypes "${strict[@]}" "$work/$header.c"
        done
    done
    for standard in c++11 c++17; do
        for compiler in g++ clang++-14; do
            case_of "$header.h alone, $compiler, $standard" \
                "$compiler" -std="$standard" "${strict[@]}" "$work/$header.cc"
        done
    done
done

# "lh_word(" outside of comments; typedefs of functions end in _fn.
declared() {
    awk '{ gsub(/\/\*.*\*\//, "") } /\/\*/ { skip = 1 } !skip { print } /\*\// { skip = 0 }' \
        include/*.h | grep -o 'lh_[a-z_]*(' | tr -d '(' | grep -v '_fn$' | sort -u
}
exported() {
    nm -D --defined-only "$build/src/libleasehold.so.1" | awk '$2 != "A" { print $3 }' |
        sed 's/@.*//' | sort -u
}
same_symbols() {
    declared >"$work/declared"
    exported >"$work/exported"
    [[ -s $work/declared ]] && diff "$work/declared" "$work/exported"
}
case_of 'what is declared is exported, and nothing else' same_symbols

same_in_debian() {
    sed -n 's/^ \(lh_[a-z_]*\)@.*/\1/p' dist/debian/libleasehold1.symbols |
        diff "$work/declared" -
}
case_of 'Debian'\''s list of symbols is the same' same_in_debian

documented() {
    local name missing=0
    for name in $(declared); do
        grep -q "\`$name\`" docs/library.md && continue
        printf '%s is not in docs/library.md\n' "$name"
        missing=1
    done
    return "$missing"
}
case_of 'every function is in docs/library.md' documented

refusals_documented() {
    local word missing=0
    for word in $(grep -o '"[A-Za-z_]*"' src/face/lib/refusal.c | tr -d '"'); do
        [[ $word == unknown ]] || grep -q "\`$word\`" docs/refusals.md || {
            printf '%s is not in docs/refusals.md\n' "$word"
            missing=1
        }
    done
    return "$missing"
}
case_of 'every word of a refusal is in docs/refusals.md' refusals_documented

in_manual() {
    local name missing=0
    for name in $(declared); do
        grep -q "^.fB.*[ *]$name(" "$build/dist/leasehold.3" && continue
        printf '%s is not in leasehold(3)\n' "$name"
        missing=1
    done
    return "$missing"
}
case_of 'every function is in leasehold(3)' in_manual

install_all() {
    DESTDIR=$work/root meson install -C "$build" --no-rebuild --quiet
}
case_of 'it is installed' install_all

build_against_it() {
    local pc pkg
    pc=$(find "$work/root" -name leasehold.pc)
    export PKG_CONFIG_PATH=${pc%/*}
    pkg=(pkg-config --define-variable=prefix="$work/root$(pkg-config --variable=prefix leasehold)")
    printf '#include <leasehold_workload.h>\n#include <stdio.h>\nint main(void)
{ struct lh_client *c = 0; struct lh_lease *l = 0; struct lh_report r = LH_REPORT_INIT;
  if (lh_open("memory:", 0, &c, &r) || lh_acquire(c, "k", 0, &l, &r)) return 1;
  if (lh_release(&l, &r)) return 2;
  lh_close(&c); puts(lh_version()); return 0; }\n' >"$work/user.c"
    local flags
    read -ra flags < <("${pkg[@]}" --cflags --libs leasehold)
    gcc -o "$work/user" "$work/user.c" "${flags[@]}"
    LD_LIBRARY_PATH=$("${pkg[@]}" --variable=libdir leasehold) "$work/user"
}
case_of 'a program builds against it through pkg-config, and runs' build_against_it

# Headers of an older release, whose structs lack their last member, and of a newer one, whose
# structs have one more. abi.c is compiled against each and runs with this library.
structs=(lh_report lh_view lh_once lh_watermark lh_open_options lh_acquire_options lh_completion
    lh_event lh_finding)
other_header() { # FOLDER SED-SCRIPT-FOR-EACH-STRUCT
    local name script='' macros=''
    mkdir "$work/$1"
    for name in "${structs[@]}"; do
        script+="/^struct $name {/,/^};/{$2}"$'\n'
        macros+="#undef ${name^^}_INIT"$'\n'
        macros+="#define ${name^^}_INIT {.size = sizeof(struct $name)}"$'\n'
    done
    for name in include/*.h; do
        sed -e "$script" "$name" >"$work/$1/${name##*/}"
    done
    printf '%s' "$macros" >"$work/$1/macros.h"
}
runs_with_other() { # FOLDER FLAG...
    local folder=$work/$1
    shift
    gcc -std=c17 "$@" -I"$folder" -include leasehold_once.h -include "$folder/macros.h" \
        -o "$folder/abi" tests/lib/abi.c -L"$build/src" -lleasehold
    LD_LIBRARY_PATH=$build/src "$folder/abi" memory: &&
        LD_LIBRARY_PATH=$build/src "$folder/abi" "file:$folder/locks.log"
}
other_header shorter ''
sed -i -e '/char text\[LH_TEXT_SIZE\];/d' -e '/^struct lh_view {/,/^};/{/char key\[/d}' \
    -e '/^struct lh_acquire_options {/,/^};/{/bool detach;/d}' "$work/shorter/leasehold.h"
sed -i -e '/char result\[LH_RESULT_SIZE\];/d' -e '/char value\[LH_POSITION_SIZE\];/d' \
    -e '/^struct lh_completion {/,/^};/{/\*until;/d}' "$work/shorter/leasehold_once.h"
sed -i -e '/int64_t after_us;/d' -e '/const char \*remedy;/d' "$work/shorter/leasehold_admin.h"
case_of 'a program of an older release runs' runs_with_other shorter -DSHORTER
other_header longer 's/^};/    long added;\n};/'
case_of 'a program of a newer release runs' runs_with_other longer -DLONGER

finish
