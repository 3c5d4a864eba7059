#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Proves that a sanitized build can fail: sanitizers.sh build/asan, or build/tsan --races. Each
# planted mistake must stop the program with the right words, and the same program without one must
# end well.
set -euo pipefail

bait=$1/tests/sanitizer_bait
number=0
wrong=0

expect() { # expect MISTAKE STATUS TEXT
    local said status=0 word='ok'
    number=$((number + 1))
    said=$("$bait" "$1" 2>&1) || status=$?
    if [[ $status != "$2" || $said != *"$3"* ]]; then
        wrong=1
        word='not ok'
        printf '# status %s: %s\n' "$status" "${said//$'\n'/$'\n'# }"
    fi
    printf '%s %d - sanitizers answer %s\n' "$word" "$number" "$1"
}

expect none 0 ''
if [[ ${2:-} == --races ]]; then
    expect race 66 'data race'
else
    expect overflow 1 'signed integer overflow'
    expect shift 1 'shift exponent'
    expect bounds 1 'heap-buffer-overflow'
    expect leak 1 'LeakSanitizer'
fi

printf '1..%d\n' "$number"
exit "$wrong"
