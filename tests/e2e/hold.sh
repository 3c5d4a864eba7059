#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Locks for programs in any language: hold.sh PROGRAM [PAGE]. `leasehold hold` until stdin ends or a
# signal arrives, `leasehold acquire --pid` while another process lives, and the recipes of PAGE, in
# each language that is installed. Prints TAP.
set -euo pipefail

program=$(realpath "${1:?usage: hold.sh PROGRAM [PAGE]}")
page=$(realpath "${2:-/dev/null}")
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
cd "$work"
at_end() { # what a failed case left behind
    [[ ! -s $work/left ]] || xargs -r kill -KILL <"$work/left" 2>/dev/null || true
}
mkdir bin
ln -s "$program" bin/leasehold
export LEASEHOLD_STORE=${LEASEHOLD_TEST_STORE:-file:$work/locks.log}
export HOME=$work PATH=$work/bin:$PATH
brief=1500ms # renewed after 500 ms

renews() { # renews KEY: until its lease ends later than before
    local rest=99999 now
    while now=$(field "$1" expires_in_ms) && ((now <= rest)); do
        rest=$now
        sleep 0.05
    done
}
# begin WORD…: a hold with a pipe as stdin, whose end is `input`; its pid is `holder`.
begin() {
    rm -f out err
    mkfifo fifo
    leasehold hold "$@" <fifo >out 2>err &
    holder=$!
    exec {input}>fifo
    rm fifo
}
close() { exec {input}>&-; }
ends() { # ends STATUS: the hold of begin
    local status=0
    wait "$holder" || status=$?
    printf 'status %s, wanted %s\n' "$status" "$1"
    cat err
    [[ $status == "$1" ]]
}

# ---- until stdin is closed ----

until_stdin_is_closed() {
    begin plain
    await out
    [[ $(cat out) == "$(field plain token)" ]]
    is plain state held
    close
    ends 0
    is plain state free
    [[ $(wc -l <out) == 1 && ! -s err ]]
}

several_keys() {
    local status=0
    begin b a -n --meta job=7 --holder me
    await out
    [[ $(cat out) == "$(field a token)"$'\n'"$(field b token)" ]]
    is a holder me
    is b meta '{"job":"7"}'
    : | leasehold hold a free -n 2>said || status=$?
    [[ $status == 75 ]]
    grep -q '^busy: a is held by me' said
    is free state free
    close
    ends 0
    is a state free
    is b state free
}

as_json() {
    begin b a --json --status-file told
    await out
    close
    ends 0
    cmp out told
    python3 -c 'import json, sys
a, b = [json.loads(line) for line in sys.stdin]
assert a["outcome"] == b["outcome"] == "ok" and a["key"] == "a" and b["key"] == "b", (a, b)
assert int(a["token"]) > 0, a' <out
}

data_is_discarded() {
    begin data
    await out
    head -c 300000 /dev/zero >&"$input"
    is data state held
    close
    ends 0
}

it_renews() {
    begin renewed --ttl "$brief"
    await out
    renews renewed
    is renewed token "$(cat out)"
    close
    ends 0
}

a_parent_that_dies_releases() {
    python3 -c 'import subprocess, sys, time
hold = subprocess.Popen(["leasehold", "hold", "orphan"], stdin=-1, stdout=-1)
open("parent.new", "wb").write(hold.stdout.readline())
import os; os.rename("parent.new", "parent")
time.sleep(600)' &
    local parent=$!
    await parent
    is orphan state held
    kill -KILL "$parent"
    until_is orphan state free
}

a_killed_one_leaves_nothing() {
    begin killed --ttl 2s
    await out
    kill -KILL "$holder"
    ends 137
    if [[ $LEASEHOLD_STORE == file:* ]]; then
        leasehold acquire killed -n >/dev/null # at once
    else
        leasehold acquire killed -w 5s >/dev/null # when the lease ends
    fi
    close
}

