#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every story of tests/trace and compares its log: stories.sh DIR. Prints TAP.
set -euo pipefail

cd "$(dirname "$0")/.."
exec "${1:?usage: stories.sh DIR}/tests/story" tests/trace/stories/*.story tests/trace/show/*.story
