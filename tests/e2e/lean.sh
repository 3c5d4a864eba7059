#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# leasehold without its network stores: lean.sh. Each of them can be left out at build time, all of
# them here; the rest builds, works, and reports what is missing. Prints TAP.
set -euo pipefail

cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/kit.sh
. tests/e2e/kit.sh

refuses() { # refuses STATUS WORDS ARGUMENT...
    local expected=$1 words=$2 status=0
    shift 2
    "$program" "$@" >"$work/words" 2>&1 </dev/null || status=$?
    cat "$work/words"
    ((status == expected)) && grep -qF "$words" "$work/words"
}

build() {
    meson setup "$work/build" -Dgithub=false -Dkubernetes=false -Dredis=false -Dwerror=true &&
        ninja -C "$work/build" -j 2
}

program=$work/build/leasehold
export HOME=$work XDG_STATE_HOME=$work
case_of 'it builds without GitHub, Redis and Kubernetes' build
case_of 'and locks' "$program" run key -- true
for scheme in github k8s redis; do
    case_of "$scheme:// is not there, and that is said" \
        refuses 69 "not built in: \"$scheme\"" --store "$scheme://x" status key
done
printf '{apiVersion: v1, kind: Pod}\n' >"$work/pod.yaml"
case_of 'nor are workloads' \
    refuses 64 'without Kubernetes' --store k8s://x k8s-run --target key -f "$work/pod.yaml"
finish
