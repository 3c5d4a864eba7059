#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What people read: list, status, watch and the waiting line, on terminals of 80 and 140 columns and
# without a terminal: tables.sh PROGRAM. Screens are compared as text. Prints TAP.
set -euo pipefail

program=$(realpath "${1:?usage: tables.sh PROGRAM}")
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
mkdir "$work/bin"
ln -s "$program" "$work/bin/leasehold"
export PATH=$work/bin:$PATH HOME=$work LEASEHOLD_STORE=file:$work/locks.log
export TERM=xterm LC_ALL=C.UTF-8
unset NO_COLOR
cd "$work"

# screen COLUMNS PATTERN COMMAND…: runs it in a terminal and prints what it wrote. When PATTERN has
# been written, Ctrl-C ends it; "" waits for its end.
cat >screen.py <<'END'
import fcntl, os, pty, re, select, signal, struct, sys, termios, time

columns, pattern, command = int(sys.argv[1]), sys.argv[2].encode(), sys.argv[3:]
pid, terminal = pty.fork()
if pid == 0:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a background shell ignores it
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.execvp(command[0], command)
seen, ends, sent = b"", time.time() + 20, False
try:
    while time.time() < ends:
        if select.select([terminal], [], [], 0.05)[0]:
            seen += os.read(terminal, 4096)
        if pattern and not sent and re.search(pattern, seen):
            os.write(terminal, b"\x03")
            sent = True
except OSError:
    pass
if time.time() >= ends:
    os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
sys.stdout.write(seen.decode().replace("\r\n", "\n"))
END
screen() { python3 screen.py "$@"; }
plain() { sed 's/\x1b\[[0-9;]*m//g'; }
# Durations become a T, in tables in the same place, so that screens can be compared.
timeless() {
    python3 -c 'import re, sys
span = r"(?<![\w/:-])(?:\d+h)?(?:\d+m)?(?:\d+s)?\b(?<=[hms])"
text = re.sub(r"\b(for|in) " + span, r"\1 T", sys.stdin.read())
print(re.sub(r" +" + span, lambda m: " " * (len(m[0]) - 1) + "T", text), end="")'
}
same() { # same NAME, with the expected text on stdin
    diff -u /dev/stdin "$1"
}

# ---- the keys ----

long=production/deployment/payment-api/eu-west-1/blue
leasehold acquire $long --ttl 55m --holder wfe-7.example --meta commit=3f2a --meta run=7 >token
leasehold acquire pool --limit 3 --ttl 55m --holder db-1 --meta run=8 >/dev/null
leasehold acquire pool --limit 3 --ttl 50m --holder db-2 >/dev/null
leasehold acquire 東京/支払いサービス/本番環境/デプロイ --ttl 55m --holder ホスト >/dev/null
leasehold release cool --token "$(leasehold acquire cool --holder wfe-9)" --cooldown 45m --quiet
leasehold acquire asked --ttl 55m --holder wfe-1 >/dev/null
leasehold break asked --reason 'host is gone' --quiet
POD_NAME=ops leasehold watermark set orders --to 120 --reason test --quiet
waiters=()
leasehold acquire $long --holder low --quiet >/dev/null &
waiters+=($!)
started+=($!)
has_waiters() { # has_waiters N
    for ((i = 0; i < 400; i++)); do
        ! leasehold status $long --json | grep -q "\"waiters\":$1," || return 0
        sleep 0.02
    done
    return 1
}
has_waiters 1
leasehold acquire $long --holder high --priority 5 --quiet >/dev/null &
started+=($!)
has_waiters 2

# ---- list ----

list_is_a_table() {
    screen 80 '' leasehold list | plain | timeless >narrow
    cat narrow
    same narrow <<'END'
KEY                               STATE     HOLDER         FOR  ENDS-IN  WAITERS
asked                             broken    wfe-1            T        T        0
cool                              cooling   wfe-9            T        T        0
pool                              held 2/3  db-1 +1          T        T        0
production/depl…i/eu-west-1/blue  held      wfe-7.example    T        T        2
watermark:orders                  at 120    ops              T        -        0
東京/支払いサー…番環境/デプロイ   held      ホスト           T        T        0
END
    screen 140 '' leasehold list p --sort waiters | plain | timeless >wide
    cat wide
    same wide <<'END'
KEY                                               STATE     HOLDER         FOR  ENDS-IN  WAITERS
production/deployment/payment-api/eu-west-1/blue  held      wfe-7.example    T        T        2
pool                                              held 2/3  db-1 +1          T        T        0
END
}

colors_can_be_switched_off() {
    local red=$'\x1b[31mbroken'
    screen 80 '' leasehold list asked | grep -qF "$red"
    ! screen 80 '' env NO_COLOR=1 leasehold list | grep -q $'\x1b'
    ! screen 80 '' env TERM=dumb leasehold list | grep -q $'\x1b'
    screen 80 '' env NO_COLOR= leasehold list asked | grep -qF "$red"
}

