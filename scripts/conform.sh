#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One suite against every store that needs no service: conform.sh DIR [--proof]. With --proof also
# in one process, in a thread beside the caller, and with every planted fault on the shared store.
set -euo pipefail

dir=${1:?usage: conform.sh DIR [--proof]}
suite=$dir/tests/conformance
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
status=0

"$suite" memory: || status=1
"$suite" "file:$place/processes" --processes 4 || status=1
"$suite" memory: --mutants || status=1
if [[ ${2:-} == --proof ]]; then
    "$suite" memory: --beside || status=1
    "$suite" "file:$place/beside" --processes 4 --beside || status=1
    "$suite" "file:$place/mutants" --processes 4 --mutants || status=1
fi
exit "$status"