no_stdin() {
    local status
    for stdin in '</dev/null' '<&-'; do
        status=0
        eval "leasehold hold nobody $stdin >out 2>err" || status=$?
        [[ $status == 0 && $(wc -l <out) == 1 ]]
        grep -q '^leasehold: stdin is closed or /dev/null, so the lock is released at once' err
        is nobody state free
    done
    leasehold hold nobody -q </dev/null >out 2>err
    [[ ! -s err ]]
    : | leasehold hold nobody >out 2>err # an empty pipe is no mistake
    [[ -s out && ! -s err ]]
}

a_token_that_cannot_be_written() {
    local status
    for stdout in '>/dev/full' '>&-' '| true'; do # a reader that has ended
        status=0
        eval "{ sleep 0.2; leasehold hold unread --cooldown 1h 2>err </dev/zero; } $stdout" ||
            status=$?
        cat err
        [[ $status == 70 ]]
        grep -q 'the token could not be written; nothing is held' err
        is unread state free
    done
}

# ---- waiting ----

stdin_closes_while_it_waits() {
    local token
    token=$(leasehold acquire queue)
    begin queue
    until_is queue waiters 1
    close
    ends 75
    is queue waiters 0
    [[ ! -s out ]]
    grep -qx 'busy: queue is held by [^ ]*; stdin was closed' err
    begin aside queue --json
    until_is queue waiters 1
    close
    ends 75
    grep -q '^{"outcome":"busy","refusal":"cancelled","key":"queue",.*; stdin was closed"' err
    begin aside queue --on-conflict retry --retries 9 --backoff 1m:1m
    sleep 0.3
    close
    ends 75
    is aside state free
    grep -qx 'busy: queue is held by [^ ]*; stdin was closed' err
    leasehold release queue --token "$token" --quiet
}

waits_for_its_turn() {
    local token
    token=$(leasehold acquire turn)
    begin turn
    until_is turn waiters 1
    leasehold release turn --token "$token" --quiet
    await out
    [[ $(cat out) -gt $token ]]
    close
    ends 0
}

# ---- signals ----

a_signal_abandons() {
    local name token
    for name in TERM HUP; do
        begin signalled --cooldown 1h
        await out
        kill -"$name" "$holder"
        ends $((128 + $(kill -l "$name")))
        is signalled state free # no cooldown
        close
    done
    token=$(leasehold acquire signalled)
    begin signalled
    until_is signalled waiters 1
    kill -TERM "$holder"
    ends 143
    is signalled waiters 0
    close
    leasehold release signalled --token "$token" --quiet
}

until_a_signal() {
    local name
    for name in TERM INT HUP; do
        rm -f out
        env --default-signal=INT leasehold hold "end-$name" --until-signal --cooldown 1h \
            </dev/null >out 2>err &
        holder=$!
        await out
        kill -"$name" "$holder"
        ends 0
        is "end-$name" state cooling
        [[ ! -s err ]]
    done
}

# While another process has the lock of the metrics file, the end takes a while.
a_second_signal_changes_nothing() {
    rm -f out
    exec {other}>m.prom.lock
    flock "$other"
    leasehold hold twice --until-signal --metrics-file m.prom </dev/null >out 2>err {other}>&- &
    holder=$!
    await out
    kill -TERM "$holder"
    until_is twice state free
    kill -TERM "$holder"
    sleep 0.1
    exec {other}>&-
    ends 0
    grep -qx 'leasehold_lock_releases_total 1' m.prom
}

# ---- losing it ----

a_break_is_a_loss() {
    begin broken --ttl "$brief" --cooldown 1h --status-file told
    await out
    leasehold break broken --reason test --quiet
    ends 76
    grep -qx 'lost: broken: broken by an operator' err
    grep -q '^{"outcome":"lost","refusal":"lost","key":"broken",' told
    is broken state free # it confirmed, and the work was not done
    close
    begin broken --ttl "$brief" --json
    await out
    leasehold break broken --reason test --now --quiet
    ends 76
    grep -q '^{"outcome":"lost","refusal":"lost","key":"broken",' err
    close
}

