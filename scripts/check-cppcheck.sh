#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Gate: cppcheck finds nothing in any C file: check-cppcheck.sh [ROOT]. Comments cannot silence it.
# It caches its results in build/cppcheck, so that a second run is fast.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
cd "${1:-$here}"
list=$("$here/scripts/sources.sh" .)
mkdir -p build/cppcheck

grep '\.c$' <<<"$list" | cppcheck --file-list=- --quiet --error-exitcode=1 -j "$(nproc)" \
    --enable=warning,style,performance,portability \
    --std=c11 --library=posix -D_GNU_SOURCE -DLH_MUTANTS -DLH_VERSION='""' -I src \
    --cppcheck-build-dir=build/cppcheck --template='{file}:{line}: {message} [{id}]' 2>&1
