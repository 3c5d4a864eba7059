#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Proves that a bare Debian 12 with git and make needs nothing but this tree: bare.sh [--full].
# Clones HEAD into a fresh minimal system, runs `make run` and `make test` there with an empty
# environment, with --full `make test-full` too, and checks for leftovers. Then it builds the Debian
# packages there and installs, tests and removes them in a second system that has nothing else. Both
# run in namespaces of their own, so their mounts and processes end with them. Package sources and
# proxies are those of this machine.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
suite=bookworm

fail() {
    printf 'bare: %s\n' "$*" >&2
    exit 1
}

step() {
    printf '== [%4d s] %s\n' "$SECONDS" "$*"
}

# Debian's own entries of this machine's apt sources, in any of its formats, as "URI RELEASE": the
# release itself first, then its updates and security fixes.
debian_sources() {
    # shellcheck disable=SC2016 # apt fills these in
    apt-get indextargets --format '$(CODENAME) $(REPO_URI) $(RELEASE)' \
        'Created-By: Packages' 'Origin: Debian' 'Component: main' |
        awk -v suite="$suite" '$2 ~ /^https?:/ && $1 ~ "^" suite "(-updates|-security)?$"' |
        sort -u | cut -d ' ' -f 2-
}

# Copies this machine's package setup into the jail: names, sources, keys, authorities, proxies.
connect_jail() {
    cp -L /etc/resolv.conf /etc/hosts "$jail/etc/"
    cp -L /etc/ssl/certs/ca-certificates.crt "$jail/etc/ssl/certs/"
    printf 'cafile=/etc/ssl/certs/ca-certificates.crt\n' >"$jail/root/.npmrc"
    awk '{ print "deb", $0, "main" }' <<<"$sources" >"$jail/etc/apt/sources.list"
    find /usr/share/keyrings /etc/apt/keyrings /etc/apt/trusted.gpg.d -type f \
        \( -name '*.gpg' -o -name '*.asc' \) -exec cp -t "$jail/etc/apt/trusted.gpg.d" {} + \
        2>/dev/null || true
    apt-config dump | { grep -E '^Acquire::(https?|Retries|Check-Valid-Until)\b' || true; } \
        >"$jail/etc/apt/apt.conf.d/90machine"
}

make_jail() {
    sources=$(debian_sources)
    if [[ -z $sources ]]; then
        apt-get -q update
        sources=$(debian_sources)
    fi
    [[ -n $sources ]] || fail "the apt sources of this machine have no Debian $suite main"

    eval "$(apt-config shell http_proxy Acquire::http::Proxy https_proxy Acquire::https::Proxy)"
    [[ -z ${http_proxy:-} ]] || export http_proxy
    [[ -z ${https_proxy:-} ]] || export https_proxy
    local mirror=${sources%% *}
    debootstrap --variant=minbase --include=git,make,ca-certificates \
        "$suite" "$jail" "$mirror" >"$jail.log" 2>&1 || {
        tail -n 20 "$jail.log"
        fail 'debootstrap failed'
    }
    connect_jail
    tr -d - </proc/sys/kernel/random/uuid >"$jail/etc/machine-id" # as the first boot would
    git clone --quiet --no-hardlinks "$here" "$jail/root/leasehold"
    cp -a "$jail" "$jail.user"
}

mount_jail() {
    mount -t proc proc "$1/proc"
    mount -t tmpfs tmpfs "$1/dev/shm"
    mkdir -p "$1/dev/pts"
    mount -t devpts -o newinstance,ptmxmode=666 devpts "$1/dev/pts"
    ln -sf pts/ptmx "$1/dev/ptmx"
}

# Runs a command in the tree inside the jail, with an empty environment.
in_jail() {
    chroot "$jail" /usr/bin/env -i HOME=/root TERM=dumb \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        /bin/bash -c "cd /root/leasehold && $1"
}

