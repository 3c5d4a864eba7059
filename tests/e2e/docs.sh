#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Figures in the documents match the tree: docs.sh. Prints TAP. With --write it updates the line
# counts of the files to read first in docs/architecture.md instead.
set -euo pipefail

cd "$(dirname "$0")/../.."
page=docs/architecture.md
mapfile -t files < <(sed -n 's/^| `\([^`]*\.\(h\|c\|story\)\)` | [0-9A-Z]* |.*/\1/p' "$page")

sum=0
number=0
wrong=0
for file in "${files[@]}"; do
    lines=$(wc -l <"$file")
    sum=$((sum + lines))
    number=$((number + 1))
    if [[ ${1:-} == --write ]]; then
        sed -i "s;^| \`$file\` | [0-9A-Z]* |;| \`$file\` | $lines |;" "$page"
    elif grep -qF "| \`$file\` | $lines |" "$page"; then
        printf 'ok %d - %s says how long %s is\n' "$number" "$page" "$file"
    else
        printf 'not ok %d - %s says how long %s is (%d lines)\n' "$number" "$page" "$file" "$lines"
        wrong=1
    fi
done
if [[ ${1:-} == --write ]]; then
    sed -i "s;^| together | [0-9A-Z]* |;| together | $sum |;" "$page"
    exit
fi
number=$((number + 1))
if grep -q "^| together | $sum |" "$page" && ((${#files[@]} > 0)); then
    printf 'ok %d - %s says how long they are together\n' "$number" "$page"
else
    printf 'not ok %d - %s says how long they are together (%d lines)\n' "$number" "$page" "$sum"
    wrong=1
fi
printf '1..%d\n' "$number"
exit "$wrong"
