#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make install and make uninstall: install.sh. Installed files and their paths, that they work
# there, that exactly these are removed, and the error when permissions are missing. Where possible
# it runs without root's privileges. Prints TAP.
set -euo pipefail

cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/kit.sh
. tests/e2e/kit.sh
at_end() {
    chmod -R u+w "$work"
    scripts/build.sh release >/dev/null # with the prefix that everybody expects
}
unset PREFIX DESTDIR MAKEFLAGS MAKELEVEL

# Root without its privileges is subject to file permissions, as other users are.
plain=()
if ((EUID == 0)) && [[ -O build ]]; then
    plain=(setpriv --bounding-set=-all --inh-caps=-all)
fi
plain_make() {
    "${plain[@]}" make "$@"
}

listing() { # of all below a folder, the folders included
    (cd "$1" && find . -mindepth 1 -printf '%p %y %m %l\n' | LC_ALL=C sort)
}

refused() { # refused TEXT COMMAND…: it fails and says so
    local text=$1
    shift
    if "$@" >"$work/answer" 2>&1; then
        echo 'was not refused'
        return 1
    fi
    cat "$work/answer"
    grep -qF -- "$text" "$work/answer"
}

fails() { ! "$@"; } # a step of its own: the shell ignores the status of "! COMMAND"

root=$work/root
usr=$root/usr/local

everything_is_there() {
    (umask 077 && plain_make install DESTDIR="$root" >"$work/staged")
    fails grep export "$work/staged"
    local name lib
    for name in bin/leasehold include/leasehold{,_admin,_workload}.h share/man/man1/leasehold.1 \
        share/man/man1/leasehold-acquire.1 share/man/man3/leasehold.3 \
        share/leasehold/kubernetes/{kustomization,monitoring/alerts}.yaml \
        share/leasehold/alerts/{generate.sh,rules.yaml} \
        share/bash-completion/completions/leasehold share/zsh/site-functions/_leasehold \
        share/fish/vendor_completions.d/leasehold.fish \
        share/doc/leasehold/{LICENSE,README.md,CHANGELOG.md,docs/library.md,examples/leader.c}; do
        [[ -s $usr/$name ]] || { echo "no $name"; return 1; }
    done
    lib=$(dirname "$(find "$usr/lib" -name libleasehold.a)")
    [[ -s $lib/libleasehold.so.1 && -L $lib/libleasehold.so && -s $lib/pkgconfig/leasehold.pc ]]
    [[ $("$usr/bin/leasehold" version) == "$(build/leasehold version)" ]]
}

all_may_read() {
    local closed
    closed=$(find "$root" -mindepth 1 ! -type l ! -perm -0444)
    closed+=$(find "$root" -mindepth 1 -type d ! -perm -0555)
    [[ -z $closed && -x $usr/bin/leasehold ]] || { echo "$closed"; return 1; }
}

twice_is_once() {
    listing "$root" >"$work/once"
    plain_make install DESTDIR="$root"
    listing "$root" | diff "$work/once" -
}

nothing_is_left() {
    plain_make uninstall DESTDIR="$root"
    [[ -d $root && -z $(listing "$root") ]] || { listing "$root"; return 1; }
}

others_are_left() {
    mkdir -p "$usr/bin" "$usr/share/man/man1" "$usr/share/zsh"
    echo other >"$usr/bin/other"
    echo other >"$usr/share/man/man1/leasehold-other.1"
    listing "$root" >"$work/before"
    plain_make install DESTDIR="$root"
    ! listing "$root" | cmp -s "$work/before" -
    plain_make uninstall DESTDIR="$root"
    listing "$root" | diff "$work/before" -
}

# As an older version would have left it: with a file that is no longer installed.
older_files_go() {
    plain_make install DESTDIR="$root"
    mkdir "$usr/share/gone"
    echo old | tee "$usr/bin/leasehold-old" >"$usr/share/gone/old"
    printf '/usr/local/%s\n' bin/leasehold-old share/gone/ share/gone/old \
        >>"$usr/share/leasehold/installed"
    plain_make install DESTDIR="$root"
    [[ ! -e $usr/bin/leasehold-old && ! -e $usr/share/gone/old ]]
    plain_make uninstall DESTDIR="$root"
    listing "$root" | diff "$work/before" -
}

