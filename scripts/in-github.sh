#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a program that would create its own store on an emulated GitHub instead, by
# LEASEHOLD_TEST_STORE: in-github.sh PROGRAM [ARGUMENT…].
set -euo pipefail

case ${1:?usage: in-github.sh PROGRAM [ARGUMENT…]} in
github://*) # called by on-github.sh
    export LEASEHOLD_TEST_STORE=$1
    shift
    exec "$@" ;;
*)
    exec "$(dirname "$0")/on-github.sh" short "$(realpath "$0")" "$@" ;;
esac
