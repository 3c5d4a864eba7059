#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Many of our processes do not starve another program on a Lease that it made: give_way.sh URL
# PROGRAM ROUNDS, run by scripts/on-k8s.sh. Ours hand the Lease over to each other as fast as they
# can, which would leave no gap for client-go, which only polls. Prints TAP.
set -euo pipefail

url=$1
program=$(realpath "$2")
rounds=$3
lease_s=4 # client-go looks every half second then
bound_s=20
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/../e2e/kit.sh"
crowd=()
theirs=
at_end() {
    local pid
    touch "$work/enough"
    [[ -z $theirs ]] || kill -KILL "$theirs" 2>/dev/null || true
    for pid in "${crowd[@]}"; do wait "$pid" 2>/dev/null || true; done
}
export LEASEHOLD_STORE=$url HOME=$work

begin_theirs() {
    "$ELECTOR" -kubeconfig "$KUBECONFIG" -namespace leasehold-test -lease crowded -name theirs \
        -beats "$work/theirs" -duration "${lease_s}s" >>"$work/theirs.log" 2>&1 </dev/null &
    theirs=$!
}

# theirs_leads: within the bound; sets `took_ms`.
theirs_leads() {
    local began=$((${EPOCHREALTIME//[!0-9]/} / 1000))
    until [[ -s $work/theirs ]]; do
        took_ms=$((${EPOCHREALTIME//[!0-9]/} / 1000 - began))
        ((took_ms < bound_s * 1000)) || return 1
        sleep 0.02
    done
}

end_theirs() {
    kill "$theirs" 2>/dev/null || true
    wait "$theirs" 2>/dev/null || true
    theirs=
    rm -f "$work/theirs"
}

one_of_ours() {
    until [[ -e $work/enough ]]; do
        "$program" run crowded --ttl "${lease_s}s" -w 60 -- \
            sh -c "echo in >>$work/ours; sleep 0.5" 2>>"$work/ours.log" || true
    done
}

begin_theirs
verdict 'another program makes the Lease' theirs_leads
end_theirs
: >"$work/ours"
for ((i = 0; i < 5; i++)); do
    one_of_ours &
    crowd+=($!)
done
longest=0
missed=0
for ((round = 0; round < rounds; round++)); do
    before=$(wc -l <"$work/ours")
    until (($(wc -l <"$work/ours") >= before + 3)); do sleep 0.05; done
    begin_theirs
    theirs_leads || missed=$((missed + 1))
    ((took_ms <= longest)) || longest=$took_ms
    end_theirs
done
printf '# %d turns of ours; theirs waited %d ms at most, and missed %d of %d\n' \
    "$(wc -l <"$work/ours")" "$longest" "$missed" "$rounds"
verdict "it gets in between them, $rounds times" test "$missed" = 0
verdict 'and ours go on' test "$(wc -l <"$work/ours")" -ge $((3 * rounds))
((wrong == 0)) || tail -n 5 "$work/ours.log" "$work/theirs.log" | sed 's/^/# /'
finish
