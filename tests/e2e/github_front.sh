#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What tests/peers/github_front.py adds to the GitHub emulator, each shown once, and the verbs of
# scripts/server-github.sh: github_front.sh. Prints TAP.
set -euo pipefail

cd "$(dirname "$0")/../.."
case ${1:-} in
github://*) exec python3 tests/e2e/github_front.py ;; # called by on-github.sh
*) exec scripts/on-github.sh front "$(realpath "tests/e2e/github_front.sh")" ;;
esac
