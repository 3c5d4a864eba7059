#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Events of a lock are reported as Events of its Lease, where ?events=on is set, with the Role of
# dist/kubernetes/events and no more: on-k8s.sh k8s_events.sh PROGRAM. Prints TAP.
set -euo pipefail

url=$1
program=$(realpath "$2")
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/kit.sh
. tests/e2e/kit.sh
export HOME=$work LEASEHOLD_HOLDER=wfe-7

events_of() { # events_of KEY: reason, type and message, a line each
    kubectl get events --field-selector "involvedObject.kind=Lease,involvedObject.name=$1" \
        -o jsonpath='{range .items[*]}{.reason} {.type} {.message}{"\n"}{end}'
}

expect() { # expect KEY LINE CASE: within 20 s
    local i good=false
    for ((i = 0; i < 100; i++)); do
        events_of "$1" >"$work/said"
        ! grep -qxE "$2" "$work/said" || { good=true && break; }
        sleep 0.2
    done
    tell "$good" "$3"
}

kubectl apply -f dist/kubernetes/events/role.yaml >/dev/null
kubectl create rolebinding events --role=leasehold-events --user=locker >/dev/null
export LEASEHOLD_STORE="$url&events=on"

"$program" acquire one --ttl 2s >/dev/null
expect one 'Acquired Normal one by wfe-7' 'an acquisition is told'
"$program" acquire one --holder wfe-8 >/dev/null
expect one 'TakenOver Warning one by wfe-8: from a holder that was gone' 'a takeover is told'
kubectl describe lease one >"$work/said"
verdict 'kubectl describe lease shows them' grep -qE 'TakenOver .*one by wfe-8' "$work/said"
"$program" break one --reason 'stuck since noon' --now --quiet
expect one 'Broken Warning one by .+: stuck since noon' 'a break is told, with its reason'

"$program" run two --ttl 6s -- sleep 60 2>/dev/null &
started=($!)
expect two 'Acquired Normal two by wfe-7' 'run tells its acquisition'
"$program" break two --reason test --now --quiet
expect two 'Lost Warning two by wfe-7' 'a loss is told by who lost it'
wait "${started[0]}" || true
started=()

before=$(kubectl get events --no-headers | wc -l)
LEASEHOLD_STORE=$url "$program" acquire three >/dev/null
kubectl delete rolebinding events >/dev/null
"$program" acquire four --quiet >/dev/null
verdict '--verbose says that the right is missing' \
    says 0 'no Events are written: we may not create events in leasehold-test; kubectl apply' \
    "$program" -v status four
verdict 'nothing is told unless it is asked for, nor without the right; locks work' \
    test "$(kubectl get events --no-headers | wc -l)" = "$before"
finish
