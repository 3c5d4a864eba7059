#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program's use, call by call: usage.sh BUILD. Help, manual pages and completion from the
# tables; flag before environment before config file before default; the path of the default store;
# waiting, signals, retries, watches. Prints TAP.
set -euo pipefail

build=$(realpath "${1:?usage: usage.sh BUILD}")
program=$build/leasehold
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
mkdir "$work/home" "$work/bin"
ln -s "$program" "$work/bin/leasehold"
export PATH=$work/bin:$PATH HOME=$work/home LEASEHOLD_STORE=file:$work/locks.log
cd "$work"

field() { # field KEY NAME: of the key's status
    leasehold status "$1" --json | python3 -c 'import json, sys
print(json.load(sys.stdin)[sys.argv[1]])' "$2"
}

commands() {
    leasehold help | sed -n 's/^  \([a-z][a-z0-9-]*\) .*/\1/p'
}

# ---- command line ----

each_command_has_help() {
    local name
    [[ $(commands | wc -l) -ge 13 ]]
    for name in $(commands); do
        leasehold help "$name" >by-help
        leasehold "$name" --help >by-flag
        leasehold "$name" -h >by-letter
        cmp by-help by-flag
        cmp by-help by-letter
        grep -q "^usage: leasehold $name" by-help
        grep -q -- '--store URL' by-help
        [[ $(awk 'length > 100' by-help | wc -l) == 0 ]]
    done
    leasehold help acquire | grep 'do not wait; same as --wait 0; also --nb,$'
    leasehold --help | cmp - <(leasehold help)
    leasehold -h | cmp - <(leasehold help)
}

each_command_has_a_manual_page() {
    local name page
    for name in '' $(commands); do
        page=$build/dist/leasehold${name:+-$name}.1
        [[ -s $page ]]
        leasehold help --format man ${name:+"$name"} | cmp - "$page"
        groff -man -Tascii -ww -P-cbou "$page" 2>warnings >rendered
        cat warnings
        [[ ! -s warnings ]]
        grep -q 'EXIT STATUS' rendered
    done
}

bash_completes() {
    leasehold help --format bash >completion
    cmp completion "$build/dist/leasehold"
    bash -n completion
    "$BASH" --norc <<'END'
set -eu
source ./completion
complete() { :; }
compopt() { :; }
try() { # try EXPECTED WORD...: what is offered for the last word
    local expected=$1
    shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _leasehold
    printf '%s => %s\n' "$*" "${COMPREPLY[*]}"
    [[ " ${COMPREPLY[*]} " == *" $expected "* ]]
}
try acquire leasehold ac
try --json leasehold --js
try renew leasehold --store file:/x re
try --ttl leasehold acquire --t
try --timeout leasehold run k --ti
try -e leasehold acquire -
try --until-signal leasehold hold --un
try --max-connections leasehold serve --max
try --cooldown leasehold release k --coo
try steal-stale leasehold acquire --on-conflict s
try man leasehold help --format m
try warn leasehold run k --on-lost w
try printf leasehold run k -- prin
try abandon leasehold once ab
try advance leasehold --json watermark a
try --payload-hash leasehold once begin --pay
leasehold acquire completion/key --quiet >/dev/null
try completion/key leasehold status comp
COMP_WORDS=(leasehold status --ttl) COMP_CWORD=2
_leasehold
[[ -z ${COMPREPLY[*]} ]]
END
}

zsh_completion_is_written() {
    leasehold help --format zsh >completion
    cmp completion "$build/dist/_leasehold"
    head -1 completion | grep -qx '#compdef leasehold'
    grep -qF "'1:step:(get begin advance set)'" completion
    grep -qF "'--nonblock[do not wait" completion
    [[ $(grep -c '_arguments' completion) -ge $(commands | wc -l) ]]
    if command -v zsh >/dev/null; then
        zsh -n completion
    fi
}

