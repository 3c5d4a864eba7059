#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The pages for new users, typed in: tour.sh PROGRAM PAGE... Every block of a page with "$ " lines
# is run, line by line, in one shell for each page, and the output is compared with the page: except
# numbers and times, and "…" matches anything. Three digits alone on a line are a status of HTTP,
# and compared. All pages use one home and one store, one after the other, as a reader would. Prints
# TAP.
set -euo pipefail

program=$(realpath "$1")
shift
pages=("$@")
for ((i = 0; i < ${#pages[@]}; i++)); do
    pages[i]=$(realpath "${pages[i]}")
done
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
shell=
at_end() { [[ -z $shell ]] || kill "$shell" 2>/dev/null || true; }
mkdir "$work/bin" "$work/home"
ln -s "$program" "$work/bin/leasehold"
export PATH=$work/bin:$PATH HOME=$work/home LEASEHOLD_STORE=file:$work/home/locks.log
export no_proxy=127.0.0.1

# The expected output of a typed line, as a regular expression for the whole of it.
pattern_of() {
    sed -E '/^[1-5][0-9]{2}$/b
        s/[][\.*^$+?(){}|]/\\&/g; s/[0-9]+[a-zA-Z]*([0-9]+[a-z]*)*/[0-9a-zA-Z]+/g; s/ ?…/.*/g'
}

# Types one line into the shell of this page and reads its output until the next prompt.
type_in() {
    printf '%s\n' "$1" 'printf "\001\n"' >&"$to"
    said=
    local line
    while IFS= read -r -t 30 -u "$from" line; do
        [[ $line != $'\001' ]] || return 0
        # On a terminal this line is rewritten in place, and gone at the end of the wait.
        [[ $line != 'waiting: '* ]] || continue
        said+=$line$'\n'
    done
    said+='(nothing more came within 30 s)'
}

check() {
    local page=$1 typed=$2 wanted=${3%$'\n'} good=false
    said=${said%$'\n'}
    [[ ! $said =~ ^$(pattern_of <<<"$wanted")$ ]] || good=true
    printf 'wanted:\n%s\nsaid:\n%s\n' "$wanted" "$said" >"$work/said"
    tell "$good" "$page: $typed"
}

play() {
    local page=$1 name inside=false typed= wanted= line
    name=$(basename "$page")
    coproc SHELL { cd "$work/home" && exec bash --norc --noprofile 2>&1; }
    shell=$SHELL_PID
    exec {to}>&"${SHELL[1]}" {from}<&"${SHELL[0]}"
    eval "exec ${SHELL[1]}>&- ${SHELL[0]}<&-"
    while IFS= read -r line; do
        if [[ $line == '```'* ]] && $inside; then
            inside=false
        elif [[ $line == '```'* ]]; then
            inside=true
            continue
        fi
        if [[ -n $typed && ($line == '$ '* || $inside == false) ]]; then
            type_in "$typed"
            check "$name" "$typed" "$wanted"
            typed=
        fi
        if $inside && [[ $line == '$ '* ]]; then
            typed=${line#'$ '}
            wanted=
        elif $inside && [[ -n $typed ]]; then
            wanted+=$line$'\n'
        fi
    done <"$page"
    exec {to}>&- {from}<&-
    wait "$shell" 2>/dev/null || true
    shell=
}

for page in "${pages[@]}"; do
    play "$page"
done
((number > 0)) || wrong=1
finish
