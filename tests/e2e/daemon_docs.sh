#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs/daemon.md: daemon_docs.sh PROGRAM PAGE [--examples]. The tables of commands, paths and
# statuses are the daemon's own; the program of the page for curl runs alone and in turn. With
# --examples those for Python and Node too, and all of them with the lock taken from them
# (python3-redis, and ioredis by scripts/peer.sh). Prints TAP.
set -euo pipefail

root=$(realpath "$(dirname "$0")/../..")
program=$(realpath "$1")
page=$(realpath "$2")
examples=${3:-}
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
socket=$work/lock.sock
export no_proxy=127.0.0.1
"$program" serve --store "file:$work/locks.log" --listen off --unix "$socket" --http 0 \
    >"$work/ready" 2>"$work/log" &
started+=($!)
await "$work/ready"
until grep -q http: "$work/ready"; do sleep 0.02; done
web=$(sed -n 's/.* \(http:.*\)/\1/p' "$work/ready")

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

# "METHOD PATH|required [optional]…" of each path, by the daemon and by the page.
paths_of_daemon() {
    curl -sS "$web/openapi.json" | jq -r '
        .paths | to_entries[] | .key as $path | .value | to_entries[] |
        (.key | ascii_upcase) as $method |
        (.value.requestBody.content["application/json"].schema |
            if .oneOf then .oneOf[0] else . end) as $body |
        ([.value.parameters[]? | select(.in == "query") | {name, required}] +
         [$body.properties // {} | keys_unsorted[] | . as $name |
             {name: $name, required: ([$body.required[]?] | index($name) != null)}]) |
        map(if .required then .name else "[\(.name)]" end) |
        "\($method) \($path)|\(join(" "))"' | sort
}
# shellcheck disable=SC2016 # backquotes of the page
paths_of_page() {
    sed -n 's/^| `\([A-Z]* \/[^`]*\)` | `\{0,1\}\([^`|]*\)`\{0,1\} *|.*/\1|\2/p' "${1:-$page}" |
        sed 's/{[a-z]*}/{key}/' | sort
}

table_has_every_path() {
    (($(paths_of_daemon | wc -l) >= 25))
    diff <(paths_of_daemon) <(paths_of_page)
}

# shellcheck disable=SC2016 # backquotes of the page
wrong_paths_are_found() {
    local change
    for change in 's/^| `POST \(.*clear\)/| `PUT \1/' '/^| `GET .readyz/d' 's/\[now\]/now/' \
        's/\(token \)\[keep_ms\]/\1/'; do
        sed "$change" "$page" >"$work/wrong.md"
        if cmp "$page" "$work/wrong.md"; then return 1; fi
        if diff <(paths_of_daemon) <(paths_of_page "$work/wrong.md"); then return 1; fi
    done
}

# "STATUS OUTCOME", a line for each status of the page with one outcome.
# shellcheck disable=SC2016 # backquotes of the page
statuses_of_page() {
    local list outcome status
    sed -n 's/^| \([1-5][0-9 ]*\) | `\([a-z]*\)` | .*/\1|\2/p' "$page" |
        while IFS='|' read -r list outcome; do
            for status in $list; do printf '%s %s\n' "$status" "$outcome"; done
        done
}
statuses_of_openapi() {
    curl -sS "$web/openapi.json" | jq -r '.paths[][].responses | to_entries[] |
        select(.key != "200") | "\(.key) \(.value.description | split(":")[0])"' | sort -u
}
# ask [OPTION…] PATH: "STATUS OUTCOME" of a request.
ask() {
    curl -sS -o "$work/reply" -w '%{http_code} ' "${@:1:$#-1}" "$web${*: -1}"
    jq -r .outcome "$work/reply"
}
statuses_of_daemon() {
    local grant='{"holder":"me","ttl_ms":60000,"request_id":"a"}' long
    printf -v long '%070000d' 0
    ask --json "$grant" /v1/locks/s/acquire >/dev/null
    ask --json '{}' /v1/locks/s/acquire
    ask -H 'Origin: http://other.example' /healthz
    ask /v2
    ask -X DELETE /v1/locks
    ask --json '{"holder":"other","ttl_ms":60000}' /v1/locks/s/acquire
    ask --json '{"token":"1"}' /v1/locks/s/renew
    ask --json @- /v1/locks/s/acquire <<<"$long"
    ask "/v1/locks/${long:0:20000}"
    ask -H "X: ${long:0:20000}" /healthz
    ask -d '' /v1/locks/s/clear
    ask -X "${long:0:60}" /
    ask -H 'Host: other.example' /healthz
    ask --json "$grant" /v1/locks/s2/acquire
    ask --json '{"holder":"me","ttl_ms":60000}' /v1/locks/s3/acquire >/dev/null
    ask --json "{\"token\":$(jq .token "$work/reply"),\"cooldown_ms\":60000}" \
        /v1/locks/s3/release >/dev/null
    ask --json '{"holder":"me","ttl_ms":60000}' /v1/locks/s3/acquire
}

