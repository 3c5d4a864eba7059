#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The guarantees of `leasehold run` for scripts: run.sh PROGRAM ROUNDS. Prints TAP. ROUNDS is the
# number of increments of each of the 50 processes that share a counter.
set -euo pipefail

program=$(realpath "$1")
rounds=$2
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
cd "$work"
export LEASEHOLD_STORE=${LEASEHOLD_TEST_STORE:-file:$work/locks.log}
export HOME=$work LEASEHOLD_HOLDER=wfe-7

check() { # check NAME CONDITION...: the condition is a command
    local name=$1 good=true
    shift
    "$@" >"$work/said" 2>&1 || good=false
    [[ ! -e err ]] || sed 's/^/err: /' err >>"$work/said"
    tell "$good" "$name"
}

# Calls it, with its output in out and err; true when the status is STATUS.
gives() { # gives STATUS WORD...
    local wanted=$1 got=0
    shift
    "$program" "$@" >out 2>err </dev/null || got=$?
    printf 'status %s, wanted %s\n' "$got" "$wanted"
    [[ $got == "$wanted" ]]
}

said() { grep -qE -- "$1" "$2"; }
lives() { # a dead one that nobody collected does not
    local state
    state=$(sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2>/dev/null) && [[ $state != Z ]]
}
dead() { ! lives "$1"; }

# ---- fifty processes, one counter ----

printf '0\n' >counter
: >tokens
add_one='read -r n <counter; echo $((n + 1)) >counter; echo $LEASEHOLD_TOKEN >>tokens'
adders=()
for ((i = 0; i < 50; i++)); do
    (
        for ((j = 0; j < rounds; j++)); do
            "$program" run counter -- sh -c "$add_one" </dev/null
        done
    ) &
    adders+=("$!")
done
started+=("${adders[@]}")
failed=0
for adder in "${adders[@]}"; do
    wait "$adder" || failed=$((failed + 1))
done
check "50 processes add one $rounds times each: exactly $((50 * rounds))" \
    test "$failed $(cat counter)" = "0 $((50 * rounds))"
check 'tokens grow strictly' sort -C -n -u tokens

# ---- exit status, environment, arguments ----

check 'exit status 0' gives 0 run k -- true
check 'exit status 42' gives 42 run k -- sh -c 'exit 42'
check 'killed by a signal: 128 and its number' gives 137 run k -- sh -c 'kill -9 $$'
check 'no shell in between' gives 0 run k -- test 'a  b$HOME' = 'a  b$HOME'
# shellcheck disable=SC2016 # for the command's shell
check 'the command is told' gives 0 run b a -- sh -c 'test "$LEASEHOLD_KEY" = "a b" &&
    test "$LEASEHOLD_HOLDER" = wfe-7 && test -n "$LEASEHOLD_STORE" &&
    test -e /proc/self/fd/$LEASEHOLD_DEADLINE_FD && set -- $LEASEHOLD_TOKEN && test $# = 2'
check 'not found: 127, and no lock was taken' gives 127 run k -- no-such-program
check 'not executable: 126' gives 126 run k -- /etc/passwd
printf 'true\n' >plain
chmod +x plain
check 'no program: 126' gives 126 run k -- ./plain
check 'the lock is free again' gives 0 run -n k -- true
check 'a store in memory' gives 3 run --store memory: k -- sh -c 'exit 3'
check 'a short TTL is refused' gives 64 run --ttl 1999ms k -- true
check 'with words' said '--ttl: run needs at least 2s' err
check 'nothing to run' gives 64 run k
check 'nothing behind --' gives 64 run k --

# ---- refusals ----

"$program" acquire held --ttl 1h >/dev/null
check 'busy: 75' gives 75 run -n held -- true
check 'with the holder' said '^busy: held is held by wfe-7 for .* \(lease ends in' err
check 'busy with -E' gives 9 run -n -E 9 held -- true
check 'busy after retries' gives 75 run --on-conflict retry --retries 2 --backoff 1ms:2ms \
    held -- true
check 'busy after a wait' gives 75 run -w 50ms held -- true
check 'a cooldown begins' gives 0 run --cooldown 1h cool -- true
check 'cooling: 73' gives 73 run cool -- true

# ---- what starts a cooldown ----

