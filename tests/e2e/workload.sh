#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The workload is the lock, on a real API server: on-k8s.sh workload.sh PROGRAM ROUNDS. The kind is
# Tekton's PipelineRun, as a custom resource without its controller: the test acts as the
# controller, and writes the status. Cases with a capital letter have the names of the requested
# rows. Access is by the two Roles of dist/kubernetes and nothing else. Prints TAP.
set -euo pipefail

program=$(realpath "$2")
rounds=$3
here=$PWD
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
cd "$work"
export LEASEHOLD_STORE='k8s://leasehold-test?names=hash' HOME=$work
label=kubernaut.ai/workflow-execution

# ---- the cluster ----

umask 077
printf 'Authorization: Bearer %s\n' "$(<"${K8S_ADMIN%kubeconfig}token")" >admin.header
api() { # api METHOD PATH [JSON]: as the administrator
    curl -sS --max-time 20 --cacert "$K8S_CA" -H @admin.header -X "$1" "$K8S_SERVER$2" \
        ${3:+-H 'Content-Type: application/merge-patch+json' -d "$3"}
}
runs=/apis/tekton.dev/v1beta1/namespaces/leasehold-test/pipelineruns

kubectl apply -f - >kubectl.log <<'CRD'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pipelineruns.tekton.dev}
spec:
  group: tekton.dev
  scope: Namespaced
  names: {plural: pipelineruns, singular: pipelinerun, kind: PipelineRun}
  versions:
    - name: v1alpha1
      served: true
      storage: false
      deprecated: true
      deprecationWarning: 'PipelineRuns of v1alpha1 are "old"'
      schema:
        openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
    - name: v1beta1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
CRD
kubectl apply -f "$here/dist/kubernetes/workloads/role.yaml" >>kubectl.log
kubectl create rolebinding workloads --role=leasehold-workloads --user=locker >>kubectl.log
until api GET "$runs" | grep -q '"items"'; do sleep 0.2; done

for workflow in restart scale; do
    cat >$workflow.yaml <<RUN
apiVersion: tekton.dev/v1beta1
kind: PipelineRun
metadata:
  generateName: $workflow-
spec:
  pipelineRef: {name: $workflow}
RUN
done

# ---- building blocks of the cases ----

k8s_run() { # k8s_run WFE TARGET [OPTION…]: as the execution of that name
    "$program" k8s-run --target "$2" --holder "$1" --request-id "$1" --holder-label "$label" \
        -f restart.yaml "${@:3}"
}

# begin WFE TARGET [OPTION…]: the same in the background; its pid in `pid`, its output in WFE.said
begin() {
    "$program" k8s-run --target "$2" --holder "$1" --request-id "$1" --holder-label "$label" \
        -f restart.yaml "${@:3}" >"$1.said" 2>&1 &
    pid=$!
    started+=("$pid")
}

cut_down() { # kills what was begun last, if it still runs
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
}

ends() { # ends STATUS PID WFE: it ends with that status, within 30 s
    local status=0 i
    for ((i = 0; i < 300; i++)); do
        kill -0 "$2" 2>/dev/null || break
        sleep 0.1
    done
    ! kill -KILL "$2" 2>/dev/null || fail "$3 did not end"
    wait "$2" || status=$?
    ((status == $1)) || fail "$3 ended with $status instead of $1: $(cat "$3.said")"
}

prints() { # prints STATUS PATTERN COMMAND…: it exits so, and prints a line that matches
    local status=0 expected=$1 pattern=$2
    shift 2
    "$@" >printed 2>&1 || status=$?
    ((status == expected)) || fail "$*: $status instead of $expected: $(cat printed)"
    grep -qE "$pattern" printed || fail "$*: does not say '$pattern': $(cat printed)"
}

name_of() {
    printf 'wfe-%.16s' "$(printf %s "$1" | sha256sum)"
}

