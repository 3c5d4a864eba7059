# SPDX-License-Identifier: Apache-2.0
# Generates the manual page of the C library, leasehold(3):
# awk -f library_page.awk -v version=V leasehold.h … library.md. The prototypes come from the headers,
# the rest from library.md; it supports headings, paragraphs, lists, tables and code blocks.

function roff(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    while (match(text, /`[^`]*`/))
        text = substr(text, 1, RSTART - 1) "\\fB" substr(text, RSTART + 1, RLENGTH - 2) "\\fR" \
            substr(text, RSTART + RLENGTH)
    while (match(text, /\*\*[^*]*\*\*/))
        text = substr(text, 1, RSTART - 1) "\\fI" substr(text, RSTART + 2, RLENGTH - 4) "\\fR" \
            substr(text, RSTART + RLENGTH)
    return text ~ /^[.']/ ? "\\&" text : text
}

BEGIN {
    printf ".\\\" Written from the header and docs/library.md; do not edit.\n"
    printf ".TH LEASEHOLD 3 \"\" \"leasehold %s\" \"Library Functions Manual\"\n", version
    printf ".SH NAME\nleasehold \\- locks that are leases, with fencing tokens\n"
    printf ".SH SYNOPSIS\n.nh\n.ad l\n"
}

# A header: the prototypes after the first "/* ---- " line, without comments and types.
FILENAME ~ /\.h$/ {
    if (FNR == 1) {
        name = FILENAME
        sub(/.*\//, "", name)
        print ".PP\n\\fB#include <" roff(name) ">\\fR"
        section = 0
    }
    if (/^\/\* ---- /)
        section = 1
    gsub(/\/\*.*\*\//, "")
    if (/\/\*/)
        comment = 1
    if (section && !comment && (prototype != "" || /^[a-z].* \**lh_[a-z_]+\(/) && !/^typedef/) {
        gsub(/^ +| +$/, "")
        prototype = prototype (prototype == "" ? "" : " ") $0
        if (/;/) {
            print ".HP 4\n\\fB" roff(prototype) "\\fR"
            prototype = ""
        }
    }
    if (/\*\//)
        comment = 0
    next
}

FNR == 1 {
    print ".ad b\n.hy\n.SH DESCRIPTION"
    next
}
/^## / {
    print ".SH \"" toupper(roff(substr($0, 4))) "\""
    fresh = 0
    next
}
/^```/ {
    code = !code
    print code ? ".PP\n.EX" : ".EE"
    next
}
code {
    print roff($0)
    next
}
/^\| *-|^\|-/ { # the rows after a table's head are printed, the head is not
    table = 1
    next
}
/^\|/ {
    if (!table)
        next
    count = split($0, cell, / *\| */)
    print ".TP\n\\fB" roff(cell[2]) "\\fR"
    for (i = 3; i < count; i++)
        if (cell[i] != "")
            print (i > 3 ? ".br\n" : "") roff(cell[i])
    next
}
{
    table = 0
}
/^$/ {
    fresh = 1
    next
}
/^- / {
    print ".IP \\(bu 2\n" roff(substr($0, 3))
    fresh = 0
    next
}
{
    sub(/^ +/, "")
    if (fresh)
        print ".PP"
    fresh = 0
    print roff($0)
}

END {
    print ".SH SEE ALSO\n.BR leasehold (1)"
}