check 'of several keys one is busy' gives 75 run -n --cooldown 1h first-of-two held -- true
check 'the other one does not cool: nothing was done' gives 0 run -n first-of-two -- true
check 'an answer that cannot be written' \
    bash -c '"$1" acquire --cooldown 1h unwritten >/dev/full; (($? == 70))' - "$program"
check 'cools nothing' gives 0 run -n unwritten -- true

check 'a failed command starts no cooldown' gives 3 run --cooldown 1h failed -- sh -c 'exit 3'
check 'so that it can be run again' gives 0 run -n failed -- true
check 'nor does one that a signal ended' gives 143 run --cooldown 1h ended -- sh -c 'kill $$'
check 'so that it can be run again' gives 0 run -n ended -- true
check '--cooldown-on any: a failure does' gives 3 \
    run --cooldown 1h --cooldown-on any any -- sh -c 'exit 3'
check 'cooling: 73' gives 73 run -n any -- true
check '--cooldown-on success is the default' gives 0 \
    run --cooldown 1h --cooldown-on success well -- true
check 'cooling: 73' gives 73 run -n well -- true
check 'one that never began starts none' gives 126 \
    run --cooldown 1h --cooldown-on any never -- ./plain
check 'so that it can be run again' gives 0 run -n never -- true
check 'no other word' gives 64 run --cooldown 1h --cooldown-on failure k -- true
check 'of two keys neither cools after a failure' gives 3 \
    run --cooldown 1h one two -- sh -c 'exit 3'
check 'so that both can be had again' gives 0 run -n one two -- true

check 'unavailable: 69' gives 69 run --store file:/no/such/folder/l.log k -- true
check 'a nested run of the same key: 75' gives 75 run k -- "$program" run k -- true
check 'with the reason' said 'nested run would wait for itself' err
check 'two levels down, too' gives 75 run k -- "$program" run j -- "$program" run -w 1s k -- true
check 'with the reason' said 'nested run would wait for itself' err
check 'a key with a space, too' gives 75 run 'a b' -- "$program" run -w 1s 'a b' -- true
check 'with the reason' said 'nested run would wait for itself' err
mkdir -p folder
check 'a store with a relative path is the same for the command' gives 75 \
    --store file:relative.log run k -- sh -c "cd folder; '$program' run -w 1s k -- true"
check 'with the reason' said 'nested run would wait for itself' err
check 'and another spelling of it' gives 75 \
    --store "file://$work/other.log" run k -- "$program" --store file:other.log run -w 1s k -- true
check 'with the reason' said 'nested run would wait for itself' err
check 'one of another key is fine' gives 0 run k -- "$program" run j -- true
"$program" run k -- sh -c 'env >variables'
export_old() { env -i $(grep ^LEASEHOLD_ variables | tr '\n' ' ') "$program" run k -- true; }
check 'old variables do not refuse' export_old

# ---- JSON ----

check 'JSON: the status of the command' gives 5 --json run k --status-file told -- \
    sh -c 'echo noise >&2; exit 5'
object='^\{"outcome":"ok","key":"k","token":"[0-9]+","exit_status":5,"held_ms":[0-9]+,'
check 'the object is the last line' said "$object" <(tail -1 err)
check 'and in the status file' said "$object" told
in_file() { # in_file STATUS OUTCOME WORD...: a refused run replaces the last one's outcome
    local outcome=$2 status=$1
    shift 2
    printf 'old\n' >told
    gives "$status" "$@" -- "${refused[@]}" && said "^.\"outcome\":\"$outcome\"" told
}
refused=(no-such-program)
check 'in the status file: not found' in_file 127 usage run k --status-file told
refused=(true)
check 'unavailable' in_file 69 unavailable --store file:/no/l.log run k --status-file told
check 'a wrong call' in_file 64 usage run k --status-file told --ttl 1s
check 'nested' in_file 75 busy run k -- "$program" run k --status-file told
check 'no file is left beside it' test "$(echo told*)" = told
ln -s /proc/self/fd/1 link
check 'a link is written through' gives 0 run k --status-file link -- true
check 'and still there' test -L link
check 'with the outcome' said '^."outcome":"ok"' out
check 'busy as JSON' gives 75 --json run -n held -- true
check 'as one object' said '^\{"outcome":"busy","refusal":"contention","key":"held",' err

# ---- remaining processes of the command ----

