#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The daemon on one store: serve.sh STORE PROGRAM. The table of verbs and the rules side by side,
# because both mostly wait; on Redis and Kubernetes then a store that fails. Prints TAP.
set -euo pipefail

store=${1:?usage: serve.sh STORE PROGRAM}
program=$(realpath "${2:?usage: serve.sh STORE PROGRAM}")
here=$(realpath "$(dirname "$0")")
# shellcheck source=tests/e2e/kit.sh
. "$here/kit.sh"

parts=(verbs rules)
for part in "${parts[@]}"; do
    "$here/serve_$part.py" "$store" "$program" >"$work/$part" 2>&1 &
    started+=($!)
done
wait || true
started=()
outage=()
case $store in
redis://*) outage=("$here/serve_outage.py" "$program") ;; # on a server of its own
k8s://*) outage=("$here/serve_outage.py" "$store" "$program") ;;
esac
if ((${#outage[@]} > 0)); then
    parts+=(outage)
    "${outage[@]}" >"$work/outage" 2>&1 || true
fi

# As one list. A part without its plan stopped short of it.
for part in "${parts[@]}"; do
    while IFS= read -r line; do
        case $line in
        'ok '*) tell true "$part: ${line#ok * - }" ;;
        'not ok '*) tell false "$part: ${line#not ok * - }" ;;
        1..*) ;;
        *) printf '%s\n' "$line" ;;
        esac
    done <"$work/$part"
    verdict "$part: to its end" grep -q '^1\.\.' "$work/$part"
done
finish
