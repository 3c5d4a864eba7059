#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints every C file of a tree, relative to it, one per line: sources.sh [ROOT]. It fails when
# there is none, so that no gate can pass without a file. It does not use git, so that it includes
# new files and works in an unpacked tarball.
set -euo pipefail

cd "${1:-$(dirname "$0")/..}"
find . \( -path ./build -o -path ./.git \) -prune -o -type f -name '*.[ch]' -printf '%P\n' |
    LC_ALL=C sort | grep . || {
    printf '%s: there is no C file here, and a gate must have something to look at\n' "$PWD" >&2
    exit 1
}
