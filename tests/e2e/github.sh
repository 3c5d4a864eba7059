#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The GitHub store for its users: on-github.sh plain github.sh PROGRAM. Grants, the hand-over, a
# killed holder, readers, the history, and what `gh api` shows. Prints TAP.
# shellcheck disable=SC2016 # what is in single quotes is for another shell, or Python
set -euo pipefail

here=$(dirname "$(realpath "$0")")
url=${1%%\?*}'?stale=6s&heartbeat=2s&poll=1s&pace=0&writes=100000&budget=100000'
program=$(realpath "$2")
# shellcheck source=tests/e2e/kit.sh
. "$here/kit.sh"
# shellcheck source=tests/e2e/github_kit.sh
. "$here/github_kit.sh"
export HOME=$work LEASEHOLD_STORE=$url LEASEHOLD_HOLDER=w1
leasehold() { "$program" "$@"; }
# hold KEY: in the background, until the file KEY.go exists; its pid is in `held`.
hold() {
    "$program" run "$1" -n -- \
        sh -c "echo held >$work/$1; until [ -e $work/$1.go ]; do sleep 0.05; done" &
    held=$!
    await "$work/$1"
}

granted() {
    local first second
    first=$(leasehold acquire a/b --ttl 1m)
    [[ $(leasehold name a/b) == 'refs/leasehold/k/a%2Fb' ]]
    says 75 '^busy: .*w1' leasehold acquire a/b -n
    is a/b state held
    [[ $(message_of 'a%252Fb') == 'a/b: held by w1'$'\n'* ]]
    says 0 '^held: a/b by w1 ' leasehold list
    leasehold release a/b --token "$first"
    [[ $(message_of 'a%252Fb') == 'a/b: free'$'\n'* ]]
    second=$(leasehold acquire a/b --ttl 1m)
    ((first < second))
    says 78 '' leasehold renew a/b --token "$first"
    leasehold renew a/b --token "$second"
    leasehold release a/b --token "$second"
}
ran() {
    says 7 '' leasehold run cmd -- sh -c 'exit 7'
    says 0 '^1$' leasehold run cmd -- python3 -c '
import json, os, urllib.request
path = "/repos/alice/locks/git/matching-refs/leasehold/w/"
print(len(json.load(urllib.request.urlopen(os.environ["GITHUB_API_URL"] + path))))'
    [[ $(workers) == 0 ]]
}
handed_over() {
    local since held
    hold over
    "$program" run over -- sh -c "echo got >$work/got" &
    until [[ $(message_of over) == *', 1 waiting'* ]]; do sleep 0.1; done
    since=$(now_ms)
    touch "$work/over.go"
    await "$work/got"
    printf '# handed over after %s ms, with a poll of 1 s\n' $(($(now_ms) - since)) >&3
    wait "$held" && wait $!
}
tree_of() { # a process and all below it
    local child
    printf '%s\n' "$1"
    for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do tree_of "$child"; done
}
# All at once: nobody renews, and nobody gives anything up.
taken_over() {
    local since held pids
    hold dead
    pids=$(tree_of "$held")
    # shellcheck disable=SC2086 # pids
    { kill -STOP $pids && kill -KILL $pids; } && wait "$held" || true
    since=$(now_ms)
    says 75 '' leasehold run dead -n -- true
    says 0 '^again$' leasehold run dead -w 1m -- echo again
    printf '# taken over after %s ms\n' $(($(now_ms) - since)) >&3
}
shared() {
    leasehold acquire read --shared --ttl 1m >/dev/null
    says 0 '' leasehold run read --shared -n -- true
    says 75 '' leasehold run read -n -- true
    leasehold acquire two --limit 2 --ttl 1m >/dev/null
    leasehold acquire two --limit 2 --ttl 1m -n >/dev/null
    says 75 '' leasehold acquire two --limit 2 -n
}
kept() {
    leasehold acquire story --ttl 1m --holder first >"$work/token"
    leasehold release story --token "$(<"$work/token")"
    leasehold run story --holder second -- true
    says 0 'first' leasehold history story
    says 0 'second' leasehold history story
    leasehold history story --json >"$work/history"
    (($(wc -l <"$work/history") >= 4))
}
lost() {
    local held
    hold broken
    leasehold break broken --now --reason test
    says 76 '' wait "$held"
}

exec 3>&1
case_of 'a key is granted, shown, released and granted again' granted
case_of 'run holds a key while CMD runs, and its worker has a ref only then' ran
case_of 'a waiter gets the key' handed_over
case_of 'a killed holder is followed by the next one' taken_over
case_of 'readers together, a writer alone, and two of two' shared
case_of 'the history is kept' kept
case_of 'the holder of a broken lock is told' lost
finish
