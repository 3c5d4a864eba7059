#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The commands of docs/migrating.md: migrating.sh PROGRAM PAGE. The right column of each table is
# typed in, row by row, in one shell for each section; ./job is there. Prints TAP.
set -euo pipefail

program=$(realpath "$1")
page=$(realpath "$2")
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
mkdir "$work/bin" "$work/home"
ln -s "$program" "$work/bin/leasehold"
export PATH=$work/bin:$PATH HOME=$work/home
cd "$work"
printf '#!/bin/sh\necho worked >>worked\n' >job
chmod +x job

# Prints "SECTION<TAB>COMMAND" for each cell on the right that is one command of ours.
cells() {
    awk -F ' \\| ' '
        /^## / { section = substr($0, 4) }
        /^\| / && NF == 2 && match($2, /^`(T=\$\()?leasehold [^`]*` \|$/) {
            command = $2
            gsub(/^`|` \|$/, "", command)
            print section "\t" command
        }' "$page"
}

# A watch ends when it is told to; all others end by themselves.
typed() { # typed COMMAND: as typed in, in this shell
    if [[ $1 == 'leasehold watch '* ]]; then
        local status=0
        timeout 0.3 bash -c "exec $1" || status=$?
        ((status == 124))
    else
        eval "$1" </dev/null
    fi
}

section_works() { # section_works SECTION
    local name command count=0
    export LEASEHOLD_STORE="file:$work/$number.log"
    while IFS=$'\t' read -r name command; do
        [[ $name == "$1" ]] || continue
        printf '> %s\n' "$command"
        typed "$command"
        count=$((count + 1))
    done <commands
    ((count >= 4))
}

cells >commands
mapfile -t sections < <(cut -f1 commands | uniq)
for section in "${sections[@]}"; do
    case_of "$section: $(grep -c "^$section"$'\t' commands) commands" section_works "$section"
done
verdict 'every section has commands' test "${#sections[@]}" = "$(grep -c '^## ' "$page")"
verdict 'the job was run' test -s worked

# The statuses that the page promises.
export LEASEHOLD_STORE=file:$work/statuses.log
leasehold acquire backup --ttl 1h --quiet >token
verdict 'busy is 75' says 75 '^busy: ' leasehold run -n backup -- ./job
verdict 'or as -E says' says 1 '^busy: ' leasehold run -n -E 1 backup -- ./job
verdict 'a wrong token is 78' says 78 '^stale: ' leasehold release backup --token 7
finish
