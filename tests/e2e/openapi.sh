#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The OpenAPI document of the daemon: openapi.sh PROGRAM. Redocly's rules, without a warning, and
# what the daemon really does with each path, field and type. Prints TAP.
set -euo pipefail

program=$(realpath "${1:?usage: openapi.sh PROGRAM}")
here=$(realpath "$(dirname "$0")")
# shellcheck source=tests/e2e/kit.sh
. "$here/kit.sh"

"$program" serve --store "file:$work/store.log" --listen off --unix off --http 127.0.0.1:0 \
    >"$work/ready" 2>"$work/log" &
started+=($!)
await "$work/ready"
port=$(sed -n 's|^listening on http://127\.0\.0\.1:||p' "$work/ready")
curl -sSf "http://127.0.0.1:$port/openapi.json" >"$work/openapi.json"
jq 'del(.paths["/healthz"].get.responses)' "$work/openapi.json" >"$work/wrong.json"
jq 'del(.info.license)' "$work/openapi.json" >"$work/poor.json"

lint() { # lint DOCUMENT: no error and no warning
    REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true \
        "$redocly/node_modules/.bin/redocly" lint --extends recommended --max-problems 20 "$1" \
        >"$work/lint" 2>&1 || { cat "$work/lint" && return 1; }
    cat "$work/lint"
    ! grep -qiE 'you have [0-9]+ warning' "$work/lint"
}
finds() { ! lint "$1"; } # an error, or a warning

if redocly=$("$here/../../scripts/peer.sh" openapi 2>"$work/why"); then
    case_of 'the document follows the rules of Redocly' lint "$work/openapi.json"
    case_of 'Redocly finds an error in another one' finds "$work/wrong.json"
    case_of 'Redocly finds a warning in another one' finds "$work/poor.json"
else
    number=$((number + 1))
    printf 'ok %d - Redocly # SKIP %s\n' "$number" "$(tail -n 1 "$work/why")"
fi
for check in required optional types unknown methods outcomes; do
    case_of "the document is true: $check" "$here/openapi.py" "$port" "$check"
done
finish
