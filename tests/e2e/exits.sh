#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every exit status of the program, for people and as JSON: exits.sh PROGRAM [EVERY]. Prints TAP.
# EVERY is for a sample: one of EVERY rows.
#
# One row is one call, made twice, plain and with --json; "%" in it is a unique number each time.
# Status and outcome must match in both forms. The pattern is of the line for people: on stdout when
# the status is 0, otherwise on stderr, where nothing else may be. As JSON the same stream contains
# objects only, with the outcome and the fields that users rely on.
set -euo pipefail

program=$(realpath "$1")
every=${2:-1}
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
export LEASEHOLD_STORE=${LEASEHOLD_TEST_STORE:-file:$work/locks.log}
export HOME=$work LEASEHOLD_HOLDER=wfe-7
unset KUBECONFIG KUBERNETES_SERVICE_HOST
long=$(printf 'k%.0s' {1..513})
full=$(printf 'k%.0s' {1..512})
template=redis://h?key=ours:%s
many=$(printf 'b %.0s' {1..200})

# Fixtures of the rows: keys in every state, and their tokens.
"$program" acquire held --ttl 1h >/dev/null
kept=$("$program" acquire kept --ttl 1h)
old=$("$program" acquire changed --ttl 1h)
"$program" release changed --token "$old" --quiet
"$program" acquire changed --ttl 1h >/dev/null
"$program" release cool --token "$("$program" acquire cool)" --cooldown 1h --quiet
"$program" acquire pool --limit 2 --ttl 1h >/dev/null
"$program" acquire readers --shared --ttl 1h >/dev/null
"$program" check --guard "$work/locks.log.guard" --key fenced --token 9 --quiet
claim() { # claim ID: its token
    "$program" once begin "$@" --ttl 1h | sed -n 's/^new //p'
}
take() { "$program" acquire "$1" --ttl 1h; }
fresh() { # fresh KEY: held, and its name
    take "$1" >/dev/null
    printf '%s\n' "$1"
}
take asked >/dev/null
claim claimed >/dev/null
overdue=$(claim overdue --payload-hash ab12)
"$program" once abandon overdue --token "$overdue" --quiet
claim overdue --payload-hash ab12 >/dev/null
"$program" once finish finished --token "$(claim finished)" --result 'all well' --quiet
"$program" mark marked --quiet
"$program" once kept-failure --keep-failures -- sh -c 'exit 7' || (($? == 7))
"$program" watermark set level --to 7 --reason test --quiet
"$program" watermark set moved --to 4 --reason test --quiet
"$program" watermark advance moved --to 5 --expected 4 --request-id r1 --quiet
# shellcheck disable=SC2016 # its own words, and its parent's program
printf '#!/bin/sh\n%s break "$1" --reason test --now --quiet && exec sleep 60\n' "$program" \
    >"$work/breaks"
# shellcheck disable=SC2016
printf '#!/bin/sh\nuntil %s break "$1" --reason test --now | grep -q taken; do :; done\n' \
    "$program" >"$work/awaits"
chmod +x "$work/breaks" "$work/awaits"
printf 'not yaml: [\n' >"$work/broken.yaml"
printf '# ours\nttl: 1m\ntll: 2m\n' >"$work/typo.yaml"
printf 'apiVersion: v1\nkind: Pod\n' >"$work/pod.yaml"
printf 'this is no log of ours, and long enough to see that it is none\n' >"$work/foreign.log"

