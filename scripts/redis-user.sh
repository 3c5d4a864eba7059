#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the rules of the smallest Redis user that leasehold can work as, from its documentation,
# docs/redis-store.md. So the documented rules are the tested ones.
set -euo pipefail

cd "$(dirname "$0")/.."
sed -n '/^ACL SETUSER leasehold on >PASSWORD /,/^```/p' docs/redis-store.md |
    sed 's/^ACL SETUSER leasehold on >PASSWORD //; /^```/d' | xargs
