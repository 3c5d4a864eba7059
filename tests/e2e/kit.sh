#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the test scripts share; they read it first. A folder of their own ($work, also $HOME), which
# goes away with them, as do the processes in `started`; an environment that says nothing of
# leasehold; cases in TAP, that finish() adds up. Who has more to end defines at_end().
set -euo pipefail

work=$(mktemp -d)
started=()
number=0
wrong=0

at_end() { :; }
end_all() {
    local pid
    for pid in "${started[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
    at_end
    rm -rf "$work"
}
trap end_all EXIT
trap 'exit 130' INT TERM HUP
unset LEASEHOLD_STORE LEASEHOLD_CONFIG LEASEHOLD_TTL LEASEHOLD_HOLDER LEASEHOLD_KEY LEASEHOLD_TOKEN
unset XDG_CONFIG_HOME XDG_STATE_HOME POD_NAME POD_NAMESPACE
export HOME=$work

# tell TRUE|FALSE WHAT: one case; what was said of it stands in $work/said.
tell() {
    number=$((number + 1))
    if "$1"; then
        printf 'ok %d - %s\n' "$number" "$2"
    else
        printf 'not ok %d - %s\n' "$number" "$2"
        ! [[ -s $work/said ]] || sed 's/^/# /' "$work/said"
        wrong=1
    fi
    : >"$work/said"
}

# verdict WHAT COMMAND…
verdict() {
    local what=$1 good=true
    shift
    "$@" || good=false
    tell "$good" "$what"
}

# says STATUS PATTERN COMMAND…: it ends so, and a line of what it says is like that.
says() {
    local wanted=$1 pattern=$2 status=0
    shift 2
    "$@" >"$work/said" 2>&1 </dev/null || status=$?
    printf 'exit %s\n' "$status" >>"$work/said"
    [[ $status == "$wanted" ]] && grep -qE -- "$pattern" "$work/said"
}

now_ms() { printf '%s\n' $((${EPOCHREALTIME/./} / 1000)); }

# await FILE: until it is there.
await() {
    local i
    for ((i = 0; i < 3000; i++)); do
        [[ ! -e $1 ]] || return 0
        sleep 0.02
    done
    printf 'waited in vain for %s\n' "$1" >&2
    return 1
}

finish() {
    printf '1..%d\n' "$number"
    exit "$wrong"
}
