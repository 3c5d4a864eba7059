#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A small set of checks on a real GitHub repository: github-live.sh PROGRAM. GITHUB_TOKEN (or
# GH_TOKEN) may write its contents, REPO=OWNER/NAME names it; GITHUB_API_URL selects another server.
# It takes some minutes, writes about 40 times, touches no branch, tag or issue, and deletes the
# refs that it made. Ends with "N passed, N failed".
set -euo pipefail

program=$(realpath "${1:?usage: github-live.sh PROGRAM}")
repository=${REPO:?set REPO=OWNER/NAME, a repository that this may write to}
export GITHUB_TOKEN=${GITHUB_TOKEN:-${GH_TOKEN:-}}
if [[ -z $GITHUB_TOKEN ]]; then
    printf 'github-live.sh: set GITHUB_TOKEN, with the right Contents: write\n' >&2
    exit 1
fi
api=${GITHUB_API_URL:-https://api.github.com}
times=${GITHUB_LIVE_TIMES:-poll=10s} # shorter ones only for a server on this host
store="github://$repository?show=off&$times"
mark=live-$(printf '%x' "$SRANDOM")
work=$(mktemp -d)
passed=0 failed=0
touch "$work/pids" "$work/workers"

# call METHOD PATH [BODY]: prints the reply; the token is in no argument.
call() {
    printf 'header = "Authorization: Bearer %s"\n' "$GITHUB_TOKEN" |
        curl --silent --show-error --fail --max-time 30 --config - --request "$1" \
            ${3:+--data "$3"} "$api/repos/$repository/$2"
}
leasehold() { "$program" --store "$store" --store-timeout 60s "$@"; }

refs() { # the refs of this run, and of its workers
    call GET "git/matching-refs/leasehold/k/$mark" | jq -r '.[].ref'
    sort -u "$work/workers"
}
note_workers() { # those that are there now and were not there before
    call GET git/matching-refs/leasehold/w/ | jq -r '.[].ref' | sort >"$work/now"
    comm -13 "$work/before" "$work/now" >>"$work/workers"
}
clean_up() {
    local pid ref
    for pid in $(<"$work/pids"); do
        if kill "$pid" 2>/dev/null; then sleep 3; fi # it releases its lock
    done
    for ref in $(refs 2>/dev/null || true); do
        sleep 1
        call DELETE "git/${ref//%/%25}" >/dev/null 2>&1 || true
    done
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

check() { # check NAME COMMAND…
    local name=$1 status=0
    shift
    set +e # otherwise a failure in the middle of a check would not end it
    (set -e; "$@") >"$work/output" 2>&1
    status=$?
    set -e
    if ((status == 0)); then
        passed=$((passed + 1))
        printf 'ok - %s\n' "$name"
    else
        failed=$((failed + 1))
        printf 'not ok - %s\n' "$name"
        sed 's/^/    /' "$work/output"
    fi
    sleep 1
}

# ---- the checks ----

is_well() { leasehold doctor; }
one_worker() {
    leasehold run "$mark-a" --holder ann -- sh -c "'$program' --store '$store' status $mark-a" |
        tee "$work/status"
    grep -q "^held: $mark-a by ann" "$work/status"
    leasehold status "$mark-a" | grep -q "^free: $mark-a"
}
by_token() {
    local token
    token=$(leasehold acquire "$mark-b" --ttl 5m --holder ben)
    leasehold acquire "$mark-b" --no-wait && return 1
    leasehold release "$mark-b" --token "$token"
    local next
    next=$(leasehold acquire "$mark-b" --ttl 5m)
    ((next > token))
    leasehold release "$mark-b" --token "$token" && return 1
    leasehold release "$mark-b" --token "$next"
}
# The second one is refused while the first holds, queues, and gets the lock after it.
two_workers() {
    leasehold run "$mark-c" --holder ann -- sh -c \
        "touch '$work/in'; until [ -e '$work/out' ]; do sleep 0.2; done; echo ann >>'$work/order'" &
    local first=$!
    echo "$first" >>"$work/pids"
    until [[ -e $work/in ]]; do
        kill -0 "$first" || return 1
        sleep 0.2
    done
    note_workers
    leasehold acquire "$mark-c" --no-wait && return 1
    leasehold run "$mark-c" --holder ben -- sh -c "echo ben >>'$work/order'" &
    local second=$!
    echo "$second" >>"$work/pids"
    until leasehold status "$mark-c" | grep -q '1 waiting'; do
        kill -0 "$second" || return 1
        sleep 2
    done
    touch "$work/out"
    wait "$first" && wait "$second"
    [[ $(<"$work/order") == $'ann\nben' ]]
}
has_history() {
    leasehold history "$mark-c" | tee "$work/history"
    grep -q 'ann' "$work/history" && grep -q 'ben' "$work/history"
}
left_behind() {
    refs >"$work/refs"
    cat "$work/refs"
    [[ $(grep -c "^refs/leasehold/k/$mark-" "$work/refs") == 3 ]]
    call GET git/matching-refs/leasehold/w/ | jq -r '.[].ref' | sort >"$work/now"
    [[ -z $(comm -13 "$work/before" "$work/now") ]] # a clean exit deletes the ref of the worker
}
is_removed() {
    local ref
    for ref in $(call GET "git/matching-refs/leasehold/k/$mark" | jq -r '.[].ref'); do
        sleep 1
        call DELETE "git/$ref"
    done
    [[ -z $(call GET "git/matching-refs/leasehold/k/$mark" | jq -r '.[].ref') ]]
}

printf 'On %s at %s this creates the refs refs/leasehold/k/%s-a, -b and -c,\n' \
    "$repository" "$api" "$mark"
printf 'refs of workers below refs/leasehold/w/ while they hold a lock, and about 20 commits that\n'
printf 'are in no branch. At the end it deletes these refs; it changes nothing else.\n'
call GET git/matching-refs/leasehold/w/ | jq -r '.[].ref' | sort >"$work/before"

check 'the repository and the token fit' is_well
check 'a lock is held while a command runs, and free after it' one_worker
check 'tokens grow, and an old one releases nothing' by_token
check 'two workers exclude each other, and the first hands over' two_workers
check 'the history names both' has_history
check 'a vacant ref a key is left behind, and no worker' left_behind
check 'these refs can be deleted: DELETE git/refs/leasehold/k/NAME' is_removed
printf '%d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
