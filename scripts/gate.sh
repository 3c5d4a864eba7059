#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs one gate over this tree as a test case of its own: gate.sh NAME runs check-NAME.sh.
set -euo pipefail

if "$(dirname "$0")/check-$1.sh"; then
    printf 'ok 1 - %s gate\n' "$1"
else
    printf 'not ok 1 - %s gate\n' "$1"
    exit 1
fi
