#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Demonstrates the program, on a temporary store: show.sh PROGRAM. Every line after a "$" is run as
# printed.
set -euo pipefail

program=$(realpath "${1:?usage: show.sh PROGRAM}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir bin
ln -s "$program" bin/leasehold
export PATH=$work/bin:$PATH LEASEHOLD_STORE=file:$work/locks.log
unset LEASEHOLD_TTL LEASEHOLD_CONFIG LEASEHOLD_HOLDER POD_NAME POD_NAMESPACE

show() {
    printf '\n$ %s\n' "$1"
    eval "$1" 2>&1 || printf '(exit status %d)\n' $?
}

# shellcheck disable=SC2016 # shown as it stands, and then run
{
    show 'leasehold version'
    show 'T=$(leasehold acquire nightly --holder ann --meta job=backup); echo "$T"'
    show 'leasehold acquire nightly --holder bob --no-wait'
    show 'leasehold status nightly'
    show 'leasehold acquire nightly --holder bob > bobs-token &'
    sleep 0.3
    show 'leasehold status nightly'
    show 'leasehold release nightly --token "$T"; wait; cat bobs-token'
    show 'leasehold renew nightly --token "$T"'
    show 'leasehold release nightly --token "$(cat bobs-token)" --cooldown 5m'
    show 'leasehold acquire nightly --holder cem'
    show 'leasehold history nightly'
    show 'leasehold bench --duration 500ms'
}
