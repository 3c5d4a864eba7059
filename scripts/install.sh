#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the result of `make build` below $DESTDIR$PREFIX: install.sh; or removes it: install.sh
# --remove. A list of the files and of the new folders is installed, too; with that list, removal
# needs no build, and covers files of another version or checkout. Without sufficient permissions it
# reports so before it changes anything.
set -euo pipefail

cd "$(dirname "$0")/.."

fail() {
    printf 'install: %s\n' "$*" >&2
    exit 1
}

prefix=${PREFIX:-/usr/local}
[[ $prefix == /* ]] || fail "PREFIX must be an absolute path, not '$prefix'"
prefix=$(realpath -sm -- "$prefix")
root=$(realpath -sm -- "${DESTDIR:-/}")
root=${root%/}
list=$prefix/share/leasehold/installed

# Fails unless entries can be made and removed in every folder of "$@". A folder that does not exist
# yet is made in its nearest existing parent.
want_rights() {
    local folder
    for folder in "$@"; do
        folder=$root$folder
        while [[ ! -e ${folder:=/} ]]; do
            folder=${folder%/*}
        done
        [[ -d $folder ]] || fail "$folder is in the way: it is no folder"
        [[ -w $folder && -x $folder ]] || fail "you have no right to write to $folder; do it as" \
            "root, with sudo, or below a folder of your own: PREFIX=$HOME/.local"
    done
}

# Sets `files` and `folders` from the list, if there is one. Folders end in a slash.
read_list() {
    local path
    files=()
    folders=()
    [[ -e $root$list ]] || return 0
    while IFS= read -r path; do
        [[ $path != */../* ]] || fail "$root$list is damaged: $path"
        case $path in
        /*/) folders+=("$path") ;;
        "${prefix%/}"/*) files+=("$path") ;;
        *) fail "$root$list is damaged: $path" ;;
        esac
    done <"$root$list"
}

# Prints the folders of "$@" with all their parents, outermost first.
folders_above() {
    local path
    for path in "$@"; do
        while path=${path%/*} && [[ -n $path ]]; do
            printf '%s\n' "$path"
        done
    done | LC_ALL=C sort -u
}

# The loader finds a new library only through its cache, where that covers the folder at all.
tell_loader() {
    local folders_known
    [[ -z $root && $EUID == 0 ]] && command -v ldconfig >/dev/null || return 0
    folders_known=$(ldconfig -vNX 2>/dev/null || true)
    ! grep -q "^${prefix%/}/lib" <<<"$folders_known" || ldconfig
}

put() { # put FROM TO: whoever runs or opens TO meanwhile finds the old one or the new one
    cp -a -- "$1" "$2.new~"
    mv -fT -- "$2.new~" "$2"
}

install_all() {
    local path stage_files above
    DESTDIR=$stage meson install -C build --no-rebuild --quiet
    # Written by root it would block the next user that is not root.
    rm -f build/meson-logs/install-log.txt
    mapfile -t stage_files < <(find "$stage" ! -type d -printf '/%P\n' | LC_ALL=C sort)
    ((${#stage_files[@]})) || fail 'there is nothing to install; is it built?'

    mapfile -t above < <(folders_above "${stage_files[@]}" "$list")
    want_rights "${above[@]}"
    for path in "${stage_files[@]}" "$list"; do
        [[ ! -d $root$path || -L $root$path ]] || fail "$root$path is in the way: it is a folder"
    done
    read_list
    for path in "${above[@]}"; do
        [[ -d $root$path ]] || folders+=("$path/")
    done

    # The list comes first and still has the old files: after any abort everything can be removed.
    for path in "${above[@]}"; do
        mkdir -p -- "$root$path"
    done
    write_list "${stage_files[@]}" "${files[@]}"
    for path in "${stage_files[@]}"; do
        put "$stage$path" "$root$path"
    done
    for path in "${files[@]}"; do
        [[ -e $stage$path || -L $stage$path ]] || rm -f -- "$root$path"
    done
    write_list "${stage_files[@]}"
    printf 'installed %d files below %s\n' "${#stage_files[@]}" "$root$prefix"
}

write_list() {
    printf '%s\n' "$@" "${folders[@]}" | LC_ALL=C sort -u >"$stage.list"
    put "$stage.list" "$root$list"
}

remove_all() {
    local path above at
    [[ -e $root$list ]] ||
        fail "nothing is installed below $root$prefix: there is no $root$list"
    read_list
    mapfile -t above < <(printf '%s\n' "${files[@]%/*}" "${list%/*}" | LC_ALL=C sort -u)
    want_rights "${above[@]}"
    for path in "${files[@]}" "$list"; do
        rm -f -- "$root$path"
    done
    # Sorted, so that in reverse the inner ones come first. A folder that is not empty stays.
    for ((at = ${#folders[@]} - 1; at >= 0; at--)); do
        rmdir -- "$root${folders[at]}" 2>/dev/null || true
    done
    printf 'removed %d files below %s\n' "${#files[@]}" "$root$prefix"
}

# Prints the variables that the installed program and library need, as lines for a shell. None if
# they are found already. A staged installation is not used from where it lies.
print_environment() {
    local bin=$prefix/bin library known
    [[ -z $root ]] || return 0
    if [[ $(command -v leasehold) != "$bin/leasehold" ]]; then
        printf 'the PATH does not lead to %s; add to ~/.profile:\n' "$bin/leasehold"
        printf '    export PATH=%q:"$PATH"\n' "$bin"
    fi
    library=$(find "$prefix"/lib* -name libleasehold.so.1 -print -quit)
    library=${library%/*}
    known=$(PATH=$PATH:/usr/sbin:/sbin && ldconfig -p 2>/dev/null || true)
    if [[ :${LD_LIBRARY_PATH:-}: != *:"$library":* && $known != *" $library/libleasehold.so.1"* ]]
    then
        printf 'the loader does not find the library in %s; programs that link with it need:\n' \
            "$library"
        printf '    export LD_LIBRARY_PATH=%q"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"\n' "$library"
    fi
}

if [[ ${1:-} == --remove ]]; then
    remove_all
    tell_loader
else
    umask 022
    stage=$(mktemp -d)
    trap 'rm -rf "$stage" "$stage.list"' EXIT
    trap 'exit 130' INT TERM HUP
    install_all
    tell_loader
    print_environment
fi
