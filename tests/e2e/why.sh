#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# leasehold why, in every state of a key: why.sh PROGRAM. The processes that it names are the real
# ones, its commands are run as they are printed, and its lines fit the terminal. On a Redis server
# it says what can be known without the help of the store. Prints TAP.
set -euo pipefail

program=$(realpath "${1:?usage: why.sh PROGRAM}")
scripts=$(realpath "$(dirname "$0")/../../scripts")
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
# shellcheck source=scripts/redis-kit.sh
. "$scripts/redis-kit.sh"
at_end() { redis_end; }
mkdir "$work/bin" "$work/home"
ln -s "$program" "$work/bin/leasehold"
export PATH=$work/bin:$PATH HOME=$work/home LEASEHOLD_STORE=file:$work/locks.log
host=$(hostname)
cd "$work"
redis_begin "$work/redis"
redis_start one
redis=redis://127.0.0.1:${redis_port[one]}

fails() { ! "$@"; }
explains() { # explains KEY LINE…: each pattern matches a line of it, in this order
    local key=$1 at=0 line
    shift
    leasehold why "$key" | tee text
    for pattern in "$@"; do
        line=$(tail -n +$((at + 1)) text | grep -nE -m 1 -- "$pattern" | cut -d: -f1) ||
            { printf 'no line matches: %s\n' "$pattern" && return 1; }
        at=$((at + line))
    done
}
field() { # field KEY PROGRAM: of jq, on the object of the key
    leasehold why "$1" --json | jq -er "$2"
}
command_of() { # command_of KEY CHOICE: what is to be typed
    field "$1" ".choices[] | select(.choice == \"$2\").command"
}
until_held() { # until_held KEY
    until leasehold status "$1" | grep -q '^held'; do sleep 0.02; done
}
until_waited() { # until_waited KEY N
    until leasehold status "$1" | grep -q "$2 waiting"; do sleep 0.02; done
}

held_by_a_run() {
    local run waiter command
    # The next renewal, at which it notices the break, is far away.
    leasehold run nightly --holder ann --meta run=7 --ttl 5m -- sleep 600 &
    run=$!
    until_held nightly
    leasehold run nightly --holder ben -- true &
    waiter=$!
    until_waited nightly 1
    command=$(pgrep -x sleep -P "$(pgrep -P "$run")")
    explains nightly '^held: nightly by ann for .*, token [0-9]+, 1 waiting$' '^holder    ann$' \
        '^since     20[0-9-]+T[0-9:]+Z, [0-9]+s ago; token [0-9]+$' \
        "^process   on this host, $host$" "^          $run +leasehold run nightly --holder ann" \
        '^          [0-9]+ +the same$' "^          $command +sleep 600$" \
        '^alive     yes: the kernel keeps the lease' \
        '^ends      in [0-9ms]+, unless the holder renews it' '^meta      run=7$' \
        '^waiting   1\. ben, for [0-9]+s$' \
        '^changed   20[0-9-]+T[0-9:]+Z, [0-9]+s ago: held by ann, .*1 waiting' \
        '^          20.*: held by ann, token' \
        '^what can be done:$' '^    leasehold watch nightly$' \
        "^    leasehold break nightly --reason 'TEXT'$" \
        "^    leasehold break nightly --now --reason 'TEXT'$"
    [[ $(field nightly '.held_by[0].liveness') == alive ]]
    [[ $(field nightly '[.held_by[0].processes[].pid] | join(" ")') == *"$run"*"$command" ]]
    [[ $(field nightly '.queue[0].holder') == ben && $(field nightly '.waiters') == 1 ]]
    kill -STOP "$command"
    until grep -q '^State:.T' "/proc/$command/status"; do sleep 0.02; done
    explains nightly "^          $command +\(stopped\) sleep 600$" \
        '^alive     yes, but stopped, as marked above; another process of it renews' \
        '^ends      in [0-9ms]+, unless the holder renews it' 'No risk: the work goes on' \
        "^    kill -CONT $command$"
    eval "$(command_of nightly continue)"
    fails command_of nightly continue
    eval "$(command_of nightly break)"
    explains nightly '^ends .* at the latest: an operator asked the holder to stop: TEXT' \
        '^ .*asked to stop$'
    fails command_of nightly break
    eval "$(command_of nightly break-now)"
    wait "$waiter"
    kill "$run" # it would notice the break at its next renewal
    wait "$run" || true
    explains nightly '^free: nightly$' '^waiting   nobody$' '^changed   .*: free$' \
        '^Nothing blocks the key: the next caller gets it\.$'
}

