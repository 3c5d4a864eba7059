#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shared by the test scripts; to be sourced first. A temporary folder, $work, which is removed at
# exit, as are the processes in `started`; an environment without leasehold's variables; cases in
# TAP, which finish() adds up. A script with more to clean up defines at_end().
# shellcheck disable=SC2034 # what is set here is for the caller
set -euo pipefail

work=$(mktemp -d)
started=()
number=0
wrong=0
flawed=false

at_end() { :; }
end_all() {
    local pid
    for pid in "${started[@]}"; do { kill -KILL "$pid" && wait "$pid"; } 2>/dev/null || true; done
    at_end
    rm -rf "$work"
}
trap end_all EXIT
trap 'exit 130' INT TERM HUP
unset LEASEHOLD_STORE LEASEHOLD_CONFIG LEASEHOLD_TTL LEASEHOLD_HOLDER LEASEHOLD_KEY LEASEHOLD_TOKEN
unset XDG_CONFIG_HOME XDG_STATE_HOME POD_NAME POD_NAMESPACE

# tell TRUE|FALSE WHAT: one case; its output is in $work/said.
tell() {
    number=$((number + 1))
    if "$1"; then
        printf 'ok %d - %s\n' "$number" "$2"
        return
    fi
    printf 'not ok %d - %s\n' "$number" "$2"
    ! [[ -s $work/said ]] || sed 's/^/# /' "$work/said"
    wrong=1
}

# verdict WHAT COMMAND…: by its status alone.
verdict() {
    local what=$1 good=true
    shift
    "$@" || good=false
    tell "$good" "$what"
}

# case_of WHAT COMMAND…: a function of several steps, each of which must succeed.
case_of() {
    local what=$1 good=true
    shift
    # In the background, because within a condition the shell does not stop at the first failure.
    "$@" >"$work/said" 2>&1 &
    wait $! || good=false
    tell "$good" "$what"
}

# For long cases: fail WORDS… on each failure, and say WHAT at the end.
fail() {
    printf '# %s\n' "$*"
    flawed=true
}
say() {
    local good=true
    ! $flawed || good=false
    flawed=false
    tell "$good" "$1"
}

# says STATUS PATTERN COMMAND…: it exits so, and a line of its output matches.
says() {
    local wanted=$1 pattern=$2 status=0
    shift 2
    "$@" >"$work/said" 2>&1 </dev/null || status=$?
    printf 'exit %s\n' "$status" >>"$work/said"
    [[ $status == "$wanted" ]] && grep -qE -- "$pattern" "$work/said"
}

# await FILE: until it is not empty.
await() {
    local i
    for ((i = 0; i < 3000; i++)); do
        [[ ! -s $1 ]] || return 0
        sleep 0.02
    done
    printf 'waited in vain for %s\n' "$1" >&2
    return 1
}

# await_watch FILE: until `leasehold --verbose watch` reports there that the store confirmed it.
# Changes before that are not reported.
await_watch() {
    local i
    for ((i = 0; i < 3000; i++)); do
        ! grep -qsE '^leasehold: ok: .*: watching$' "$1" || return 0
        sleep 0.02
    done
    printf 'not watching: %s\n' "$(<"$1")" >&2
    return 1
}

# With leasehold in the path.
field() { # field KEY NAME: of the key's status; the first one of that name
    local json
    json=$(leasehold status "$1" --json)
    json=${json#*"\"$2\":"}
    case $json in
    '"'*) json=${json#?} && printf '%s\n' "${json%%'"'*}" ;;
    '{'*) printf '%s\n' "${json%%'}'*}}" ;;
    *) printf '%s\n' "${json%%[,'}']*}" ;;
    esac
}
is() { [[ $(field "$1" "$2") == "$3" ]]; } # is KEY NAME VALUE
until_is() { # until_is KEY NAME VALUE
    local i
    for ((i = 0; i < 400; i++)); do
        ! is "$@" || return 0
        sleep 0.02
    done
    printf 'waited in vain for %s of %s to be %s\n' "$2" "$1" "$3"
    return 1
}
gone() { # gone PID: it has ended; for up to 8 s
    local i state
    for ((i = 0; i < 400; i++)); do
        state=$(sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2>/dev/null) || return 0
        [[ $state != Z ]] || return 0
        sleep 0.02
    done
    return 1
}

# On the server of on-k8s.sh, with all rights.
kubectl() { "$KUBECTL" --kubeconfig "$K8S_ADMIN" -n leasehold-test --request-timeout=60s "$@"; }
kill_api() {
    local pid
    pid=$(<"$K8S_PID")
    kill -KILL "$pid"
    # Until it is gone, which takes such a large process a while, its port is not free.
    while grep -q '^State:[[:space:]]*[^Z]' "/proc/$pid/status" 2>/dev/null; do sleep 0.02; done
}
start_api() {
    local since=$SECONDS
    "$K8S_API"
    until kubectl get --raw /readyz >/dev/null 2>&1; do
        ((SECONDS - since < 120)) || { tail -n 5 "${K8S_PID%/*}/api.log" >&2 && return 1; }
        sleep 0.2
    done
}

now_ms() { printf '%s\n' $((${EPOCHREALTIME//[!0-9]/} / 1000)); }

finish() {
    printf '1..%d\n' "$number"
    exit "$wrong"
}
