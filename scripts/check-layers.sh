#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Gate: includes go one way, from face down to base in the order of `rooms` below; the command line
# includes only public headers, run, wire and base; and the pure rooms (wire, core, base) call
# neither the system nor the allocator: check-layers.sh [ROOT].
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
cd "${1:-$here}"
list=$("$here/scripts/sources.sh" .)
mapfile -t files < <(grep -E '^(src|include)/' <<<"$list")
if ((${#files[@]} == 0)); then
    printf '%s: neither src/ nor include/ holds a C file\n' "$PWD"
    exit 1
fi

exec awk '
BEGIN {
    count = split("base core wire process disk net http store runtime workload run face",
        rooms, " ")
    for (i = 1; i <= count; i++)
        rank[rooms[i]] = i
    plain = " stdbool.h stddef.h stdint.h inttypes.h limits.h string.h "
    allowed["core"] = allowed["wire"] = plain
    allowed["base"] = plain "stdarg.h "
    allowed["include"] = " stdbool.h stddef.h stdint.h "
    # The only place that may end the process, on a failed assert.
    last_words = "src/base/check.c"
    impure = "(malloc|calloc|realloc|reallocarray|free|strdup|strndup|v?s?n?printf|v?[fd]printf" \
        "|puts|fputs|fopen|time|clock|clock_gettime|gettimeofday|rand|random|getenv|abort|exit)"
}

function refuse(what) {
    printf "%s:%d: %s\n", FILENAME, FNR, what
    wrong = 1
}

function check_quoted(name, target) {
    if (name ~ /^leasehold(_admin|_github|_once|_workload)?\.h$/) {
        if (FILENAME !~ /^(src\/face\/(lib|cli|daemon)|include)\//)
            refuse("only faces include the public header; include what you need of a room")
        return
    }
    target = name
    sub(/\/.*/, "", target)
    if (name !~ /\// || !(target in rank))
        refuse("\"" name "\" names no room; write \"room/file.h\"")
    else if (rank[target] > rank[room])
        refuse(room " must not include from " target "; includes go towards base")
    else if (FILENAME ~ /^src\/face\/cli\// &&
            name !~ /^(face\/cli\/|face\/daemon\/daemon\.h$|run\/|wire\/|base\/)/)
        refuse("the command line must not include \"" name \
            "\"; call a public header, or a function of run")
    else if (FILENAME ~ /^src\/face\/daemon\// &&
            name !~ /^(face\/daemon\/|runtime\/table\.h$|net\/|process\/|wire\/|base\/)/)
        refuse("the daemon must not include \"" name "\"; call a public header")
}

function check_system(name) {
    if (!(room in allowed) || index(allowed[room], " " name " "))
        return
    if (FILENAME == last_words && (name == "stdio.h" || name == "stdlib.h"))
        return
    refuse("<" name "> is not for " room "; do this in a room above wire and pass the result in")
}

# The line without strings and comments; block comments may span lines.
function code_of(line, start, end) {
    gsub(/\\./, "", line)
    gsub(/"[^"]*"/, "\"\"", line)
    if (in_comment) {
        end = index(line, "*/")
        if (!end)
            return ""
        line = substr(line, end + 2)
        in_comment = 0
    }
    while ((start = index(line, "/*")) > 0) {
        end = index(substr(line, start + 2), "*/")
        if (!end) {
            in_comment = 1
            return substr(line, 1, start - 1)
        }
        line = substr(line, 1, start - 1) " " substr(line, start + end + 3)
    }
    sub(/\/\/.*/, "", line)
    return line
}

FNR == 1 {
    in_comment = 0
    room = FILENAME
    if (!sub(/^src\//, "", room))
        room = "include"
    else if (!sub(/\/.*/, "", room) || !(room in rank))
        refuse("this file is in no room; move it to a folder of src, see rooms in check-layers.sh")
}

!in_comment && /^[ \t]*#[ \t]*include[ \t]*["<]/ {
    name = $0
    sub(/^[^"<]*["<]/, "", name)
    sub(/[">].*/, "", name)
    if ($0 ~ /include[ \t]*"/)
        check_quoted(name)
    else
        check_system(name)
    next
}

{
    code = code_of($0)
    if (room != "core" && room != "wire")
        next
    if (match(code, "(^|[^A-Za-z0-9_.>])" impure "[ \t]*[(]")) {
        call = substr(code, RSTART, RLENGTH)
        gsub(/[^a-z_]/, "", call)
        refuse(room " must not call " call "; it is pure")
    }
}

END { exit wrong }
' "${files[@]}"
