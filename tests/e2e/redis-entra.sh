#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tokens of Microsoft Entra ID as passwords of Redis: redis-entra.sh BUILD. The token endpoints are
# a stand-in (tests/peers/entra.py), the server and its user, whose only password is always the last
# token, are real. One lock is held over three changes of it. Prints TAP.
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
export ENTRA_CLIENT_SECRET='a~secret&of=the test' ENTRA_HEADER=a-header-of-the-platform
export ENTRA_CERTIFICATE=$work/certificate.pem
unset "${!AZURE_@}" http_proxy https_proxy IDENTITY_ENDPOINT IDENTITY_HEADER
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

options='auth=entra' changes=3 held_after_ms=0
# hold WHAT VARIABLE…: one lock over some changes of the token, with this environment
hold() {
    local what=$1 before after status=0 first token_us
    shift
    first=$(($(tokens) + 1))
    env "$@" LEASEHOLD_STORE="redis://127.0.0.1:${redis_port[one]}?$options" "$program" \
        run job --ttl 2s --store-timeout 30s -- \
        sh -c 'echo $LEASEHOLD_TOKEN; until [ -e go ]; do sleep 0.1; done' \
        >"$work/said" 2>&1 &
    running=$!
    redis_until "$what: a token" several_tokens "$first" || true
    token_us=${EPOCHREALTIME//[.,]/}
    redis_until "$what: it holds" redis_says one 1 exists lock:job || sed 's/^/# /' "$work/said"
    held_after_ms=$(((${EPOCHREALTIME//[.,]/} - token_us) / 1000))
    before=$(connections)
    redis_until "$what: the next tokens" several_tokens $(($(tokens) + changes)) || true
    sleep 1
    after=$(connections)
    verdict "$what: the lock is held over $changes new tokens" redis_says one 1 exists lock:job
    verdict "$what: on the same connection" test -n "$before" -a "$before" = "$after"
    : >go
    wait "$running" || status=$?
    running=
    rm -f go
    verdict "$what: and given back" test "$status" = 0
    ((status == 0)) || sed 's/^/# /' "$work/said"
    verdict "$what: no token is shown" eval \
        '! grep -qE "ey[JI]|a~secret|a-header" "$work/said"'
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
verdict 'App Service wants its header' asked 401 \
    "$endpoint/msi/token?api-version=2019-08-01&$resource" 'X-IDENTITY-HEADER: x' ''
verdict 'and its version' asked 400 "$endpoint/msi/token?api-version=2018-02-01&$resource" \
    "X-IDENTITY-HEADER: $ENTRA_HEADER" ''
verdict 'and the tenant' asked 400 "$endpoint/other/oauth2/v2.0/token" '' 'grant_type=x'
: >"$work/log"

hold 'managed identity' "AZURE_POD_IDENTITY_AUTHORITY_HOST=$endpoint"
verdict 'what was in trouble was asked again' test "$(grep -c '^trouble' "$work/log")" = 3
printf '# held %s ms after the token\n' "$held_after_ms"
# A waiter pauses for at most 3 s; a connection that does not learn of the token for 5 s more.
verdict 'the connection does not wait out its pause when the token arrives' \
    test "$held_after_ms" -lt 6000
verdict 'and nothing was refused' eval '! grep -q ^refused "$work/log"'
hold 'one of several' "AZURE_POD_IDENTITY_AUTHORITY_HOST=$endpoint" "AZURE_CLIENT_ID=$client"

printf '%s\n' "$ENTRA_SECRET" >"$work/assertion"
workload=("AZURE_AUTHORITY_HOST=$endpoint/" "AZURE_TENANT_ID=$tenant" "AZURE_CLIENT_ID=$client"
    "AZURE_FEDERATED_TOKEN_FILE=$work/assertion")
hold 'workload identity' "${workload[@]}"
verdict 'nothing was refused' eval '! grep -q ^refused "$work/log"'

# ---- secrets, certificates, platforms, the command line of Azure ----

changes=1
client_of=("AZURE_AUTHORITY_HOST=$endpoint" "AZURE_TENANT_ID=$tenant")
hold 'client secret' "${client_of[@]}" "AZURE_CLIENT_ID=$client" \
    "AZURE_CLIENT_SECRET=$ENTRA_CLIENT_SECRET"
printf '%s\n' "$ENTRA_CLIENT_SECRET" >"$work/client-secret"
options="auth=entra&client-id=$client"
hold 'client secret in a file, client id in the URL' "${client_of[@]}" AZURE_CLIENT_ID=other \
    "AZURE_CLIENT_SECRET_FILE=$work/client-secret"
make_certificate() { # make_certificate FILE [PASSWORD]
    openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key" -out "$1" -days 2 \
        -subj /CN=leasehold-test 2>/dev/null
    if [[ -n ${2:-} ]]; then
        openssl pkcs8 -topk8 -in "$work/key" -passout "pass:$2" -out "$work/key.locked"
        mv "$work/key.locked" "$work/key"
    fi
    cat "$work/key" >>"$1"
}
make_certificate "$ENTRA_CERTIFICATE"
hold 'client certificate' "${client_of[@]}" "AZURE_CLIENT_CERTIFICATE_PATH=$ENTRA_CERTIFICATE"
make_certificate "$ENTRA_CERTIFICATE" a-password
hold 'client certificate with a password' "${client_of[@]}" \
    "AZURE_CLIENT_CERTIFICATE_PATH=$ENTRA_CERTIFICATE" AZURE_CLIENT_CERTIFICATE_PASSWORD=a-password
platform=("IDENTITY_ENDPOINT=$endpoint/msi/token" "IDENTITY_HEADER=$ENTRA_HEADER")
hold 'App Service, client id in the URL' "${platform[@]}"
options='auth=entra'
hold 'App Service, its own identity' "${platform[@]}"

# A stand-in for az, as strict: its arguments are exactly these, and stdin is /dev/null.
mkdir "$work/bin"
cat >"$work/bin/az" <<AZ
#!/bin/bash
[[ ! -e $work/az-hangs ]] || { echo \$\$ >$work/az-pid; exec sleep 100; }
[[ "\$*" == 'account get-access-token --output json --resource https://redis.azure.com' &&
    \$(readlink /proc/\$\$/fd/0) == /dev/null ]] || { echo "\$*" >$work/az-refused; exit 2; }
[[ ! -e $work/az-fails ]] || exit 1
exec /usr/bin/python3 - <<'ASK'
import json, time, urllib.request
given = json.load(urllib.request.urlopen("$endpoint/for-the-cli"))
print(json.dumps({"accessToken": given["token"], "expires_on": given["ends"], "tokenType": "Bearer",
                  "expiresOn": time.strftime("%Y-%m-%d %H:%M:%S.000000",
                                             time.localtime(given["ends"])),
                  "subscription": "s", "tenant": "$tenant"}, indent=2))
ASK
AZ
chmod +x "$work/bin/az"
options='auth=entra-cli'
hold 'Azure CLI' "PATH=$work/bin:$PATH"
verdict 'az was asked as documented' test ! -e "$work/az-refused"
verdict 'and nothing was refused' eval '! grep -q ^refused "$work/log"'

# refused PATTERN VARIABLE…: most take as long as the timeout, so the next ones start meanwhile,
# until settle.
refusals=()
refused() {
    local file=$work/refused.${#refusals[@]}
    refusals+=("$1")
    shift
    {
        status=0
        env "$@" LEASEHOLD_STORE="redis://127.0.0.1:${redis_port[one]}?$options" "$program" \
            acquire job --no-wait >"$file" 2>&1 || status=$?
        printf 'exit %s\n' "$status" >>"$file"
    } &
    waited+=($!)
}
waited=()
settle() {
    local i
    wait "${waited[@]}"
    for i in "${!refusals[@]}"; do
        verdict "refused: 69, ${refusals[i]}" eval \
            'grep -qx "exit 69" "$work/refused.$i" && grep -qE "${refusals[i]}" "$work/refused.$i"'
        sed 's/^/# /' "$work/refused.$i"
    done
    refusals=() waited=()
}
: >"$work/az-fails"
refused "az failed; is 'az login' done" "PATH=$work/bin:$PATH"
settle
rm "$work/az-fails"
: >"$work/az-hangs"
since=$SECONDS
refused 'the store does not answer' "PATH=$work/bin:$PATH"
settle
verdict 'az that hangs holds nobody up, and is ended' eval \
    '((SECONDS - since < 20)) && ! kill -0 "$(<"$work/az-pid")" 2>/dev/null'
refused 'there is no az in PATH' PATH=/nowhere
options='auth=entra'
refused 'AADSTS7000215' "${client_of[@]}" "AZURE_CLIENT_ID=$client" AZURE_CLIENT_SECRET=wrong
refused '401' "${platform[0]}" IDENTITY_HEADER=wrong
refused 'AZURE_CLIENT_ID' "${client_of[@]}" AZURE_CLIENT_SECRET=x
refused 'is no id' 'AZURE_CLIENT_ID=a"b'
refused 'https:// only' IDENTITY_ENDPOINT=http://example.test/x IDENTITY_HEADER=x
certified=("${client_of[@]}" "AZURE_CLIENT_ID=$client")
refused 'is no file' "${certified[@]}" AZURE_CLIENT_CERTIFICATE_PATH=/nowhere
refused 'its private key' "${certified[@]}" \
    "AZURE_CLIENT_CERTIFICATE_PATH=$ENTRA_CERTIFICATE"
refused '401: unauthorized' "${platform[0]}" "IDENTITY_HEADER=${ENTRA_HEADER}x"
make_certificate "$work/other.pem"
refused 'AADSTS700027' "${certified[@]}" "AZURE_CLIENT_CERTIFICATE_PATH=$work/other.pem"
printf 'another\n' >"$work/assertion"
refused '401: invalid_client: AADSTS700211' "${workload[@]}"
refused 'AZURE_TENANT_ID' "AZURE_FEDERATED_TOKEN_FILE=$work/assertion"
refused 'https:// only' AZURE_POD_IDENTITY_AUTHORITY_HOST=http://example.test
settle
kill "$place"
wait "$place" 2>/dev/null || true
place=
refused 'no token of Entra ID' "AZURE_POD_IDENTITY_AUTHORITY_HOST=$endpoint"
settle
finish