uid_of() { # of the object of a target; empty: there is none
    api GET "$runs/$(name_of "$1")" | jq -r '.metadata.uid // empty'
}

wait_for() { # wait_for TARGET: until its object is there
    local i
    for ((i = 0; i < 100; i++)); do
        [[ -z $(uid_of "$1") ]] || return 0
        sleep 0.05
    done
    fail "there is no object for $1"
}

complete() { # complete TARGET True|False: what Tekton writes at the end
    local at
    at=$(date -u +%Y-%m-%dT%H:%M:%SZ)
    api PATCH "$runs/$(name_of "$1")/status" "{\"status\":{\"completionTime\":\"$at\",
        \"conditions\":[{\"type\":\"Succeeded\",\"status\":\"$2\"}]}}" >complete.log
}

is_free() {
    [[ -z $(uid_of "$1") ]] || fail "$1 is not free"
}

created_since() { # created_since LINE: objects that we created, by the API server's own log
    tail -n +$(($1 + 1)) "$K8S_AUDIT" | jq -r 'select(.verb == "create" and
        .objectRef.resource == "pipelineruns" and .responseStatus.code == 201) | 1' | wc -l
}

# ---- the edge cases ----

prints 0 'ok: nobody: there is no wfe-[0-9a-f]{16}; nothing was removed' \
    k8s_run wfe-0 nobody --remove
say 'what is not there is removed already'

for ((round = 0; round < rounds; round++)); do
    pids=()
    began=$(wc -l <"$K8S_AUDIT")
    for one in a b; do
        begin "wfe-$one$round" "pair/$round" --until created
        pids+=("$pid")
    done
    held=0
    for one in 0 1; do
        status=0
        wait "${pids[one]}" || status=$?
        ((status == 0 || status == 75)) || fail "ended with $status"
        held=$((held + (status == 0)))
    done
    ((held == 1)) || fail "round $round: $held have it"
    (($(created_since "$began") == 1)) || fail "round $round: created $(created_since "$began")"
    winner=$(kubectl get pipelinerun "$(name_of "pair/$round")" \
        -o jsonpath="{.metadata.labels.kubernaut\.ai/workflow-execution}")
    grep -qh "ResourceBusy (held by $winner)" "wfe-a$round.said" "wfe-b$round.said" ||
        fail "round $round: the other one does not know of $winner"
done
say 'Two WFEs, same target, simultaneous'

begin wfe-1 web --cooldown 0
wait_for web
uid=$(uid_of web)
cut_down
began=$(wc -l <"$K8S_AUDIT")
begin wfe-1 web --cooldown 0
prints 75 'ResourceBusy \(held by wfe-1\)' k8s_run wfe-2 web
[[ $(uid_of web) == "$uid" ]] || fail 'another object stands there'
complete web True
ends 0 "$pid" wfe-1
(($(created_since "$began") == 0)) || fail 'a duplicate was created'
is_free web
say 'Controller restart during Running'

begin wfe-1 web --cooldown 5s
wait_for web
complete web True
done_at=$(date +%s)
sleep 1
cut_down
prints 73 'RecentlyRemediated \(by wfe-1, [1-4]s ago\)' k8s_run wfe-2 web
begin wfe-1 web --cooldown 5s
ends 0 "$pid" wfe-1
(($(date +%s) - done_at >= 5)) || fail 'the cooldown was shortened'
is_free web
say 'Controller restart during Cooldown'

begin wfe-1 web
follower=$pid
wait_for web
prints 78 'is wfe-1.s by now' k8s_run wfe-2 web --remove
prints 0 'was removed' k8s_run wfe-1 web --remove
ends 76 "$follower" wfe-1
is_free web
prints 0 'was created' k8s_run wfe-2 web --until created
prints 78 'is wfe-2.s by now' k8s_run wfe-1 web --remove
say 'WFE deleted during Running'

