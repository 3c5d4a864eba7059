#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs missing Debian packages of a group: packages.sh GROUP [FILE.deb …]. Package files are
# installed too, with their dependencies. When nothing is missing it changes nothing. Otherwise it
# calls apt, prevents the new packages from starting services, and restores the machine's own
# service policy afterwards.
set -euo pipefail

build='gcc libc6-dev libcurl4-openssl-dev libjansson-dev libssl-dev libyaml-dev meson ninja-build
       pkg-config'
declare -A groups=(
    [build]=$build
    [test]="$build clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev
            cppcheck curl faketime fish g++ gcovr groff-base iproute2 jq libcmocka-dev libcurl4
            nodejs npm openssl prometheus procps python3-redis redis-server redis-tools sqlite3
            strace valgrind"
    [show]='curl redis-tools'
    [bench]="$build etcd-server redis-server redis-tools valgrind"
    [deb]="$build build-essential debhelper git lintian"
    [use]='gcc libc6-dev man-db pkg-config'
    [k8s]='ca-certificates curl dpkg-dev etcd-server golang-1.19-go jq make openssl procps
           prometheus rsync'
    [bare]='debootstrap debian-archive-keyring git'
)

policy=/usr/sbin/policy-rc.d

fail() {
    printf 'packages.sh: %s\n' "$*" >&2
    exit 1
}

# Prints the packages of "$@" that are not installed. One that another package provides is not
# missing: a newer nodejs than Debian's includes npm.
missing() {
    local installed
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}, ${Provides}\n' |
        sed -n 's/^installed //p' | tr ',' '\n' | sed 's/^ *//; s/ (.*//')
    for package in "$@"; do
        grep -Fqx "$package" <<<"$installed" || printf '%s\n' "$package"
    done
}

restore_policy() {
    if [[ -z $saved ]]; then
        rm -f "$policy"
        return
    fi
    # Nothing to restore when we were stopped before it was moved away.
    mv -f "$saved/policy-rc.d" "$policy" 2>/dev/null || true
    rmdir "$saved"
}

# invoke-rc.d calls this program before it starts anything; 101 means "not allowed".
deny_services() {
    saved=
    if [[ -e $policy || -L $policy ]]; then
        saved=$(mktemp -d "$policy.XXXXXX")
    fi
    trap restore_policy EXIT
    trap 'exit 130' INT TERM HUP
    if [[ -n $saved ]]; then
        mv "$policy" "$saved/policy-rc.d"
    fi
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
}

[[ -n ${1:-} && -n ${groups[$1]:-} ]] || fail "say which group: ${!groups[*]}"
read -rd '' -a wanted <<<"${groups[$1]}" || true
files=("${@:2}")

command -v dpkg-query >/dev/null || fail "this is not Debian; install by hand: ${wanted[*]}"
mapfile -t absent < <(missing "${wanted[@]}")
((${#absent[@]} + ${#files[@]})) || exit 0

if ((EUID != 0)); then
    command -v sudo >/dev/null ||
        fail "not root and no sudo; install by hand: ${absent[*]} ${files[*]}"
    exec sudo -- "$0" "$@"
fi

# One at a time: two runs would save and restore each other's policy. The lock is a directory
# that every Debian has, so no lock file is left behind.
exec 9</var/lib/dpkg
flock 9
mapfile -t absent < <(missing "${wanted[@]}")
((${#absent[@]} + ${#files[@]})) || exit 0

absent+=("${files[@]}")
printf 'packages.sh: installing %s\n' "${absent[*]}"
deny_services
export DEBIAN_FRONTEND=noninteractive
# A broken third-party source must not stop us while the packages are available.
apt-get -q -o DPkg::Lock::Timeout=300 update 9<&- ||
    printf 'packages.sh: apt-get update had trouble, going on\n' >&2
apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold \
    install --no-install-recommends "${absent[@]}" 9<&- ||
    fail "apt could not install: ${absent[*]}"