check 'it leaves two processes' gives 0 run k -- sh -c \
    '(trap "" TERM; sleep 100) & echo $! >group
    setsid sh -c "echo >there; exec sleep 100" >/dev/null 2>&1 & echo $! >session
    until [ -s there ]; do sleep 0.01; done'
check 'that of its group is dead' dead "$(cat group)"
check 'a daemon may stay' lives "$(cat session)"
started+=("$(cat session)")

# ---- losing the lock ----

lose() { # lose POLICY SCRIPT: breaks the lock of a run, whose status is in `lost_status`
    rm -f began ended
    "$program" run --ttl 9s --kill-grace 300ms --on-lost "$1" broken -- sh -c "$2" \
        >out 2>err </dev/null &
    local front=$!
    started+=("$front")
    await began
    "$program" break broken --reason 'a test' >/dev/null
    lost_status=0
    wait "$front" || lost_status=$?
}

lose term 'trap "echo >ended; exit 0" TERM; echo >began; while :; do sleep 0.05; done'
check 'lost: the command is asked to end' test -e ended
check 'and the status is 76' test "$lost_status" = 76
check 'with words' said '^lost: broken.*; ending the command$' err
lose term 'trap "" TERM; echo >began; while :; do sleep 0.05; done'
check 'lost: one that does not is killed' test "$lost_status" = 76
lose kill 'trap "echo >ended" TERM; echo >began; while :; do sleep 0.05; done'
check 'lost, with kill: it is not asked' test "$lost_status-$(ls ended 2>/dev/null)" = 76-
# shellcheck disable=SC2016 # for the command's shell
lose warn 'echo >began; cat /proc/self/fd/$LEASEHOLD_DEADLINE_FD; echo >ended; exit 4'
check 'lost, with warn: it goes on, and the pipe tells it' test "$lost_status-$(ls ended)" = 4-ended
check 'with words' said 'the command continues$' err

# ---- taking too long ----

check '--max-hold: it is ended, 124' gives 124 run --max-hold 300ms --cooldown 1h slow -- \
    sh -c 'trap "echo >ended; exit 0" TERM; rm -f ended; while :; do sleep 0.05; done'
check 'by TERM' test -e ended
check 'with words' said '^timeout: slow: the command took longer than --max-hold; ending it$' err
check 'a failure: it does not cool' gives 0 run -n slow -- true
check '--max-hold: one that does not end is killed' gives 124 run --max-hold 200ms \
    --kill-grace 200ms slow -- sh -c 'trap "" TERM; while :; do sleep 0.05; done'
check 'with all that it started' gives 124 --json run --max-hold 300ms --kill-grace 100ms slow -- \
    sh -c 'setsid sleep 100 & echo $! >session; sleep 100'
check 'they are dead' dead "$(cat session)"
check 'as JSON' said '^\{"outcome":"ok",.*"exit_status":124,.*"timed_out":true,' err
check '--max-hold: a short one is not touched' gives 3 run --max-hold 1m slow -- sh -c 'exit 3'
check 'once --max-hold: a failure' gives 124 once slow-id --max-hold 200ms -- sleep 100
check 'so that it can be run again' gives 124 \
    once slow-id --keep-failures --max-hold 200ms -- sleep 100
check 'unless failures are kept' gives 124 once slow-id -- true
lost_too() { # the lock is lost while it is being ended
    rm -f began
    "$program" run --ttl 3s --max-hold 100ms --kill-grace 1h slow -- \
        sh -c 'trap "echo >began" TERM; while :; do sleep 0.05; done' >out 2>err </dev/null &
    local front=$! status=0
    started+=("$front")
    await began
    "$program" break slow --reason test >/dev/null
    wait "$front" || status=$?
    printf 'status %s\n' "$status"
    [[ $status == 76 ]] && ! said 'did not end the command in time' err
}
check 'lost while it is being ended: 76, in time' lost_too

# ---- the habits of flock ----

check '-c: a string for the shell' gives 4 run k -c 'echo one | tr o 0; exit 4'
check 'its output' said '^0ne$' out
# shellcheck disable=SC2016 # for the command's shell
check '-c: with the variables' gives 0 run k -c 'test $LEASEHOLD_KEY = k && test $LEASEHOLD_TOKEN'
check '-x -e --exclusive: the default' gives 0 run -x -e --exclusive k -- true
check '-s -x: the last one counts' gives 75 run -n -x k -- "$program" acquire -n -s k
check '--nb is -n' gives 75 run --nb held -- true
check '--nonblock is -n' gives 75 run --nonblock held -- true
check '--timeout is --wait' gives 75 run --timeout 0.05 held -- true