complete web False
prints 73 'RecentlyRemediated \(by wfe-2' k8s_run wfe-3 web
prints 0 'was removed' k8s_run wfe-2 web --remove
is_free web
prints 0 'was created' k8s_run wfe-3 web --until created
prints 0 'was removed' k8s_run wfe-3 web --remove
say 'WFE deleted during Cooldown'

prints 0 'was created' k8s_run wfe-1 db --until created
prints 75 'ResourceBusy \(held by wfe-1\)' k8s_run wfe-2 db -f scale.yaml
say 'Different workflow, same target'

prints 0 'was created' k8s_run wfe-2 cache --until created
[[ $(uid_of db) != "$(uid_of cache)" && -n $(uid_of cache) ]] || fail 'not two objects'
for target in db cache; do
    prints 0 'was removed' "$program" k8s-run --target "$target" -f restart.yaml --remove
done
say 'Same workflow, different target'

# ---- the tests ----

for ((round = 0; round < rounds; round++)); do
    pids=()
    began=$(wc -l <"$K8S_AUDIT")
    for ((i = 0; i < 20; i++)); do
        begin "wfe-$i" "crowd/$round" --until created
        pids+=("$pid")
    done
    held=0
    for ((i = 0; i < 20; i++)); do
        status=0
        wait "${pids[i]}" || status=$?
        ((status == 0 || status == 75)) || fail "ended with $status: $(cat "wfe-$i.said")"
        held=$((held + (status == 0)))
    done
    ((held == 1 && $(created_since "$began") == 1)) || fail "round $round: $held have it"
done
say 'Concurrent WFE creation'

# Killed at every moment, from before the first request to after the last one.
for ((delay = 0; delay < 40 * rounds; delay += 4)); do
    began=$(wc -l <"$K8S_AUDIT")
    begin "wfe-$delay" restart --cooldown 0
    sleep "0.$(printf %03d $((delay % 200)))"
    cut_down
    begin "wfe-$delay" restart --cooldown 0
    wait_for restart
    complete restart True
    # … and at every moment of its end, which another process then handles.
    sleep "0.$(printf %03d $((delay % 80)))"
    cut_down
    # A creation whose caller was killed meanwhile may be in the log with another status.
    (($(created_since "$began") <= 1)) || fail "$delay ms: created $(created_since "$began")"
    prints 0 'was created' k8s_run "next-$delay" restart --until created
    prints 0 'was removed' k8s_run "next-$delay" restart --remove
done
say 'Controller restart'

begin wfe-1 kept --finalizer --cooldown 4s
wait_for kept
kubectl delete pipelinerun "$(name_of kept)" --wait=false >>kubectl.log
prints 73 'RecentlyRemediated \(by wfe-1' k8s_run wfe-2 kept
ends 1 "$pid" wfe-1
is_free kept
prints 0 'was created' k8s_run wfe-1 kept --finalizer --until created
prints 0 'was removed' k8s_run wfe-1 kept --remove
is_free kept
say 'Finalizer cleanup'

begin wfe-1 whole --cooldown 3s --json --metrics-file "$work/m.prom"
wait_for whole
prints 75 'ResourceBusy \(held by wfe-1\)' k8s_run wfe-2 whole --metrics-file "$work/m.prom"
complete whole True
sleep 0.5
prints 73 'RecentlyRemediated \(by wfe-1, [0-9]s ago\); free in [1-4]s' k8s_run wfe-2 whole
ends 0 "$pid" wfe-1
jq -e '.outcome == "ok" and .state == "done" and .key == "whole"' wfe-1.said >/dev/null ||
    fail "$(cat wfe-1.said)"
for series in attempts_total\ 2 successes_total\ 1 'failures_total{reason="contention"} 1'; do
    grep -qx "leasehold_lock_acquisition_$series" "$work/m.prom" || fail "metrics: not $series"