check_leftovers() {
    local root left
    for root in /proc/[0-9]*/root; do
        if [[ $(readlink "$root") == "$jail"* ]]; then
            fail "a process was left behind: $(tr '\0' ' ' <"${root%root}cmdline")"
        fi
    done
    left=$(in_jail 'git status --porcelain --ignored')
    [[ $left == '!! build/' ]] || fail "the tree holds more than build/: $left"
    left=$(find "$jail/tmp" "$jail/var/tmp" -mindepth 1)
    [[ -z $left ]] || fail "temporary files were left behind: $left"
}

try_tests() {
    step "make $1"
    in_jail "make $1" 2>&1 | tee "$jail.log" || fail "make $1 failed"
    [[ $(tail -n 1 "$jail.log") =~ ^[1-9][0-9]*\ passed,\ 0\ failed$ ]] ||
        fail "make $1 did not end with \"N passed, 0 failed\""
    check_leftovers
}

# Tests the packages as a user without the tree: only the test and the apt setup come from it. The
# development files of the library come as its dependencies, or not at all.
try_packages() {
    local jail=$1
    mount_jail "$jail"
    in_jail 'scripts/packages.sh use ./build/*.deb' >"$jail.log" 2>&1 || {
        tail -n 20 "$jail.log"
        fail 'the packages could not be installed'
    }
    in_jail 'tests/e2e/debian.sh installed' || fail 'what is installed does not work'
    step 'the packages are removed'
    in_jail 'dpkg --purge libleasehold-dev libleasehold1 leasehold'
    in_jail 'tests/e2e/debian.sh removed' || fail 'something was left behind'
    check_leftovers
}

# Everything below runs with its own mounts and process numbers; this is process 1 there.
inside() {
    jail=$1
    trap 'exit 130' INT TERM HUP
    step "a minimal Debian $suite"
    make_jail
    mount_jail "$jail"

    step 'make run, for the first time'
    in_jail 'make run'
    local began=$EPOCHREALTIME
    step 'make run, again'
    in_jail 'make run'
    local took_ms=$(((${EPOCHREALTIME//[!0-9]/} - ${began//[!0-9]/}) / 1000))
    ((took_ms < 5000)) || fail "the second make run took $took_ms ms"

    try_tests test
    ! $full || try_tests test-full

    step 'make deb'
    in_jail 'make deb' || fail 'make deb failed'
    check_leftovers
    step 'the packages, in a system that has nothing else'
    mkdir "$jail.user/root/leasehold/build"
    cp "$jail"/root/leasehold/build/{leasehold,libleasehold1,libleasehold-dev}_*.deb \
        "$jail.user/root/leasehold/build/"
    try_packages "$jail.user"
    step "all is well; the second make run took $took_ms ms"
}

clean_up() {
    if [[ -n ${child:-} ]]; then
        kill -KILL "$child" 2>/dev/null || true # takes process 1 and with it the rest along
        wait "$child" 2>/dev/null || true
    fi
    rm -rf --one-file-system "$jail" "$jail.log" "$jail.user" "$jail.user.log"
}

all=("$@")
full=false
if [[ ${1:-} == --full ]]; then
    full=true
    shift
fi
if [[ ${1:-} == --inside ]]; then
    inside "$2"
    exit
fi
if ((EUID != 0)); then
    command -v sudo >/dev/null || fail 'a new system can only be made by root'
    exec sudo -- "$0" "${all[@]}"
fi
"$here/scripts/packages.sh" bare
[[ -z $(git -C "$here" status --porcelain) ]] || step 'note: only what is committed is tried'

jail=$(mktemp -d)
chmod 755 "$jail" # the root of a system, which apt also enters as a plain user
trap clean_up EXIT
trap 'exit 130' INT TERM HUP
unshare --mount --pid --fork --kill-child --mount-proc "$0" "${all[@]}" --inside "$jail" &
child=$!
wait "$child"
