#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Reads a suite's output and prints how many cases passed and failed: tap-count.sh STATUS <output. A
# suite that died, fell short of its plan or printed nothing has failed, whatever it printed before;
# a skipped case has not passed. Only a feature that a store does not declare is neither: that it
# declares enough is a case of its own.
set -euo pipefail

awk -v status="$1" '
/^1\.\.[0-9]+/ { planned += substr($0, 4) + 0 }
/^ok/          {
    if (/ # skip: store has no /)
        beside++
    else if (toupper($0) ~ /# *SKIP/)
        failed++
    else
        passed++
}
/^not ok/      { failed++ }
END {
    cases = passed + failed
    if (!failed && (status != 0 || cases == 0 || cases + beside < planned))
        failed = 1
    print passed + 0, failed + 0
}'