# Only a process that renews keeps the lease: of a run, the supervisor.
stop() { # stop PID…
    local pid
    kill -STOP "$@"
    for pid; do until grep -q '^State:.T' "/proc/$pid/status"; do sleep 0.02; done; done
}
stopped_holder_does_not_renew() {
    local hold run supervisor
    leasehold hold steps --ttl 1h --until-signal >out &
    hold=$!
    until_held steps
    stop "$hold"
    explains steps "^          $hold +\(stopped\) leasehold hold" \
        '^alive     yes, but stopped, as marked above: it does not renew, and loses' \
        '^ends      in [0-9a-z]+: its holder is stopped' '^    leasehold watch steps$' \
        'it does not renew it\.$' "^    kill -CONT $hold$"
    fails grep 'No risk: the work goes on' text
    eval "$(command_of steps continue)"
    explains steps '^alive     yes: the kernel' 'No risk: the work goes on'
    kill "$hold"
    wait "$hold" || true
    for LEASEHOLD_STORE in "file:$work/locks.log" "$redis"; do
        leasehold run stalls --ttl 1h -- sleep 600 &
        run=$!
        until_held stalls
        supervisor=$(pgrep -P "$run")
        stop "$run" # as Ctrl-Z does
        explains stalls "^          $run +\(stopped\)" '^alive     yes, but stopped, .* another'
        stop "$supervisor"
        explains stalls '^alive     yes, but stopped, .*: it does not renew'
        kill -CONT "$run"
        [[ $LEASEHOLD_STORE == redis:* ]] ||
            explains stalls '^alive     yes, but stopped, .*: it does not renew'
        kill -CONT "$supervisor"
        kill "$run"
        wait "$run" || true
    done
}

held_without_a_process() {
    local token
    token=$(leasehold acquire manual --holder eve --ttl 1h)
    leasehold renew manual --token "$token" --quiet
    explains manual '^held: manual by eve' '^alive     no process keeps it' \
        '^ends      in .* unless it is renewed by its token' \
        '^changed .*: held by eve, .*; renewals: 1$' \
        "^    leasehold release manual --token $token$"
    fails grep '^process' text
    [[ $(field manual '.held_by[0].liveness') == no-process ]]
    eval "$(command_of manual release)"
    explains manual '^free: manual$'
}

commands_are_quoted() {
    local key store=file:$work/locks.log
    for key in "it's; a \$(false) \"key\"" --now '*'; do
        leasehold acquire --ttl 1h -- "$key" >/dev/null
        leasehold why --json -- "$key" | jq -er '.choices[-1].command' | tee typed
        eval "$(<typed)"
        leasehold status -- "$key" | grep '^free'
    done
    leasehold acquire named --ttl 1h --quiet >/dev/null
    (unset LEASEHOLD_STORE && leasehold why named --store "$store" | tee text)
    grep -x "    leasehold --store $store break named --now --reason 'TEXT'" text
}

every_other_state() {
    local token i
    token=$(leasehold acquire cool --holder eve)
    leasehold release cool --token "$token" --cooldown 1h --quiet
    explains cool '^cooling: cool was done by eve .*; free in 1h' \
        '^changed .*: done, and cooling, by' '^    leasehold clear cool$' 'End the cooldown'
    eval "$(command_of cool clear)"
    explains cool '^free: cool'
    leasehold once invoice/6 --holder eve -- echo sent
    explains once:invoice/6 '^done: once:invoice/6 was done by eve .*: sent$' \
        '^changed .*: done by eve' '^    leasehold clear once:invoice/6$' 'runs the command again'
    eval "$(command_of once:invoice/6 clear)"
    [[ $(leasehold once status invoice/6) == new ]]
    leasehold watermark set orders --to 120 --reason test --quiet
    explains watermark:orders '^watermark: watermark:orders is at 120, moved by' \
        '^changed .*: moved to 120 by' \
        "^    leasehold watermark set orders --to VALUE --reason 'TEXT'$" 'never handled'
    for i in 1 2 3; do leasehold acquire pool --limit 3 --ttl 1h --holder "w$i" --quiet >out; done
    explains pool '^held: pool by w1 and 2 others' '^holder    w1' '^holder    w2' '^holder    w3'
    [[ $(field pool '[.held_by[].holder] | join(" ")') == 'w1 w2 w3' ]]
}

