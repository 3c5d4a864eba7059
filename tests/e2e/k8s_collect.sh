#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Leases that are no longer needed are removed, and no others: on-k8s.sh k8s_collect.sh PROGRAM
# [LEASES]. By programs that run anyway, and by `leasehold collect`; slowly, safely against
# concurrent acquires, and by several at once. Runs with the shipped Role. Prints TAP.
set -euo pipefail

url=$1
program=$(realpath "$2")
leases=${3:-500}
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
export LEASEHOLD_STORE="$url&collect=off" HOME=$work LEASEHOLD_HOLDER=wfe-7

names() { kubectl get leases -o name | sed 's,.*/,,' | sort; }
count() { names | grep -c "^$1" || true; }

# litter PREFIX COUNT: copies of a Lease whose holder died, as our own program has written it.
litter() {
    "$program" acquire template --ttl 1s >/dev/null
    kubectl get lease template -o json | python3 -c '
import json, sys
prefix, count = sys.argv[1], int(sys.argv[2])
text = sys.stdin.read()
items = []
for number in range(count):
    name = f"{prefix}-{number:04d}"
    lease = json.loads(text.replace("template", name))
    for field in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink"):
        lease["metadata"].pop(field, None)
    items.append(lease)
json.dump({"apiVersion": "v1", "kind": "List", "items": items}, sys.stdout)' "$1" "$2" |
        kubectl create --field-manager=leasehold-holder -f - >/dev/null
    "$program" release template --token "$("$program" acquire template -w 20)" --quiet
}

# deletions FROM-LINE: from the server's log: the count of each status, and the number in the
# busiest second.
deletions() {
    python3 - "$1" <<'COUNT'
import collections, datetime, json, os, sys
lines = [json.loads(line) for line in open(os.environ["K8S_AUDIT"]).readlines()[int(sys.argv[1]):]]
asked = [line for line in lines if line["verb"] == "delete"]
codes = collections.Counter(line["responseStatus"]["code"] for line in asked)
times = sorted(datetime.datetime.fromisoformat(line["requestReceivedTimestamp"].rstrip("Z"))
               .timestamp() for line in asked)
busiest = first = 0
for last, at in enumerate(times):
    while at - times[first] >= 1:
        first += 1
    busiest = max(busiest, last - first + 1)
lists = sum(line["verb"] == "list" for line in lines)
print(*(codes[code] for code in (200, 404, 409)), busiest, lists)
COUNT
}

wait_until() { # wait_until SECONDS COMMAND…
    local until=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < until)) || return 1
        sleep 0.2
    done
}
is_gone() { ! grep -qx "$1" < <(names); }
is_count() { (($(count "$1") == $2)); }

# ---- Leases that must stay ----

hold() { # hold KEY [OPTION…]: by a process that lives
    "$program" run "$@" -- sleep 600 2>/dev/null &
    started+=($!)
}
hold stays-held --ttl 60s
wait_until 20 is_count stays-held 1
"$program" run stays-held --ttl 60s -w 600 -- true 2>/dev/null & # waits in line
started+=($!)
"$program" acquire stays-unbound --ttl 1h >/dev/null
"$program" release stays-cooling --token "$("$program" acquire stays-cooling)" --cooldown 1h --quiet
"$program" acquire stays-delayed --ttl 1s --lock-delay 1h >/dev/null
"$program" mark stays-done --quiet
"$program" mark gone-done --keep 1s --quiet
"$program" watermark set stays-mark --to 7 --reason test --quiet
"$program" once begin gone-claimed --ttl 1s >/dev/null
"$program" mark stays-awaiting --keep 1s --watermark stays-mark --until 9 --quiet
"$program" --store "$url&collect=off&prefix=other-" acquire stays --ttl 1s >/dev/null # not ours
"$program" acquire shape --ttl 1s >/dev/null
kubectl get lease shape -o json | python3 -c '
import json, sys
lease = json.load(sys.stdin)
for field in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink"):
    lease["metadata"].pop(field, None)
old = "2020-01-01T00:00:00.000000Z"
def variant(name, **change):
    copy = json.loads(json.dumps(lease).replace("shape", name))
    copy["spec"].update(change)
    return copy
taken = variant("stays-taken", holderIdentity="client-go", acquireTime=old, renewTime=old,
                leaseDurationSeconds=1) # ours once, and another program holds it
emptied = variant("stays-emptied", holderIdentity="") # … and let go of it
stranger = variant("stays-stranger", holderIdentity="client-go", acquireTime=old, renewTime=old,
                   leaseDurationSeconds=1)
stranger["metadata"].pop("labels")
stranger["metadata"].pop("annotations")
foreign = variant("stays-unlabelled")
foreign["metadata"].pop("labels") # made by another program
json.dump({"apiVersion": "v1", "kind": "List", "items": [taken, emptied, stranger, foreign]},
          sys.stdout)' | kubectl create --field-manager=leasehold-holder -f - >/dev/null
kubectl delete lease shape >/dev/null
# A queue whose first waiter died, and its holder too: it is kept for a day.
"$program" run stays-line --ttl 2s -- sleep 600 2>/dev/null &
holder=$!
wait_until 20 is_count stays-line 1
"$program" run stays-line --ttl 2s -w 600 -- true 2>/dev/null &
waiter=$!
wait_until 20 bash -c '"$0" --kubeconfig "$1" -n leasehold-test get lease stays-line -o json |
    grep -q places' "$KUBECTL" "$K8S_ADMIN"
