#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command N times beside busy processes: under-load.sh N CMD… A suite that depends on time
# must pass ten times in a row this way. BUSY=K starts K of them instead of two. Keeps the output of
# failed runs, prints the result of each, and exits with 1 when one of them failed.
set -euo pipefail

(($# >= 2)) && [[ $1 =~ ^[1-9][0-9]*$ ]] || {
    printf 'usage: [BUSY=K] under-load.sh N CMD…\n' >&2
    exit 64
}
runs=$1
shift
ours=() # the busy ones, and the command when it is cut short
dir=$(mktemp -d)
end_all() {
    ((${#ours[@]} == 0)) || kill "${ours[@]}" 2>/dev/null || true
    rmdir "$dir" 2>/dev/null || printf '# the output of what failed: %s\n' "$dir"
}
trap end_all EXIT
trap 'exit 130' INT TERM HUP

busy=${BUSY:-2}
for ((i = 0; i < busy; i++)); do
    sh -c 'while :; do :; done' &
    ours+=($!)
done
failed=0
for ((i = 1; i <= runs; i++)); do
    status=0
    began=$EPOCHREALTIME
    env --default-signal "$@" >"$dir/$i" 2>&1 </dev/null &
    ours[$busy]=$!
    wait "${ours[busy]}" || status=$?
    unset 'ours[busy]'
    took_ms=$(((${EPOCHREALTIME//[!0-9]/} - ${began//[!0-9]/}) / 1000))
    if ((status == 0)) && ! grep -q '^not ok' "$dir/$i"; then
        rm "$dir/$i"
        printf 'ok %d - %d.%d s\n' "$i" $((took_ms / 1000)) $((took_ms % 1000 / 100))
    else
        failed=$((failed + 1))
        printf 'not ok %d - exit status %d after %d.%d s\n' "$i" "$status" $((took_ms / 1000)) \
            $((took_ms % 1000 / 100))
        grep '^not ok' "$dir/$i" | sed 's/^/# /' || true
    fi
done
printf '1..%d\n# %d of %d failed: %s\n' "$runs" "$failed" "$runs" "$*"
((failed == 0))
