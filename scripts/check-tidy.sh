#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Gate: clang-tidy finds nothing in any C file: check-tidy.sh [--changed] [ROOT]. A file that passed
# is cached in build/tidy until it, any header, the rules or the compiler flags change. A ROOT other
# than this tree has its own build/tidy/compile_commands.json. --changed checks only files that
# differ from the main branch, and those that include a changed header.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
changed_only=false
if [[ ${1:-} == --changed ]]; then
    changed_only=true
    shift
fi
cd "${1:-$here}"
rules=$here/.clang-tidy
database=build/tidy
list=$("$here/scripts/sources.sh" .)
mapfile -t files <<<"$list"
mapfile -t headers < <(grep '\.h$' <<<"$list")

if [[ $PWD == "$here" ]]; then
    "$here/scripts/build.sh" tidy --configure-only >/dev/null
fi

# The C files to check: those that differ from the main branch, committed or not. Without git, or
# without a main branch, all of them.
changed_files() {
    local base differing header
    base=$(git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main 2>/dev/null) || {
        grep '\.c$' <<<"$list"
        return
    }
    differing=$(git diff --name-only "$base" -- '*.[ch]'
        git ls-files --others --exclude-standard -- '*.[ch]')
    { grep '\.c$' <<<"$differing" || true
        { grep '\.h$' <<<"$differing" || true; } | while read -r header; do
            grep -lE "#include \"(.*/)?${header##*/}\"" "${files[@]}" || true
        done | grep '\.c$' || true
    } | sort -u | grep -Fxf - <(printf '%s\n' "${files[@]}") || true
}

wrong=0
reason='NOLINT(NEXTLINE)?\([a-zA-Z0-9.,-]+\): [a-z]'
if grep -n 'NOLINT' "${files[@]}" /dev/null | LC_ALL=C grep -vE "$reason"; then
    printf 'tidy: name the check and say why: NOLINTNEXTLINE(check): reason\n'
    wrong=1
fi

# Inputs of every result, besides the file itself.
common=$(cat "$rules" "$database/compile_commands.json" "${headers[@]}" /dev/null | sha256sum)
mkdir -p "$database/passed"
work=()
if $changed_only; then
    mapfile -t files < <(changed_files)
    printf '# %d files differ from the main branch\n' "${#files[@]}"
fi
for file in "${files[@]}"; do
    [[ $file == *.c ]] || continue
    if ! grep -qF "$file\"" "$database/compile_commands.json"; then
        printf '%s:1: no meson.build lists this file; add it or remove it\n' "$file"
        wrong=1
        continue
    fi
    sum=$({ printf '%s %s\n' "$common" "$file" && cat "$file"; } | sha256sum)
    stamp=$database/passed/${sum%% *}
    [[ -e $stamp ]] || work+=("$file" "$stamp")
done

# shellcheck disable=SC2016 # the inner shell expands these
if ((${#work[@]})); then
    printf '%s\0' "${work[@]}" | rules=$rules database=$database \
        xargs -0 -n 2 -P "$(nproc)" bash -c '
            if said=$(clang-tidy-14 -p "$database" --config-file="$rules" --quiet "$1" 2>&1); then
                : >"$2"
            else
                printf "%s\n" "$said" | sed "s|^[^ ]*\.\./\.\./||" # paths as seen from here
                exit 1
            fi' one-file || wrong=1
fi
exit "$wrong"
