#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Removes the files that `make install` puts below $DESTDIR$PREFIX, and nothing else. The list
# comes from Meson itself, so it also works when another checkout did the installing.
set -euo pipefail

cd "$(dirname "$0")/.."
meson introspect --installed build |
    python3 -c 'import json, sys; print("\n".join(json.load(sys.stdin).values()))' |
    while read -r path; do
        rm -fv "${DESTDIR:-}$path"
    done