# The first holder must not speak for the others.
several_holders() {
    local run
    leasehold acquire crowd --limit 3 --ttl 1h --holder w1 --quiet >out
    leasehold acquire crowd --limit 3 --ttl 1h --holder w2 --quiet >out
    explains crowd '^    leasehold release crowd --token' 'Release it for w1.* ' \
        'Refuse further renewals' '^ .*All 2 holders lose it\.' \
        ' --now --reason' '^ .*2 holders lose it\.'
    leasehold run crowd --limit 3 --holder w3 -- sleep 600 &
    run=$!
    until leasehold status crowd | grep -q '^held: .* 2 others'; do sleep 0.02; done
    explains crowd 'Ask the holder to stop' ' --now --reason' 'It may still work'
    fails command_of crowd release
    field crowd '.choices[].risk' | grep -c 'All 3 holders lose it' | grep -x 2
    stop "$(pgrep -P "$run")"
    field crowd '.choices[] | select(.choice == "continue").command' | grep '^kill -CONT'
    kill -CONT "$(pgrep -P "$run")"
    kill "$run"
    wait "$run" || true
}

# Where the store does not detect dead processes, the name of the holder may.
known_by_name() {
    local run supervisor
    export LEASEHOLD_STORE=$redis
    leasehold run named -- sleep 600 &
    run=$!
    until_held named
    explains named "^process   on this host, $host$" "^          $run +leasehold run named" \
        '^alive     yes: the process runs$' '^changed   unknown: this store keeps no history$'
    leasehold why named --json | jq -e '.changes == null'
    supervisor=$(pgrep -P "$run")
    # The supervisor first: the kernel continues a stopped one when its parent dies.
    kill -STOP "$run"
    kill -KILL "$supervisor" "$run"
    wait "$run" 2>/dev/null || true
    explains named "^          $run$" \
        '^alive     unknown: this host has no such process now, but the lease was renewed' \
        '^ends      in [0-9]+s, unless the holder renews it'
    command_of named break
    [[ $(field named '.held_by[0].liveness') == unknown ]]
    leasehold run away --holder web1.example:4711 -- sleep 600 &
    until_held away
    explains away '^process   on the host web1.example$' '^          4711$' \
        '^alive     this cannot be known from here$'
    [[ $(field away '.held_by[0] | .host + .liveness') == web1.exampleunknown ]]
    kill "$!"
    wait "$!" || true
    leasehold run pod --holder shop/web-0 -- sleep 600 &
    until_held pod
    explains pod "^process   unknown: the holder's name contains no host and process$"
    kill "$!"
    wait "$!" || true
}

# Half a TTL without a renewal, and no process: only then is the holder gone. One that lives, or may
# live, in another slot keeps the break on offer.
wait_until_gone() {
    local run
    export LEASEHOLD_STORE=$redis
    for limit in '' '--limit 2'; do
        # shellcheck disable=SC2086 # no word, or two
        leasehold run "left$limit" $limit --ttl 12s -- sleep 600 2>/dev/null &
        run=$!
        until_held "left$limit"
        kill -STOP "$run"
        kill -KILL "$(pgrep -P "$run")" "$run"
    done
    leasehold acquire 'left--limit 2' --limit 2 --ttl 1h --holder eve --quiet
    sleep 6.5
    leasehold why left
    leasehold why left --json >left.json
    leasehold why 'left--limit 2' --json >mixed.json
}
gone_without_renewals() {
    cat left.txt left.json mixed.json
    grep '^alive     no: this host has no such process now, and the lease was not' left.txt
    grep -E '^ends      in [0-9]+s: its holder does not renew it any more' left.txt
    grep "The holder's process is gone, but processes" left.txt
    jq -e '.held_by[0].liveness == "gone"' left.json
    jq -e '[.choices[].choice] == ["wait", "break-now"]' left.json
    jq -e '[.held_by[].liveness] == ["gone", "no-process"]' mixed.json
    jq -e '[.choices[].choice] == ["wait", "break", "break-now"]' mixed.json
}

# /proc hides the processes of others if it is mounted with hidepid; an empty folder hides one.
hides() { unshare --user --map-root-user --mount "$@"; }
hidden_process() {
    local run
    export LEASEHOLD_STORE=$redis
    leasehold run hidden --ttl 1h -- sleep 600 &
    run=$!
    mkdir -p empty
    until_held hidden
    hides sh -c "mount --bind empty /proc/$run && leasehold why hidden" | tee text
    grep '^alive     a process with this number exists, but it is not visible to this user' text
    kill "$run"
    wait "$run" || true
}