done
for series in hold_duration_seconds_count\ 1 'hold_duration_seconds_bucket{le="1"} 0' \
    releases_total\ 1; do
    grep -qx "leasehold_lock_$series" "$work/m.prom" || fail "metrics: not $series"
done
is_free whole
prints 0 'was created' k8s_run wfe-2 whole --until created --cooldown 1s --status-file status
jq -e '.outcome == "ok" and .state == "runs" and .key == "whole"' status >/dev/null ||
    fail "the status file: $(cat status)"
complete whole False
sleep 2.5
prints 0 'was created' k8s_run wfe-3 whole --until created
complete whole False
prints 1 '^failed: whole: wfe-[0-9a-f]{16} failed' k8s_run wfe-3 whole --until ended
! grep -q 'ok:' printed || fail "a failed object is ok: $(cat printed)"
prints 0 'was removed' k8s_run wfe-3 whole --remove
say 'Full lifecycle'

# ---- further guarantees ----

begin wfe-1 asleep --cooldown 1s
wait_for asleep
kill -STOP "$pid"
complete asleep True
sleep 2.5
prints 0 'was created' k8s_run wfe-2 asleep --until created
uid=$(uid_of asleep)
kill -CONT "$pid"
ends 0 "$pid" wfe-1
[[ $(uid_of asleep) == "$uid" ]] || fail 'the one that slept removed its successor'
prints 0 'was removed' k8s_run wfe-2 asleep --remove
say 'a follower that was stopped past the cooldown leaves its successor alone'

begin wfe-1 outage --cooldown 0
wait_for outage
kill_api
sleep 1
began=$(wc -l <"$K8S_AUDIT")
start_api
complete outage True
ends 0 "$pid" wfe-1
is_free outage
(($(created_since "$began") == 0)) || fail 'it was created anew'
say 'the API server is killed and comes back: the object is followed to its end'

begin wfe-1 slow --time-limit 2s
ends 1 "$pid" wfe-1
grep -q 'exceeded its time limit' wfe-1.said || fail "$(cat wfe-1.said)"
is_free slow
prints 0 'was created' k8s_run wfe-2 slow --time-limit 1s --until created
sleep 2.5
prints 0 'was created' k8s_run wfe-3 slow --until created
holder=$(api GET "$runs/$(name_of slow)" | jq -r '.metadata.annotations["leasehold/holder"]')
[[ $holder == wfe-3 ]] || fail 'the one that is overdue is still there'
prints 0 'was removed' k8s_run wfe-3 slow --remove
say 'an object that runs too long is removed, by its follower or by whoever comes next'

# ---- its progress output ----

sed 's/v1beta1/v1alpha1/' restart.yaml >old.yaml
prints 0 '^warning: PipelineRuns of v1alpha1 are "old"$' \
    k8s_run wfe-1 old -f old.yaml --until created
(($(grep -c warning: printed) == 1)) || fail "warned more than once: $(cat printed)"
prints 0 'was removed' k8s_run wfe-1 old --remove
say 'what the API server warns of is printed, once'

cat >watched.py <<'LOOK'
import os, pty, sys
seen = []
def read(file):
    data = os.read(file, 4096)
    seen.append(data)
    return data
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:], read)))
LOOK
python3 watched.py "$program" k8s-run --target shown --holder wfe-1 --cooldown 2s -f restart.yaml \
    >shown.said 2>&1 </dev/null &
pid=$!
started+=("$pid")
wait_for shown
sleep 2.5
complete shown True
ends 0 "$pid" shown
grep -q "$(name_of shown) runs for [1-9]" shown.said || fail "no progress: $(cat -v shown.said)"
grep -q "$(name_of shown) is done since .*; cools down for" shown.said ||
    fail "no cooldown: $(cat -v shown.said)"
say 'at a terminal a line shows how it is doing'

# ---- leftovers ----

