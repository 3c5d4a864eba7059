#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Kubernetes store for its users, on a real API server: k8s.sh URL BUILD, run by
# scripts/on-k8s.sh. The number of requests, the output of kubectl, refusals, and a server that goes
# away under a lock. Prints TAP.
set -euo pipefail

url=$1
build=$(realpath "$2")
program=$build/leasehold
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
export LEASEHOLD_STORE=$url HOME=$work

field() { kubectl get lease "$1" -o "jsonpath={$2}"; }

# told STATUS PATTERN COMMAND…: as says, and no token is shown.
told() {
    says "$@" && ! grep -qF "$(<"${KUBECONFIG%/*}/locker.token")" "$work/said"
}

# ---- a Lease as other programs expect it ----

token=$("$program" acquire deploy --ttl 60s --holder wfe-7)
verdict 'kubectl shows the holder' test "$(field deploy .spec.holderIdentity)" = wfe-7
verdict 'and how long it has' test "$(field deploy .spec.leaseDurationSeconds)" = 60
verdict 'and since when' test -n "$(field deploy .spec.acquireTime)"
verdict 'the key stands there in full' \
    test "$(field deploy '.metadata.annotations.leasehold/key')" = deploy
kubectl get lease deploy -o yaml >"$work/deploy.yaml"
verdict 'kubectl accepts what it showed' told 0 replaced kubectl replace -f "$work/deploy.yaml"
verdict 'who wants it is refused with the name' told 75 'held by wfe-7' "$program" acquire deploy -n
verdict 'it is renewed by its token' told 0 '' "$program" renew deploy --token "$token"
verdict 'and given back' told 0 '' "$program" release deploy --token "$token"
verdict 'a free key leaves nothing behind' test -z "$(kubectl get leases -o name)"
next=$("$program" acquire deploy)
verdict 'its next token is higher, though the Lease is a new one' test "$next" -gt "$token"
"$program" --quiet release deploy --token "$next"

# With the usual skew the clocks of two servers may be 7 s apart: others wait that much longer.
twenty=(--store "${url%%\?*}")
token=$("$program" "${twenty[@]}" acquire twenty --ttl 20s --holder wfe-7)
verdict 'status says when the lease ends, and when others may have it' told 0 \
    '^held: twenty by wfe-7 .*\(lease ends in (1[5-9]|20)(\.[0-9])?s; free 7s later\)' \
    "$program" "${twenty[@]}" status twenty
"$program" "${twenty[@]}" --json status twenty >"$work/said"
verdict 'and so do programs hear it' python3 -c '
import json, sys
view = json.load(open(sys.argv[1]))
assert 10000 < view["expires_in_ms"] <= 20000, view
assert view["takeover_in_ms"] == view["expires_in_ms"] + 7000, view' "$work/said"
verdict 'a refusal says the same' told 75 'lease ends in .*s; free 7s later' \
    "$program" "${twenty[@]}" acquire twenty -n
"$program" "${twenty[@]}" --quiet release twenty --token "$token"

# ---- names ----

target=production/deployment/payment-api
hash=$(printf '%s' "$target" | sha256sum | cut -c 1-16)
verdict 'a hashed name is the one of the workflow engine' \
    told 0 "^wfe-$hash\$" "$program" --store 'k8s://x?names=hash' name "$target"
verdict 'what is no name is refused as a plain one' \
    told 64 'names=auto' "$program" --store 'k8s://x?names=plain' name a/b
token=$("$program" acquire mine --ttl 60s)
kubectl annotate lease mine leasehold/key=other --overwrite >/dev/null
verdict 'another key under the same name is no answer' \
    told 77 'belongs to another key' "$program" acquire mine -n
kubectl delete lease mine >/dev/null

# ---- rights ----

verdict 'another namespace is not permitted' \
    told 77 'forbidden' "$program" --store k8s://default acquire deploy -n
cp "${KUBECONFIG%/*}/locker.token" "$work/token"
printf 'nobody\n' >"${KUBECONFIG%/*}/locker.token"
verdict 'who is not known is not permitted' told 77 '401' "$program" acquire deploy -n
cp "$work/token" "${KUBECONFIG%/*}/locker.token"

# ---- requests ----

# Counted in the server's own log: one line per request, of this user. A process that grants reads
# the epoch besides, at most every 5 s.
asked() {
    python3 - "$1" <<'COUNT'
import collections, json, os, sys
lines = open(os.environ["K8S_AUDIT"]).read().splitlines()[int(sys.argv[1]):]
verbs = collections.Counter(asked["verb"] for asked in map(json.loads, lines)
                            if "/leasehold-epoch" not in asked["requestURI"])
print(*(f"{verb}:{count}" for verb, count in sorted(verbs.items())))
COUNT
}

coproc verbs { exec "$build/tests/paced_verbs" "$url"; }
started+=("$verbs_PID")
for verb in acquire:create renew:update release:delete; do
    lines=$(wc -l <"$K8S_AUDIT")
    printf '%s 20\n' "${verb%:*}" >&"${verbs[1]}"
    read -r answer <&"${verbs[0]}"
    sleep 0.2
    seen=$(asked "$lines")
    printf '# 20 x %s: %s\n' "${verb%:*}" "$seen"
    verdict "one request for each $(printf '%s' "${verb%:*}") that nobody else disturbs" \
        test "$answer $seen" = "${verb%:*} done ${verb#*:}:20"
done
epochs=$(grep -c '/leasehold-epoch' "$K8S_AUDIT")
verdict 'a process does not read the epoch for each grant' test "$epochs" -lt 20
eval "exec ${verbs[1]}>&-"
wait "$verbs_PID" || true
started=()

# ---- waiting ----

"$program" run line --ttl 20s -- sh -c "touch $work/in; sleep 2; date +%s%3N >$work/left" &
started+=($!)
until [[ -e $work/in ]]; do sleep 0.05; done
"$program" run line --ttl 20s -- sh -c "date +%s%3N >$work/came"
wait "${started[0]}"
started=()
took=$(($(<"$work/came") - $(<"$work/left")))
printf '# handed over in %d ms, two programs started in between\n' "$took"
verdict 'who waits comes in when the holder is done' test "$took" -lt 2500 # the slow look is at 5 s

# From one waiter to the next: the watch event of the Lease is all that they need.
for name in first second third; do
    "$program" run relay -- sh -c \
        "touch $work/$name; until [ -e $work/$name.go ]; do sleep 0.02; done" &
    started+=($!)
    until "$program" --json status relay | grep -q "\"waiters\":$((${#started[@]} - 1))[,}]"; do
        sleep 0.05
    done
done
touch "$work/first.go"
until [[ -e $work/second ]]; do sleep 0.02; done
sleep 0.3
lines=$(wc -l <"$K8S_AUDIT")
touch "$work/third.go" "$work/second.go"
wait "${started[@]}"
started=()
sleep 0.2
seen=$(asked "$lines" | sed 's/ watch:[0-9]*//')
printf '# from a release to the end of the next one: %s\n' "$seen"
verdict 'a hand-over is two requests: an offer, and its acceptance' \
    test "$seen" = 'delete:1 update:2'

began=$(now_ms)
"$program" acquire crash --ttl 2s >/dev/null 2>&1
verdict 'what nobody renews is taken over' told 0 '' "$program" run crash -w 30 -- true
took=$(($(now_ms) - began))
printf '# a lease of 2000 ms, with a margin of 2000 ms, was taken over after %d ms\n' "$took"
# The server has whole seconds: 4 of those may be little more than 3.
verdict 'not before its time' test "$took" -ge 3000
verdict 'and not long after it' test "$took" -lt 12000

# ---- another program whose clock is off by an hour ----

# stranger NAME OFFSET: writes the Lease as client-go does, with the time of its own clock.
stranger() {
    local now
    now=$(date -u -d "$2" +%Y-%m-%dT%H:%M:%S.%6NZ)
    kubectl apply -f - >/dev/null <<LEASE
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: $1}
spec: {holderIdentity: stranger, leaseDurationSeconds: 2, acquireTime: $now, renewTime: $now}
LEASE
}

declare -A last=() # when each of them began to write last
strangers() {
    last[ahead]=$(now_ms)
    stranger ahead '+1 hour'
    last[behind]=$(now_ms)
    stranger behind '-1 hour'
}

strangers
"$program" why ahead >"$work/why"
why_knows_it() {
    grep -q '^held: ahead by a program other than leasehold$' "$work/why" &&
        grep -q '^    leasehold break ahead --now' "$work/why" &&
        ! grep -qE 'leasehold (break ahead --reason|release)' "$work/why"
}
verdict 'why knows that the Lease of another program can only be freed at once' why_knows_it
for key in ahead behind; do
    "$program" run "$key" -w 60 -- sh -c "date +%s%3N >$work/$key" &
    started+=($!)
done
for _ in {1..8}; do # twice as long as its lease and the margin
    sleep 0.8
    strangers
done
verdict 'who renews by a clock that is off keeps its Lease' \
    test ! -e "$work/ahead" -a ! -e "$work/behind"
wait "${started[@]}"
started=()
for key in ahead behind; do
    took=$(($(<"$work/$key") - last[$key]))
    printf '# an hour %s, 2000 ms and a margin of 2000 ms: taken over after %d ms\n' "$key" "$took"
    verdict "an hour $key: not before its time" test "$took" -ge 4000
    verdict "an hour $key: and not long after it" test "$took" -lt 15000
done

# ---- the server goes away ----

"$program" run stay --ttl 60s -- sh -c "touch $work/holds; sleep 12" &
started+=($!)
until [[ -e $work/holds ]]; do sleep 0.05; done
"$program" run stay --ttl 60s -w 60 -- touch "$work/followed" &
started+=($!)
sleep 1
kill_api
# Another token of the same user; the old one is invalid now.
sed -i "s/^$(<"$work/token"),/renewed-$(<"$work/token"),/" "$K8S_USERS"
printf 'renewed-%s\n' "$(<"$work/token")" >"${KUBECONFIG%/*}/locker.token"
start_api
verdict 'a lock outlives a restart of the server, with a new token' wait "${started[0]}"
verdict 'who waited comes in although the watch was cut' wait "${started[1]}"
verdict 'it did' test -e "$work/followed"
started=()

# Its last output is the time of the loss; the release then waits for the server in vain.
cat >"$work/command.sh" <<COMMAND
trap 'date +%s%3N >$work/told; exit' TERM
touch $work/begun
while :; do sleep 0.05; done
COMMAND
"$program" run lost --ttl 6s -- bash "$work/command.sh" >"$work/said" 2>&1 &
started+=($!)
until [[ -e $work/begun ]]; do sleep 0.05; done
kill_api
began=$(now_ms)
status=0
wait "${started[0]}" || status=$?
started=()
took=$(($(<"$work/told") - began))
printf '# told %d ms after the server died, its lease had 6000 ms\n' "$took"
verdict 'a holder that cannot renew is told' test "$status" = 76
verdict 'before its lease has run out' test "$took" -lt 6000
verdict 'nobody there: unavailable' told 69 'unavailable' "$program" acquire any -n
start_api
verdict 'and all is well again' told 0 '' "$program" run any -- true

finish
