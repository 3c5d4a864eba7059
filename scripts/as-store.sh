#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a program that makes a store of its own, unless told of one, on the store of this URL:
# as-store.sh URL PROGRAM [ARGUMENT…]. For those that on-redis.sh and its like run with a URL first.
set -euo pipefail

export LEASEHOLD_TEST_STORE=${1:?usage: as-store.sh URL PROGRAM [ARGUMENT…]}
shift
exec "$@"