prints 0 'was created' k8s_run wfe-1 left/over --until created --cooldown 1s
prints 0 'was created' k8s_run wfe-1 left/overdue --until created --time-limit 1s
prints 0 'was created' k8s_run wfe-1 left/final --until created --cooldown 1s --finalizer
prints 0 'was created' k8s_run wfe-1 stays/runs --until created --cooldown 1s --finalizer
prints 0 'was created' k8s_run wfe-1 stays/cools --until created --cooldown 1h
for target in left/over stays/cools; do complete "$target" True; done
kubectl delete pipelinerun "$(name_of left/final)" --wait=false >>kubectl.log
sleep 3.5
[[ -n $(uid_of left/final) ]] || fail 'the finalizer does not keep it'
# It lists them by their names.
prints 0 'warning: pipelineruns.tekton.dev no longer needed: 3 \(wfe-.*, wfe-.*, wfe-' \
    "$program" doctor --kind pipelineruns.tekton.dev
prints 0 'removed: 3 of 3' "$program" collect --kind pipelineruns.tekton.dev
for target in left/over left/overdue left/final; do is_free "$target"; done
for target in stays/runs stays/cools; do
    [[ -n $(uid_of "$target") ]] || fail "$target was removed"
    prints 0 'was removed' k8s_run wfe-1 "$target" --remove
done
for kind in pipelinewalks.tekton.dev jobs.nobody.example 'jobs/x?'; do
    prints 64 'has no kind ' "$program" collect --kind "$kind"
done
say 'collect removes objects that are over or overdue, and finalizers that nobody takes away'

# ---- objects of others ----

kubectl create -f - >>kubectl.log <<RUN
apiVersion: tekton.dev/v1beta1
kind: PipelineRun
metadata: {name: $(name_of theirs), labels: {$label: old-controller}}
RUN
prints 75 'ResourceBusy \(held by old-controller\)' k8s_run wfe-1 theirs
prints 75 'ResourceBusy' k8s_run wfe-1 theirs --remove
kubectl annotate pipelinerun "$(name_of theirs)" leasehold/key=another >>kubectl.log
prints 65 'taken for another target' k8s_run wfe-1 theirs
say 'an object of others is busy and stays, one of another target is a mismatch'

prints 0 'was created' env KUBECONFIG="$K8S_ADMIN" "$program" k8s-run --target pod --until created \
    -f /dev/stdin <<'POD'
apiVersion: v1
kind: Pod
spec:
  containers: [{name: a, image: b, tty: no, resources: {limits: {cpu: 0.1, memory: 1e6}}}]
  volumes: [{name: c, configMap: {name: d, defaultMode: 0640}}]
POD
seen=$(kubectl get pod "$(name_of pod)" -o jsonpath="{.spec.containers[0].resources.limits.cpu} \
{.spec.containers[0].resources.limits.memory} {.spec.volumes[0].configMap.defaultMode}")
[[ $seen == '100m 1M 416' ]] || fail "the API server read $seen"
say 'a manifest means what it means to kubectl'

prints 64 'has no kind Job of batch/v9' "$program" k8s-run --target x -f /dev/stdin \
    <<<'{apiVersion: batch/v9, kind: Job}'
prints 64 'line [12]: this is no YAML' "$program" k8s-run --target x -f /dev/stdin <<<'{a'
prints 64 'give --store k8s' "$program" --store memory: k8s-run --target x -f restart.yaml
prints 77 'answers 403' "$program" k8s-run --target x -f /dev/stdin \
    <<<'{apiVersion: v1, kind: Secret}'
sed "s|server: \"[^\"]*\"|server: \"https://127.0.0.1:1\"|" "$KUBECONFIG" >nowhere.kubeconfig
cp "$K8S_CA" ca.crt
KUBECONFIG=nowhere.kubeconfig prints 69 'unavailable' "$program" k8s-run --target x -f restart.yaml
say 'statuses: 64 for what is wrong, 69 for a server that is away, 77 for what we may not'

finish
