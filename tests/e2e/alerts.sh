#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The alert rules of dist: the shipped files are what dist/alerts/generate.sh writes, its parameters
# have an effect, and Prometheus' own tool accepts the rules and lets each fire when it should.
# Their life with real faults: alerts_live.py. Prints TAP.
set -euo pipefail

cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/kit.sh
. tests/e2e/kit.sh

generate=dist/alerts/generate.sh
lacks() { if grep -E "$1" "$2"; then return 1; fi; } # lacks PATTERN FILE

shipped() {
    "$generate" | diff - dist/alerts/rules.yaml
    "$generate" --kubernetes | diff - dist/kubernetes/monitoring/alerts.yaml
}
case_of 'the shipped rules are what generate.sh writes' shipped

parameters() {
    "$generate" prefix=wfe >"$work/wfe"
    grep -q 'max by (job, instance) (wfe_breaker_open) == 1' "$work/wfe"
    lacks leasehold_ "$work/wfe"
    "$generate" contention_ratio=0.1 contention_for=1h waiting=90s >"$work/changed"
    [[ $(diff dist/alerts/rules.yaml "$work/changed" | grep '^>' | tr -s ' ') == \
        $'> > 0.1\n> for: 60m\n> expr: max by (job) (leasehold_queue_oldest_wait_seconds) > 90' ]]
    "$generate" --divide 60 >"$work/short"
    grep -q 'for: 10s' "$work/short"
    grep -q '_takeovers_total\[1m\]' "$work/short"
    lacks 'for: [0-9]+m$|\[[0-9]{2,}m\]' "$work/short"
}
case_of 'parameters change the rules, and --divide every duration' parameters

refused() {
    says 1 'no parameter nosuch' "$generate" nosuch=1
    says 1 'waiting is not a duration: long' "$generate" waiting=long
    says 64 usage "$generate" --kubernets
}
case_of 'a wrong parameter is refused' refused

# Every metric that a rule names is one that a client or a daemon writes.
names() {
    local name missing=
    for name in $(grep -oE 'leasehold_[a-z_]+' dist/alerts/rules.yaml | sort -u); do
        name=${name#leasehold_}
        grep -qE "\"${name%_bucket}\"" src/wire/metrics.c src/face/daemon/daemon_metrics.c ||
            missing+=" $name"
    done
    [[ -z $missing ]] || { printf 'unknown:%s\n' "$missing" && return 1; }
}
case_of 'the rules name metrics that exist' names

cp tests/e2e/alerts.yaml dist/alerts/rules.yaml "$work"
verdict 'Prometheus accepts the alerts' says 0 '10 rules found' \
    promtool check rules "$work/rules.yaml"
verdict 'each fires when it should, and only then' says 0 SUCCESS \
    promtool test rules "$work/alerts.yaml"
"$generate" store_error_ratio=0.1 >"$work/rules.yaml"
verdict 'one that fires too late is found: the check can fail' says 1 FAILED \
    promtool test rules "$work/alerts.yaml"
finish
