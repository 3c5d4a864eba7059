#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Gate: every C file is formatted by .clang-format: check-format.sh [ROOT]. `make fmt` fixes it.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
cd "${1:-$here}"
list=$("$here/scripts/sources.sh" .)
mapfile -t files <<<"$list"

if ! clang-format-14 --style="file:$here/.clang-format" --dry-run --Werror "${files[@]}" 2>&1; then
    printf 'format: run make fmt\n'
    exit 1
fi
