#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs/daemon.md: daemon_docs.sh PROGRAM PAGE [--examples]. The table of commands is the daemon's
# own; with --examples the Python and Node programs of the page run: alone, in turn, and with the
# lock taken from them (python3-redis, and ioredis by scripts/peer.sh). Prints TAP.
set -euo pipefail

root=$(realpath "$(dirname "$0")/../..")
program=$(realpath "$1")
page=$(realpath "$2")
examples=${3:-}
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
socket=$work/lock.sock
"$program" serve --store "file:$work/locks.log" --listen off --unix "$socket" \
    >"$work/ready" 2>"$work/log" &
started+=($!)
await "$work/ready"

lock() { redis-cli -s "$socket" "$@"; }
names_of_page() { sed -n "s/^| \`\([A-Z._]*\)\` | .*/\1/p" "${1:-$page}"; }
arguments_of_page() { # arguments_of_page COMMAND
    sed -n "s/^| \`$1\` | \`\([^\`]*\)\` | .*/\1/p" "$page" | sed 's/\\|/|/g'
}

table_has_every_command() {
    [[ $(lock COMMAND COUNT) == "$(names_of_page | wc -l)" ]]
    diff <(lock COMMAND LIST | sort) <(names_of_page | sort)
}

# A wrong row must be found.
a_wrong_table_is_found() {
    sed 's/^\(| .LOCK\.\)CLEAR/\1CLEAN/' "$page" >"$work/wrong.md"
    if diff <(lock COMMAND LIST | sort) <(names_of_page "$work/wrong.md" | sort); then return 1; fi
}

# A call without arguments, or with too many, prints the usage.
arguments_are_those_of_the_daemon() {
    local name usage compared=0 many=()
    mapfile -t many < <(seq 1 100)
    while read -r name; do
        usage=$(lock "$name" "${many[@]}" | sed -n 's/.*usage: //p')
        [[ -n $usage ]] || usage=$(lock "$name" | sed -n 's/.*usage: //p')
        [[ -n $usage ]] || continue
        diff <(printf '%s\n' "$usage") <(printf '%s %s\n' "$name" "$(arguments_of_page "$name")")
        compared=$((compared + 1))
    done < <(names_of_page | grep '[.]')
    ((compared >= 20))
}

case_of 'the page has every command of the daemon' table_has_every_command
case_of 'a wrong name is found' a_wrong_table_is_found
case_of 'arguments are those of the daemon' arguments_are_those_of_the_daemon
[[ $examples == --examples ]] || finish

cd "$work"
awk -v quote='```' '
    index($0, quote) == 1 && NF == 2 { file = $2; next }
    index($0, quote) == 1 { file = "" }
    file != "" { print >file }' "$page"
NODE_PATH=$("$root/scripts/peer.sh" node)/node_modules
export NODE_PATH
python() { /usr/bin/python3 "$work/worker.py" "$socket"; }
node() { command node "$work/worker.js" "$socket"; }
three_steps='step 0 with token [0-9]+
step 1 with token [0-9]+
step 2 with token [0-9]+'

works() { # works python|node: alone, and the lock is free afterwards
    local output
    output=$("$1")
    [[ $output =~ ^$three_steps$ ]]
    [[ $(lock --json LOCK.STATUS nightly) == *'"state":"free"'* ]]
}

waits_its_turn() { # waits_its_turn python|node
    local token pid
    token=$(lock --json LOCK.ACQUIRE nightly other 60000 | jq -r .token)
    "$1" >"waited-$1" &
    pid=$!
    until [[ $(lock --json LOCK.STATUS nightly) == *'"waiters":1'* ]]; do sleep 0.05; done
    [[ ! -s waited-$1 ]]
    lock LOCK.RELEASE nightly "$token" >/dev/null
    wait "$pid"
    [[ $(<"waited-$1") =~ ^$three_steps$ ]]
}

stops_when_lost() { # stops_when_lost python|node: between its steps the lock is taken from it
    local pid
    # the same program, slower
    sed 's/^for step in range(3):/&\n    time.sleep(2)/
        s/ttl, key, me = 15.0/ttl, key, me = 3.0/' worker.py >slow.py
    sed 's/step++) {/&\n    await new Promise((done) => setTimeout(done, 2000));/
        s/ttl = 15000/ttl = 3000/' worker.js >slow.js
    case $1 in
    python) /usr/bin/python3 slow.py "$socket" >lost 2>&1 & ;;
    node) command node slow.js "$socket" >lost 2>&1 & ;;
    esac
    pid=$!
    until [[ $(lock --json LOCK.STATUS nightly) == *'"state":"held"'* ]]; do sleep 0.05; done
    lock LOCK.BREAK nightly test NOW >/dev/null
    if wait "$pid"; then return 1; fi
    grep '^lost' lost
    if grep 'step 2' lost; then return 1; fi
}

for language in python node; do
    case_of "the $language program works" works "$language"
    case_of "the $language program waits for its turn" waits_its_turn "$language"
    case_of "the $language program stops when the lock is lost" stops_when_lost "$language"
done
finish
