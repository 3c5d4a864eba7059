#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures which lines and branches of a room our tests take: coverage.sh [ROOM [FLOOR]], by default
# core and 100 percent. Prints every missed line and fails below the floor, or when a line never
# ran. A failed assert and an unreachable place must never be taken, so they are excluded; so are
# the branches of a switch, whose cases have lines of their own, and the labels before those.
set -euo pipefail

cd "$(dirname "$0")/.."
room=${1:-core}
floor=${2:-100}
dir=build/coverage

# Fills the counters: the commands of tests/suites.txt, on this build.
suites=(
    "scripts/units.sh $dir"
    "$dir/tests/simulation --seeds 300 --jobs 1"
    "scripts/stories.sh $dir"
    "tests/e2e/cli.sh $dir/leasehold"
)

scripts/build.sh coverage >/dev/null
find "$dir" -name '*.gcda' -delete
for suite in "${suites[@]}"; do
    read -ra command <<<"$suite"
    "${command[@]}" >"$dir/suite.log" 2>&1 || {
        cat "$dir/suite.log"
        printf 'not ok 1 - coverage of src/%s: %s failed\n' "$room" "$suite"
        exit 1
    }
done

never='\b(ASSERT|UNREACHABLE)\('
gcovr --root . --filter "src/$room/" --exclude-unreachable-branches \
    --exclude-branches-by-pattern ".*($never|\\bswitch \\()" \
    --exclude-lines-by-pattern ".*$never|\\s*(case \\w+|default):\$" \
    --json "$dir/branches.json" "$dir"
exec python3 - "$room" "$floor" "$dir/branches.json" <<'PYTHON'
import json, sys

room, floor, path = sys.argv[1:]
total = taken = silent = 0
for file in json.load(open(path))["files"]:
    for line in file["lines"]:
        place = f"{file['file']}:{line['line_number']}"
        counts = [branch["count"] for branch in line["branches"]]
        missed = counts.count(0)
        total += len(counts)
        taken += len(counts) - missed
        if missed:
            print(f"# {place}: {missed} of {len(counts)} branches never taken")
        elif line["count"] == 0 and not line.get("gcovr/noncode"):
            silent += 1
            print(f"# {place}: never run")
percent = 100 * taken / total if total else 0
good = total > 0 and silent == 0 and percent >= float(floor)
print(f"{'ok' if good else 'not ok'} 1 - tests take {taken} of {total} branches "
      f"of src/{room}, {percent:.1f} % (floor {floor} %), {silent} lines never ran")
sys.exit(not good)
PYTHON