statuses_are_those_of_the_daemon() {
    local line
    statuses_of_page | sort >"$work/statuses"
    statuses_of_openapi >"$work/described"
    statuses_of_daemon >"$work/answered"
    (($(wc -l <"$work/described") >= 9))
    cat "$work/answered"
    [[ $(cut -d ' ' -f 1 "$work/answered" | paste -sd ' ') == \
        '400 403 404 405 409 412 413 414 431 415 501 421 422 423' ]]
    while read -r line; do
        grep -Fx "$line" "$work/statuses" || { echo "not on the page: $line" && return 1; }
    done < <(cat "$work/described" "$work/answered")
}

case_of 'the page has every command of the daemon' table_has_every_command
case_of 'a wrong name is found' a_wrong_table_is_found
case_of 'arguments are those of the daemon' arguments_are_those_of_the_daemon
case_of 'the page has every path of the daemon, with its fields' table_has_every_path
case_of 'a wrong path or field is found' wrong_paths_are_found
case_of 'statuses are those of the daemon' statuses_are_those_of_the_daemon

cd "$work"
awk -v quote='```' '
    index($0, quote) == 1 && NF == 2 { file = $2; next }
    index($0, quote) == 1 { file = "" }
    file != "" { print >file }' "$page"
curl_and_jq() { bash "$work/worker.sh" "$web"; }
python() { /usr/bin/python3 "$work/worker.py" "$socket"; }
node() { command node "$work/worker.js" "$socket"; }
three_steps='step 0 with token [0-9]+
step 1 with token [0-9]+
step 2 with token [0-9]+'

works() { # works curl_and_jq|python|node: alone, and the lock is free afterwards
    local output
    output=$("$1")
    [[ $output =~ ^$three_steps$ ]]
    [[ $(lock --json LOCK.STATUS nightly) == *'"state":"free"'* ]]
}

waits_its_turn() { # waits_its_turn curl_and_jq|python|node
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

# stops_when_lost curl_and_jq|python|node: between its steps the lock is taken from it
stops_when_lost() {
    local pid
    # the same program, slower
    sed 's/^for step in range(3):/&\n    time.sleep(2)/
        s/ttl, key, me = 15.0/ttl, key, me = 3.0/' worker.py >slow.py
    sed 's/step++) {/&\n    await new Promise((done) => setTimeout(done, 2000));/
        s/ttl = 15000/ttl = 3000/' worker.js >slow.js
    sed 's/^for step in .*/&\n    sleep 2/; s/ttl=15000/ttl=3000/' worker.sh >slow.sh
    case $1 in
    curl_and_jq) bash slow.sh "$web" >lost 2>&1 & ;;
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

case_of 'the curl program works' works curl_and_jq
case_of 'the curl program waits for its turn' waits_its_turn curl_and_jq
[[ $examples == --examples ]] || finish

case_of 'the curl program stops when the lock is lost' stops_when_lost curl_and_jq
NODE_PATH=$("$root/scripts/peer.sh" node)/node_modules
export NODE_PATH
for language in python node; do
    case_of "the $language program works" works "$language"
    case_of "the $language program waits for its turn" waits_its_turn "$language"
    case_of "the $language program stops when the lock is lost" stops_when_lost "$language"
done
finish
