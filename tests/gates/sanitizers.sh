#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Proves that a sanitized build can fail: sanitizers.sh build/asan, or build/tsan --races. Each
# planted mistake must stop the program where it is made, with the right words, and the same program
# without one must end well. Every file must be compiled so that it does, and the environment must
# not say otherwise.
set -euo pipefail

bait=$1/tests/sanitizer_bait
number=0
wrong=0

expect() { # expect MISTAKE STATUS TEXT [BEHIND]: BEHIND, the program may go on until its end
    local said status=0 word='ok'
    number=$((number + 1))
    said=$("$bait" "$1" 2>&1) || status=$?
    if [[ $status != "$2" || $said != *"$3"* ]] ||
        [[ $status != 0 && -z ${4:-} && $said == *'went on'* ]]; then
        wrong=1
        word='not ok'
        printf '# status %s: %s\n' "$status" "${said//$'\n'/$'\n'# }"
    fi
    printf '%s %d - sanitizers answer %s\n' "$word" "$number" "$1"
}

# judge TRUE|FALSE WHAT
judge() {
    local word='ok'
    number=$((number + 1))
    "$1" || { word='not ok' && wrong=1; }
    printf '%s %d - %s\n' "$word" "$number" "$2"
}

# Compiled commands that sanitize and would go on behind a finding. What is compiled to be in front
# of other programs has no sanitizer at all.
lenient=$(grep '"command":' "$1/compile_commands.json" | grep -e '-fsanitize=' |
    grep -vce '-fno-sanitize-recover=all' || true)
strict=$(grep '"command":' "$1/compile_commands.json" | grep -e '-fsanitize=' |
    grep -ce '-fno-sanitize-recover=all' || true)
judge "$([[ $lenient == 0 && $strict -gt 100 ]] && printf true || printf false)" \
    "all of $strict files end the program at the first finding"
options="${ASAN_OPTIONS:-} ${UBSAN_OPTIONS:-} ${TSAN_OPTIONS:-} ${LSAN_OPTIONS:-}"
softened='halt_on_error=(0|false)|exitcode=0|detect_leaks=(0|false)|report_bugs=(0|false)'
judge "$([[ $options =~ $softened ]] && printf false || printf true)" \
    'the environment does not soften them'
judge "$(grep -rqE "($softened)|-fsanitize-recover|__lsan_disable" \
    --include='*.sh' --include='*.c' --include='*.h' --include=meson.build \
    --exclude="${0##*/}" src scripts tests meson.build && printf false || printf true)" \
    'nor does any file of the tree'

expect none 0 'went on'
if [[ ${2:-} == --races ]]; then
    expect race 66 'data race'
else
    expect overflow 1 'signed integer overflow'
    expect shift 1 'shift exponent'
    expect bounds 1 'heap-buffer-overflow'
    expect leak 1 'LeakSanitizer' at-the-end
fi

printf '1..%d\n' "$number"
exit "$wrong"