kill -KILL "$waiter" "$holder"
wait "$waiter" "$holder" 2>/dev/null || true

litter dead "$leases"
sleep 4 # a lease of one second, and the margin of two whole ones
names | grep -v -e '^dead-' -e '^lh-' >"$work/before"
kept=$(kubectl get leases -o name | grep -vc dead- || true)

# ---- a program that runs anyway ----

line=$(wc -l <"$K8S_AUDIT")
began=$SECONDS
"$program" --store "$url&collect=3000" run keeper --ttl 60s -- sleep 300 2>/dev/null &
keeper=$!
started+=("$keeper")
verdict "$leases dead Leases vanish by themselves" wait_until 120 is_count dead- 0
printf '# after %d s\n' $((SECONDS - began))
sleep 1
read -r gone missing conflicts busiest lists < <(deletions "$line")
printf '# removed: %d, in the busiest second %d (3000 a minute are 50); not there: %d, taken: %d;' \
    "$gone" "$busiest" "$missing" "$conflicts"
printf ' lists: %d\n' "$lists"
verdict 'each was asked for once' test "$missing $conflicts" = '0 0'
verdict 'never faster than it may' test "$busiest" -le 51
names | grep -v -e '^dead-' -e '^lh-' -e '^keeper$' >"$work/after"
verdict 'whatever is held, waited for, cooling or not ours is still there' \
    cmp "$work/before" "$work/after"
verdict 'an id whose time is over is not' is_gone "$("$program" name once:gone-done)"
verdict 'nor one whose claimer died' is_gone "$("$program" name once:gone-claimed)"
awaiting=$("$program" name once:stays-awaiting)
verdict 'one that waits for a watermark is' grep -qx "$awaiting" < <(names)
mark=$("$program" name watermark:stays-mark)
verdict 'and so is the watermark' grep -qx "$mark" < <(names)
printf '# kept beside them: %d\n' "$kept"

"$program" watermark advance stays-mark --to 10 --expected 7 --quiet
verdict 'once the watermark has passed, the id goes, too' wait_until 90 is_gone "$awaiting"
verdict 'and the watermark stays' grep -qx "$mark" < <(names)
kill "$keeper"
wait "$keeper" 2>/dev/null || true

# ---- on request, of every ?prefix= and ?names= ----

verdict 'of other prefixes nothing was removed yet' grep -qx other-stays < <(names)
"$program" --store "$url&collect=off&names=hash" acquire hashed --ttl 1s >/dev/null
"$program" --store "$url&collect=off&names=hash" acquire hashed-stays --ttl 1h >/dev/null
sleep 4
verdict 'those of another prefix are kept while their users may allow a larger skew' \
    bash -c '"$0" --store "$1" collect | grep -qx "removed: 0 of 0.*"' "$program" "${url%%\?*}"
verdict 'a collection on request is for all of ours' \
    bash -c '"$0" collect | grep -qx "removed: 2 of 2.*"' "$program"
verdict 'whatever prefix and names they have' is_gone other-stays
verdict 'who holds one keeps it' grep -qx \
    "$("$program" --store "$url&names=hash" name hashed-stays)" < <(names)

# ---- an acquire between the read and the removal ----

litter race 4
sleep 4
line=$(wc -l <"$K8S_AUDIT")
"$program" collect --rate 40 --json >"$work/said" &
collector=$!
started+=("$collector")
wait_until 20 is_count race- 3
token=$("$program" acquire race-0003 --ttl 1h)
verdict 'a collection on request ends well' wait "$collector"
read -r gone missing conflicts busiest lists < <(deletions "$line")
printf '# %s\n' "$(<"$work/said")"
verdict 'what was taken meanwhile is kept, by the condition of the removal' \
    test "$gone $missing $conflicts" = '3 0 1'
verdict 'its new holder holds it' bash -c '"$0" renew race-0003 --token "$1" --quiet' \
    "$program" "$token"
verdict 'and it says so' grep -q '"left":4,"removed":3,"taken":1' "$work/said"

# ---- several at once ----

litter both 120
sleep 4
line=$(wc -l <"$K8S_AUDIT")
for i in 1 2; do
    "$program" --store "$url&collect=3000" run "keeper-$i" --ttl 60s -- sleep 300 2>/dev/null &
    started+=($!)
done
verdict 'two processes remove them together' wait_until 120 is_count both- 0
sleep 1
read -r gone missing conflicts busiest lists < <(deletions "$line")
printf '# removed: %d, in the busiest second %d; found gone already: %d\n' \
    "$gone" "$busiest" "$missing"
verdict 'none is removed twice, and who meets another leaves it to that one' \
    test "$gone" = 120 -a "$missing" -le 6
verdict 'nothing is left to be done' \
    bash -c '"$0" collect | grep -qx "removed: 0 of 0.*"' "$program"
verdict 'a file needs no collector' \
    bash -c '"$0" --store "file:$1/l" collect | grep -qx "removed: 0 of 0.*"' "$program" "$work"

finish
