#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Changes of our Leases by others, on a real API server: k8s_edits.sh URL PROGRAM, run by
# scripts/on-k8s.sh. Labels and annotations of kubectl, deletions that wait for a finalizer, a
# webhook that changes writes, a namespace that does not exist, an address without an API server.
# Prints TAP.
set -euo pipefail

url=$1
program=$(realpath "$2")
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
export LEASEHOLD_STORE=$url HOME=$work

change() { kubectl "$@" >>"$work/kubectl.log"; }

# begin NAME COMMAND…: in the background, until it has touched NAME.in
begin() {
    local name=$1
    shift
    "$program" run "$name" --ttl 6s -- sh -c "touch $work/$name.in; $*" >"$work/$name.said" 2>&1 &
    started+=($!)
    until [[ -e $work/$name.in ]]; do sleep 0.05; done
}

token_of() { "$program" --json status "$1" | jq -r .token; }

# ---- labels and annotations ----

begin labelled 'echo $LEASEHOLD_TOKEN; sleep 7'
change label lease labelled team=blue
sleep 3
change annotate lease labelled note=seen
verdict 'a label and an annotation cost nobody his lock' wait "${started[0]}"
started=()

begin kept 'echo $LEASEHOLD_TOKEN; sleep 4'
change label lease kept team=blue
sleep 3 # it has renewed
verdict 'nor do they change its token' test "$(token_of kept)" = "$(<"$work/kept.said")"
wait "${started[0]}" || true
started=()
verdict 'and it is given back' says 0 'free' "$program" status kept

# ---- deletions that wait ----

"$program" --quiet acquire leaving --ttl 2s >"$work/token"
change patch lease leaving --type=merge -p '{"metadata":{"finalizers":["example.com/slow"]}}'
change delete lease leaving --wait=false
sleep 5
verdict 'a Lease that is being deleted is no lock any more' \
    says 69 'is being deleted and waits' "$program" acquire leaving -n
change patch lease leaving --type=merge -p '{"metadata":{"finalizers":null}}'
verdict 'when it is gone there is a new one' says 0 '' "$program" acquire leaving -n

# ---- locks of other programs ----

kubectl create -f - >/dev/null <<'LEASE'
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: theirs}
spec: {holderIdentity: other-program, leaseDurationSeconds: 60}
LEASE
token=$(token_of theirs)
for verb in renew release; do
    verdict "nobody can $verb what another program holds, by what status shows" \
        says 77 'another program holds this Lease' "$program" "$verb" theirs --token "$token"
done
verdict 'it still has it' says 0 'other-program' "$program" status theirs
verdict 'break --now takes it away' says 0 '' "$program" break theirs --now --reason try
verdict 'and then it is free' says 0 'free' "$program" status theirs

# ---- edited records ----

for key in a b c; do "$program" acquire "bad-$key" --ttl 60s >/dev/null; done
"$program" --verbose watch bad- >"$work/watched" 2>"$work/watching" &
started+=($!)
await_watch "$work/watching"
change annotate lease bad-b leasehold/record=junk --overwrite
why='the value was not written by leasehold'
verdict 'list shows a record that cannot be read, and why' \
    says 0 "^unreadable: bad-b: $why\$" "$program" list bad-
verdict 'and the others as usual' test "$(grep -c '^held: bad-[ac] ' "$work/said")" = 2
verdict 'status of it is trouble' says 69 "$why" "$program" status bad-b
is_told() { timeout 20 grep -q "$1" <(tail -n +1 -f "$work/watched"); }
verdict 'watch tells of it' is_told " unreadable: bad-b: $why\$"
"$program" break bad-c --now --reason test --quiet
verdict 'and goes on' is_told ' free: bad-c'
kill "${started[0]}"
wait "${started[0]}" || true
started=()

# ---- a webhook that changes writes ----

mkfifo "$work/webhook.in"
python3 "$(dirname "$0")/../peers/webhook.py" "${K8S_CA%/*}/srv.crt" "${K8S_CA%/*}/srv.key" \
    <"$work/webhook.in" >"$work/webhook.out" &
started+=($!)
exec 7>"$work/webhook.in"
await "$work/webhook.out"
change create -f - <<WEBHOOK
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: changes}
webhooks:
  - name: changes.example.com
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Fail
    clientConfig:
      url: https://127.0.0.1:$(cut -d ' ' -f 2 "$work/webhook.out")/
      caBundle: $(base64 -w 0 "$K8S_CA")
    rules:
      - apiGroups: [coordination.k8s.io]
        apiVersions: [v1]
        operations: [CREATE, UPDATE]
        resources: [leases]
WEBHOOK
is_changed() { # the API server takes a moment to hear of its webhooks
    change create -f - <<<'{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "holder-x"}, "spec": {"holderIdentity": "me"}}'
    local holder
    holder=$(kubectl get lease holder-x -o 'jsonpath={.spec.holderIdentity}')
    change delete lease holder-x
    [[ $holder == webhook ]]
}
until is_changed; do sleep 0.2; done

for row in strip:leasehold/record short:leasehold/record holder:holderIdentity \
    spec:leaseDurationSeconds; do
    verdict "a Lease that came back changed (${row%:*}) is no lock" \
        says 69 "came back changed in ${row#*:} .*; it was removed" \
        "$program" acquire "${row%:*}-1" -n
done
verdict 'and none of them is left there' \
    test -z "$(kubectl get leases -o name | grep -E '/(strip|short|holder|spec)-' || true)"
verdict 'whom the webhook leaves alone it does not disturb' says 0 '' "$program" acquire fine -n
verdict 'a holder whose renewals come back changed is told' \
    says 76 '' "$program" run late-1 --ttl 4s -- sleep 30
change delete mutatingwebhookconfiguration changes
exec 7>&-

# ---- missing objects ----

export KUBECONFIG=$K8S_ADMIN
verdict 'a namespace that is not there is neither free nor busy' \
    says 69 'namespaces "nowhere" not found' "$program" --store k8s://nowhere acquire a -n
cp "$K8S_CA" "$work/ca.crt"
sed "s|server: \"\([^\"]*\)\"|server: \"\1/elsewhere\"|" "$K8S_ADMIN" >"$work/config"
export KUBECONFIG=$work/config
verdict 'where no API server answers nothing is free' says 69 'answers 404' "$program" status a
verdict 'and nothing is listed' says 69 'answers 404' "$program" list

finish
