#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each finding of leasehold doctor on a real API server, provoked: on-k8s.sh k8s_doctor.sh PROGRAM.
# Rights are removed one by one. Prints TAP.
set -euo pipefail

url=$1
program=$(realpath "$2")
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/kit.sh
. tests/e2e/kit.sh
export HOME=$work
folder=${KUBECONFIG%/*}

# expect STATUS PATTERN [OPTION…]: of a whole line. A change of rights takes the server a moment.
expect() {
    local wanted=$1 pattern=$2 status i good=false
    shift 2
    for ((i = 0; i < 50; i++)); do
        status=0
        "$program" doctor --store "$url" "$@" >"$work/said" 2>&1 </dev/null || status=$?
        ! grep -qF "$(<"$folder/locker.token")" "$work/said" || break
        [[ $status != "$wanted" ]] || ! grep -qxE -- "$pattern" "$work/said" || {
            good=true
            break
        }
        sleep 0.2
    done
    tell "$good" "$wanted: $pattern"
}

# ---- no problem ----

short='[0-9.]+(ms|s)'
expect 0 'ok: we are known by a token in a file'
expect 0 "ok: the API server is $K8S_SERVER, the namespace leasehold-test"
expect 0 "ok: the API server answers in $short"
expect 0 'ok: the API server is v1\.[0-9.]+.*'
expect 0 "ok: the API server's clock is $short (ahead of|behind) ours; leases are judged by .*"
expect 0 'ok: we may get, list, watch, create, update, delete leases'
expect 0 'ok: the namespace takes Leases'
expect 0 'ok: Leases no longer needed: 0'
verdict 'it leaves nothing behind' test -z "$(kubectl get leases -o name)"

"$program" --store "$url" acquire left --ttl 1s >/dev/null
expect 0 'ok: Leases no longer needed: 1'

# ---- rights, one by one ----

without() { # without VERB: of the Role that we ship
    sed "s/\\b$1, //; s/, $1\\]/]/" dist/kubernetes/role.yaml | kubectl apply -f - >/dev/null
}
for verb in get list watch create update delete; do
    without $verb
    expect 69 "problem: we may not $verb leases in leasehold-test; bind the Role of dist/.*"
done
kubectl delete rolebinding leasehold >/dev/null
expect 69 'problem: we may not get, list, watch, create, update, delete leases in .*'
kubectl apply -f dist/kubernetes/role.yaml >/dev/null
kubectl create rolebinding leasehold --role=leasehold --user=locker >/dev/null
expect 0 'ok: we may get, .*'

with_url() { # with_url URL STATUS PATTERN
    local url=$1
    shift
    expect "$@"
}
with_url "$url&events=on" 69 'problem: we may not create events in .*; .*dist/kubernetes/events.*'
kubectl apply -f dist/kubernetes/events/role.yaml >/dev/null
kubectl create rolebinding events --role=leasehold-events --user=locker >/dev/null
with_url "$url&events=on" 0 'ok: we may create events'

expect 69 'problem: we may not get, list, watch, create, delete jobs in .*; put the kind .*' \
    --kind jobs.batch
kubectl apply -f dist/kubernetes/workloads/role.yaml >/dev/null
kubectl create rolebinding workloads --role=leasehold-workloads --user=locker >/dev/null
expect 0 'ok: we may get, list, watch, create, delete jobs' --kind jobs.batch
expect 0 'ok: jobs.batch no longer needed: 0' --kind jobs.batch
expect 69 'problem: we may not get, .* pods in .*' --kind pods

with_url k8s://default 69 'problem: we may not get, .* leases in default; bind the Role of .*'
kubectl create clusterrolebinding all --clusterrole=cluster-admin --user=locker >/dev/null
with_url k8s://nowhere 69 'problem: there is no namespace nowhere; make it with .*'
kubectl delete clusterrolebinding all >/dev/null

# ---- identity ----

config() { # config USER SERVER: another kubeconfig
    cat >"$work/config" <<CONFIG
current-context: test
clusters: [{name: test, cluster: {server: "$2", certificate-authority: $K8S_CA}}]
users: [{name: test, user: $1}]
contexts: [{name: test, context: {cluster: test, user: test, namespace: leasehold-test}}]
CONFIG
    export KUBECONFIG=$work/config
}
ticket() { # ticket SECONDS: a token that ends then
    python3 - "$1" <<'TOKEN'
import base64, json, sys, time
part = lambda claims: base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
print(part({"alg": "none"}), part({"exp": int(time.time()) + int(sys.argv[1])}), "x", sep=".")
TOKEN
}
config "{token: $(<"$folder/locker.token")}" "$K8S_SERVER"
expect 0 'ok: we are known by a token in the kubeconfig'
config "{token: nobody}" "$K8S_SERVER"
expect 69 'problem: the API server answers 401: .*; look at the kubeconfig.*'
config "{token: $(ticket -60)}" "$K8S_SERVER"
expect 69 'problem: a token in the kubeconfig has ended; get a new one'
config "{token: $(ticket 250)}" "$K8S_SERVER"
expect 69 'warning: a token in the kubeconfig ends in (4m|2[0-9][0-9]s).*; use a tokenFile .*'
ticket 3600 >"$work/token"
config "{tokenFile: $work/token}" "$K8S_SERVER"
expect 69 'ok: we are known by a token in a file, which ends in (59m|1h).*'
config '{}' "$K8S_SERVER"
expect 69 'warning: we say nothing about who we are; give .*'
config "{token: $(<"$folder/locker.token")}" https://127.0.0.1:1
expect 69 'problem: .*127\.0\.0\.1.*'
export KUBECONFIG=$work/none
expect 69 'problem: no readable kubeconfig: .*; name a kubeconfig with .*'

finish
