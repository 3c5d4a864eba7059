#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the rules of the smallest Redis user that leasehold can work as, from the page that tells
# people: docs/redis.md. So what is documented is what is tested.
set -euo pipefail

cd "$(dirname "$0")/.."
sed -n 's/^ACL SETUSER leasehold on >[^ ]* //p' docs/redis.md | head -n 1
