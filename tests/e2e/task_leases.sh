#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The statements of docs/migrating-task-leases.md, on a real API server: task_leases.sh URL PROGRAM,
# run by scripts/on-k8s.sh. kubectl acts as the old pods, which create, replace and delete a Lease
# by hand; leasehold shares it with them during a rollout. Prints TAP.
set -euo pipefail

program=$(realpath "$2")
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
export HOME=$work LEASEHOLD_STORE="$1&prefix=task-llm-" POD_NAME=acp-new-1
old=acp-controller-manager-64dc466545-6pb8h

field() { kubectl get lease "task-llm-$1" -o "jsonpath={.spec.$2}"; }
micro_now() { date -u +%Y-%m-%dT%H:%M:%S.%6NZ; }

# old_create TASK SECONDS: acquireTaskLease() up to its create.
old_create() {
    local now
    now=$(micro_now)
    cat >"$work/lease.yaml" <<LEASE
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: task-llm-$1}
spec: {holderIdentity: $old, leaseDurationSeconds: $2, acquireTime: "$now", renewTime: "$now"}
LEASE
    kubectl create -f "$work/lease.yaml"
}
# old_waits TASK: canAcquireLease() returns no, for another pod's Lease.
old_waits() {
    (($(date +%s) <= $(date -d "$(field "$1" renewTime)" +%s) + 30))
}
old_delete() { kubectl delete lease "task-llm-$1" >/dev/null; }

# ---- old pods hold ----

old_create first 30 >/dev/null
verdict 'what a pod of before holds is busy, and it is named' \
    says 75 "^busy: first is held by $old " "$program" acquire first -n
verdict 'and nothing was changed' test "$(field first holderIdentity)" = "$old"
"$program" run first -w 60 -- touch "$work/entered" 2>"$work/said" &
started=($!)
sleep 1
verdict 'who waits for it does not enter' test ! -e "$work/entered"
began=$(now_ms)
old_delete first
verdict 'its release lets ours in' wait "${started[0]}"
printf '# in %d ms after kubectl began to delete it\n' $(($(now_ms) - began))
started=()

old_create second 3 >/dev/null
began=$(now_ms)
verdict 'one that crashed is taken over' says 0 '' "$program" run second -w 60 -- true
took=$(($(now_ms) - began))
printf '# after %d ms; its Lease had 3000 ms\n' "$took"
verdict 'not before its time' test "$took" -ge 3000

# ---- leasehold holds ----

"$program" run third --ttl 6s -- sh -c "echo in >$work/in; sleep 5" &
started=($!)
await "$work/in"
verdict 'it has the name of before' test "$(field third holderIdentity)" = acp-new-1
verdict 'kubectl lists it as before' says 0 '^task-llm-third +acp-new-1 ' kubectl get leases
verdict 'a pod of before cannot create it' says 1 'already exists' old_create third 30
first=$(field third renewTime)
verdict 'nor take it over' old_waits third
sleep 3
verdict 'it is renewed' test "$(field third renewTime)" != "$first"
verdict 'its command ends well' wait "${started[0]}"
started=()
verdict 'and leaves nothing behind' says 1 'not found' kubectl get lease task-llm-third
verdict 'a pod of before has it next' says 0 created old_create third 30
old_delete third

# ---- a late release ----

token=$("$program" acquire fourth --ttl 1s)
next=$("$program" acquire fourth -w 30 --ttl 60s)
verdict 'a late release of ours takes nothing from the next one' \
    says 78 stale "$program" release fourth --token "$token"
verdict 'which still has it' says 0 '' "$program" renew fourth --token "$next"
"$program" --quiet release fourth --token "$next"

"$program" run fifth --ttl 6s -- sh -c "echo in >$work/holds; sleep 60" 2>"$work/said" &
started=($!)
await "$work/holds"
began=$(now_ms)
old_delete fifth # it does not look whose it is
status=0
wait "${started[0]}" || status=$?
started=()
printf '# told %d ms after its Lease was deleted, renewed every 2000 ms\n' $(($(now_ms) - began))
verdict 'one of before that is late takes it away: ours is told' test "$status" = 76
finish
