#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ids from the command line, on one file: once.sh PROGRAM ROUNDS. In each round 3 shells start 100
# claims of one id each, all at once: exactly one is new. In four times as many a claimer is killed
# before it finishes: its id is somebody else's after its lease and not before, and done once.
# Prints TAP.
set -euo pipefail

program=$(realpath "$1")
rounds=$2
kills=$((rounds * 4))
ttl_ms=500
work=$(mktemp -d)
started=()
# Only what a round that was cut short may have left.
end_all() {
    local pid
    for pid in "${started[@]}"; do
        kill -KILL "$pid" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap end_all EXIT
cd "$work"
export LEASEHOLD_STORE=file:$work/locks.log HOME=$work program
unset LEASEHOLD_TTL LEASEHOLD_CONFIG LEASEHOLD_HOLDER XDG_CONFIG_HOME POD_NAME
wrong=0

fail() { # fail WORDS...
    printf '# %s\n' "$*"
    wrong=1
}

say() { # say NUMBER NAME: the case's line, by whether anything was wrong in it
    ((wrong == 0)) || { printf 'not ' && failed=1; }
    printf 'ok %d - %s\n' "$1" "$2"
    wrong=0
}
failed=0

# ---- 3 × 100 claims at once ----

crowd() { # crowd ID FOLDER: 100 claims at the same time, status and answer of each in a file
    local i
    until [[ -e go ]]; do sleep 0.01; done
    for ((i = 0; i < 100; i++)); do
        {
            status=0
            "$program" once begin "$1" >"$2/$i.said" 2>&1 || status=$?
            printf '%s ' "$status" >"$2/$i.status"
            # Who has it finishes it while others still come.
            if ((status == 0)); then
                "$program" once finish "$1" --token "$(sed 's/^new //' "$2/$i.said")" \
                    --result "result of $1" --quiet
            fi
        } &
    done
    wait
}
export -f crowd

round() { # round NUMBER
    local id=job/$1 shell new
    rm -rf go said-{1,2,3}
    mkdir said-{1,2,3}
    started=()
    for shell in 1 2 3; do
        bash -c 'crowd "$1" "$2"' - "$id" "said-$shell" &
        started+=($!)
    done
    touch go
    wait "${started[@]}"
    started=()
    new=$(cat said-?/*.status | tr ' ' '\n' | grep -cx 0)
    [[ $new == 1 ]] || fail "$id: $new were told that it is new"
    [[ $(cat said-?/*.said | grep -cxE 'new [0-9]+|running .+|done result of '"$id") == 300 ]] ||
        fail "$id: not all 300 were told how it stands: $(cat said-?/*.said | sort | uniq -c)"
    [[ $(cat said-?/*.status | tr ' ' '\n' | grep -cxE '0|73|75') == 300 ]] ||
        fail "$id: another status: $(cat said-?/*.status)"
    running=$((running + $(cat said-?/*.said | grep -c ^running || true)))
    done=$((done + $(cat said-?/*.said | grep -c ^done || true)))
}

running=0
done=0
for ((number = 1; number <= rounds; number++)); do
    round "$number"
done
printf '# %d rounds of 300 claims: %d new, %d running, %d done\n' \
    "$rounds" $((rounds * 300 - running - done)) "$running" "$done"
say 1 "of 3 x 100 claims at once exactly one is new"

# ---- killed between claim and finish ----

work_on() { # work_on ID: claims it, says its token, and never finishes
    exec 9<>"pause-$1"
    "$program" once begin "$1" --ttl 500ms | sed -n 's/^new //p' >"token-$1.new"
    mv "token-$1.new" "token-$1"
    read -r -u 9 _
}
export -f work_on

now_ms() { date +%s%3N; }

kill_one() { # kill_one ID
    local id=$1 began_ms pid old new status=0
    mkfifo "pause-$id"
    began_ms=$(now_ms)
    bash -c 'work_on "$1"' - "$id" 2>/dev/null &
    pid=$!
    started=("$pid")
    until [[ -s token-$id ]]; do sleep 0.01; done
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null || true
    started=()
    old=$(cat "token-$id")
    new=$("$program" once begin "$id" --ttl 1m --wait 1m | sed -n 's/^new //p')
    waited_ms=$(($(now_ms) - began_ms))
    [[ -n $new ]] || { fail "$id: not to be had again" && return; }
    ((new > old)) || fail "$id: token $new after $old"
    ((waited_ms >= ttl_ms)) || fail "$id: claimed again after $waited_ms ms"
    "$program" once finish "$id" --token "$old" --result dead --quiet 2>/dev/null || status=$?
    ((status == 78)) || fail "$id: the late one finished with status $status"
    "$program" once finish "$id" --token "$new" --result alive --quiet || fail "$id: not finished"
    status=0
    "$program" once finish "$id" --token "$old" --result dead --quiet 2>/dev/null || status=$?
    ((status == 78)) || fail "$id: was done twice"
    ((waited_ms <= most_ms)) || most_ms=$waited_ms
}

most_ms=0
for ((number = 1; number <= kills; number++)); do
    kill_one "dead-$number"
done
printf '# %d killed claimers: the id was claimed again within %d ms; TTL %d ms\n' \
    "$kills" "$most_ms" "$ttl_ms"
say 2 "a killed claimer's id is claimed again after its lease, and done once"

# ---- every process of the rounds has ended ----

for ((number = 1; number <= rounds; number++)); do
    [[ $("$program" once status "job/$number") == "done result of job/$number" ]] ||
        fail "job/$number is forgotten"
done
for ((number = 1; number <= kills; number++)); do
    [[ $("$program" once begin "dead-$number" || true) == "done alive" ]] ||
        fail "dead-$number is forgotten"
done
say 3 "what was done is remembered by the file"
printf '1..3\n'
exit "$failed"
