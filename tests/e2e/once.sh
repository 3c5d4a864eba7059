#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ids from the command line, on one store: once.sh PROGRAM ROUNDS. In each round 3 shells start 100
# claims of one id each, all at once: exactly one is new. In four times as many a claimer is killed
# before it finishes: its id can be claimed after its lease and not before, and is done once. Then
# whole commands: the results of later callers, and in as many rounds again a process of a command
# under its claim is killed: the next one starts at once, beside no process of the old one, and it
# is done once. Prints TAP.
set -euo pipefail

program=$(realpath "$1")
rounds=$2
kills=$((rounds * 4))
ttl_ms=500
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
cd "$work"
export LEASEHOLD_STORE=${LEASEHOLD_TEST_STORE:-file:$work/locks.log} HOME=$work program

# ---- 3 × 100 claims at once ----

crowd() { # crowd ID FOLDER: 100 claims at the same time, status and answer of each in a file
    local i
    until [[ -e go ]]; do sleep 0.01; done
    for ((i = 0; i < 100; i++)); do
        {
            status=0
            "$program" once begin "$1" >"$2/$i.said" 2>&1 || status=$?
            printf '%s ' "$status" >"$2/$i.status"
            # The claimer finishes it while others still start.
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
for ((nth = 1; nth <= rounds; nth++)); do
    round "$nth"
done
printf '# %d rounds of 300 claims: %d new, %d running, %d done\n' \
    "$rounds" $((rounds * 300 - running - done)) "$running" "$done"
say "of 3 x 100 claims at once exactly one is new"

# ---- killed between claim and finish ----

work_on() { # work_on ID: claims it, says its token, and never finishes
    exec 9<>"pause-$1"
    "$program" once begin "$1" --ttl 500ms | sed -n 's/^new //p' >"token-$1.new"
    mv "token-$1.new" "token-$1"
    read -r -u 9 _
}
export -f work_on


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
for ((nth = 1; nth <= kills; nth++)); do
    kill_one "dead-$nth"
done
printf '# %d killed claimers: the id was claimed again within %d ms; TTL %d ms\n' \
    "$kills" "$most_ms" "$ttl_ms"
say "a killed claimer's id is claimed again after its lease, and done once"

# ---- every process of the rounds has ended ----

for ((nth = 1; nth <= rounds; nth++)); do
    [[ $("$program" once status "job/$nth") == "done result of job/$nth" ]] ||
        fail "job/$nth is forgotten"
done
for ((nth = 1; nth <= kills; nth++)); do
    [[ $("$program" once begin "dead-$nth" || true) == "done alive" ]] ||
        fail "dead-$nth is forgotten"
done
say "what was done is remembered by the store"

# ---- commands ----

once() { # once ID ARGUMENTS...: as a whole; status, out and err of it
    status=0
    "$program" once "$@" >out 2>err || status=$?
}

got() { # got STATUS LINE: what the last one gave; "-" is no line at all
    local line
    line=$(tail -1 out && printf .)
    [[ $status == "$1" ]] || fail "status $status instead of $1: $(cat err)"
    [[ ${line%.} == "$2"$'\n' || ($2 == - && ! -s out) ]] || fail "said '$(tail -1 out)' for '$2'"
}

once whole -- sh -c 'echo one; echo two >&2; echo three'
got 0 three
[[ $(cat out) == $'one\nthree' && $(cat err) == two ]] || fail "the output was changed"
once whole -- sh -c 'echo four'
got 0 three
[[ $(cat out) == three && $(wc -l <err) == 1 ]] || fail "more than the last line: $(cat out err)"
grep -qx 'done: whole was done by .* ago, with exit status 0; kept for .*' err ||
    fail "said $(cat err)"
once whole --quiet -- false
got 0 three
[[ ! -s err ]] || fail "not quiet: $(cat err)"
once silent -- true
once silent -- echo no
got 0 -
once begin -- echo a step
once begin -- false
got 0 'a step'
say "a command runs once, and later callers get its last line and status"

once fails -- sh -c 'echo first; exit 3'
got 3 first
once fails --keep-failures -- sh -c 'echo second; exit 4'
got 4 second
once fails -- true
got 4 second
grep -q '^failed: fails was done by' err || fail "said $(cat err)"
for signal in HUP INT QUIT TERM KILL; do
    once ended --keep-failures -- sh -c "kill -$signal \$\$"
    [[ $("$program" once status ended) == new ]] || fail "$signal was kept"
done
once crashed --keep-failures -- sh -c 'kill -SEGV $$'
once crashed --keep-failures -- true
got 139 -
say "a failure leaves the id to be claimed again, unless it is to be kept"

head -c 3000000 /dev/urandom >noise
once noise -- cat noise
cmp -s out noise || fail "noise was changed"
once noise -- false
((status == 0 && $(wc -c <out) <= 1025)) || fail "noise: status $status, $(wc -c <out) bytes"
once cut -- sh -c 'printf "no end"'
printf 'no end' | cmp -s - out || fail "an end was added"
once cut -- false
got 0 'no end'
head -c 5000 /dev/zero | tr '\0' x >long
once long -- cat long
once long -- false
got 0 "$(head -c 1024 long)"
once early -- sh -c 'echo before; exec >&-; sleep 0.2'
once early -- false
got 0 before
{ "$program" once pipe -- yes 2>err || printf '%s' "$?" >piped; } | head -1 >out
[[ $(cat piped) == 141 && $(cat out) == y ]] || fail "a closed pipe: $(cat piped err)"
[[ $("$program" once status pipe) == new ]] || fail "what was cut off is done"
say "any output goes through as it is, and its last line is kept as text"

# The reader stops for longer than the claim's lease.
{ "$program" once slow --ttl 2s -- sh -c 'yes | head -c 300000; echo end' 2>err || fail "slow"; } |
    { sleep 3.5 && cat; } >out
[[ $(tail -1 out) == end && $(wc -c <out) == 300004 ]] || fail "slow: $(tail -1 out) $(cat err)"
[[ $("$program" once status slow) == "done end" ]] || fail "slow: $("$program" once status slow)"
say "a reader that stops does not cost the claim"

started=()
for ((i = 0; i < 30; i++)); do
    "$program" once shared -w 1m --quiet -- sh -c 'echo "$$" >>ran-shared; sleep 0.2; echo "$$"' \
        >"shared-$i" &
    started+=($!)
done
wait "${started[@]}" || fail "somebody failed"
started=()
[[ $(wc -l <ran-shared) == 1 ]] || fail "$(wc -l <ran-shared) have run it"
[[ $(sort -u shared-*) == "$(cat ran-shared)" ]] || fail "not all got its line"
say "of 30 that want it at once one runs it, and all get what came of it"

once outer -- "$program" once outer -w 1m -- echo nested
got 75 -
grep -q 'a nested run would wait for itself' err || fail "said $(cat err)"
"$program" once stops -- sh -c 'echo $$ >stops-pid; exec sleep 600' &
started=($!)
until [[ -s stops-pid ]]; do sleep 0.01; done
once stops -- true
got 75 -
grep -q "^busy: once:stops is held by .*:${started[0]} for" err || fail "said $(cat err)"
kill -TERM "${started[0]}"
status=0
wait "${started[0]}" || status=$?
started=()
((status == 143)) || fail "ended by TERM with $status"
[[ $("$program" once status stops) == new ]] || fail "what was ended is done"
once lost --ttl 2s -- sh -c "\"$program\" break once:lost --reason test --now --quiet
    echo \$\$ >lost-pid; exec sleep 600"
got 76 -
kill -0 "$(cat lost-pid)" 2>/dev/null && fail "it outlives its claim"
[[ $("$program" once status lost) == new ]] || fail "what was lost is done"
say "nested, ended or lost, it is refused or given back"

# ---- killed under a command ----

child_of() { # child_of PID: of its first thread
    tr -d ' ' <"/proc/$1/task/$1/children"
}

lives() { # lives PID: dead ones that nobody collected do not
    [[ -e /proc/$1/stat && $(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) != [ZX] ]]
}
export -f lives

kill_under() { # kill_under ID foreground|supervisor|command
    local id=$1 foreground supervisor command whom began_ms waited_ms said
    # shellcheck disable=SC2016 # the command's own
    "$program" once "$id" -- sh -c 'echo $$ >"$1.new"; mv "$1.new" "$1"; exec sleep 600' - \
        "pid-$id" 2>/dev/null &
    foreground=$!
    started=("$foreground")
    until [[ -s pid-$id ]]; do sleep 0.01; done
    command=$(cat "pid-$id")
    supervisor=$(child_of "$foreground")
    [[ -n $supervisor && $(child_of "$supervisor") == "$command" ]] ||
        fail "$id: another process tree"
    case $2 in
    foreground) whom=$foreground ;;
    supervisor) whom=$supervisor ;;
    command) whom=$command ;;
    esac
    began_ms=$(now_ms)
    kill -KILL "$whom"
    # shellcheck disable=SC2016 # the command's own
    said=$("$program" once "$id" -w 1m -- bash -c 'lives "$1" && echo "beside $1" || echo alone' - \
        "$command" 2>&1) || fail "$id: not to be had again: $said"
    waited_ms=$(($(now_ms) - began_ms))
    [[ $said == alone ]] || fail "$id: $said"
    wait "$foreground" 2>/dev/null || true
    started=()
    ((waited_ms < 60000)) || fail "$id: $waited_ms ms for a lease of 300000"
    ((waited_ms <= most_ms)) || most_ms=$waited_ms
    [[ $("$program" once "$id" --quiet -- echo again) == alone ]] || fail "$id: done twice"
}