# In a home of its own, without the configuration of the user.
fish_completes() {
    leasehold help --format fish >completion
    cmp completion "$build/dist/leasehold.fish"
    fish --no-execute completion
    leasehold acquire 'completion/a key' --quiet >/dev/null
    cat >try.fish <<'END'
source ./completion
function try # try EXPECTED LINE: what is offered for its last word
    set -l offered (complete -C $argv[2])
    printf '%s =>\n' $argv[2]
    printf '  %s\n' $offered
    string match -qr -- '^'(string escape --style=regex -- $argv[1])'(\t|$)' $offered
    or exit 1
end
try acquire 'leasehold ac'
try --json 'leasehold --js'
try renew 'leasehold --store file:/x re'
try --ttl 'leasehold acquire --t'
try --cooldown 'leasehold release k --coo'
try --stdio 'leasehold serve --std'
try --nonblock 'leasehold acquire --non'
try steal-stale 'leasehold acquire --on-conflict s'
try man 'leasehold help --format m'
try status 'leasehold help st'
try warn 'leasehold run k --on-lost w'
try printf 'leasehold run k -- prin'
try --no-execute 'leasehold run k -- fish --no-ex' # an option of that program
try abandon 'leasehold once ab'
try advance 'leasehold --json watermark a'
try --payload-hash 'leasehold once begin --pay'
try --timeout 'leasehold run k --ti' # an alias
try -e 'leasehold acquire -'
try 'completion/a key' 'leasehold status comp'
try completion 'leasehold check --guard comp'
test -z "$(complete -C 'leasehold status --tt')"; or exit 1
test -z "$(complete -C 'leasehold bench comp')"; or exit 1
END
    mkdir fish-home
    HOME=$work/fish-home fish try.fish
}

# Every word that other tools use leads to commands of ours.
words_of_other_tools_lead_to_ours() {
    local word verb
    for word in lock unlock force-unlock who ls info get exec show wait free ps log steal extend; do
        ! leasehold "$word" k 2>err
        cat err
        grep -q "^leasehold: unknown command '$word'; write: leasehold " err
        for verb in $(grep -o 'leasehold [a-z][a-z-]*' err | cut -d' ' -f2); do
            commands | grep -qx "$verb"
        done
    done
    # shellcheck disable=SC2016 # the variable is named, not used
    ! REDIS_URL=redis://h leasehold status k --store redis:// --store-timeout 1s 2>err
    cat err
    grep -qF 'without a host this is localhost; write --store "$REDIS_URL"' err
    ! LEASEHOLD_STORE=/tmp/x leasehold status k 2>err
    grep -q "the store '/tmp/x' has no scheme; write LEASEHOLD_STORE=file:/tmp/x$" err
}

# ---- precedence ----

ttl_of() { # ttl_of KEY: what it was taken for, in seconds
    local ms
    ms=$(field "$1" expires_in_ms)
    printf '%d\n' "$(((ms + 20000) / 60000 * 60))"
}

flag_beats_environment_beats_file_beats_default() {
    export HOME=$work/authority
    mkdir -p authority/.config/leasehold
    printf 'ttl: 10m\nholder: from-file\nmeta: [a=1, b=2]\nquiet: true\n' \
        >authority/.config/leasehold/config.yaml
    leasehold acquire by-file >/dev/null
    [[ $(ttl_of by-file) == 600 && $(field by-file holder) == from-file ]]
    [[ $(field by-file meta) == "{'a': '1', 'b': '2'}" ]]
    export LEASEHOLD_TTL=20m LEASEHOLD_HOLDER=from-environment
    leasehold acquire by-environment >/dev/null
    [[ $(ttl_of by-environment) == 1200 && $(field by-environment holder) == from-environment ]]
    leasehold acquire by-flag --ttl=30m --holder from-flag >/dev/null
    [[ $(ttl_of by-flag) == 1800 && $(field by-flag holder) == from-flag ]]
    [[ -z $(leasehold renew by-flag --token "$(field by-flag token)") ]]
    unset LEASEHOLD_TTL LEASEHOLD_HOLDER
    printf 'ttl: 40m\n' >other.yaml
    leasehold acquire by-named --config other.yaml >/dev/null
    [[ $(ttl_of by-named) == 2400 && $(field by-named holder) != from-file ]]
    LEASEHOLD_CONFIG=other.yaml leasehold acquire by-variable >/dev/null
    [[ $(ttl_of by-variable) == 2400 ]]
    mkdir -p xdg/leasehold
    printf 'ttl: 50m\n' >xdg/leasehold/config.yaml
    XDG_CONFIG_HOME=$PWD/xdg leasehold acquire by-xdg >/dev/null
    [[ $(ttl_of by-xdg) == 3000 ]]
    rm -r authority/.config
    leasehold acquire by-default --ttl 1m >/dev/null
    [[ $(ttl_of by-default) == 60 ]]
}

