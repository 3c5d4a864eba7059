#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Simulates SEEDS days on the optimised build: simulate.sh SEEDS. Prints TAP.
set -euo pipefail

cd "$(dirname "$0")/.."
exec build/sim/tests/simulation --seeds "${1:?usage: simulate.sh SEEDS}" --jobs "$(nproc)"
