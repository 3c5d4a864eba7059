#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs one gate over this tree as a test case of its own: gate.sh NAME [ARGUMENT…] runs
# check-NAME.sh.
set -euo pipefail

name=${1:?usage: gate.sh NAME [ARGUMENT…]}
shift
if "$(dirname "$0")/check-$name.sh" "$@"; then
    printf 'ok 1 - %s gate\n' "$name"
else
    printf 'not ok 1 - %s gate\n' "$name"
    exit 1
fi
