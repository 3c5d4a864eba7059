#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Errors between leasehold and a Redis server, provoked: redis.sh BUILD. Each has its exit status
# and a text with the cause and the remedy; no secret is ever shown. Prints TAP.
set -euo pipefail

build=$(realpath "$1")
program=$build/leasehold
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/redis-kit.sh
. scripts/redis-kit.sh
# shellcheck source=tests/e2e/kit.sh
. tests/e2e/kit.sh
running=
at_end() {
    [[ -z $running ]] || kill "$running" 2>/dev/null || true
    redis_end
}
redis_begin "$work"
export HOME=$work
secret=a-secret-of-the-test

# expect WHAT STATUS PATTERN URL COMMAND…: run for people and as JSON. Most of them take as long as
# a store timeout, so the next ones start meanwhile, until settle.
begun=()
expect() {
    local folder=$work/case.${#begun[@]} url=$4 how
    mkdir "$folder"
    printf '%s\n' "$1" >"$folder/what"
    printf '%s\n' "$2" >"$folder/wanted"
    printf '%s\n' "$3" >"$folder/pattern"
    shift 4
    for how in --verbose --json; do
        (
            status=0
            LEASEHOLD_STORE=$url "$program" "$how" "$@" >"$folder/said$how" 2>&1 </dev/null ||
                status=$?
            printf '%s\n' "$status" >"$folder/status$how"
        ) &
        begun+=($!)
    done
    folders+=("$folder")
}
folders=()

settle() {
    local folder how fine pattern wanted
    for how in "${begun[@]}"; do wait "$how" || true; done
    for folder in "${folders[@]}"; do
        fine=true
        pattern=$(<"$folder/pattern") wanted=$(<"$folder/wanted")
        for how in --verbose --json; do
            [[ $(<"$folder/status$how") == "$wanted" ]] || fine=false
            grep -qE -- "$pattern" "$folder/said$how" || fine=false
            ! grep -qF "$secret" "$folder/said$how" || fine=false
        done
        verdict "$(<"$folder/what"): $wanted, $pattern" $fine
        $fine || head "$folder"/s* | sed 's/^/# /'
        rm -rf "$folder"
    done
    begun=() folders=()
}
try=(acquire job --no-wait)

# ---- no server ----

nobody=$(redis_free_port)
expect 'nobody listens' 69 "127\.0\.0\.1:$nobody: no connection; is a server running there" \
    "redis://127.0.0.1:$nobody" "${try[@]}"
expect 'no such name' 69 'no-such-host\.invalid' redis://no-such-host.invalid "${try[@]}"
expect 'the URL makes no sense' 64 'protocol' 'redis://127.0.0.1?protocol=9' "${try[@]}"

# ---- identity ----

read -ra rules < <(scripts/redis-user.sh)
redis_users guarded "$secret" "${rules[@]}"
redis_start guarded
address=127.0.0.1:${redis_port[guarded]}
printf '%s\n' "$secret" >"$work/password"
printf 'not-%s\n' "$secret" >"$work/wrong"
by_file="redis://leasehold@$address?password-file=$work/password"
expect 'the right password' 0 . "$by_file" status job
expect 'a wrong password' 77 'password' "redis://leasehold@$address?password-file=$work/wrong" \
    "${try[@]}"
expect 'a wrong password in the URL' 77 'password' "redis://leasehold:not-$secret@$address" \
    "${try[@]}"
expect 'no such user' 77 'password' "redis://nobody@$address?password-file=$work/password" \
    "${try[@]}"
expect 'no password at all' 77 'password' "redis://$address" "${try[@]}"
expect 'no such password file' 77 'none' "redis://leasehold@$address?password-file=$work/none" \
    "${try[@]}"
settle
redis_cli guarded acl setuser leasehold -evalsha -eval >/dev/null
expect 'a command is not allowed' 77 'evalsha|ACL' "$by_file" "${try[@]}"
settle
redis_cli guarded acl setuser leasehold +evalsha +eval resetkeys '~other:*' >/dev/null
expect 'a key is not allowed' 77 'key|ACL' "$by_file" "${try[@]}"
settle
redis_cli guarded acl setuser leasehold resetkeys '~*' resetchannels >/dev/null
expect 'a channel is not allowed' 77 'channel|ACL' "$by_file" "${try[@]}"
settle
verdict 'and what was refused was not written' redis_says guarded 0 exists lock:job
redis_cli guarded acl setuser leasehold '&*' >/dev/null

# Visible to others on this host: the arguments of the command and of its processes.
LEASEHOLD_STORE="redis://leasehold:$secret@$address" "$program" --verbose run job -- sleep 2 \
    >"$work/said" 2>&1 &
running=$!
redis_until 'it holds' redis_says guarded 1 exists lock:job
# Compared by the shell: the arguments of grep would contain it, too.
shown() { { cat /proc/[0-9]*/cmdline 2>/dev/null || true; } | tr '\0' ' '; }
verdict 'no secret in the words of any process' eval '[[ $(shown) != *"$secret"* ]]'
wait "$running"
running=
verdict 'nor in what it says' eval '[[ $(<"$work/said") != *"$secret"* ]]'

# A password that is changed while a lock is held: the file is read again.
LEASEHOLD_STORE=$by_file "$program" run job --ttl 2s -- sleep 4 >"$work/said" 2>&1 &
running=$!
redis_until 'it holds' redis_says guarded 1 exists lock:job
printf 'new-%s\n' "$secret" >"$work/password.new"
redis_cli guarded acl setuser leasehold resetpass ">new-$secret" >/dev/null
mv "$work/password.new" "$work/password"
redis_cli guarded client kill type normal skipme yes >/dev/null
status=0
wait "$running" || status=$?
running=
verdict 'a lock is kept over a new password and a cut connection' test "$status" = 0
redis_kill guarded

# ---- certificates ----

redis_certificates "$work/certificates"
redis_certificates "$work/others"
redis_start_tls tls "$work/certificates"
ours="cert=$work/certificates/client.crt&tls-key=$work/certificates/client.key"
ca="ca=$work/certificates/ca.crt"
port=${redis_port[tls]}
expect 'the right certificates' 0 . "rediss://localhost:$port?$ca&$ours" status job
expect 'another authority' 69 'certificate' \
    "rediss://localhost:$port?ca=$work/others/ca.crt&$ours" "${try[@]}"
expect 'another name' 69 'certificate|name' "rediss://localhost:$port?$ca&$ours&name=other.test" \
    "${try[@]}"
expect 'no client certificate' 69 'a client certificate' "rediss://localhost:$port?$ca" "${try[@]}"
expect 'without TLS' 69 "127\.0\.0\.1:$port" "redis://127.0.0.1:$port" "${try[@]}"

# ---- an unsuitable server ----

redis_start master
# A counter that was lost, and restarted by a clock that went back: while a record exists, its token
# only grows.
export LEASEHOLD_STORE=redis://127.0.0.1:${redis_port[master]}
first=$("$program" acquire counted --ttl 60s)
"$program" acquire counted --ttl 60s --wait 20s >"$work/second" &
running=$!
# The key beside the plain name, which exists while there is more than a sole grant.
record_of() { redis_cli master --scan --pattern "leasehold:*:lock:$1"; }
has_record() { [[ -n $(record_of "$1") ]]; }
redis_until 'it waits' has_record counted
record=$(record_of counted)
redis_cli master set "${record%:lock:counted}" 5 >/dev/null
"$program" release counted --token "$first" >/dev/null
wait "$running" || true
running=
verdict 'tokens grow though the count was lost' test "$(cat "$work/second")" -gt "$first"
"$program" release counted --token "$(cat "$work/second")" >/dev/null

# A revision counter that another program wrote, beside a lock of that program.
for i in 1 2; do "$program" acquire kz --shared --ttl 1m >/dev/null; done
record=$(record_of kz)
for count in 0 -5 35184372088832 9007199254740992; do
    redis_cli master del "$record" lock:kz >/dev/null
    redis_cli master set lock:kz x PX 600000 >/dev/null
    redis_cli master set "${record%:lock:kz}" "$count" >/dev/null
    expect "a revision counter of $count beside a foreign lock" 69 'revision counter' \
        "$LEASEHOLD_STORE" status kz
    settle
done
redis_cli master del lock:kz "${record%:lock:kz}" >/dev/null

listing() { # listing PREFIX: what follows it and the state, of each
    "$program" --json list "$1" 2>&1 | jq -r '.key[-2:] + " " + (.state // .outcome)' | sort | xargs
}

# A sole grant as releases up to 0.2 wrote it, in two keys: it is held, renewed into one key, and
# released.
for how in '' '?scripts=no'; do
    export LEASEHOLD_STORE=redis://127.0.0.1:${redis_port[master]}$how
    token=$("$program" acquire older --ttl 60s)
    value=$(redis_cli master get lock:older) # leasehold:REVISION TIME RECORD
    redis_cli master del lock:older >/dev/null
    for i in 1 2; do "$program" acquire older --shared --ttl 60s >/dev/null; done
    record=$(record_of older)
    redis_cli master set "$record" "${value#leasehold:}" PX 60000 >/dev/null
    redis_cli master set lock:older "${value%% *}:host" PX 60000 >/dev/null
    verdict "a grant in two keys is held: $how" says 75 '^busy: older' "$program" acquire older -n
    verdict "it is listed once: $how" test "$(listing older)" = 'er held'
    "$program" renew older --token "$token" --ttl 60s --quiet
    verdict "a renewal puts it into one: $how" eval '! has_record older'
    verdict "and it is still held: $how" says 75 '^busy: older' "$program" acquire older -n
    "$program" release older --token "$token" --quiet
    verdict "a release leaves nothing: $how" redis_says master 0 exists lock:older "$record"
done
export LEASEHOLD_STORE=redis://127.0.0.1:${redis_port[master]}

# Records that were changed in Redis: they are listed with the reason, and hide no other.
for how in '' '?scripts=no'; do
    export LEASEHOLD_STORE=redis://127.0.0.1:${redis_port[master]}$how
    for key in a d b c e b c e; do "$program" acquire "bad$how/$key" --shared --ttl 60s; done \
        >/dev/null
    verdict 'a sole grant has one key' eval '! has_record "bad$how/a"'
    at=$(record_of "bad$how/b")
    redis_cli master set "$at" 'no record' >/dev/null
    other=$(record_of "bad$how/c")
    redis_cli master del "$other" >/dev/null
    redis_cli master hset "$other" field value >/dev/null
    redis_cli master set "$(record_of "bad$how/e")" '99999999999999999999999999999 1 {}' >/dev/null
    redis_cli master set "lock:bad$how/f" 'leasehold:99999999999999999999999999999 1 {}' >/dev/null
    redis_cli master set "lock:bad$how/g" 'leasehold:17 1 no record' >/dev/null
    redis_cli master set "lock:bad$how/h" 'leasehold:of another program' >/dev/null
    redis_cli master set "lock:bad$how/i" 'leasehold:12 5 ' >/dev/null
    wanted='/a held /b unreadable /c unreadable /d held /e unreadable /f unreadable'
    wanted+=' /g unreadable /i unreadable'
    verdict "records that were overwritten hide no other: $how" \
        test "$(listing "bad$how/")" = "$wanted"
    verdict "a record without bytes is not free: $how" says 69 . \
        "$program" --store-timeout 1s acquire "bad$how/i" -n
    verdict "the value of another program is its lock: $how" \
        says 0 '^held: .*leasehold:of another program' "$program" status "bad$how/h"
    verdict 'list ends well' says 0 "^unreadable: bad.*/c: .*(WRONGTYPE|has no revision)" \
        "$program" list "bad$how/c"
    verdict 'status of it is trouble' says 69 '.' "$program" status "bad$how/b"
    rm -f "$work/watched" "$work/watching" # of the round before
    "$program" --verbose watch "bad$how/" >"$work/watched" 2>"$work/watching" &
    running=$!
    await_watch "$work/watching"
    channel=$(redis_cli master pubsub channels '*:changed')
    redis_cli master publish "$channel" "0 $at" >/dev/null
    verdict 'watch tells of it' \
        redis_until 'it tells' grep -q " unreadable: bad.*/b: " "$work/watched"
    "$program" break "bad$how/a" --now --reason test --quiet
    verdict 'and goes on' redis_until 'it goes on' grep -q " free: bad.*/a" "$work/watched"
    kill "$running"
    wait "$running" || true
    running=
done
export LEASEHOLD_STORE=redis://127.0.0.1:${redis_port[master]}
redis_start_replica replica master
expect 'a replica' 69 'replica|read.only' "redis://127.0.0.1:${redis_port[replica]}" "${try[@]}"

head -c 3000000 /dev/zero | redis_cli master -x set ballast >/dev/null
redis_cli master config set maxmemory 2mb >/dev/null
expect 'no memory' 69 'memory' "redis://127.0.0.1:${redis_port[master]}" "${try[@]}"
settle
redis_cli master config set maxmemory 0 >/dev/null
expect 'memory again' 0 . "redis://127.0.0.1:${redis_port[master]}" status job
settle

for ((i = 0; i < 400; i++)); do printf 'set key-%d %0500d\n' "$i" 0; done |
    redis_cli master >/dev/null
redis_cli master save >/dev/null
redis_kill master TERM
redis_launch master --bind 127.0.0.1 --port "${redis_port[master]}" --unixsocket socket --save '' \
    --dir . --key-load-delay 100000 --loading-process-events-interval-bytes 1024
redis_until 'it loads' redis_says master 'loading:1' info persistence
expect 'the server loads its data' 69 'load' "redis://127.0.0.1:${redis_port[master]}" "${try[@]}"
settle
redis_kill master

# ---- a slot that is being migrated ----

redis_start_cluster
export LEASEHOLD_STORE=redis://127.0.0.1:${redis_port[one]}
token=$("$program" acquire k --ttl 1m)
slot=$(redis_cli one cluster keyslot lock:k)
keys=()
for from in one two three; do
    mapfile -t keys < <(redis_cli "$from" cluster getkeysinslot "$slot" 10)
    ((${#keys[@]} < 2)) || break
done
to=one
[[ $from != one ]] || to=two
verdict 'a sole grant and its counter are two keys' test "${#keys[@]}" = 2

migrates() { # migrates FROM TO: from now on
    redis_cli "$2" cluster setslot "$slot" importing "$(redis_cli "$1" cluster myid)" >/dev/null
    redis_cli "$1" cluster setslot "$slot" migrating "$(redis_cli "$2" cluster myid)" >/dev/null
}
moved() { # moved FROM TO KEY…
    local from=$1 to=$2
    shift 2
    redis_cli "$from" migrate 127.0.0.1 "${redis_port[$to]}" '' 0 5000 keys "$@" >/dev/null
}
hasty=("$program" --store-timeout 1s)
migrates "$from" "$to"
verdict 'a grant is renewed while its slot is migrated' \
    says 0 . "$program" renew k --token "$token" --ttl 1m
verdict 'and is held' says 75 '^busy: ' "$program" acquire k -n
moved "$from" "$to" lock:k
verdict 'not while its keys are apart' says 69 'being moved' "${hasty[@]}" renew k --token "$token"
moved "$from" "$to" "${keys[@]}"
verdict 'and again when both were moved' says 0 . "$program" renew k --token "$token" --ttl 1m
verdict 'and is released' says 0 . "$program" release k --token "$token"
verdict 'a free key is not taken meanwhile' says 69 'being moved' "${hasty[@]}" acquire k -n
for name in "$to" "$from"; do
    redis_cli "$name" cluster setslot "$slot" node "$(redis_cli "$to" cluster myid)" >/dev/null
done
for i in 1 2; do "$program" acquire k --shared --ttl 1m >/dev/null; done
migrates "$to" "$from"
verdict 'a record with two holders is read there' says 0 '^held: ' "$program" status k
moved "$to" "$from" "${keys[@]}"
verdict 'and is not taken for a foreign lock when a part was moved' \
    says 69 'being moved' "${hasty[@]}" status k
verdict 'nor without scripts' eval \
    'LEASEHOLD_STORE+=?scripts=no says 69 . "${hasty[@]}" status k'

finish