# Scripts read this: one line for each key, unchanged, without a header.
list_is_lines_without_a_terminal() {
    leasehold list --sort key >lines
    cat lines
    ! grep -q $'\x1b' lines
    [[ $(sed 's/^[a-z]*: \([^ ]*\) .*/\1/' lines) == "$(printf '%s\n' asked cool pool $long \
        watermark:orders 東京/支払いサービス/本番環境/デプロイ)" ]]
    grep -qE "^held: $long by wfe-7.example for [0-9]+s \(lease ends in 5[0-9]m[0-9]+s\), token \
$(<token), 2 waiting$" lines
    [[ $(leasehold list | wc -l) == 6 ]]
    [[ $(leasehold list --state cooling --names) == cool ]]
    [[ $(leasehold list --state broken --names) == asked ]]
    [[ $(leasehold list --state held --names | wc -l) == 4 ]]
    [[ $(leasehold list --sort ends-in --names | head -1) == cool ]]
    [[ $(leasehold list --sort waiters --json | head -1) == '{"key":"'$long'",'* ]]
    says 64 "--state: 'hold' is not one of: any held" leasehold list --state hold
    [[ -z $(leasehold list nothing/ 2>&1) ]]
    screen 80 '' leasehold list nothing/ | grep -qx 'no key is held, cooling or waited for'
}

# ---- status ----

status_shows_everybody() {
    screen 80 '' leasehold status $long pool | plain | timeless |
        sed -E 's/[0-9]{4,}/N/; s/ +T ago/ T ago/; s/ +SINCE/ SINCE/' >narrow
    cat narrow
    same narrow <<'END'
held: product…t-1/blue by wfe-7.example for T (lease ends in T), token N, 2 waiting
  meta: commit=3f2a, run=7
  POSITION  WAITER  PRIORITY SINCE  MODE
         1  high           5 T ago  exclusive
         2  low            0 T ago  exclusive
held: pool by db-1 and 1 other for T (lease ends in T), token N
  HOLDER  FOR  ENDS-IN  TOKEN  MODE  META
  db-1      T        T   N  slot  run=8
  db-2      T        T   N  slot
END
    screen 140 '' leasehold status $long | timeless | grep -q \
        "^held: $long by wfe-7.example for T (lease ends in T), token [0-9]*, 2 waiting$"
    [[ $(leasehold status pool | wc -l) == 1 ]]
    leasehold status $long -v 2>/dev/null >verbose
    cat verbose
    grep -q '^  meta: commit=3f2a, run=7$' verbose
    grep -q '^  record: {"leasehold":[0-9]*,"key":"'$long'",.*"places":\[' verbose
}

status_as_json_has_lists() {
    leasehold status $long pool --json >objects
    python3 - <<'END'
import json
lock, pool = [json.loads(line) for line in open("objects")]
assert [one["holder"] for one in lock["queue"]] == ["high", "low"], lock
assert [(one["position"], one["priority"]) for one in lock["queue"]] == [(1, 5), (2, 0)], lock
assert all(0 <= one["waiting_for_ms"] < 60000 for one in lock["queue"]), lock
assert lock["waiters"] == 2 and lock["held_by"][0]["meta"] == {"commit": "3f2a", "run": "7"}
assert [one["holder"] for one in pool["held_by"]] == ["db-1", "db-2"], pool
assert pool["held_by"][0]["token"] == pool["token"] and pool["holders"] == 2, pool
assert all(0 < one["expires_in_ms"] <= one["ttl_ms"] for one in pool["held_by"]), pool
END
    leasehold status $long -v --json 2>/dev/null | python3 -c '
import json, sys
assert json.load(sys.stdin)["record"]["places"][0]["holder"] == "low"'
}

# ---- waiting ----

# At 80 columns the end of the lease and the position stay: the key is shortened, then the wording.
last_line() { tr '\r' '\n' | sed 's/\x1b\[K//; s/\^C//' | grep . | timeless | tail -1; }
waiting_line_fits() {
    screen 80 '/3' leasehold acquire $long | last_line >narrow
    cat narrow
    grep -qx "waiting for produc[^ ]*…[^ ]*/blue: wfe-7.example for T, ends in T, position 3/3" \
        narrow
    screen 140 'of 3' leasehold acquire $long | last_line >wide
    cat wide
    same wide <<<"waiting for $long: held by wfe-7.example for T (lease ends in T); position 3 of 3"
}