# ---- --verbose ----

check '--verbose: acquired and released' gives 0 run -v first second -- sleep 0.1
check 'one line each' test "$(grep -cE '^leasehold: (waiting|acquired|released)' err)" = 2
line='^leasehold: acquired first second after [0-9]+ ms, token [0-9]+ [0-9]+$'
check 'after how long' said "$line" err
check 'and how long it was held' said '^leasehold: released first second after [1-9][0-9]+ ms$' err
check '--verbose: waiting' gives 75 run -v -w 300ms held -- true
check 'one line' test "$(grep -c '^leasehold: waiting for held$' err)" = 1
check 'as JSON' gives 0 run -v --json k -- true
check 'details' said '^\{"detail":"released k after [0-9]+ ms"\}$' err

# ---- stopped past the end of the lease ----

# All processes of a run are stopped, as with a laptop's lid or a paused container, and continue
# when the lease is over. The first of them that acts reports it.
family_of() { # family_of PID: it and all below it
    local child
    printf '%s\n' "$1"
    for child in $(cat "/proc/$1/task/$1/children"); do family_of "$child"; done
}
rm -f began
"$program" run --ttl 2s asleep -- sh -c 'echo >began; while :; do sleep 0.05; done' \
    >out 2>err </dev/null &
front=$!
started+=("$front")
await began
mapfile -t family < <(family_of "$front")
kill -s STOP "${family[@]}" 2>/dev/null || true
sleep 3.2
kill -s CONT "${family[@]}" 2>/dev/null || true
status=0
wait "$front" || status=$?
check 'stopped past its lease: 76' test "$status" = 76
check 'how long ago the lease ended' said 'lost: .*the lease ended [1-9][0-9]*s ago' err
check 'and that others may have held' said 'another (client|process) may have held it since' err
check 'and what tokens are for' said 'refused only where tokens are checked' err
check 'and not that it was in time' test "$(grep -c 'before the lease ended' err)" = 0

# ---- signals ----

for signal in TERM HUP USR1; do
    rm -f began
    "$program" run k -- sh -c "trap 'exit 6' $signal; echo >began; while :; do sleep 0.05; done" \
        </dev/null &
    front=$!
    started+=("$front")
    await began
    kill -s "$signal" "$front"
    status=0
    wait "$front" || status=$?
    check "$signal is passed on" test "$status" = 6
done
"$program" run held -- true </dev/null &
front=$!
started+=("$front")
sleep 0.5
kill -s TERM "$front"
status=0
wait "$front" || status=$?
check 'TERM gives a place in line up' test "$status" = 143
check 'nobody waits then' said '"waiters":0' <("$program" status held --json)
# A session without a terminal: no process there would continue the group. The group has a parent in
# the session (set -m), or the kernel would stop no process in it.
# shellcheck disable=SC2016 # for those shells
neighbour='"$0" run held -w 30s -- true & front=$!
    sleep 0.5; kill -s TSTP $front; sleep 0.5; echo $front >lonely; wait'
# shellcheck disable=SC2016
setsid bash -c 'set -m; sh -c "$1" "$0" & echo $! >group; wait' "$program" "$neighbour" </dev/null &
started+=("$!")
check 'TSTP without a terminal stops no neighbour' timeout 5 sh -c \
    'until test -s lonely; do sleep 0.05; done'
kill -s CONT -- "-$(cat group)"
await lonely
kill -s TERM "$(cat lonely)"
for signal in HUP INT; do
    token=$("$program" acquire ignored --ttl 1h)
    rm -f ran
    (
        trap '' "$signal"
        exec "$program" run ignored -- sh -c 'echo >ran'
    ) </dev/null &
    front=$!
    started+=("$front")
    sleep 0.5
    kill -s "$signal" "$front"
    sleep 0.2
    "$program" release ignored --token "$token" >/dev/null
    status=0
    wait "$front" || status=$?
    check "an ignored $signal, as under nohup, gives no place up" \
        test "$status-$(ls ran)" = 0-ran
done

finish
