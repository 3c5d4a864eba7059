#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a program on a file store in a folder of its own, which is removed afterwards: on-file.sh
# PROGRAM [ARGUMENT…]. The program gets the URL first. In build/ and not in /tmp, which can be a
# tmpfs: the tests need a disk.
set -euo pipefail

cd "$(dirname "$0")/.."
program=${1:?usage: on-file.sh PROGRAM [ARGUMENT…]}
shift
folder=$(mktemp -d "$PWD/build/store.XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM HUP
"$program" "file:$folder/store.log" "$@"
