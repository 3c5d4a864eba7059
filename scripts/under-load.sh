#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command N times beside busy processes: under-load.sh N CMD… A suite that looks at the time
# must pass ten times in a row this way. BUSY=K starts K of them instead of two. Keeps the output of
# runs that failed, says after each how it went, and exits with 1 when one of them failed.
set -euo pipefail

(($# >= 2)) && [[ $1 =~ ^[1-9][0-9]*$ ]] || {
    printf 'usage: [BUSY=K] under-load.sh N CMD…\n' >&2
    exit 64
}
runs=$1
shift
busy=()
dir=$(mktemp -d)
stop_busy() {
    ((${#busy[@]} == 0)) || kill "${busy[@]}" 2>/dev/null || true
    rmdir "$dir" 2>/dev/null || printf '# the output of what failed: %s\n' "$dir"
}
trap stop_busy EXIT
trap 'exit 130' INT TERM HUP

for ((i = 0; i < ${BUSY:-2}; i++)); do
    sh -c 'while :; do :; done' &
    busy+=($!)
done
failed=0
for ((i = 1; i <= runs; i++)); do
    status=0
    began=$EPOCHREALTIME
    "$@" >"$dir/$i" 2>&1 </dev/null || status=$?
    took_ms=$(((${EPOCHREALTIME/./} - ${began/./}) / 1000))
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