stopped_past_its_lease() {
    begin stopped --ttl 600ms
    await out
    kill -STOP "$holder"
    sleep 0.8
    close # also the end of stdin does not make it a success
    kill -CONT "$holder"
    ends 76
    grep -q '^lost: stopped: the lease ended' err
}

a_nested_one_is_refused() {
    local status=0
    leasehold run outer -- sh -c 'leasehold hold outer </dev/zero' 2>err || status=$?
    [[ $status == 75 ]]
    grep -q 'is held by an enclosing run' err
}

# ---- stdin is a terminal ----

on_a_terminal() {
    python3 - <<'END'
import os, pty, signal, subprocess, sys, time

def background(): # a job that does not have the terminal is not stopped by its input
    hold = subprocess.Popen(["leasehold", "hold", "tty"], stdout=-1, preexec_fn=os.setpgrp)
    assert hold.stdout.readline()
    os.write(3, b"ready\n")
    time.sleep(0.5)
    state = open(f"/proc/{hold.pid}/stat").read().rsplit(")")[1].split()[0]
    hold.terminate()
    assert hold.wait() == 143 and state != "T", (hold.returncode, state)

def foreground(): # Ctrl-D is its end
    hold = subprocess.Popen(["leasehold", "hold", "tty"], stdout=-1)
    assert hold.stdout.readline()
    os.write(3, b"ready\n")
    assert hold.wait() == 0, hold.returncode

for play, typed in (background, b"some words\n"), (foreground, b"more words\n\x04"):
    ready, ours = os.pipe()
    pid, terminal = pty.fork()
    if pid == 0:
        os.dup2(ours, 3)
        try:
            play()
        except BaseException as error:
            print(error)
            os._exit(1)
        os._exit(0)
    os.read(ready, 99)
    os.write(terminal, typed)
    status = os.waitpid(pid, 0)[1]
    if status != 0:
        sys.exit(os.read(terminal, 9999).decode())
END
}

# ---- acquire --pid ----

# keeper KEY: the pid of the background process.
keeper() { pgrep -f "^leasehold acquire $1 "; }
target() { # target: a process to hold for; its pid is `target`
    sleep 600 &
    target=$!
    printf '%s\n' "$target" >>"$work/left"
}

while_a_process_lives() {
    local token ended_ms pid
    target
    ulimit -n 2000
    exec 9>inherited 1500>inherited
    token=$(leasehold acquire lives --pid "$target" --ttl "$brief" 2>err)
    [[ $token == "$(field lives token)" && ! -s err ]]
    [[ $(field lives holder) == *":$target" ]]
    renews lives
    pid=$(keeper lives)
    ls -l "/proc/$pid/fd"
    [[ ! -e /proc/$pid/fd/9 && ! -e /proc/$pid/fd/1500 ]]
    kill "$target"
    ended_ms=$(now_ms)
    gone "$pid"
    printf 'gone after %s ms\n' "$(($(now_ms) - ended_ms))"
    (($(now_ms) - ended_ms < 1000))
    is lives state free
}

in_a_script() {
    cat >script <<'END'
set -e
leasehold acquire script/a script/b -n --pid $$ >tokens
leasehold status script/b | grep -q ^held:
END
    bash script
    [[ $(wc -l <tokens) == 2 ]]
    until_is script/a state free
    until_is script/b state free
}

released_by_its_token() {
    local token pid
    target
    token=$(leasehold acquire early --pid "$target" --on-lost kill --ttl "$brief")
    pid=$(keeper early)
    leasehold release early --token "$token" --quiet
    gone "$pid"
    kill -0 "$target" # it gave the lock back itself
    kill "$target"
}

