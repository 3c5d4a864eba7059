#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every planted fault of a store must also be caught on a store that processes share: planted.sh
# DIR. Prints TAP.
set -euo pipefail

cd "$(dirname "$0")/.."
exec scripts/on-file.sh "${1:?usage: planted.sh DIR}/tests/conformance" --processes 4 --mutants
