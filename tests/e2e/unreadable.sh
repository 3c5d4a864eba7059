#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One record that cannot be decoded must not hide the others: unreadable.sh [URL] BUILD. On a file,
# on the store that LEASEHOLD_TEST_STORE names, or on the URL of scripts/on-k8s.sh. Prints TAP.
set -euo pipefail

url=${LEASEHOLD_TEST_STORE:-}
if (($# > 1)); then
    url=$1
    shift
fi
build=$(realpath "$1")
program=$build/leasehold
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
export LEASEHOLD_STORE=${url:-file:$work/locks.log} HOME=$work LEASEHOLD_HOLDER=wfe-7
why='the value was not written by leasehold'
newer='the record was written by a newer leasehold'

write() { "$build/tests/write_bytes" "$LEASEHOLD_STORE" "$1" "$2"; }
# listed KEY WHY: the entry of list for it as JSON
listed() {
    "$program" --json list "$1" >"$work/said" &&
        [[ $(jq -r '.key + ": " + .state + ": " + .text' "$work/said") == "$1: unreadable: $2" ]]
}
is_watched() { grep -q "Z $1\$" "$work/watched"; } # after the time
until_watched() {
    local i
    for ((i = 0; i < 500; i++)); do
        ! is_watched "$1" || return 0
        sleep 0.02
    done
    cp "$work/watched" "$work/said"
    return 1
}

"$program" acquire bad/a --ttl 1h >/dev/null
write bad/b 'no record at all'
write bad/c '{"leasehold":99,"key":"bad/c"}'
"$program" acquire bad/d --ttl 1h >/dev/null

verdict 'list shows it, and why, and exits 0' \
    says 0 "^unreadable: bad/b: $why\$" "$program" list bad/
verdict 'one of a newer version, too' grep -q "^unreadable: bad/c: $newer\$" "$work/said"
verdict 'the first of the others is there' grep -q '^held: bad/a by wfe-7' "$work/said"
verdict 'and the last' grep -q '^held: bad/d by wfe-7' "$work/said"
verdict 'and nothing else' test "$(grep -c . "$work/said")" = 5 # with the line of its status
verdict 'as JSON its state is unreadable' listed bad/b "$why"
verdict 'list --names has all of them' \
    test "$("$program" list bad/ --names | sort | xargs)" = 'bad/a bad/b bad/c bad/d'
verdict 'status of that key is trouble' says 69 "$why" "$program" status bad/b --store-timeout 1s
verdict 'and so is acquire' says 69 "$why" "$program" acquire bad/b -n --store-timeout 1s
verdict 'status of another key is not' says 0 '^held: bad/a' "$program" status bad/a

"$program" --verbose watch bad/ >"$work/watched" 2>"$work/watching" &
started+=($!)
await_watch "$work/watching"
write bad/e 'no record at all'
verdict 'watch tells of it' until_watched "unreadable: bad/e: $why"
"$program" acquire bad/f --ttl 1h >/dev/null
verdict 'and goes on' until_watched 'held: bad/f by wfe-7.*'
verdict 'until it is stopped' kill -0 "${started[0]}"

finish
