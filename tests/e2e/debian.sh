#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Debian packages on a user's system: debian.sh installed, debian.sh removed. For
# scripts/bare.sh, in a system made for it: it takes locks of root, and requires that no other
# leasehold is installed. Prints TAP.
set -euo pipefail

stage=${1:?usage: debian.sh installed|removed}
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
chmod 755 "$work"
cd "$work"

version_is_the_package() {
    local version
    # shellcheck disable=SC2016 # dpkg fills it in
    version=$(dpkg-query -W -f '${Version}' leasehold)
    [[ $(leasehold version | head -n 1) == "leasehold ${version%-*}" ]]
}

lock_of_root() {
    local token
    token=$(leasehold acquire smoke)
    leasehold status smoke | grep -q held
    leasehold release smoke --token "$token"
    leasehold status smoke | grep -q free
    [[ -s /var/lib/leasehold/locks.log ]]
}

lock_of_a_user() {
    mkdir home
    chown nobody home
    setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME="$work/home" \
        leasehold acquire smoke | grep -qx '[1-9][0-9]*'
    [[ -s home/.local/state/leasehold/locks.log ]]
}

pages_are_found() {
    local page
    man leasehold | grep -q 'fencing tokens'
    man 3 leasehold | grep -q lh_acquire_start
    for page in $(leasehold help | sed -n 's/^  \([a-z][a-z0-9-]*\) .*/\1/p'); do
        man -w 1 "leasehold-$page"
    done
}

completions_are_there() {
    # shellcheck source=/dev/null
    (source /usr/share/bash-completion/completions/leasehold && complete -p leasehold)
    [[ -s /usr/share/zsh/vendor-completions/_leasehold ]]
    [[ -s /usr/share/fish/vendor_completions.d/leasehold.fish ]]
}

manifests_are_there() {
    local place=/usr/share/leasehold/kubernetes
    grep -q 'verbs: \[get, list, watch, create, update, delete\]' $place/role.yaml
    [[ -s $place/kustomization.yaml && -s $place/collector/cronjob.yaml ]]
}

build_pool() { # build_pool NAME FLAG…, the flags for the compiler
    gcc -pthread -o "$1" /usr/share/doc/libleasehold-dev/examples/worker_pool.c "${@:2}"
}
program_with_the_library() {
    local flags
    read -ra flags < <(pkg-config --cflags --libs leasehold)
    build_pool pool "${flags[@]}"
    ldd pool | grep 'libleasehold\.so\.1 => /'
    [[ $(./pool "file:$work/pool.log" 12 | wc -l) == 12 ]]
}
program_with_the_archive() {
    local flags
    read -ra flags < <(pkg-config --static --cflags --libs leasehold)
    build_pool pool-static -static "${flags[@]}"
    [[ $(./pool-static "file:$work/pool-static.log" 12 | wc -l) == 12 ]]
}

only_locks_are_left() {
    # man caches pages that were read as long as it likes; /root has the tree.
    find / -xdev \( -path /root -o -path /var/cache/man \) -prune \
        -o -name '*leasehold*' -print | tee left
    [[ $(<left) == /var/lib/leasehold && -s /var/lib/leasehold/locks.log ]]
}

case $stage in
installed)
    case_of 'the program is of the version of its package' version_is_the_package
    case_of 'root takes a lock and gives it back, in /var/lib' lock_of_root
    case_of 'a user takes one below the home folder' lock_of_a_user
    case_of 'man finds every page' pages_are_found
    case_of 'completions for bash, zsh and fish' completions_are_there
    case_of 'manifests for Kubernetes' manifests_are_there
    case_of 'a program with the shared library' program_with_the_library
    case_of 'a program with the static library' program_with_the_archive
    ;;
removed)
    case_of 'nothing is left but the locks of root' only_locks_are_left
    ;;
*)
    printf 'debian.sh: installed or removed, not %s\n' "$stage" >&2
    exit 64
    ;;
esac

finish