no_such_process() {
    local zombie thread
    says 64 . leasehold acquire nothing --pid 999999999
    grep -q 'there is no process 999999999, or it has ended; no lock was acquired' said
    python3 -c 'import os, threading, time
pid = os.fork()
if pid == 0: os._exit(0)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
def work():
    open("ids.new", "w").write(f"{pid} {threading.get_native_id()}\n")
    os.rename("ids.new", "ids")
    time.sleep(600)
threading.Thread(target=work).start()' &
    printf '%s\n' "$!" >>"$work/left"
    await ids
    read -r zombie thread <ids
    for pid in "$zombie" "$thread"; do
        status=0
        leasehold acquire nothing --pid "$pid" 2>err || status=$?
        cat err
        [[ $status == 64 ]]
        grep -qE "$zombie, or it has ended|$thread is a thread" err
    done
    kill -KILL "$!"
    is nothing state free
}

lost_while_it_lives() {
    local how
    for how in warn term kill; do
        target
        leasehold acquire "lost-$how" --pid "$target" --on-lost "$how" --ttl "$brief" \
            --status-file told >/dev/null
        leasehold break "lost-$how" --reason test --quiet
        until_is "lost-$how" state free
        await told
        until grep -q '"outcome":"lost"' told; do sleep 0.02; done
        status=0
        [[ $how != warn ]] || kill -USR1 "$target"
        wait "$target" || status=$?
        printf '%s: %s\n' "$how" "$status"
        [[ $status == $((128 + $(kill -l "${how/warn/usr1}"))) ]]
    done
}

it_waits_in_the_foreground() {
    local token front status
    target
    token=$(leasehold acquire line)
    # shellcheck disable=SC2016 # for eval
    for end in 'kill -TERM $front' 'kill -KILL $front' 'kill -KILL $target'; do
        leasehold acquire line --pid "$target" >out 2>err &
        front=$!
        until_is line waiters 1
        eval "$end"
        status=0
        wait "$front" || status=$?
        printf '%s: %s\n' "$end" "$status"
        until_is line waiters 0
        [[ ! -s out ]]
    done
    [[ $status == 75 ]]
    grep -qx "busy: line is held by [^ ]*; process $target has ended" err
    leasehold release line --token "$token" --quiet
}

# deaf: a server that accepts connections and never replies; its URL is `deaf`.
deaf() {
    rm -f port
    python3 -c 'import os, socket, time
server = socket.create_server(("127.0.0.1", 0))
open("port.new", "w").write(str(server.getsockname()[1]))
os.rename("port.new", "port")
time.sleep(600)' &
    printf '%s\n' "$!" >>"$work/left"
    await port
    deaf=redis://127.0.0.1:$(<port)
}

ends_before_the_grant() {
    local front status=0
    deaf
    target
    leasehold acquire deaf --pid "$target" --store "$deaf" --json >out 2>err &
    front=$!
    sleep 0.3
    kill -KILL "$target"
    wait "$front" || status=$?
    cat out err
    [[ $status == 69 && ! -s out ]]
    grep -q '^{"outcome":"unavailable",.*"text":"process .* ended before the store replied;' err
}

a_deaf_store_delays_no_signal() {
    local front status=0 began_ms
    deaf
    leasehold run deaf --store "$deaf" --store-timeout 3s -- true >out 2>err &
    front=$!
    until grep -q '^waiting: deaf: the store does not reply$' err; do sleep 0.05; done
    began_ms=$(now_ms)
    kill -TERM "$front"
    sleep 0.05
    kill -TERM "$front" # the second one does not wait for the store
    wait "$front" || status=$?
    cat err
    printf 'status %s after %s ms\n' "$status" "$(($(now_ms) - began_ms))"
    [[ $status == 143 ]]
    (($(now_ms) - began_ms < 1000))
}

unwritten_and_busy() {
    local status=0
    target
    leasehold acquire unread --pid "$target" >/dev/full 2>err || status=$?
    [[ $status == 70 ]]
    grep -q 'the token could not be written; nothing is held' err
    is unread state free
    leasehold acquire taken --pid "$target" >/dev/null
    status=0
    leasehold acquire taken -n --pid "$target" 2>err || status=$?
    [[ $status == 75 ]]
    grep -q "^busy: taken is held by .*:$target" err
    kill -KILL "$(keeper taken)"
    if [[ $LEASEHOLD_STORE == file:* ]]; then
        until_is taken state free
    fi
    kill "$target"
}