most_ms=0
for ((nth = 1; nth <= kills; nth++)); do
    whom=(foreground supervisor command)
    kill_under "under-$nth" "${whom[nth % 3]}"
done
printf '# %d killed under a command: the next one ended within %d ms; TTL 300000 ms\n' \
    "$kills" "$most_ms"
say "whoever is killed under a command, the next one is in at once, alone, and it is done once"

# At any moment, before the claim or after the finish, too; at most one attempt reports `done`.
kill_any() { # kill_any ID
    local id=$1 foreground supervisor whom attempt said='' stored
    for ((attempt = 1; attempt <= 6; attempt++)); do
        rm -f out err # killed before it opens them, it would leave those of the attempt before
        "$program" once "$id" --ttl 10s -w 1m --json -- sh -c "echo $attempt; sleep 0.02" \
            >out 2>err &
        foreground=$!
        started=("$foreground")
        sleep "0.0$((RANDOM % 5))"
        supervisor=$(child_of "$foreground" 2>/dev/null || true)
        whom=("$foreground" "${supervisor:-$foreground}"
            "$(child_of "${supervisor:-none}" 2>/dev/null || true)")
        ((attempt == 6)) || kill -KILL "${whom[RANDOM % 3]:-$foreground}" 2>/dev/null || true
        wait "$foreground" 2>/dev/null || true
        started=()
        [[ -e err ]] || : >err
        said+=$(sed -n '/"ran":true.*"state":"done"/s/.*"result":"\([0-9]*\)".*/\1/p' err)
        grep -q '"ran":false' err || undone=$((undone + 1))
    done
    stored=$("$program" once status "$id")
    [[ $stored =~ ^done' '[1-6]$ ]] || fail "$id: $stored after all"
    [[ -z $said || $stored == "done $said" ]] || fail "$id: done by '$said', remembered: $stored"
    [[ -z $said ]] || told=$((told + 1))
}

told=0
undone=0
for ((nth = 1; nth <= rounds; nth++)); do
    kill_any "any-$nth"
done
printf '# %d ids with 5 kills each: %d came before it was done; told by who did it: %d\n' \
    "$rounds" "$undone" "$told"
say "killed at any moment, nothing is done twice"
finish