pods_have_names() {
    POD_NAME=web-0 leasehold acquire pod-alone >/dev/null
    [[ $(field pod-alone holder) == web-0 ]]
    POD_NAME=web-0 POD_NAMESPACE=shop leasehold acquire pod-spaced >/dev/null
    [[ $(field pod-spaced holder) == shop/web-0 ]]
    LEASEHOLD_HOLDER=me POD_NAME=web-0 leasehold acquire pod-named >/dev/null
    [[ $(field pod-named holder) == me ]]
}

options_stand_anywhere() {
    local status=0
    leasehold --json acquire anywhere --ttl=1h -w5 | grep -q '"outcome":"ok"'
    leasehold -q acquire -nE 3 anywhere || status=$?
    [[ $status == 3 ]]
    leasehold acquire --ttl 1h -- --strange >/dev/null
    leasehold status --json -- --strange | grep -q '"key":"--strange","state":"held"'
}

# As a user other than root, whose store is in its home.
default_store_is_made() {
    local as=()
    if ((EUID == 0)); then
        chmod 755 .
        chown 65534:65534 home
        as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    fi
    unset LEASEHOLD_STORE
    "${as[@]}" "$program" acquire k -v >out 2>err
    cat err
    grep -q "store file:$work/home/.local/state/leasehold/locks.log" err
    [[ $(stat -c %a home/.local/state/leasehold) == 700 ]]
    mkdir state
    ((EUID != 0)) || chown 65534:65534 state
    XDG_STATE_HOME=$work/state "${as[@]}" "$program" acquire k >out
    [[ -f state/leasehold/locks.log ]]
    ! env -u HOME "${as[@]}" "$program" acquire k 2>err
    cat err
    grep -q 'no store is given and HOME is not set' err
    if ((EUID == 0)); then
        HOME=/root "${as[@]}" "$program" acquire k 2>err || [[ $? == 69 ]]
        cat err
        grep -q 'the directory of the default store /root/.local/state' err
    fi
}

# ---- waiting ----

await() { # await COMMAND...: until it succeeds, for up to 20 s
    for ((i = 0; i < 400; i++)); do
        ! "$@" || return 0
        sleep 0.05
    done
    return 1
}

has_waiters() { # has_waiters KEY N
    [[ $(field "$1" waiters) == "$2" ]]
}

waits_for_its_turn() {
    local token pid
    token=$(leasehold acquire turn --ttl 1h)
    leasehold acquire turn --quiet >second 2>second.err &
    pid=$!
    await has_waiters turn 1
    leasehold release turn --token "$token" --quiet
    wait "$pid"
    [[ $(cat second) -gt $token && ! -s second.err ]]
}

a_signal_gives_the_place_up() { # INT, TERM and HUP, of one key and of two
    local name status pid
    leasehold acquire place --ttl 1h >/dev/null
    for name in TERM INT HUP; do
        for keys in place 'aside place'; do
            # shellcheck disable=SC2086 # two keys
            env --default-signal=INT "$program" acquire $keys --quiet >out 2>err &
            pid=$!
            await has_waiters place 1
            kill -"$name" "$pid"
            status=0
            wait "$pid" || status=$?
            [[ $status == $((128 + $(kill -l "$name"))) && ! -s out && ! -s err ]]
            has_waiters place 0
            [[ $(field aside state) == free ]]
        done
    done
}