nothing_to_remove() {
    refused "nothing is installed below $work/nowhere/usr/local" \
        plain_make uninstall DESTDIR="$work/nowhere"
    [[ ! -e $work/nowhere ]]
}

list_is_not_trusted() {
    local path
    mkdir -p "$work/list/usr/local/share/leasehold" "$work/list/etc"
    echo mine >"$work/list/etc/mine"
    for path in /etc/mine /usr/local/../../etc/mine etc/mine; do
        echo "$path" >"$work/list/usr/local/share/leasehold/installed"
        refused "is damaged: $path" plain_make uninstall DESTDIR="$work/list"
        refused "is damaged: $path" plain_make install DESTDIR="$work/list"
    done
    [[ -s $work/list/etc/mine ]]
}

loads() { python3 -c 'import ctypes; ctypes.CDLL("libleasehold.so.1").lh_version'; }

# The lines that install has printed are all that a new shell needs; with them it prints none.
environment_is_printed() {
    cat "$work/printed"
    fails loads
    (
        eval "$(grep '^    export ' "$work/printed")"
        [[ $(command -v leasehold) == "$own/bin/leasehold" ]]
        loads
        plain_make install PREFIX="$own" | tee "$work/again"
        fails grep export "$work/again"
    )
    (PATH=$own/bin:$PATH && plain_make install PREFIX="$own" | tee "$work/again")
    grep 'export LD_LIBRARY_PATH' "$work/again"
    fails grep 'export PATH' "$work/again"
}

prefix_of_ones_own() {
    local own="$work/my own" key="$work/locks.log" token
    plain_make install PREFIX="$own" >"$work/printed"
    token=$("$own/bin/leasehold" --store "file:$key" acquire k)
    "$own/bin/leasehold" --store "file:$key" release k --token "$token"
    grep -rq "^prefix=$work/my" "$own"/lib/ --include=leasehold.pc
    environment_is_printed
    plain_make uninstall PREFIX="$own"
    [[ ! -e $own ]] || { listing "$own"; return 1; }
}

no_rights() {
    mkdir -p "$work/closed/usr/local/bin"
    chmod 555 "$work/closed/usr/local/bin"
    listing "$work/closed" >"$work/before"
    refused "no right to write to $work/closed/usr/local/bin" \
        plain_make install DESTDIR="$work/closed"
    listing "$work/closed" | diff "$work/before" -
    chmod 755 "$work/closed/usr/local/bin"
    plain_make install DESTDIR="$work/closed"
    chmod 555 "$work/closed/usr/local/bin"
    listing "$work/closed" >"$work/before"
    refused "no right to write to $work/closed/usr/local/bin" \
        plain_make uninstall DESTDIR="$work/closed"
    listing "$work/closed" | diff "$work/before" -
}

in_the_way() {
    mkdir -p "$work/way/usr/local/bin/leasehold" "$work/way2/usr"
    refused 'bin/leasehold is in the way: it is a folder' plain_make install DESTDIR="$work/way"
    echo file >"$work/way2/usr/local"
    refused 'usr/local is in the way: it is no folder' plain_make install DESTDIR="$work/way2"
}

prefix_is_absolute() {
    refused "PREFIX must be an absolute path, not 'here'" scripts/install.sh --remove
}

same_version() {
    local version
    version=$(sed -n '1s/^leasehold (\(.*\)-[0-9]*) .*/\1/p' dist/debian/changelog)
    [[ $(build/leasehold version | head -n 1) == "leasehold $version" ]]
}

case_of 'everything is put in its place, and runs there' everything_is_there
case_of 'everybody may read it, whatever the umask' all_may_read
case_of 'installed twice is installed once' twice_is_once
case_of 'uninstall leaves nothing' nothing_is_left
case_of 'uninstall leaves what others put there, empty folders too' others_are_left
case_of 'what an older version had more is removed' older_files_go
case_of 'uninstall of nothing says so' nothing_to_remove
case_of 'a list that points elsewhere is refused' list_is_not_trusted
case_of 'a prefix of one'\''s own' prefix_of_ones_own
case_of 'missing rights are told before anything is changed' no_rights
case_of 'what is in the way is told' in_the_way
case_of 'the Debian package is of this version' same_version
PREFIX=here case_of 'a relative prefix is refused' prefix_is_absolute

finish
