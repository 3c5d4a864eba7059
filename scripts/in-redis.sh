#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a program that would create its own store on a Redis server instead, by LEASEHOLD_TEST_STORE:
# in-redis.sh PROGRAM [ARGUMENT…].
set -euo pipefail

case ${1:?usage: in-redis.sh PROGRAM [ARGUMENT…]} in
redis://*) # called by on-redis.sh
    export LEASEHOLD_TEST_STORE=$1
    shift
    exec "$@" ;;
*)
    exec "$(dirname "$0")/on-redis.sh" plain "$(realpath "$0")" "$@" ;;
esac