# The jitter takes off up to a quarter, so no pause is longer than the option says.
tries_again_with_pauses() {
    local status=0 began=$EPOCHREALTIME took_ms pauses
    leasehold acquire tries --ttl 1h >/dev/null
    leasehold acquire tries -v --on-conflict retry --retries 3 --backoff 50ms:100ms 2>err ||
        status=$?
    took_ms=$(((${EPOCHREALTIME//[!0-9]/} - ${began//[!0-9]/}) / 1000))
    mapfile -t pauses < <(sed -n 's/.*retrying in \([0-9]*\) ms.*/\1/p' err)
    [[ $status == 75 && ${#pauses[@]} == 3 ]]
    ((pauses[0] >= 38 && pauses[0] <= 50))
    ((pauses[1] >= 76 && pauses[1] <= 100 && pauses[2] >= 76 && pauses[2] <= 100))
    ((took_ms >= pauses[0] + pauses[1] + pauses[2]))
    status=0
    leasehold acquire tries -v --on-conflict retry --wait 60ms --backoff 50ms:50ms 2>err ||
        status=$?
    [[ $status == 75 && $(grep -c 'retrying in' err) -le 1 ]]
    leasehold acquire short --ttl 300ms >/dev/null
    leasehold acquire short --on-conflict retry --backoff 200ms:200ms >/dev/null
}

# Neither the default of other commands nor that of the environment extends it.
a_renewal_keeps_the_leases_own_length() {
    local token rest
    token=$(leasehold acquire own-length --ttl 12s)
    LEASEHOLD_TTL=1h leasehold renew own-length --token "$token" --quiet
    rest=$(field own-length expires_in_ms)
    ((rest > 0 && rest <= 12000))
    leasehold renew own-length --token "$token" --ttl 60s --quiet
    (($(field own-length expires_in_ms) > 12000))
}

stale_leases_are_taken_over_and_living_ones_not() {
    leasehold acquire stale --ttl 200ms >/dev/null
    sleep 0.3
    leasehold acquire stale --on-conflict steal-stale --ttl 1h >/dev/null
    ! leasehold acquire stale --on-conflict steal-stale 2>/dev/null
}

the_status_file_has_the_outcome() {
    leasehold acquire written --ttl 1h --status-file outcome >/dev/null
    grep -q '^{"outcome":"ok","key":"written","state":"held"' outcome
    ! leasehold acquire written -n --status-file outcome 2>/dev/null
    grep -q '^{"outcome":"busy","refusal":"contention","key":"written"' outcome
    [[ $(wc -l <outcome) == 1 && -z $(find . -name 'outcome.*') ]]
}

the_same_request_gets_the_same_grant() {
    local first
    first=$(leasehold acquire asked --request-id r1)
    [[ $(leasehold acquire asked --request-id r1 -n) == "$first" ]]
    ! leasehold acquire asked --request-id r2 -n 2>/dev/null
}

renewal_is_seen() { # renewal_is_seen TOKEN
    leasehold renew seen/first --token "$1" --ttl 1h --quiet
    grep -q '"key":"seen/first","state":"held"' stream
}

a_watch_tells_changes() {
    local pid token status=0
    token=$(leasehold acquire seen/first --ttl 1h)
    leasehold watch seen/ --json >stream &
    pid=$!
    await renewal_is_seen "$token"
    leasehold acquire other --ttl 1h >/dev/null
    leasehold break seen/first --reason gone --now --quiet
    await grep -q '"key":"seen/first","state":"free"' stream
    ! grep -q '"key":"other"' stream
    kill -TERM "$pid"
    wait "$pid" || status=$?
    [[ $status == 143 ]]
}

a_break_is_recorded() {
    local token
    token=$(leasehold acquire broken --ttl 1h)
    leasehold break broken --reason 'host is on fire' --quiet
    leasehold status broken | grep -q 'broken: host is on fire'
    ! leasehold renew broken --token "$token" 2>/dev/null
    leasehold history broken | grep -q 'host is on fire'
}

history_has_times() {
    local token
    token=$(leasehold acquire past --ttl 1h)
    sleep 1.1
    leasehold release past --token "$token" --quiet
    leasehold history past --json | python3 -c '
import datetime, json, sys
free, held = [json.loads(line) for line in sys.stdin]
assert free["state"] == "free" and held["state"] == "held"
when = lambda words: datetime.datetime.fromisoformat(words.replace("Z", "+00:00")).timestamp()
assert abs(when(held["acquired_at"]) - when(held["written_at"])) < 0.5, held
assert when(free["written_at"]) - when(held["written_at"]) > 1, (free, held)
'
}

# A holder that ended or was killed since then has held all the same, and times do not change.
history_is_what_was_written() {
    local pid i
    leasehold run gone --holder bob -- true
    leasehold run gone --holder eve --ttl 2m -- sleep 600 2>/dev/null &
    pid=$!
    until leasehold status gone | grep -q '^held: gone by eve'; do sleep 0.02; done
    kill -KILL "$pid"
    wait "$pid" || true
    until leasehold status gone | grep -q '^free'; do sleep 0.02; done
    leasehold history gone --json >first
    python3 -c '
import json, sys
past = [json.loads(line) for line in open("first")]
said = [(entry["state"], entry["holder"]) for entry in past if entry["state"] == "held"]
assert ("held", "bob") in said and ("held", "eve") in said, said
eve = [entry for entry in past if entry["holder"] == "eve"][-1]
assert eve["expires_in_ms"] == 120000 and eve["acquired_at"] == eve["written_at"], eve
'
    leasehold history gone >lines
    for ((i = 0; i < 20; i++)); do
        leasehold history gone --json | cmp - first
        leasehold history gone | cmp - lines
    done
    leasehold acquire listed --ttl 1h >/dev/null
    leasehold list listed --json | grep -o '"written_at":"[^"]*"' >first
    for ((i = 0; i < 20; i++)); do
        leasehold list listed --json | grep -o '"written_at":"[^"]*"' | cmp - first
    done
}

a_terminal_shows_the_wait() {
    leasehold acquire shown --ttl 1h --holder wfe-7 >/dev/null
    python3 - "$program" >seen <<'END'
import fcntl, os, pty, select, struct, sys, termios, time

pid, terminal = pty.fork()
if pid == 0:  # a slow machine shows longer times, and a line is cut at the terminal's width
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
    os.execv(sys.argv[1], [sys.argv[1], "acquire", "shown"])
seen, ends = b"", time.time() + 60
while time.time() < ends and b"1 of 1" not in seen:
    if select.select([terminal], [], [], 0.1)[0]:
        seen += os.read(terminal, 4096)
os.write(terminal, b"\x03")
try:
    while more := os.read(terminal, 4096):
        seen += more
except OSError:
    pass
print(seen.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 130)
END
    cat seen
    grep -q 'waiting for shown: held by wfe-7 for .* (lease ends in .*); position 1 of 1' seen
}

bench_measures_and_cleans_up() {
    leasehold bench --duration 200ms --flight 8 --json >figures
    python3 -c '
import json, sys
alone, many = [json.loads(line) for line in open("figures")]
assert alone["in_flight"] == 1 and many["in_flight"] == 8
for part in alone, many:
    assert part["pairs"] > 0
    for half in "acquire", "release":
        times = part[half]
        assert 0 < times["p50_us"] <= times["p95_us"] <= times["p99_us"] <= times["max_us"]
'
    [[ -z $(leasehold list leasehold-bench/) ]]
}

case_of 'each command has help' each_command_has_help
case_of 'each command has a manual page that renders' each_command_has_a_manual_page
case_of 'words of other tools lead to ours' words_of_other_tools_lead_to_ours
case_of 'bash completes commands, options, choices and keys' bash_completes
case_of 'the completion of zsh is written' zsh_completion_is_written
case_of 'fish completes commands, options, choices, keys and programs' fish_completes
case_of 'a flag beats the environment, that the file, that the default' \
    flag_beats_environment_beats_file_beats_default
case_of 'a pod is known by its name' pods_have_names
case_of 'options stand before and behind the command' options_stand_anywhere
case_of 'the default store is made in the home' default_store_is_made
case_of 'a waiter gets its turn' waits_for_its_turn
case_of 'a signal gives the place up' a_signal_gives_the_place_up
case_of 'a conflict is tried again with pauses' tries_again_with_pauses
case_of 'stale leases are taken over, living ones are not' \
    stale_leases_are_taken_over_and_living_ones_not
case_of 'a renewal keeps the length of the lease' a_renewal_keeps_the_leases_own_length
case_of 'the status file has the outcome' the_status_file_has_the_outcome
case_of 'a repeated request gets the same grant' the_same_request_gets_the_same_grant
case_of 'a watch tells changes' a_watch_tells_changes
case_of 'a break is recorded' a_break_is_recorded
case_of 'a history has times' history_has_times
case_of 'a history is what was written, the same in every call' history_is_what_was_written
case_of 'a terminal shows the wait' a_terminal_shows_the_wait
case_of 'bench measures, and cleans up' bench_measures_and_cleans_up
finish