case_of 'hold: until stdin is closed' until_stdin_is_closed
case_of 'hold: several keys, all or none' several_keys
case_of 'hold: as JSON' as_json
case_of 'hold: data on stdin is discarded' data_is_discarded
case_of 'hold: it renews' it_renews
case_of 'hold: a parent that dies releases' a_parent_that_dies_releases
case_of 'hold: a killed one leaves nothing' a_killed_one_leaves_nothing
case_of 'hold: without stdin it releases at once, and says so' no_stdin
case_of 'hold: a token that cannot be written is not held' a_token_that_cannot_be_written
case_of 'hold: the end of stdin gives the place up' stdin_closes_while_it_waits
case_of 'hold: it waits for its turn' waits_for_its_turn
case_of 'hold: a signal abandons' a_signal_abandons
case_of 'hold: until a signal' until_a_signal
case_of 'hold: a second signal changes nothing' a_second_signal_changes_nothing
case_of 'hold: a break is a loss: 76' a_break_is_a_loss
case_of 'hold: stopped past its lease: 76' stopped_past_its_lease
case_of 'hold: a nested one is refused' a_nested_one_is_refused
case_of 'hold: stdin is a terminal' on_a_terminal
case_of '--pid: while a process lives, and not a second longer' while_a_process_lives
case_of '--pid: in a script, for itself' in_a_script
case_of '--pid: released by its token' released_by_its_token
case_of '--pid: no such process, or a dead one' no_such_process
case_of '--pid: lost while it lives' lost_while_it_lives
case_of '--pid: it waits in the foreground' it_waits_in_the_foreground
case_of '--pid: not written, or busy' unwritten_and_busy
case_of 'a store that does not reply delays no signal' a_deaf_store_delays_no_signal
case_of '--pid: it ends while the store does not reply' ends_before_the_grant

# ---- the recipes ----

recipe() { # recipe LANGUAGE: its block of the page
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/{//!p}" "$page"
}

# Held with the token that the program prints, and released; and refused while it is held.
plays() { # plays FILE COMMAND…
    local file=$1 token status=0
    shift
    [[ -s $file ]]
    "$@" >out
    cat out
    token=$(sed -n 's/^working with token \([0-9]*\)$/\1/p' out)
    [[ $token -gt 0 ]]
    leasehold history nightly | grep -q "^[^ ]* held: nightly .* token $token\$"
    until_is nightly state free
    token=$(leasehold acquire nightly)
    "$@" >out 2>err || status=$?
    leasehold release nightly --token "$token" --quiet
    cat out err
    [[ $status == 75 && ! -s out ]]
    grep -q '^busy: nightly is held by' err
}

shell_plays() {
    local token
    recipe bash >recipe.sh
    bash recipe.sh >out
    grep -qx 'the script holds nightly until it ends' out
    until_is nightly state free
    token=$(leasehold acquire nightly)
    says 75 '^busy: nightly is held by' bash recipe.sh
    leasehold release nightly --token "$token" --quiet
}

# A language that is not installed has no case.
if [[ $page != /dev/null ]]; then
    case_of 'recipe: a shell script' shell_plays
    for language in python:py:python3 javascript:js:node ruby:rb:ruby go:go:go java:java:java; do
        IFS=: read -r name ending command <<<"$language"
        if ! command -v "$command" >/dev/null; then
            printf '# %s is not installed\n' "$command"
            continue
        fi
        recipe "$name" >"recipe.$ending"
        run=("$command" "recipe.$ending")
        if [[ $name == go ]]; then
            GOCACHE=${GOCACHE:-$HOME/go} go build -o recipe-go recipe.go
            run=(./recipe-go)
        elif [[ $name == java ]]; then
            command -v javac >/dev/null || { printf '# javac is not installed\n'; continue; }
            javac recipe.java
            run=(java Hold)
        fi
        case_of "recipe: $name" plays "recipe.$ending" "${run[@]}"
    done
fi

finish
