#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# API server faults (scripts/on-k8s.sh) for tests/faults/api_faults.c: api_act.sh FOLDER ACT.
#   begin PORT    makes a service account with the Role, its token, and two kubeconfigs: direct
#                 (FOLDER/direct), and through PORT (FOLDER/front)
#   kill-api      kill -9 of the API server, which restarts a moment later; so kill-etcd
#   stop-api      SIGSTOP for some seconds
#   compact       etcd drops its whole history
#   token-early   another token is in the file, then the old one is revoked
#   token-late    the old one is revoked, and no request is authorized for a while
#   clock-off     until a Lease has a time that is about an hour off; fails when none does
# Servers are ready again when it ends.
set -euo pipefail

folder=$1
act=$2
namespace=leasehold-test
account=contender

kubectl() { "$KUBECTL" --kubeconfig "$K8S_ADMIN" -n "$namespace" --request-timeout=10s "$@"; }

within() { # within SECONDS COMMAND...
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < end)) || return 1
        sleep 0.1
    done
}

is_ready() { kubectl get --raw /readyz >/dev/null 2>&1; }
some_time() { sleep "$((RANDOM % 2)).$((RANDOM % 10))"; }

# A token lives as long as the Secret that it is bound to; `secret` is the name of the current one.
new_token() {
    local secret
    secret=token-$(date +%s%N)
    kubectl create secret generic "$secret" >/dev/null
    kubectl create --raw "/api/v1/namespaces/$namespace/serviceaccounts/$account/token" -f - <<ASK |
{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
 "spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": "$secret"}}}
ASK
        python3 -c 'import json, sys; print(json.load(sys.stdin)["status"]["token"])' \
            >"$folder/token.new"
    printf '%s\n' "$secret" >"$folder/secret.new"
}

use_token() {
    mv "$folder/secret.new" "$folder/secret"
    mv "$folder/token.new" "$folder/token"
}

is_refused() {
    printf 'header = "Authorization: Bearer %s"\n' "$(<"$1")" |
        curl -sS --config - --cacert "$K8S_CA" -o "$folder/said" \
            "$K8S_SERVER/apis/coordination.k8s.io/v1/namespaces/$namespace/leases?limit=1"
    grep -q '"code": 401' "$folder/said"
}

# The server caches authenticated tokens for ten seconds.
revoke() { # revoke SECRET TOKEN-FILE
    kubectl delete secret "$1" >/dev/null
    within 30 is_refused "$2"
}

write_way() { # write_way NAME SERVER
    sed -e "s#$K8S_SERVER#$2#" -e "s#ca\.crt#$K8S_CA#" -e "s#[^ ]*locker\.token#$folder/token#" \
        "$KUBECONFIG" >"$folder/$1"
}

clock_is_off() {
    kubectl get leases -o json | python3 -c '
import datetime, json, sys
now = datetime.datetime.utcnow()
for lease in json.load(sys.stdin)["items"]:
    told = lease["spec"].get("renewTime")
    if told and abs(abs((datetime.datetime.fromisoformat(told[:-1]) - now).total_seconds())
                    - 3600) < 60:
        sys.exit(0)
sys.exit(1)'
}

umask 077
case $act in
begin)
    kubectl create serviceaccount "$account" >/dev/null
    kubectl create rolebinding "$account" --role=leasehold \
        --serviceaccount="$namespace:$account" >/dev/null
    new_token
    use_token
    write_way direct "$K8S_SERVER"
    write_way front "https://127.0.0.1:$3" ;;
kill-api)
    kill -KILL "$(<"$K8S_PID")"
    some_time
    "$K8S_API"
    within 60 is_ready ;;
stop-api)
    kill -STOP "$(<"$K8S_PID")"
    sleep $((1 + RANDOM % 5))
    kill -CONT "$(<"$K8S_PID")" ;;
kill-etcd)
    kill -KILL "$(<"$K8S_ETCD_PID")"
    some_time
    "$K8S_ETCD"
    within 60 is_ready ;;
compact)
    revision=$(curl -fsS "$K8S_ETCD_URL/v3/kv/range" -d '{"key": "AA=="}' |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["header"]["revision"])')
    curl -fsS "$K8S_ETCD_URL/v3/kv/compaction" -d "{\"revision\": $revision}" >"$folder/said" ;;
token-early | token-late)
    old=$(<"$folder/secret")
    cp "$folder/token" "$folder/token.old"
    new_token
    if [[ $act == token-early ]]; then
        use_token
        revoke "$old" "$folder/token.old"
    else
        revoke "$old" "$folder/token.old"
        some_time
        use_token
    fi ;;
clock-off)
    within 20 clock_is_off ;;
esac
