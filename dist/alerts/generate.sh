#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the alert rules: generate.sh [--kubernetes] [--divide N] [NAME=VALUE...]
# NAME is a parameter of alerts.yaml.in, such as prefix=myservice or contention_for=1h. --divide
# makes all durations shorter, for tests. --kubernetes writes a PrometheusRule.
set -euo pipefail

template=$(dirname "$0")/alerts.yaml.in
kind=plain
divide=1
while (($# > 0)); do
    case $1 in
    --kubernetes) kind=kubernetes ;;
    --divide)
        divide=${2:?generate.sh: --divide needs a number}
        shift ;;
    *=*) break ;;
    *)
        printf 'usage: generate.sh [--kubernetes] [--divide N] [NAME=VALUE...]\n' >&2
        exit 64 ;;
    esac
    shift
done

exec awk -v kind="$kind" -v divide="$divide" '
BEGIN {
    scale["ms"] = 1; scale["s"] = 1000; scale["m"] = 60000; scale["h"] = 3600000
    scale["d"] = 86400000
    for (i = 1; i < ARGC - 1; i++) {
        name = text = ARGV[i]
        sub(/=.*/, "", name)
        sub(/[^=]*=/, "", text)
        given[name] = text
        ARGV[i] = ""
    }
}

function fail(text) {
    printf "generate.sh: %s\n", text >"/dev/stderr"
    failed = 1
    exit 1
}

function milliseconds(text, unit) {
    if (text !~ /^[0-9]+(ms|s|m|h|d)$/)
        return -1
    unit = text
    sub(/^[0-9]+/, "", unit)
    return text * scale[unit] / divide
}

function duration(ms) {
    if (ms % 60000 == 0)
        return ms / 60000 "m"
    return ms % 1000 == 0 ? ms / 1000 "s" : int(ms) "ms"
}

function replace(line, name, asked, ms) {
    while (match(line, /@[a-z_]+(:seconds)?@/)) {
        asked = substr(line, RSTART + 1, RLENGTH - 2)
        name = asked
        sub(/:seconds$/, "", name)
        if (!(name in value))
            fail("no parameter " name)
        ms = milliseconds(value[name])
        if (asked != name && ms < 0)
            fail(name " is not a duration: " value[name])
        line = substr(line, 1, RSTART - 1) \
            (asked != name ? ms / 1000 : ms < 0 ? value[name] : duration(ms)) \
            substr(line, RSTART + RLENGTH)
    }
    return line
}

function begin() {
    for (name in given)
        if (!(name in value))
            fail("no parameter " name)
    print "# SPDX-License-Identifier: Apache-2.0"
    print "# Made by dist/alerts/generate.sh from alerts.yaml.in, which has the parameters."
    if (kind != "kubernetes")
        return
    print "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:"
    print "  name: leasehold\n  labels:\n    app.kubernetes.io/name: leasehold\nspec:"
}

/^#: / {
    value[$2] = $2 in given ? given[$2] : $3
    next
}
/^#/ { next }
/^groups:/ { begin() }
{
    line = replace($0)
    print kind == "kubernetes" ? "  " line : line
}
END { exit failed }
' "$@" "$template"
