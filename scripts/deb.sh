#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages of HEAD into build/: deb.sh. The tree is copied to build/deb, where
# dist/debian becomes its debian/. lintian checks the result: its errors fail, its warnings are
# printed.
set -euo pipefail

cd "$(dirname "$0")/.."
place=build/deb

fail() {
    printf 'deb: %s\n' "$*" >&2
    exit 1
}

step() {
    printf '== [%4d s] %s\n' "$SECONDS" "$*"
}

version=$(dpkg-parsechangelog -l dist/debian/changelog -S Version)
copy=$place/leasehold-${version%-*}
[[ -z $(git status --porcelain) ]] || step 'note: only what is committed is packed'

step "leasehold $version: copying the tree"
rm -rf "$place" build/*.deb
mkdir -p "$copy"
git archive HEAD | tar -x -C "$copy"
mv "$copy/dist/debian" "$copy/debian"

step 'building the packages'
(cd "$copy" && dpkg-buildpackage -us -uc -b) || fail 'the packages did not build'

step 'lintian'
mkdir "$place/tmp" # lintian forgets files there
TMPDIR=$PWD/$place/tmp lintian --allow-root --fail-on error "$place/leasehold_$version"_*.changes ||
    fail 'lintian found errors'

mv "$place"/*.deb build/
step 'built:'
ls build/*.deb
