#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program's interface: cli.sh PROGRAM. Its output, the stream of each text, and the exit status
# are a contract, so they are compared byte for byte.
set -euo pipefail

program=$1
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"

# expect WHAT STATUS STDOUT STDERR [ARGUMENT...]
expect() {
    local what=$1 status=$2 out=$3 err=$4 got=0 good=false
    shift 4
    "$program" "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
    [[ $got != "$status" || $(<"$work/out") != "$out" || $(<"$work/err") != "$err" ]] || good=true
    {
        printf 'exit %s, wanted %s\n' "$got" "$status"
        sed 's/^/out: /' "$work/out"
        sed 's/^/err: /' "$work/err"
    } >"$work/said"
    tell "$good" "$what"
}

help=$("$program" help)
version=$'leasehold 0.2.0\nstores: file github k8s memory redis rediss'

expect 'version says what is built in' 0 "$version" '' version
expect '--version is understood' 0 "$version" '' --version
expect 'help lists the commands' 0 "$help" '' help
expect '--help is understood' 0 "$help" '' --help
expect 'the program alone prints help, and is a usage error' 64 "$help" ''
expect 'options without a command are a usage error' 64 '' \
    "leasehold: no command given; 'leasehold help' lists the commands" -v
expect 'an unknown command names the closest one' 64 '' \
    "leasehold: unknown command 'verison'; the closest is 'version'" verison
expect 'a word that resembles no command gets no guess' 64 '' \
    "leasehold: unknown command 'frobnicate'; 'leasehold help' lists the commands" frobnicate
expect 'a word too many is a usage error' 64 '' \
    "leasehold: version takes no argument, but got 'now'" version now

status=0
"$program" version >/dev/full 2>"$work/said" || status=$?
verdict 'an answer that cannot be written is an error' test "$status" = 70

# One descriptor is free. A sanitizer's leak checker needs more, so these cases are for the other
# builds only (suite `shipped`); unit_lib_descriptors checks for leaks.
with_one_descriptor() (
    export LEASEHOLD_STORE=file:$work/locks.log
    ulimit -n 4
    exec "$program" "$@"
)
for call in 'acquire k -n' 'run k -- true' 'status k' 'list' 'mark id' 'watermark get name'; do
    ! grep -qa __asan_init "$program" || break
    read -ra words <<<"$call"
    verdict "without descriptors: $call" says 70 'raise the limit|Too many open files' \
        with_one_descriptor "${words[@]}"
done

# Nothing listens there. Time limits are generous: the machine may be busy.
cat >"$work/kubeconfig" <<'YAML'
current-context: x
clusters: [{name: x, cluster: {server: 'http://127.0.0.1:1'}}]
contexts: [{name: x, context: {cluster: x, user: x}}]
users: [{name: x, user: {token: t}}]
YAML
export KUBECONFIG=$work/kubeconfig
# refused LEAST_MS MOST_MS ARGUMENT...: exits with 69 between these times.
refused() {
    local least=$1 most=$2 began took
    shift 2
    began=$(now_ms)
    says 69 '^unavailable: ' "$program" "$@" || return 1
    took=$(($(now_ms) - began))
    printf 'took %s ms\n' "$took" >>"$work/said"
    ((took >= least && took <= most))
}
for store in redis://127.0.0.1:1 redis://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3 \
    'redis://127.0.0.1:1,127.0.0.1:2?sentinel=m' k8s://n; do
    for call in 'acquire k -n' 'status k' 'break k --reason r' 'mark id' 'watermark get name'; do
        read -ra words <<<"$call"
        verdict "refused at once: $call on $store" \
            refused 0 8000 "${words[@]}" --store "$store" --store-timeout 30s
    done
    for call in 'acquire k --wait 1m' 'release k --token 1024' 'renew k --token 1024'; do
        read -ra words <<<"$call"
        verdict "tried until the store timeout: $call on $store" \
            refused 350 8000 "${words[@]}" --store "$store" --store-timeout 400ms
    done
done
printf 'store-timeout: 400ms\n' >"$work/config.yaml"
verdict 'the store timeout of the config file counts' refused 350 8000 acquire k --wait 1m \
    --store redis://127.0.0.1:1 --config "$work/config.yaml"
verdict 'a store timeout of 0 is refused' says 64 "store-timeout.*'0'" \
    "$program" status k --store-timeout 0
finish