# status | outcome | pattern | call
rows=$(cat <<'ROWS'
0   | ok       | ^[0-9]+$                                     | acquire free-%
0   | ok       | ^[0-9]+$                                     | acquire sema-% --limit 3
0   | ok       | ^[0-9]+$                                     | acquire readers -s
0   | ok       | ^[0-9]+$                                     | acquire one-% two-%
0   | ok       | ^[0-9]+$                                     | acquire x-% y-% --request-id r
0   | -        | ^free: kkkk                                  | status "$full"
0   | ok       | ^renewed: kept$                              | renew kept --token $kept --ttl 1h
0   | -        | ^held: held by wfe-7 for .* \(lease ends in  | status held
0   | -        | ^free: nobody-wants-it$                      | status nobody-wants-it
0   | -        | ^held: held by wfe-7 for .* \(lease ends in  | why held
0   | -        | ^Nothing blocks the key: the next caller     | why nobody-wants-it
64  | usage    | why: missing argument; usage: leasehold why KEY$ | why
0   | -        | ^cooling: cool was done by wfe-7 .* ago; free in | status cool
0   | -        | ^held: held by wfe-7                         | list hel
0   | -        | ^running: once:claimed by wfe-7 for .* \(claim ends in | status once:claimed
0   | -        | ^done: once:finished was done by wfe-7 .*; kept for .*: all well$ | list once:fin
0   | -        | ^watermark: watermark:level is at 7, moved by .* ago$     | list watermark:
0 | ok | ^free: quiet-%: nobody holds it$ | break quiet-% --reason 'none held it'
0 | ok | ^cooling: cool: nobody holds it; .* ends the cooldown$ | break cool --reason test
0 | ok | ^held: asked: asked wfe-7 to stop; .* or until [0-9hms]+ from now; | break asked --reason x
0 | ok | ^held: readers: asked wfe-7( and [0-9]+ others?)? to stop; | break readers --reason x
0 | ok | ^free: freed-%: taken from wfe-7; only | break "$(fresh freed-%)" --now --reason x
0 | ok | ^released: mine-%$ | release mine-% --token "$(take mine-%)" --if-held
0 | ok | ^free: never-was: already gone: nobody holds | release never-was --token 5 --if-held
0 | ok | ^held: changed: held by wfe-7 with token [0-9]+, n | release changed --token $old --if-held
0 | ok | ^cooling: cool: already gone: | release cool --token 5 --if-held --cooldown 9h
0   | ok       | ^cleared: quiet-%$                           | clear quiet-%
0   | -        | ^leasehold [0-9.]+$                          | version
0   | ok       | ^[0-9]+$                                     | epoch
0   | ok       | ^[0-9]+$                                     | epoch show
64  | usage    | epoch has no step 'lift'; use show or raise$ | epoch lift
64  | usage    | --above: 'x' is not a token                  | epoch raise --above x
64  | usage    | --above is for raise$                        | epoch show --above 5
64 | usage | be 256, and the highest is 255; nothing was | epoch raise --above $((2**63-1))
64  | usage    | memory: has no epoch                         | epoch raise --store memory:
69  | unavailable | not built in: "etcd"                      | epoch raise --store etcd://h:1
75  | busy     | ^busy: held is held by wfe-7 for .* \(lease ends in .*\)$ | acquire held -n
75  | busy     | ^busy: held is held by wfe-7                 | acquire held --wait 500ms
75  | busy     | ^busy: held is held by wfe-7                 | acquire held --on-conflict fail
75  | busy     | ^busy: held is held by wfe-7               | acquire held --on-conflict steal-stale
75  | busy     | ^busy: held is held by wfe-7   | acquire held --on-conflict retry --backoff 1ms:2ms
75  | busy     | ^busy: held is held by wfe-7                 | acquire aside-% held -n
75  | busy     | ^busy: readers is held by wfe-7              | acquire readers -n
9   | busy     | ^busy: held is held by wfe-7                 | acquire held -n -E 9
73  | cooling  | ^cooling: cool was done by wfe-7 .* ago; free in | acquire cool
73  | cooling  | ^cooling: cool was done by wfe-7             | acquire cool -n
65  | mismatch | ^mismatch: pool                              | acquire pool -n --limit 3
65  | mismatch | ^mismatch: held                              | acquire held -n --limit 3
78  | stale    | ^stale: changed: .*nothing was changed$      | renew changed --token $old
78  | stale    | ^stale: changed: .*nothing was changed$      | release changed --token $old
78  | stale    | ^stale: never-was: .*nothing was changed$    | release never-was --token 5
69  | unavailable | not built in: "etcd".*etcd://u:\*\*\*@h | acquire k --store etcd://u:secret@h
69  | unavailable | ^unavailable: not built in: "etcd"           | status k --store etcd://h:1
69  | unavailable | ^unavailable: not built in: "etcd"           | why k --store etcd://h:1
69  | unavailable | ^unavailable: not built in: "postgres"       | list --store postgres://h/db
69  | unavailable | ^unavailable: not built in: "etcds"          | watch --store etcds://h:1
69  | unavailable | ^unavailable: not built in: "etcd" | release k --token 5 --store etcd://h
69  | unavailable | ^unavailable: not built in: "leasehold"      | history k --store leasehold://h:1
69  | unavailable | not built in: "etcd"                         | name k --store etcd://h
69  | unavailable | ^unavailable: file:/no/such/x.log: /no: | acquire k --store file:/no/such/x.log
69  | unavailable | ^unavailable: file:.*foreign.log:     | acquire k --store file:$work/foreign.log
64  | usage    | unknown store scheme "reddis"               | acquire k --store reddis://u:secret@h
64  | usage    | unknown command 'aquire'; the closest is 'acquire'$ | aquire k
64  | usage    | unknown command 'frobnicate'; 'leasehold help' lists the commands$ | frobnicate k
64 | usage | unknown command 'lock'; write: leasehold run KEY -- CMD | lock k
64  | usage    | from its holder: leasehold break KEY --reason TEXT              | unlock k
64  | usage    | unknown command 'force-unlock'; write: leasehold break KEY --re | force-unlock k
64  | usage    | unknown command 'who'; write: leasehold status KEY, or         | who k
64  | usage    | unknown command 'ls'; write: leasehold list \[PREFIX\]$       | ls
64  | usage    | unknown command 'info'; write: leasehold status KEY$         | info k
64  | usage    | there is no command 'ls'; write: leasehold list              | help ls
64 | usage | ^leasehold: run: '--' is missing .*; write: leasehold run x -- echo hi$ | run x echo hi
64  | usage    | write: leasehold run -n x -- ls -l 'a b' 'it'\\''s'$ | run -n x ls -l 'a b' "it's"
64  | usage    | write: leasehold run x -- grep -w foo$                        | run x grep -w foo
64  | usage    | run --store 'redis://u:\*\*\*@h' x -- ls$ | run --store redis://u:p@h x ls
64  | usage    | write: leasehold once x -- echo hi$                           | once x echo hi
64  | usage    | write: leasehold run x -- b b b .* b \.\.\.$ | run x $many
64  | usage    | missing .* write: leasehold run x -- sh -c 'a b'$ | run x sh -c 'a b'
64  | usage    | write: leasehold run x y -- /usr/bin/python3 -c 1$ | run x y /usr/bin/python3 -c 1
64  | usage    | : hold runs no command; write: leasehold run a -- echo hi$ | hold a -- echo hi
64  | usage    | run -n a b -- ls 'x y' --pid$ | hold -n a --until-signal b -- ls 'x y' --pid
64  | usage    | acquire runs no .* leasehold run a -- ls$ | acquire --pid 1 a --pid=2 -- ls
0   | ok       | ^[0-9]+$                                     | acquire -- -dash-%
0   | ok       | ^[0-9]+$                                     | acquire free-% --
64  | usage    | acquire has no option '--frob'; see 'leasehold help acquire'$ | acquire k --frob
64  | usage    | unknown option '--frob' before the command; see 'leasehold help'$ | --frob status k
64 | usage | the store '/tmp/x' has no scheme; write --store file:/tmp/x$ | status k --store /tmp/x
64 | usage | the store 'x.log' has no scheme; write --store file:x.log$ | status k --store x.log
64 | usage | the store 'memory' has no scheme; write --store memory:$ | status k --store memory
64 | usage | write --store redis://h:6379$ | status k --store h:6379
69 | unavailable | no readable kube.*; set KUBECONFIG | status k --store k8s://
64  | usage    | no command given; 'leasehold help' lists     | -q
64  | usage    | acquire has no option '--tll'; the closest is '--ttl'$ | acquire k --tll 5
64  | usage    | unknown option '--jason' .*; the closest is '--json'$ | --jason status k
64  | usage    | unknown option '-y' in '-ny'                 | acquire k -ny
64  | usage    | --json takes no value$                       | status k --json=yes
64  | usage    | acquire has no .*; the closest is '--nonblock'$ | acquire k --nonblok
64  | usage    | ^leasehold: --timeout: 'soon' is not a       | acquire k --timeout=soon
64  | usage    | --timeout needs a value: --timeout DUR$      | acquire k --timeout
64  | usage    | --ttl needs a value: --ttl DUR$              | acquire k --ttl
64  | usage    | -w needs a value: -w DUR$                    | acquire k -w
64  | usage    | --ttl: '0' is out of range: from above 0 to 24h$ | acquire k --ttl 0
64  | usage    | --ttl: '-5s' is out of range                 | acquire k --ttl -5s
64  | usage    | --ttl: '24.1h' is out of range               | renew k --token 5 --ttl=24.1h
64  | usage    | the TTL of 1 ms is below .* minimum of [0-9]+ m?s; | acquire k --ttl 1ms
64  | usage    | the TTL of 99 ms is below .* minimum of [0-9]+ m?s; | acquire k --ttl 99ms -w 5s
64  | usage    | the TTL of 9 ms is below .* minimum of 10 ms; | acquire k --ttl 9ms --store memory:
64  | usage    | the TTL of 1 ms is below .* minimum of [0-9]+ m?s; | renew k --token 5 --ttl 1ms
64  | usage    | the TTL of 1 ms is below .* minimum of [0-9]+ m?s; | once begin k --ttl 1ms
64  | usage    | --ttl: 'soon' is not a duration           | acquire k --ttl soon
64  | usage    | -w: '1d' is not a duration                | acquire k -w1d
64  | usage    | --limit: '0' is not a number from 1 to 64$   | acquire k --limit 0
64  | usage    | --priority: '101' is not a number from -100 to 100$ | acquire k --priority 101
64  | usage    | 'steal' is not one of: wait retry fail steal-stale$ | acquire k --on-conflict steal
64  | usage    | --backoff: '1s' is not a range               | acquire k --backoff 1s
64  | usage    | --backoff: '2s:1s' is not a range: FIRST is longer | acquire k --backoff 2s:1s
64  | usage    | --meta: 'bare' is not a pair; write NAME=VALUE$ | acquire k --meta bare
64  | usage    | meta must be at most 16 pairs and 1 KiB      | acquire k --meta a=1 --meta a=2
64  | usage    | give a limit or shared, not both             | acquire k --limit 2 --shared
64  | usage    | acquire: missing argument; usage: leasehold acquire | acquire
64  | usage    | a key must not be empty$                     | acquire ""
64  | usage    | key 1 is not UTF-8 or has control characters$ | acquire $'a\x01b'
64  | usage    | key 2 is not UTF-8 or has control characters$ | status k $'a\xff'
64  | usage    | has 513 bytes; the maximum is 512$           | release "$long" --token 5
64  | usage    | the key 'k' is named twice$                  | acquire k k
64 | usage | at most 16 arguments, but got 'q' too$     | acquire a b c d e f g h i j k l m n o p q
64  | usage    | why takes at most 1 argument, but got 'b' too$ | why a b
64  | usage    | version takes no argument, but got 'now'$    | version now
64  | usage    | renew needs the token                        | renew k
64  | usage    | --token: '0' is not a token                  | renew k --token 0
64 | usage | --token: '99999999999999999999' is not a token | release k --token 99999999999999999999
64  | usage    | --token: '-1' is not a token                 | release k --token -1
64  | usage    | break needs a reason                         | break k
64  | usage    | this store keeps no history                  | history k --store memory:
64  | usage    | there is no command 'aquire'                 | help aquire
64  | usage    | /no/such.yaml: No such file or directory$    | status k --config /no/such.yaml
64  | usage    | broken.yaml:[0-9]+: invalid YAML             | status k --config $work/broken.yaml
64 | usage | yaml:3: unknown key 'tll'; the closest is 'ttl'$ | status k --config $work/typo.yaml
70  | failed   | cannot write to stdout                       | version >/dev/full
70  | failed   | cannot write to stdout                       | status held >&-
70  | failed   | the token could not be written; nothing is held | acquire unread-% >/dev/full
70  | failed   | the token could not be written; nothing is held | acquire unread-% >&-
70  | failed   | cannot write the status file /no/f           | acquire unread-% --status-file /no/f
0   | ok       | ^ran$                                        | run run-% -- echo ran
3   | ok       | ^ran$                                       | run run-% -- sh -c 'echo ran; exit 3'
143 | ok       | ^ran$                                      | run run-% -- sh -c 'echo ran; kill $$'
75  | busy     | ^busy: held is held by wfe-7                 | run held -n -- echo ran
75  | busy     | ^busy: held is held by wfe-7                 | run two-% held -w 500ms -- echo ran
9   | busy     | ^busy: held is held by wfe-7                 | run held -nE9 -- echo ran
73  | cooling  | ^cooling: cool was done by wfe-7             | run cool -- echo ran
65  | mismatch | ^mismatch: pool                              | run pool -n --limit 3 -- echo ran
69  | unavailable | not built in: "etcd"                      | run k --store etcd://h -- echo ran
76  | lost     | lost: lost-%: .*                       | run lost-% --ttl 3s -- $work/breaks lost-%
0   | ok       | ^ran$                                 | run run-% -xec 'echo "$0" ran | cut -c9-'
124 | ok       | ^ran$                      | run slow-% --max-hold 300ms -c 'echo ran; sleep 60'
64  | usage    | give -c STRING or -- CMD, not both$          | run k -c true -- true
64  | usage    | -c needs a value: -c STRING$                 | run k -c
64  | usage    | -c: '' is empty$                             | run k -c ''
64  | usage    | --max-hold: '0' is out of range: from above 0 | run k --max-hold 0 -- true
75  | busy     | ^busy: held is held by wfe-7                 | run held -s --exclusive --nb -- true
75  | busy     | ^busy: held is held by wfe-7                 | acquire held --nonblock -x
75  | busy     | ^busy: held is held by wfe-7                 | acquire held --timeout 300ms
75  | busy     | ^busy: held is held by wfe-7                 | hold held -en --until-signal
64  | usage    | --ttl: run needs at least 2s                 | run k --ttl 1s -- true
64  | usage    | --on-lost: 'cry' is not one of: term kill warn$ | run k --on-lost cry -- true
64  | usage    | no command to run; usage: leasehold run KEY... | run k
64  | usage    | a key must not be empty$                     | run "" -- echo ran
126 | usage    | /etc/passwd: Permission denied; no lock      | run free-key -- /etc/passwd
127 | usage    | /no/such: not found; no lock was acquired$   | run free-key -- /no/such
0   | ok       | ^[0-9]+$                                     | hold held-% < <(:)
0   | ok       | ^[0-9]+$                                     | hold two-% one-% --ttl 1m -n < <(:)
0   | ok       | ^[0-9]+$                                     | hold readers -sq < <(:)
75  | busy     | ^busy: held is held by wfe-7                 | hold held -n --until-signal
75  | busy     | ^busy: held is held by wfe-7                 | hold held -w 300ms --until-signal
9   | busy     | ^busy: held is held by wfe-7         | hold aside-% held -nE9 --until-signal
73  | cooling  | ^cooling: cool was done by wfe-7             | hold cool --until-signal
65  | mismatch | ^mismatch: pool                              | hold pool -n --limit 3 < <(:)
69  | unavailable | not built in: "etcd"                      | hold k --store etcd://h < <(:)
76 | lost | ^lost: gone-%: the gr | hold gone-% --ttl 1s --until-signal < <($work/awaits gone-%)
70  | failed   | the token could not be written; nothing is held | hold unread-% < <(:) >/dev/full
70  | failed   | the token could not be written; nothing is held | hold unread-% < <(:) >&-
64  | usage    | hold: missing argument; usage: leasehold hold KEY...$ | hold
64  | usage    | the key 'k' is named twice$                  | hold k k --until-signal
64  | usage    | --until-signal takes no value$               | hold k --until-signal=yes
0   | ok       | ^[0-9]+$                                     | acquire own-% own2-% --pid $$
75  | busy     | ^busy: held is held by wfe-7                 | acquire held -n --pid $$
73  | cooling  | ^cooling: cool was done by wfe-7             | acquire cool --pid $$
69  | unavailable | not built in: "etcd"                      | acquire k --pid $$ --store etcd://h
70  | failed   | the token could not be written; nothing  | acquire unread-% --pid $$ >/dev/full
64  | usage    | there is no process 999999999, or it has ended; no | acquire k --pid 999999999
64  | usage    | --pid: '0' is not a number from 1 to         | acquire k --pid 0
64  | usage    | --on-lost: 'cry' is not one of: term kill warn$ | acquire k --pid $$ --on-lost cry
69  | unavailable | let in: /no: cannot stat         | check --key k --token 5 --guard /no/such/g
69  | unavailable | foreign.log: this is not a   | check --key k --token 5 --guard $work/foreign.log
64  | usage    | check needs both: leasehold check --key KEY --token N$ | check --token 5
64  | usage    | check needs both                             | check --key k -- true
64  | usage    | --token: '5e3' is not a token                | check --key k --token 5e3
64  | usage    | check takes no argument, but got 'k'$        | check k --token 5
64  | usage    | say what to run behind --$                   | check --key k --token 5 --
64  | usage    | has 513 bytes; the maximum is 512$           | check --key "$long" --token 5
64 | usage | is no file that a guard .*give --guard PATH | check --key k --token 5 --store memory:
64  | usage    | doctor takes no argument, but got 'now'$     | doctor now
0   | ok       | ^new [0-9]+$                                 | once begin id-%
0 | ok | ^new [0-9]+$ | once begin id-% -w 1s --payload-hash AB
75  | busy     | ^running wfe-7$                              | once begin claimed
75  | busy     | ^running wfe-7$                              | once begin claimed -w 300ms
75  | busy     | ^running wfe-7$                          | once begin overdue --payload-hash AB12
73  | done     | ^done all well$                              | once begin finished
73  | done     | ^done$                                       | once begin marked --wait forever
65 | mismatch | ^mismatch: once:overdue: .*another payload | once begin overdue --payload-hash ab13
69  | unavailable | not built in: "etcd"                      | once begin id --store etcd://h
70  | failed   | the token could not be written; nothing is claimed | once begin unread-% >/dev/full
70  | failed   | the token could not be written; nothing is claimed | once begin unread-% >&-
0   | ok       | ^finished: due-%$ | once finish due-% --token "$(claim due-%)" --keep 1h --result x
0 | ok | ^finished: due-%$ | once finish due-% --token "$(claim due-%)" --watermark w --until 5
0   | ok       | ^abandoned: due-%$              | once abandon due-% --token "$(claim due-%)"
78  | stale    | ^stale: once:overdue: .*nothing was changed$ | once finish overdue --token $overdue
78 | stale | ^stale: once:overdue: .*nothing was changed$ | once abandon overdue --token $overdue
78  | stale    | ^stale: once:finished: .*nothing was changed$ | once abandon finished --token 5
0   | -        | ^new$                                        | once status nobody-began-it
0   | -        | ^running wfe-7$                              | once status claimed
0   | -        | ^done all well$                              | once status finished
0   | -        | ^running wfe-7$                              | seen claimed
0   | -        | ^done all well$                              | seen finished
1   | -        | ^new$                                        | seen nobody-began-it
69 | unavailable | ^unavailable: file:.*foreign.log: | seen id --store file:$work/foreign.log
0   | ok       | ^marked: mark-%$                             | mark mark-% --keep 1h
0   | ok       | ^marked: mark-%$                             | mark mark-% --watermark w --until 5
1   | busy     | ^running wfe-7$                              | mark claimed
1   | done     | ^done$                                       | mark marked
69  | unavailable | not built in: "etcd"                      | mark id --store etcd://h:1
0   | ok       | ^ran$                                        | once cmd-% -- echo ran
0   | ok       | ^ran$ | once cmd-% --ttl 1m --keep 1h -w 1s --payload-hash ab -- echo ran
0   | ok       | ^ran$ | once cmd-% --watermark w --until 5 --keep-failures -- echo ran
3   | ok       | ^ran$ | once cmd-% -- sh -c 'echo ran; exit 3'
3   | ok       | ^ran$ | once cmd-% --keep-failures -- sh -c 'echo ran; exit 3'
143 | ok       | ^ran$ | once cmd-% -- sh -c 'echo ran; kill $$'
0 | done | ^done: finished was done by .* ago, with exit status 0; | once finished -- echo no
0   | done     | ^done: marked was done by wfe-7              | once marked -w 1s -- echo ran
7 | done | ^failed: kept-failure was done by wfe-7 .* exit status 7 | once kept-failure -- true
75  | busy     | ^busy: once:claimed is held by wfe-7         | once claimed -- echo ran
75  | busy     | ^busy: once:claimed is held by wfe-7         | once claimed -w 300ms -- echo ran
65  | mismatch | ^mismatch: once:overdue: .*another payload | once overdue --payload-hash 1 -- true
0   | ok       | ^ran$ | once cmd-% -c 'echo "$0" ran | cut -c9-'
124 | ok       | ^ran$ | once cmd-% --max-hold 300ms -c 'echo ran; sleep 60'
64  | usage    | give -c STRING or -- CMD, not both$          | once k -c true -- true
64  | usage    | no command to run; usage: leasehold once ID  | once begin k -c true
76  | lost     | lost: once:lost-%: .* | once lost-% --ttl 3s -- $work/breaks once:lost-%
69  | unavailable | not built in: "etcd" | once k --store etcd://h:1 -- echo ran
70 | failed | succeeded, but its output could not be written   | once full-% -- echo ran >/dev/full
0   | -        | ^failed$                                     | once status kept-failure
0   | -        | ^failed$                                     | seen kept-failure
73  | done     | ^failed$                                     | once begin kept-failure
64  | usage    | --ttl: once needs at least 2s                | once k --ttl 1s -- true
64  | usage    | no command to run; usage: leasehold once ID  | once k --
64  | usage    | no command to run; usage: leasehold once ID  | once begin k -- true
64  | usage    | --token and --result are for the steps       | once k --token 5 -- true
64  | usage    | --token and --result are for the steps       | once k --result x -- true
64  | usage    | --keep-failures is for leasehold once ID --  | once begin k --keep-failures
64  | usage    | a key must not be empty$                     | once "" -- echo ran
64  | usage    | the name must be 1 to 500 bytes$             | once "$full" -- echo ran
64  | usage    | --payload-hash: give at most 64 hex          | once k --payload-hash x -- echo ran
126 | usage    | /etc/passwd: Permission denied; no lock      | once k -- /etc/passwd
127 | usage    | /no/such: not found; no lock was acquired$   | once k -- /no/such
64  | usage    | no ID; usage: leasehold once begin.finish.abandon.status ID, or | once begin
64  | usage    | no step or no ID; usage: leasehold once      | once bgein id
64  | usage    | once: missing argument; usage: leasehold once | once
64  | usage    | once finish needs the token: leasehold once finish ID --token N$ | once finish id
64  | usage    | once abandon needs the token                 | once abandon id
64  | usage    | once begin takes no --token$                 | once begin id --token 5
64  | usage    | once status takes no --payload-hash$         | once status id --payload-hash ab
64  | usage    | --until are for once finish$                 | once begin id --result x
64  | usage    | --until must be given together$              | mark id --watermark w
64  | usage    | --until must be given together$              | once finish id --token 5 --until 5
64 | usage | --payload-hash: give at most 64 hexadecimal digits$ | once begin id --payload-hash xy
64  | usage    | the result must be at most 1024 bytes | once finish id --token 5 --result $'a\nb'
64  | usage    | --keep: '0' is out of range                  | mark id --keep 0
64  | usage    | a key must not be empty$                     | once begin ""
64  | usage    | the name must be 1 to 500 bytes$             | mark "$full"
0   | -        | ^7$                                          | watermark get level
0   | -        | ^-$                                          | watermark get nowhere-yet
0   | -        | ^7 [0-9]{13}$                                | watermark begin level
0   | -        | ^- -$                                  | watermark begin level --store memory:
0   | ok       | ^advanced: level-%$        | watermark advance level-% --to 5 --expected -
0   | ok       | ^set: level-%$                | watermark set level-% --to 5 --reason test
0 | ok | ^advanced: at-%$ | watermark advance at-% --to 2026-11-15T10:00:00+00:00 --expected -
0 | ok | ^advanced: at-%$ | watermark advance at-% --to 2026-11-15T12:00:00+02:00 --expected -
64 | usage | end with Z or an offset such | watermark set at --to 2026-11-15T10:00 --reason x
78  | stale    | ^stale: watermark:level: .*expected$ | watermark advance level --to 9 --expected 6
78  | stale    | ^stale: watermark:level: .*expected$ | watermark advance level --to 7 --expected 6
0   | ok       | ^advanced: level$          | watermark advance level --to 7 --expected 7.0
0   | ok       | ^advanced: moved$ | watermark advance moved --to 5 --expected 4 --request-id r1
78  | stale    | ^stale: watermark:moved: .*expected$ | watermark advance moved --to 5 --expected 4
78 | stale | moved: .*expected$ | watermark advance moved --to 5 --expected 4 --request-id r2
78 | stale | moved: .*expected$ | watermark advance moved --to 5 --expected 3 --request-id r1
64  | usage    | --request-id is for advance$ | watermark get level --request-id r1
64 | usage | --request-id: '' is empty$ | watermark advance l --to 9 --expected 7 --request-id ""
78  | stale    | ^stale: watermark:level: .*forward$ | watermark advance level --to 6 --expected 7
65  | mismatch | ^mismatch: watermark:level:          | watermark advance level --to x --expected 7
69 | unavailable | not built in: "etcd" | watermark get level --store etcd://h
64  | usage    | watermark has no step 'gte'; use get         | watermark gte level
64  | usage    | watermark: missing argument; usage: leasehold | watermark get
64 | usage | watermark advance NAME --to VALUE --expected VALUE$ | watermark advance l --to 5
64 | usage | usage: leasehold watermark set NAME --to VALUE --reason TEXT$ | watermark set l --to 5
64  | usage    | usage: leasehold watermark get NAME$         | watermark get level --to 5
64  | usage    | --to: '-' means no position$        | watermark advance level --to - --expected 7
64  | usage    | --overlap: '0' is out of range               | watermark begin level --overlap 0
64  | usage    | k8s-run --target KEY -f object.yaml$         | k8s-run -f $work/typo.yaml
64  | usage    | k8s-run --target KEY -f object.yaml$         | k8s-run --target k
64 | usage | needs a Kubernetes store: give --store k8s:// | k8s-run --target k -f $work/typo.yaml
64 | usage | such.yaml: No such file | k8s-run --target k -f /no/such.yaml --store k8s://n
64 | usage | no apiVersion, or no kind | k8s-run --target k -f $work/typo.yaml --store k8s://n
64 | usage | line [0-9]+: this is no YAML | k8s-run --target k -f $work/broken.yaml --store k8s://n
64  | usage    | --target: '' is empty$                       | k8s-run --target ""
69 | unavailable | no readable kubeconfig | k8s-run --target k -f $work/pod.yaml --store k8s://n
64  | usage    | claim --repo OWNER/REPO --label L -- CMD...$ | claim --repo a/b -- true
64  | usage    | claim --repo OWNER/REPO --label L -- CMD...$ | claim --repo a/b --label l
64  | usage    | claim needs a repository: give --repo        | claim --label l -- true
64 | usage | --repo is OWNER/REPO | claim --repo a/b?show=off --label l -- true
64 | usage | --repo and --store are | claim --repo a/b --store github://a/c --label l -- true
64  | usage    | --order: 'size' is not one of: number priority | claim --order size
64  | usage    | --max: '1001' is not a number from 0 to 1000  | claim --max 1001
127 | usage | such: not found; no lock was acquired$ | claim --repo a/b --label l -- /no/such
64  | usage    | nothing to serve on; give --listen, --http,   | serve --listen off --unix off
64  | usage    | serve takes no argument, but got '7379'$     | serve 7379
64  | usage    | --max-connections: '0' is not a number from 1 | serve --max-connections 0
64  | usage    | --metrics-prefix must have | serve --metrics-prefix 7x
64  | usage    | serve has no option '--port'                 | serve --port 7379
64  | usage    | --stdio takes no value$                      | serve --stdio=yes
69  | unavailable | not built in: "etcd"                      | serve --stdio --store etcd://h
64  | usage    | 127.0.0.1:99999                              | serve --listen 127.0.0.1:99999
70 | failed | /no/such/sock.*: cannot listen: No such file | serve --listen off --unix /no/such/sock
64  | usage    | --tls-key needs --tls-cert                   | serve --tls-key k
64  | usage    | --tls-client-ca needs --tls-cert             | serve --tls-client-ca k
64  | usage    | excludes --stdio and --listen off            | serve --stdio --tls-cert k
70 | failed | /no/such.pem: No such file | serve --listen 0 --unix off --tls-cert /no/such.pem
126 | usage    | /etc/passwd: Permission denied; nothing    | check --key k --token 5 -- /etc/passwd
127 | usage    | /no/such: not found; nothing was changed$    | check --key k --token 5 -- /no/such
ROWS
)
rows_of_file=$(cat <<'ROWS'
0   | -        | held: changed by wfe-7                       | history changed
0   | -        | ^changed   20.*: held by wfe-7, token        | why changed
0   | -        | ^some/key$                                   | name some/key
0   | -        | ^removed: 0 of 0 that nobody needed$         | collect
0   | ok       | ^current: fence-%, token 5$                  | check --key fence-% --token 5
0   | -        | ^ok: the log is whole; keys:                 | doctor
78 | stale | ^stale: fenced has seen token 9, .*nothing was changed$ | check --key fenced --token 8
78  | stale    | ^stale: fenced has seen token 9,   | check --key fenced --token 8 -- touch $work/no
ROWS
)
rows_of_redis=$(cat <<'ROWS'
64  | usage    | this store keeps no history                  | history changed
0   | -        | ^changed   unknown: this store keeps no      | why changed
0   | -        | ^lock:some/key$                              | name some/key
0   | -        | ^dedup:some/id$                              | name once:some/id
0   | -        | ^ours:some/key$                     | name some/key --store $template
64 | usage | option "colour" is unknown | name k --store redis://h?colour=red
64 | usage | option "keey" is unknown; the closest is "key"; | name k --store redis://h?keey=1
64 | usage | option "colour" is unknown | status k --store redis://h?colour=red
64 | usage | option "colour" is unknown | status k --store k8s://n?colour=red
64 | usage | option "colour" is unknown | collect --store k8s://n?colour=red
69 | unavailable | 127.0.0.1:1: no connection | list --store redis://:secret@127.0.0.1:1
64  | usage    | is no file that a guard .*give --guard PATH  | check --key k --token 5
0 | ok | ^current: fence-%, token 5$ | check --key fence-% --token 5 --guard $work/locks.log.guard
78 | stale | ^stale: fenced has | check --key fenced --token 8 --guard $work/locks.log.guard
ROWS
)
if [[ $LEASEHOLD_STORE == file:* ]]; then
    rows+=$'\n'$rows_of_file
else
    rows+=$'\n'$rows_of_redis
fi

# Objects only, the expected outcome, and the documented fields.
judge_json() { # judge_json OUTCOME
    python3 -c '
import json, sys
promised = "key state holder token acquired_at renewed_at expires_in_ms takeover_in_ms " \
    "cooling_for_ms waiters meta store".split()
refusals = {"busy": ("contention", "timeout", "running"), "cooling": ("cooling",),
            "done": ("duplicate",), "lost": ("lost",),
            "stale": ("not_held", "moved", "stale_token"),
            "unavailable": ("api_error",), "denied": ("api_error",), "usage": ("usage",),
            "mismatch": ("mismatch", "payload_mismatch"), "failed": ("internal_error",)}
effects = {"break": ("asked", "freed", "none"), "release": ("released", "gone", "taken")}
wanted, command = sys.argv[1:]
objects = [json.loads(line) for line in sys.stdin.read().splitlines()]
assert objects, "nothing was said"
for found in objects:
    if wanted == "-":
        assert "outcome" not in found, found
    else:
        assert found["outcome"] == wanted, found
    if wanted not in ("-", "ok"):
        assert found["refusal"] in refusals[wanted], found
    else:
        assert "refusal" not in found, found
    if command in ("break", "release") and wanted == "ok":
        assert found["effect"] in effects[command], found
    if command == "once --" and wanted in ("ok", "lost", "done", "failed"):
        assert {"id", "state", "token", "exit_status", "result", "store"} <= set(found), found
        assert found["ran"] is (wanted != "done"), found
    elif command in ("once", "seen", "mark") and wanted in ("-", "ok", "busy", "done"):
        assert {"id", "state", "store"} <= set(found), found
        if wanted != "ok":
            promised = ["id", "state", "token", "holder", "since", "expires_in_ms", "kept_for_ms",
                        "exit_status", "result", "store"]
            fields = [name for name in found if name not in ("outcome", "refusal")]
            assert fields == promised, found
        else:
            assert found["state"] in ("new", "done"), found
        if wanted in ("busy", "done"):
            assert found["state"] in {"busy": ["running"], "done": ["done", "failed"]}[wanted]
            assert found["holder"] and found["since"], found
    elif command == "watermark" and wanted in ("-", "ok"):
        assert {"name", "value", "store"} <= set(found), found
    elif command == "run" and wanted in ("ok", "lost"):
        assert {"key", "token", "exit_status", "held_ms", "released", "store"} <= set(found), found
    elif wanted not in ("-", "ok"):
        assert {"outcome", "key", "text", "retry_after_ms"} <= set(found), found
        assert "secret" not in json.dumps(found), found
        if wanted in ("busy", "cooling"):
            assert found["key"] and found["retry_after_ms"] > 0 and found["holder"], found
    elif command == "epoch":
        assert list(found) == ["outcome", "epoch", "revision", "kept", "store"], found
    elif command not in ("name", "version", "check", "doctor", "collect"):
        keys = [name for name in found if name not in ("outcome", "effect")]
        assert keys[: len(promised)] == promised, found
        assert found["state"] in ("free", "held", "cooling", "offered"), found
        assert found["token"] is None or isinstance(found["token"], str), found
' "$1" "$2"
}

call() { # call FORM: makes the row's call, with its answers in out and err
    local words=$row_call
    number_of_call=$((number_of_call + 1))
    words=${words//%/$number_of_call}
    row_now=${row_pattern//%/$number_of_call}
    got=0
    eval "\"\$program\" $1 $words" >"$work/out" 2>"$work/err" </dev/null || got=$?
}

judge() { # judge FORM: is the last call as its row wants it?
    local said=$work/out other=$work/err command=${row_call%% *} behind='( --( |$)| -[a-z]*c )'
    if ((row_status != 0)); then
        said=$work/err other=$work/out
    fi
    # Messages of run and once are always on stderr: stdout is the command's.
    if [[ $row_call =~ ^(run|once)" ".*$behind && $row_outcome == ok ]]; then
        said=$work/out other=$work/err
        [[ $1 == plain ]] || said=$work/err other=/dev/null
    fi
    # That --max-hold ended it.
    ((row_status != 124)) || [[ $1 == json ]] || other=/dev/null
    # hold has printed its token by then.
    [[ $row_call != hold* || $row_outcome != lost ]] || other=/dev/null
    if [[ $row_call =~ ^once" ".*$behind ]]; then
        [[ $row_outcome != done ]] || said=$work/err other=/dev/null
        command='once --'
    # The state of an id is a result, whatever the status.
    elif [[ $row_call =~ ^(once|seen|mark)" " && $row_outcome =~ ^(-|ok|busy|done)$ ]]; then
        said=$work/out other=$work/err
    fi
    [[ $got == "$row_status" && ! -s $other ]] || return 1
    case $1 in
    plain) grep -qE -- "$row_now" "$said" && ! grep -q secret "$said" ;;
    json) judge_json "$row_outcome" "$command" <"$said" ;;
    esac
}

number_of_call=0
number_of_row=0
while IFS='|' read -r row_status row_outcome row_pattern row_call; do
    number_of_row=$((number_of_row + 1))
    ((number_of_row % every == 0)) || continue
    read -r row_status <<<"$row_status"
    read -r row_outcome <<<"$row_outcome"
    row_pattern=$(sed 's/^ *//; s/ *$//' <<<"$row_pattern")
    row_call=$(sed 's/^ *//; s/ *$//' <<<"$row_call")
    for form in plain json; do
        good=true
        call "$([[ $form == plain ]] || printf -- --json)"
        judge $form 2>"$work/judge" || good=false
        $good || {
            printf 'exit %s, wanted %s, pattern %s\n' "$got" "$row_status" "$row_now"
            sed 's/^/out: /' "$work/out"
            sed 's/^/err: /' "$work/err"
            tail -1 "$work/judge"
        } >"$work/said"
        tell "$good" "$row_status: $row_call, $form"
    done
done <<<"$rows"

# A token that could not be printed was released.
unread() { "$program" list unread | grep . || "$program" list once:unread | grep ^running; }
verdict 'what could not be told is not held' eval '! unread >"$work/said"'
finish
