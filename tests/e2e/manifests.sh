#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The files of dist/kubernetes are accepted by a real API server: on-k8s.sh manifests.sh. Everything
# is rendered by kustomize and sent as a dry run, one folder at a time. The Roles allow their
# purpose and nothing else. Prints TAP.
set -euo pipefail

cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/kit.sh
. tests/e2e/kit.sh

# Kinds of the Prometheus operator, only as far as they must exist.
for kind in PodMonitor PrometheusRule; do
    plural=${kind,,}s
    kubectl apply -f - >/dev/null <<CRD
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: $plural.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {plural: $plural, singular: ${kind,,}, kind: $kind}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          required: [spec]
          properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}
CRD
    until kubectl get "$plural" >/dev/null 2>&1; do sleep 0.2; done
done

# Servers before 1.21 have CronJobs, of the same shape, in another version only.
older=(cat)
kubectl get --raw /apis/batch/v1 | grep -q cronjobs ||
    older=(sed 's,^apiVersion: batch/v1$,apiVersion: batch/v1beta1,')

for folder in dist/kubernetes dist/kubernetes/*/; do
    good=true
    kubectl kustomize "$folder" 2>"$work/said" | "${older[@]}" >"$work/all.yaml" || good=false
    ! $good || kubectl apply --dry-run=server --validate=true -f "$work/all.yaml" \
        >"$work/said" 2>&1 || good=false
    ! $good || grep -q 'server dry run' "$work/said" || good=false
    tell "$good" "$folder: $(grep -c 'dry run' "$work/said") objects"
done
printf 'apiVersion: v1\nkind: Sekret\n' >"$work/none.yaml"
verdict 'a manifest of no kind is refused: the check can fail' says 1 'no matches for kind' \
    kubectl apply --dry-run=server -f "$work/none.yaml"

# The permissions of the Roles, from the API server.
for folder in dist/kubernetes dist/kubernetes/{workloads,events}; do
    kubectl apply -k "$folder" >"$work/said" 2>&1
done
may() { # may YES|NO VERB RESOURCE [NAMESPACE]
    local answer
    answer=$(kubectl auth can-i "$2" "$3" -n "${4:-leasehold-test}" \
        --as system:serviceaccount:leasehold-test:leasehold 2>/dev/null || true)
    [[ $answer == "$1" ]] || printf '%s %s: %s\n' "$2" "$3" "$answer" >>"$work/said"
}
: >"$work/said"
for verb in get list watch create update delete; do
    may yes $verb leases.coordination.k8s.io
    may no $verb leases.coordination.k8s.io default
    may no $verb secrets
done
for verb in get list watch create delete patch; do
    may yes $verb jobs.batch
    may no $verb pods
done
may yes create events
may no get events
may no deletecollection leases.coordination.k8s.io
may no create clusterroles.rbac.authorization.k8s.io
verdict 'the Roles allow what they are for, in their namespace, and nothing else' \
    test ! -s "$work/said"
finish