# A lock of another program: nothing of it is known but its value and its end.
foreign_lock() {
    export LEASEHOLD_STORE=$redis?key=lock:%s
    redis_cli one set lock:theirs 'id-of-py' NX PX 60000
    explains theirs '^held: theirs by a program other than leasehold$' \
        '^holder    a program other than leasehold, which wrote id-of-py$' \
        '^since     unknown; token unknown$' '^alive     this cannot be known from here$' \
        '^ends      in [0-9a-z]+, unless the program extends it$' '^    leasehold watch theirs$' \
        'Stop that program, or delete its value lock:theirs in Redis'
    fails grep -E 'leasehold (release|break)|1024|TTL' text
    [[ $(field theirs '[.choices[].choice] | join(" ")') == 'wait stop' ]]
    leasehold why theirs --json | jq -e '.held_by[0] | .foreign and .token == null'
    says 77 '^denied: ' leasehold break theirs --reason test
    says 77 '^denied: ' leasehold break theirs --now --reason test
    redis_cli one set lock:theirs 'id-of-py'
    explains theirs '^ends      in 24h0m or later, or never$'
    redis_cli one del lock:theirs
    leasehold acquire theirs --request-id 'stranger 5' --quiet
    leasehold why theirs --json | jq -e '.held_by[0].foreign == false'
}

# In a new pid namespace numbers are given in order, so the number of a later process is known. A
# user who may not make one leaves the case out.
alone=(unshare --pid --fork --mount-proc)
((EUID == 0)) || alone=(unshare --user --map-root-user --pid --fork --mount-proc)
# shellcheck disable=SC2016 # for the inner shell
number_of_a_later_process() {
    LEASEHOLD_STORE=$redis "${alone[@]}" bash -c '
        leasehold run later --ttl 12s --holder "$(hostname):99" -- sleep 600 2>/dev/null &
        run=$!
        until leasehold status later | grep -q "^held"; do sleep 0.02; done
        sleep 2.2
        while ((${last:-0} < 99)); do sleep 600 & last=$!; done
        ((last == 99))
        leasehold why later
        supervisor=$(pgrep -P "$run")
        kill -STOP "$run"
        kill -KILL "$supervisor" "$run"
        sleep 6.5
        leasehold why later'
}
later_process_is_another() {
    cat later.txt
    local after='the process with this number started after the lock was acquired'
    tr -s ' \n' ' ' <later.txt >later.line
    grep "alive unknown: $after, but the lease was renewed .* it runs in a container" later.line
    grep "alive no: $after, and the lease was not renewed for" later.line
}

lines_fit() { # lines_fit COLUMNS: all but the commands, which are whole
    python3 - "$1" >screen <<'END'
import fcntl, os, pty, struct, sys, termios

columns = int(sys.argv[1])
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.execvp("leasehold", ["leasehold", "why", "wide"])
seen = b""
try:
    while more := os.read(terminal, 4096):
        seen += more
except OSError:
    pass
os.waitpid(pid, 0)
lines = seen.decode().replace("\r", "").splitlines()
print("\n".join(lines))
words = [line for line in lines if not line.startswith("    leasehold")]
assert all(len(line) <= columns for line in words), max(words, key=len)
assert max(len(line) for line in words) > columns * 3 / 4, "it uses the width"
END
    cat screen
}
wide_and_narrow() {
    leasehold run wide --holder 'Änne of the batch host with a rather long name' -- sleep 600 &
    until_held wide
    lines_fit 80
    lines_fit 140
    lines_fit 60
    kill "$!"
    wait "$!" || true
}

errors_are_plain() {
    says 69 "^unavailable: .*not a leasehold log" leasehold why k --store file:/etc/passwd
    says 64 'this is no key|must not be empty' leasehold why ''
    says 69 '^unavailable: ' leasehold why k --store redis://127.0.0.1:1 --store-timeout 1s
}

later=
if "${alone[@]}" true 2>/dev/null; then
    number_of_a_later_process >later.txt 2>&1 & # it takes a while
    later=$!
fi
wait_until_gone >left.txt 2>&1 &
left=$!
case_of 'a run: its processes, waiters and changes, and the commands work' held_by_a_run
case_of 'a stopped holder does not renew; a stopped run does' stopped_holder_does_not_renew
case_of 'a lock without a process can be released' held_without_a_process
case_of 'keys and stores are quoted in commands' commands_are_quoted
case_of 'cooling keys, ids, watermarks and semaphores are explained' every_other_state
case_of 'choices are about all holders' several_holders
case_of 'a process is known by the name of its holder' known_by_name
if hides true 2>/dev/null; then
    case_of 'a hidden process is not gone' hidden_process
fi
case_of 'a lock of another program is neither released nor broken' foreign_lock
case_of 'lines fit the terminal' wide_and_narrow
case_of 'errors are plain' errors_are_plain
wait "$left" || true
case_of 'a holder is gone after half a TTL without a renewal' gone_without_renewals
if [[ -n $later ]]; then
    wait "$later" || true
    case_of 'the number of a later process is no sign of life' later_process_is_another
fi
finish
