#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The names of keys as Leases, on a real API server: on-k8s.sh k8s_names.sh PROGRAM. The lock is at
# the name that `leasehold name` prints; prefixes separate users; two keys with the same name are an
# error for the second one, in every command. Prints TAP.
set -euo pipefail

url=$1
program=$(realpath "$2")
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
export HOME=$work LEASEHOLD_HOLDER=wfe-7

at() { # at OPTIONS ARGUMENT…: the program, with options of the URL
    local options=$1
    shift
    "$program" --store "$url$options" "$@"
}

# stands OPTIONS KEY NAME-PATTERN: held, it is the Lease that `name` prints, which contains the
# whole key; `list` shows that key; released, it is gone.
stands() {
    local options=$1 key=$2 pattern=$3 name token
    name=$(at "$options" name "$key")
    printf '%s: %s\n' "$key" "$name"
    [[ $name =~ ^$pattern$ ]] && ((${#name} <= 63))
    token=$(at "$options" acquire "$key" --ttl 60s)
    kubectl get lease "$name" -o json >"$work/lease"
    python3 - "$work/lease" "$key" <<'LOOK'
import json, sys
lease = json.load(open(sys.argv[1]))
assert lease["metadata"]["annotations"]["leasehold/key"] == sys.argv[2], lease
assert lease["spec"]["holderIdentity"] == "wfe-7", lease
LOOK
    [[ $(at "$options" list --names) == "$key" ]]
    at "$options" release "$key" --token "$token" --quiet
    [[ -z $(kubectl get leases -o name) ]]
}
hash_of() { printf '%s' "$1" | sha256sum | cut -c "1-$2"; }

# ---- how keys are encoded ----

case_of 'a key that is a name stays one' stands '' payment-api payment-api
for key in production/deployment/payment-api Payment_API 'a b' é once:x a- a. lh-5 \
    leasehold-epoch; do
    case_of "auto: '$key' is hashed" stands '' "$key" "lh-$(hash_of "$key" 40)"
done
long=$(printf 'k%.0s' {1..512})
case_of 'auto: a key of 512 bytes' stands '' "$long" "lh-$(hash_of "$long" 40)"
target=production/deployment/payment-api
for key in "$target" payment-api; do
    case_of "hash: '$key'" stands '&names=hash' "$key" "wfe-$(hash_of "$key" 16)"
    case_of "hash with a prefix: '$key'" stands '&names=hash&prefix=p-' "$key" \
        "p-$(hash_of "$key" 16)"
done
case_of 'hash: the longest key' stands '&names=hash' "$long" "wfe-$(hash_of "$long" 16)"
case_of 'prefix: before a name' stands '&prefix=task-llm-' t1 task-llm-t1
case_of 'prefix: before a hash' stands '&prefix=task-llm-' t/1 "task-llm-lh-$(hash_of t/1 40)"
forty=$(printf 'p%.0s' {1..40})
case_of 'prefix: the longest one' stands "&prefix=$forty" t/1 "${forty}lh-$(hash_of t/1 20)"
case_of 'plain: a name' stands '&names=plain' lh-5 lh-5
verdict 'plain: what is none is refused' says 64 'names=auto' at '&names=plain' name a/b
verdict 'and cannot be taken' says 77 'names=auto' at '&names=plain' acquire a/b -n
verdict 'plain: the name of the epoch is reserved' \
    says 64 'reserved' at '&names=plain&prefix=leasehold-' name epoch
verdict 'and cannot be taken, either' \
    says 77 'reserved' at '&names=plain' acquire leasehold-epoch -n
verdict 'a wrong choice is a wrong call' \
    says 64 'names is auto, hash or plain' at '&names=all' name k
verdict 'a wrong prefix is one' says 64 'a prefix has at most 40' at '&prefix=Up-' name k

# ---- prefixes separate users ----

one=$(at '&prefix=one-' acquire same --ttl 60s)
verdict 'the same key under another prefix is another lock' \
    says 0 '^[0-9]+$' at '&prefix=two-' acquire same -n --ttl 60s
verdict 'and held under its own' says 75 'held by' at '&prefix=one-' acquire same -n
verdict 'a list has those of its prefix' test "$(at '&prefix=one-' list --names)" = same
verdict 'without a prefix none of them is seen' test -z "$(at '' list --names)"
at '&prefix=one-' release same --token "$one" --quiet
kubectl delete leases --all >/dev/null

# ---- two keys under one name ----

# "b-c" with prefix "a-" and "c" with prefix "a-b-" are the Lease a-b-c.
first='&prefix=a-' second='&prefix=a-b-'
token=$(at $first acquire b-c --ttl 1h --meta from=first)
kubectl get lease a-b-c -o jsonpath='{.metadata.resourceVersion}' >"$work/revision"
collides='the Lease a-b-c belongs to another key, b-c'
verdict 'another key under the same name cannot be taken' \
    says 77 "$collides" at $second acquire c -n
verdict 'nor waited for' says 77 "$collides" at $second acquire c -w 5
verdict 'nor looked at' says 77 "$collides" at $second status c
verdict 'nor renewed' says 77 "$collides" at $second renew c --token "$token"
verdict 'nor given back' says 77 "$collides" at $second release c --token "$token"
verdict 'nor broken' says 77 "$collides" at $second break c --reason test --now
verdict 'nor cleared' says 77 "$collides" at $second clear c
verdict 'and no list shows it under a key that it is not' test -z "$(at $second list --names)"
verdict 'nothing of all that changed it' \
    test "$(kubectl get lease a-b-c -o jsonpath='{.metadata.resourceVersion}')" = \
    "$(<"$work/revision")"
verdict 'its own holder renews it' says 0 '' at $first renew b-c --token "$token"
verdict 'and lets it cool' says 0 '' at $first release b-c --token "$token" --cooldown 1h
verdict 'while it cools the other key is refused, too' says 77 "$collides" at $second acquire c -n
verdict 'once it is gone the name is free for either' says 0 '' at $first clear b-c
kubectl delete lease a-b-c --ignore-not-found >/dev/null
verdict 'and the other one takes it' says 0 '^[0-9]+$' at $second acquire c -n
verdict 'then the first is refused' says 77 'belongs to another key, c:' at $first acquire b-c -n

finish
