#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What happens to a lock is told as Events of its Lease, where ?events=on says so, with the Role of
# dist/kubernetes/events and no more: on-k8s.sh k8s_events.sh PROGRAM. Prints TAP.
set -euo pipefail

url=$1
program=$(realpath "$2")
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
number=0
failed=0
runner=
clean_up() {
    [[ -z $runner ]] || kill -KILL "$runner" 2>/dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT
export HOME=$work LEASEHOLD_HOLDER=wfe-7
unset LEASEHOLD_TTL LEASEHOLD_CONFIG XDG_CONFIG_HOME POD_NAME

kubectl() {
    "$KUBECTL" --kubeconfig "$K8S_ADMIN" -n leasehold-test --request-timeout=20s "$@"
}

events_of() { # events_of KEY: reason, type and message, a line each
    kubectl get events --field-selector "involvedObject.kind=Lease,involvedObject.name=$1" \
        -o jsonpath='{range .items[*]}{.reason} {.type} {.message}{"\n"}{end}'
}

expect() { # expect KEY LINE CASE: within 20 s
    local i
    for ((i = 0; i < 100; i++)); do
        if events_of "$1" | grep -qxE "$2"; then
            printf 'ok %d - %s\n' $((++number)) "$3"
            return
        fi
        sleep 0.2
    done
    events_of "$1" | sed 's/^/# /'
    printf 'not ok %d - %s\n' $((++number)) "$3"
    failed=1
}

kubectl apply -f dist/kubernetes/events/role.yaml >/dev/null
kubectl create rolebinding events --role=leasehold-events --user=locker >/dev/null
export LEASEHOLD_STORE="$url&events=on"

"$program" acquire one --ttl 2s >/dev/null
expect one 'Acquired Normal one by wfe-7' 'an acquisition is told'
"$program" acquire one --holder wfe-8 >/dev/null
expect one 'TakenOver Warning one by wfe-8: from a holder that was gone' 'a takeover is told'
"$program" break one --reason 'stuck since noon' --now --quiet
expect one 'Broken Warning one by .+: stuck since noon' 'a break is told, with its reason'

"$program" run two --ttl 6s -- sleep 60 2>/dev/null &
runner=$!
expect two 'Acquired Normal two by wfe-7' 'run tells its acquisition'
"$program" break two --reason test --now --quiet
expect two 'Lost Warning two by wfe-7' 'a loss is told by who lost it'
wait "$runner" || true
runner=

before=$(kubectl get events --no-headers | wc -l)
LEASEHOLD_STORE=$url "$program" acquire three >/dev/null
kubectl delete rolebinding events >/dev/null
"$program" acquire four --quiet >/dev/null
(($(kubectl get events --no-headers | wc -l) == before)) || { printf 'not ' && failed=1; }
printf 'ok %d - nothing is told unless it is asked for, nor without the right; locks work\n' \
    $((++number))

printf '1..%d\n' "$number"
exit "$failed"
