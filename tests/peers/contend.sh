#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Other programs' locks and ours on one key of one server: contend.sh redis://HOST:PORT PROGRAM
# ROUNDS. redis-py's Lock, node-redlock, a bare SET NX PX, and twice `leasehold run` each enter
# ROUNDS times. A file that must not exist on entry detects two holders at once. Prints TAP.
set -euo pipefail

url=$1
program=$(realpath "$2")
rounds=$3
here=$(cd "$(dirname "$0")" && pwd)
port=${url##*:}
port=${port%%[/?]*}
key=job
longest_fine_ms=30000 # nobody may stand so long before a lock that is held for 3 ms
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/../e2e/kit.sh"
export LEASEHOLD_STORE=$url HOME=$work

# Inside: sleep and rm are programs, which take about as long as the others' 3 ms.
cat >"$work/inside.sh" <<'INSIDE'
now_ms() { printf '%s\n' $((${EPOCHREALTIME//[!0-9]/} / 1000)); }
now_ms >"$1/entered.$2"
set -C
if ! : 2>/dev/null >"$1/inside"; then
    echo 'leasehold was not alone' >>"$1/violations"
    exit 0
fi
sleep 0.003
rm "$1/inside"
INSIDE

play_ours() { # play_ours NAME
    local round longest=0 began waited
    for ((round = 0; round < rounds; round++)); do
        began=$((${EPOCHREALTIME//[!0-9]/} / 1000))
        "$program" run "$key" --ttl 10s -- bash "$work/inside.sh" "$work" "$1" || return 1
        waited=$(($(<"$work/entered.$1") - began))
        ((waited <= longest)) || longest=$waited
        sleep 0.005
    done
    printf '%s %s\n' "$rounds" "$longest"
}

# Validates the file: with two processes that take no lock at all it detects that they overlap.
for one in 1 2; do
    (for ((i = 0; i < 50; i++)); do bash "$work/inside.sh" "$work" "$one"; done) &
    started+=($!)
done
wait "${started[@]}"
started=()
verdict 'two that take no lock are seen together' test -s "$work/violations"
rm -f "$work/violations" "$work/inside"

names=(redis-py bare ours ours-too)
declare -A players=(
    [redis-py]="/usr/bin/python3 $here/locker.py lock $port lock:$key $rounds $work"
    [bare]="/usr/bin/python3 $here/locker.py bare $port lock:$key $rounds $work"
    [ours]='play_ours ours'
    [ours-too]='play_ours ours-too'
)
if node=$("$here/../../scripts/peer.sh" node 2>"$work/why"); then
    names+=(redlock)
    players[redlock]="env NODE_PATH=$node/node_modules node $here/locker.js $port lock:$key"
    players[redlock]+=" $rounds $work"
else
    number=$((number + 1))
    printf 'ok %d - node-redlock # SKIP %s\n' "$number" "$(tail -n 1 "$work/why")"
fi
declare -A pids=()
for name in "${names[@]}"; do
    read -ra command <<<"${players[$name]}"
    "${command[@]}" >"$work/said.$name" 2>"$work/error.$name" &
    pids[$name]=$!
    started+=($!)
done
for name in "${names[@]}"; do
    status=0
    wait "${pids[$name]}" || status=$?
    read -r came longest <"$work/said.$name" || came=0 longest=-1
    sed 's/^/# /' "$work/error.$name"
    printf '# %s: %s rounds, waited %s ms at most\n' "$name" "$came" "$longest"
    verdict "$name came in every time" test "$status $came" = "0 $rounds"
    verdict "$name was not starved" test "$longest" -ge 0 -a "$longest" -lt "$longest_fine_ms"
done
started=()
verdict 'nobody was inside beside another' test ! -e "$work/violations"
finish
