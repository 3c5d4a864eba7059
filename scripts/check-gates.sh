#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Proves that every gate can fail: each one must pass a small good tree and refuse the same tree
# with one bad file of tests/gates in it, for the planted reason. Prints TAP.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
number=0
wrong=0

verdict() { # verdict TRUE|FALSE WHAT OUTPUT
    number=$((number + 1))
    if $1; then
        printf 'ok %d - %s\n' "$number" "$2"
    else
        wrong=1
        printf 'not ok %d - %s\n' "$number" "$2"
        printf '# %s\n' "${3//$'\n'/$'\n'# }"
    fi
}

# Empties the tree and puts the good file and, at WHERE, the text of standard input into it.
plant() { # plant [WHERE]
    rm -rf "${tree:?}"/*
    mkdir -p "$tree/src/base" "$tree/build/tidy"
    cp "$here/tests/gates/fine.good" "$tree/src/base/fine.c"
    if [[ -n ${1:-} ]]; then
        mkdir -p "$tree/$(dirname "$1")"
        cat >"$tree/$1"
    fi
    # As a build would call clang-tidy.
    (cd "$tree" && find src -name '*.c' -printf \
        '{"directory": "'"$tree"'", "file": "%p", "command": "clang-14 -std=c17 -c %p"},\n') |
        sed '1s/^/[/; $s/,$/]/' >"$tree/build/tidy/compile_commands.json"
}

passes() { # passes GATE WHAT
    local said ok=true
    said=$("$here/scripts/check-$1.sh" "$tree" 2>&1) || ok=false
    verdict $ok "$1 gate passes $2" "$said"
}

refuses() { # refuses GATE WHAT EXPECTED-TEXT
    local said ok=false
    if ! said=$("$here/scripts/check-$1.sh" "$tree" 2>&1) && [[ $said == *"$3"* ]]; then
        ok=true
    fi
    verdict $ok "$1 gate refuses $2" "wanted: $3"$'\n'"$said"
}

bad() { # bad GATE WHERE FILE WHAT EXPECTED-TEXT
    plant "$2" <"$here/tests/gates/$3"
    refuses "$1" "$4" "$2:$5"
}

counts() { # counts WHAT STATUS OUTPUT EXPECTED
    local got ok=false
    got=$(printf '%b' "$3" | "$here/scripts/tap-count.sh" "$2")
    [[ $got != "$4" ]] || ok=true
    verdict $ok "counting: $1" "got $got, wanted $4"
}

for gate in format tidy cppcheck layers size; do
    plant
    passes "$gate" 'a good file'
    rm -r "$tree/src"
    refuses "$gate" 'a tree without C files' 'no C file'
done

bad format src/base/planted.c misformatted.bad 'a misformatted file' '2:'

bad tidy src/base/planted.c tidy-bug.bad 'the size of a pointer' '8:'
bad tidy src/base/planted.c tidy-naming.bad 'a name of another convention' '2:'
bad tidy src/base/planted.c tidy-unexplained.bad 'a NOLINT without a reason' '8:'
plant src/base/planted.c <"$here/tests/gates/fine.good"
printf '[]\n' >"$tree/build/tidy/compile_commands.json"
refuses tidy 'a file that no build lists' 'src/base/planted.c:1: no meson.build'

bad cppcheck src/base/planted.c cppcheck-bug.bad 'an index out of bounds, though silenced' '8:'

bad layers src/core/planted.c includes-upwards.bad 'core including from process' '2: core must not'
bad layers src/wire/planted.c includes-upwards.bad 'wire including from process' '2: wire must not'
bad layers src/core/planted.h includes-no-room.bad 'an include without a room' '2: "record.h"'
bad layers src/core/planted.c includes-system.bad 'a system header in core' '2: <stdlib.h>'
bad layers src/wire/planted.c includes-system.bad 'a system header in wire' '2: <stdlib.h>'
bad layers src/base/planted.c includes-system.bad 'a system header in base' '2: <stdlib.h>'
bad layers include/leasehold.h includes-system.bad 'a system header in public' '2: <stdlib.h>'
bad layers src/core/planted.c calls-allocator.bad 'core calling malloc' '9: core must not call'
bad layers src/wire/planted.c reads-clock.bad 'wire reading a clock' '4: wire must not call'
bad layers src/planted.c misformatted.bad 'a file in no room' '1: this file is in no room'
bad layers src/runtime/planted.c includes-public-header.bad \
    'the public header outside its face' '2: only faces include the public header'
bad layers src/face/cli/planted.c includes-upwards.bad \
    'the command line including from process' '2: the command line must not'
bad layers src/face/cli/planted.c includes-library.bad \
    'the command line including from the library' '2: the command line must not'
bad layers src/face/daemon/planted.c includes-library.bad \
    'the daemon including from the library' '2: the daemon must not'
plant src/face/cli/planted.c <"$here/tests/gates/includes-run.good"
passes layers 'the command line including from run and the public header'
plant src/base/check.c <"$here/tests/gates/includes-system.bad"
passes layers 'the last words of a failed assert'
plant src/core/planted.c <"$here/tests/gates/speaks-of-malloc.good"
passes layers 'a comment and a text that name a call'
plant src/store/planted.c <"$here/tests/gates/includes-upwards.bad"
passes layers 'store including from io'

bad size src/base/planted.c no-licence.bad 'a C file without its licence' '1: the first line'
bad size scripts/planted.sh careless-script.bad 'a script of another shell' '1: the first line'
bad size scripts/planted.sh careless-script.bad 'a script without set -e' '1: the script lacks'
spdx='/* SPDX-License-Identifier: Apache-2.0 */'
{ printf '%s\n' "$spdx" && printf '\n%.0s' {1..600}; } | plant src/base/planted.c
refuses size 'a file of 601 lines' 'src/base/planted.c:601: the file has 601'
{ printf '%s\nint f(void)\n{\n' "$spdx" && printf '\n%.0s' {1..70} && printf '}\n'; } |
    plant src/base/planted.c
refuses size 'a function of 71 lines' 'src/base/planted.c:3: the function has 71'
printf '%s\n/* %095d */\n' "$spdx" 0 | plant src/base/planted.c
refuses size 'a line of 101 columns' 'src/base/planted.c:2: the line has 101'
printf '%s\n/* %s%092d */\n' "$spdx" '→' 0 | plant src/base/planted.c
passes size 'an arrow as one column'

counts 'good and bad cases' 1 '1..2\nok 1 - a\nnot ok 2 - b\n' '1 1'
counts 'a suite that dies after its last case has failed' 139 'ok 1 - a\n' '1 1'
counts 'a suite that ends short of its plan has failed' 0 '1..2\nok 1 - a\n' '1 1'
counts 'a silent suite has failed' 0 '' '0 1'
counts 'a skipped case has not passed' 0 'ok 1 - a # SKIP no time\n' '0 1'
counts 'what a store does not claim is neither' 0 \
    '1..2\nok 1 - a\nok 2 - b # skip: store has no history\n' '1 0'
counts 'a store that claims nothing has failed' 0 'ok 1 - a # skip: store has no history\n' '0 1'

printf '1..%d\n' "$number"
exit "$wrong"
