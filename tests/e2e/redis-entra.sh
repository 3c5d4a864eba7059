#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tokens of Microsoft Entra ID as passwords of Redis: redis-entra.sh BUILD. The places that give
# tokens are a stand-in (tests/peers/entra.py), the server and its user, whose only password is
# always the last token, are real. One lock is held over three changes of it. Prints TAP.
set -euo pipefail

build=$(realpath "$1")
program=$build/leasehold
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/redis-kit.sh
. scripts/redis-kit.sh
# shellcheck source=tests/e2e/kit.sh
. tests/e2e/kit.sh
place='' running=''
at_end() {
    [[ -z $running ]] || kill "$running" 2>/dev/null || true
    [[ -z $place ]] || kill "$place" 2>/dev/null || true
    redis_end
}
redis_begin "$work"
export HOME=$work REDIS_ADMIN_PASSWORD=$redis_admin_password ENTRA_SECRET=an-assertion
unset "${!AZURE_@}" http_proxy https_proxy
tenant=11111111-2222-3333-4444-555555555555
client=99999999-8888-7777-6666-555555555555
object=5f0d1e2c-0000-4000-8000-00000000abcd

open_place() { # open_place LIVES TROUBLES: sets `endpoint`
    [[ -z $place ]] || { kill "$place"; wait "$place" 2>/dev/null || true; }
    rm -f "$work/port" "$work/log"
    : >"$work/log"
    ENTRA_TROUBLE=$2 /usr/bin/python3 tests/peers/entra.py "$work/port" "$work/one/socket" \
        "$object" "$1" "$work/log" 2>"$work/place" &
    place=$!
    redis_until 'the place is open' test -s "$work/port"
    endpoint=http://127.0.0.1:$(<"$work/port")
}

asked() { # asked STATUS ARGUMENT…: what the stand-in answers, to see that it is strict
    local said
    said=$(/usr/bin/python3 - "${@:2}" <<'ASK'
import sys, urllib.error, urllib.request
url, header, body = sys.argv[1:]
headers = dict([header.split(": ")]) if header else {}
asked = urllib.request.Request(url, data=body.encode() or None, headers=headers)
try:
    print(urllib.request.urlopen(asked).status)
except urllib.error.HTTPError as error:
    print(error.code)
ASK
    )
    [[ $said == "$1" ]]
}

tokens() { grep -c '^token' "$work/log" || true; }
connections() { redis_cli one client list | grep "user=$object" | cut -d " " -f 1 || true; }
several_tokens() { (($(tokens) >= $1)); }

# hold WHAT VARIABLE…: one lock over three changes of the token, with this environment
hold() {
    local what=$1 before after status=0
    shift
    env "$@" LEASEHOLD_STORE="redis://127.0.0.1:${redis_port[one]}?auth=entra" "$program" \
        run job --ttl 2s -- sh -c 'echo $LEASEHOLD_TOKEN; until [ -e go ]; do sleep 0.1; done' \
        >"$work/said" 2>&1 &
    running=$!
    redis_until "$what: it holds" redis_says one 1 exists lock:job || sed 's/^/# /' "$work/said"
    before=$(connections)
    redis_until "$what: the fourth token" several_tokens $(($(tokens) + 3)) || true
    sleep 1
    after=$(connections)
    verdict "$what: the lock is held over three new tokens" redis_says one 1 exists lock:job
    verdict "$what: on the same connection" test -n "$before" -a "$before" = "$after"
    : >go
    wait "$running" || status=$?
    running=
    rm -f go
    verdict "$what: and given back" test "$status" = 0
    ((status == 0)) || sed 's/^/# /' "$work/said"
    verdict "$what: no token is shown" eval '[[ $(<"$work/said") != *ey[JI]* ]]'
    printf '# %s: tokens %s, AUTH and HELLO %s\n' "$what" "$(tokens)" "$(redis_cli one info \
        commandstats | tr -d '\r' | sed -n 's/cmdstat_\(auth\|hello\):calls=\([0-9]*\).*/\1 \2/p' |
        tr '\n' ' ')"
}

read -ra rules < <(scripts/redis-user.sh)
redis_users one unused "${rules[@]}"
printf 'user %s on nopass %s\n' "$object" "${rules[*]}" |
    sed 's/ nopass / >never-a-token /' >>"$work/one/acl"
redis_start one
open_place 4 3

token=$endpoint/metadata/identity/oauth2/token
resource='resource=https%3A%2F%2Fredis.azure.com'
verdict 'the stand-in wants the header' asked 400 "$token?api-version=2018-02-01&$resource" '' ''
verdict 'and the resource' asked 400 "$token?api-version=2018-02-01&resource=x" 'Metadata: true' ''
verdict 'and the version' asked 400 "$token?$resource" 'Metadata: true' ''
verdict 'and the form' asked 400 "$endpoint/$tenant/oauth2/v2.0/token" '' 'grant_type=x'
verdict 'and the tenant' asked 400 "$endpoint/other/oauth2/v2.0/token" '' 'grant_type=x'
: >"$work/log"

hold 'managed identity' "AZURE_POD_IDENTITY_AUTHORITY_HOST=$endpoint"
verdict 'what was in trouble was asked again' test "$(grep -c '^trouble' "$work/log")" = 3
verdict 'and nothing was refused' eval '! grep -q ^refused "$work/log"'
hold 'one of several' "AZURE_POD_IDENTITY_AUTHORITY_HOST=$endpoint" "AZURE_CLIENT_ID=$client"

printf '%s\n' "$ENTRA_SECRET" >"$work/assertion"
workload=("AZURE_AUTHORITY_HOST=$endpoint/" "AZURE_TENANT_ID=$tenant" "AZURE_CLIENT_ID=$client"
    "AZURE_FEDERATED_TOKEN_FILE=$work/assertion")
hold 'workload identity' "${workload[@]}"
verdict 'nothing was refused' eval '! grep -q ^refused "$work/log"'

refused() { # refused PATTERN VARIABLE…
    local pattern=$1 status=0
    shift
    env "$@" LEASEHOLD_STORE="redis://127.0.0.1:${redis_port[one]}?auth=entra" "$program" \
        acquire job --no-wait >"$work/said" 2>&1 || status=$?
    verdict "refused: 69, $pattern" eval '[[ $status == 69 ]] && grep -qE "$pattern" "$work/said"'
    sed 's/^/# /' "$work/said"
}
printf 'another\n' >"$work/assertion"
refused '401: invalid_client: AADSTS700211' "${workload[@]}"
refused 'AZURE_TENANT_ID' "AZURE_FEDERATED_TOKEN_FILE=$work/assertion"
refused 'https:// only' AZURE_POD_IDENTITY_AUTHORITY_HOST=http://example.test
kill "$place"
wait "$place" 2>/dev/null || true
place=
refused 'no token of Entra ID' "AZURE_POD_IDENTITY_AUTHORITY_HOST=$endpoint"
finish