# After a second one line, and no second one within the minute; with --quiet none, also for busy.
a_log_shows_the_wait() {
    local status=0 other=0
    leasehold acquire $long --quiet --wait 1300ms >out 2>quiet &
    leasehold acquire $long --wait 1600ms >>out 2>log || status=$?
    wait $! || other=$?
    cat log
    [[ $status == 75 && $other == 75 && ! -s out && ! -s quiet ]]
    timeless <log | grep -qxE "waiting: $long is held by wfe-7.example for T \
\(lease ends in T\); position [34] of [34]"
    [[ $(grep -c ^waiting: log) == 1 && $(grep -c ^busy: log) == 1 && $(wc -l <log) == 2 ]]
    leasehold acquire $long -n --json 2>log || true
    [[ $(wc -l <log) == 1 ]]
    says 73 '^exit 73$' leasehold -q acquire cool
    [[ $(wc -l <"$work/said") == 1 ]]
}

# ---- watch ----

# A lease that ends is told, with its time; one that was released just before its end never.
watch_tells_ends() {
    local pid i
    leasehold acquire w/before --ttl 1s --holder early >/dev/null
    leasehold watch w/ >stream &
    pid=$!
    for ((i = 0; i < 200; i++)); do # until it watches
        leasehold acquire w/first --ttl 1h --request-id r >/dev/null
        leasehold renew w/first --token "$(leasehold acquire w/first --request-id r)" --quiet
        ! grep -q w/first stream || break
    done
    leasehold acquire w/ends --ttl 700ms --holder wfe-1 >/dev/null
    for i in 1 2 3 4 5 6; do
        {
            token=$(leasehold acquire w/race-$i --ttl 900ms)
            sleep "0.$((700 + 20 * i))"
            leasehold release w/race-$i --token "$token" 2>&1 | sed 's/:.*//' >race-$i
        } &
    done
    leasehold release w/cool --token "$(leasehold acquire w/cool)" --cooldown 600ms --quiet
    wait %{2..7} 2>/dev/null || true
    for i in 1 2 3 4 5 6; do await race-$i; done
    for ((i = 0; i < 200; i++)); do
        [[ $(grep -c 'w/ends\|w/before\|w/cool' stream) -lt 6 ]] || break
        sleep 0.02
    done
    sleep 0.6
    kill "$pid"
    wait "$pid" || true
    cat stream
    local at='^[0-9-]{10}T[0-9:.]{12}Z'
    grep -qE "$at expired: w/ends: the lease of wfe-1 ended, token [0-9]+$" stream
    grep -qE "$at expired: w/before: the lease of early ended" stream
    grep -qE "$at held: w/ends by wfe-1 for" stream
    grep -qE "$at free: w/cool: the cooldown ended$" stream
    for i in 1 2 3 4 5 6; do
        case $(<race-$i) in
        released) ! grep "expired: w/race-$i:" stream ;;
        stale) grep -q "expired: w/race-$i:" stream ;;
        *) false ;;
        esac
    done
}

watch_on_a_terminal() {
    local name=v/deployment/of/a/service/with/a/very/long/name/in/eu-west-1
    export LEASEHOLD_TTL=500ms
    (
        for ((i = 0; i < 300; i++)); do
            leasehold acquire $name --on-conflict retry --backoff 50ms:50ms --quiet || true
        done
    ) >/dev/null &
    started+=($!)
    screen 80 '(?s)held.*expired[^\n]*\n' leasehold watch v/ | plain | timeless |
        sed -E 's/[0-9]{4,}/N/; s/by [^ ]*:N/by HOST/; s/of [^ ]*:N/of HOST/' >narrow
    kill $!
    cat narrow
    grep -qE '^[0-9:]{8} held: v/dep.*….*-1 by .* \(lease ends in T\), token' narrow
    grep -qE '^[0-9:]{8} expired: v/depl.*….*west-1: the lease of .* ended' narrow
    [[ $(awk '{ gsub(/\^C/, "") } length > 84' narrow | wc -l) == 0 ]]
}

watch_as_json_names_the_event() {
    local pid
    leasehold acquire j/k --ttl 800ms --holder one >/dev/null
    leasehold watch j/ --json >ends &
    pid=$!
    await ends
    kill "$pid"
    wait "$pid" || true
    python3 - <<'END'
import json
end = json.loads(open("ends").readline())
assert (end["event"], end["state"], end["ended_holder"]) == ("expired", "free", "one"), end
assert end["at"].endswith("Z") and int(end["ended_token"]) > 0, end
END
}

case_of 'list is a sorted table, whose key is shortened at 80 columns' list_is_a_table
case_of 'NO_COLOR and a dumb terminal get no colours' colors_can_be_switched_off
case_of 'without a terminal list prints the lines that scripts read' \
    list_is_lines_without_a_terminal
case_of 'status shows meta, every holder and every waiter' status_shows_everybody
case_of 'status as JSON has all of them, too' status_as_json_has_lists
case_of 'the waiting line keeps lease end and position at 80 columns' waiting_line_fits
case_of 'a log shows the wait, and --quiet prints nothing' a_log_shows_the_wait
case_of 'watch tells each end, and none that did not happen' watch_tells_ends
case_of 'watch on a terminal fits into 80 columns' watch_on_a_terminal
case_of 'watch as JSON names the event' watch_as_json_names_the_event
finish
