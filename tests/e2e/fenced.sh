#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the commands of a document: fenced.sh PROGRAM PAGE. All blocks that begin with ```sh are one
# script; its output must match its lines after "# prints ". Prints TAP.
set -euo pipefail

program=$(realpath "$1")
page=$(realpath "$2")
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
mkdir "$work/bin" "$work/place"
ln -s "$program" "$work/bin/leasehold"
export PATH=$work/bin:$PATH HOME=$work LEASEHOLD_STORE=file:$work/locks.log

sed -n '/^```sh$/,/^```$/{ /^```/!p }' "$page" >"$work/script"
sed -n 's/.*# prints //p' "$work/script" >"$work/wanted"
status=0
(cd "$work/place" && bash -euo pipefail "$work/script") >"$work/printed" 2>"$work/err" </dev/null ||
    status=$?

verdict "${page##*/} says what its commands print" test "$(wc -l <"$work/wanted")" -ge 5
cp "$work/err" "$work/said"
verdict "the commands of ${page##*/} run" test "$status" = 0
case_of 'they print what it says' diff "$work/wanted" "$work/printed"
verdict 'the file is the one of the current writer' grep -qx new "$work/place/report.txt"
verdict 'the late writer was told why' grep -q '^stale: report has seen token' "$work/err"
finish
