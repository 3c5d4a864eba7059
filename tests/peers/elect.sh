#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# client-go's leader election and ours on one Lease: elect.sh URL PROGRAM ROUNDS, to be run by
# scripts/on-k8s.sh. In each round both want the Lease, and whoever leads is asked to stop, killed,
# stopped for longer than its lease, or loses the API server. Every leader writes a line with the
# time every few milliseconds; no two of them may lead at the same time. Prints TAP.
set -euo pipefail

url=$1
program=$(realpath "$2")
rounds=$3
lease_s=4
work=$(mktemp -d)
declare -A pid=([ours]= [theirs]=)
end_all() {
    local who
    for who in ours theirs; do
        [[ -z ${pid[$who]} ]] || signal_all KILL "$who"
    done
    rm -rf "$work"
}
trap end_all EXIT
trap 'exit 130' INT TERM HUP
export LEASEHOLD_STORE=$url HOME=$work
unset LEASEHOLD_TTL LEASEHOLD_CONFIG XDG_CONFIG_HOME LEASEHOLD_HOLDER
number=0
wrong=0
generation=0

verdict() { # verdict WHAT COMMAND...
    local what=$1
    shift
    number=$((number + 1))
    if "$@"; then
        printf 'ok %d - %s\n' "$number" "$what"
    else
        printf 'not ok %d - %s\n' "$number" "$what"
        wrong=1
    fi
}

# What ours does while it leads.
cat >"$work/lead.sh" <<'LEAD'
while :; do
    printf '%s %s\n' "$2" $((${EPOCHREALTIME/./} / 1000)) >>"$1"
    sleep 0.005
done
LEAD

# Everything of a contender: its command is in a process group of its own, but in the same session.
signal_all() { # signal_all SIGNAL WHO
    local all
    mapfile -t all < <(pgrep -s "${pid[$2]}" || true)
    ((${#all[@]} == 0)) || kill "-$1" "${all[@]}" 2>/dev/null || true
}

# Each contender is a session of its own, and has a name of its own in each of its lives.
begin() {
    generation=$((generation + 1))
    if [[ $1 == ours ]]; then
        setsid "$program" run elect --ttl "${lease_s}s" --kill-grace 500ms -- \
            bash "$work/lead.sh" "$work/beats" "ours-$generation" \
            >>"$work/ours.log" 2>&1 </dev/null &
    else
        setsid "$ELECTOR" -kubeconfig "$KUBECONFIG" -namespace leasehold-test -lease elect \
            -name "theirs-$generation" -beats "$work/beats" -duration "${lease_s}s" \
            >>"$work/theirs.log" 2>&1 </dev/null &
    fi
    pid[$1]=$!
}

# Who wrote last, if that was not long ago.
leader() {
    local name at now=$((${EPOCHREALTIME/./} / 1000))
    read -r name at < <(tail -n 1 "$work/beats") || return 1
    ((now - at < 300)) || return 1
    printf '%s\n' "$name"
}

# Whoever ended comes back: both want it all the time, and neither waits for ever for a server.
both_begin() {
    local who
    for who in ours theirs; do
        if [[ -n ${pid[$who]} ]]; then
            ! kill -0 "${pid[$who]}" 2>/dev/null || continue
            wait "${pid[$who]}" 2>/dev/null || true
        fi
        begin "$who"
    done
}

# wait_for_leader [OTHER THAN]: sets `leads`.
wait_for_leader() {
    local since=$SECONDS
    while ((SECONDS - since < 90)); do
        both_begin
        if leads=$(leader) && [[ $leads != "${1:-}" ]]; then
            return 0
        fi
        sleep 0.05
    done
    return 1
}

disturb() { # disturb HOW WHO
    case $1 in
    term) kill -TERM "${pid[$2]}" ;;
    kill) signal_all KILL "$2" ;;
    pause)
        signal_all STOP "$2"
        sleep $((lease_s + 4))
        printf 'woken %s %s\n' "$2" $((${EPOCHREALTIME/./} / 1000)) >>"$work/woken"
        signal_all CONT "$2" ;;
    outage)
        kill -KILL "$(<"$K8S_PID")"
        sleep $((lease_s / 2))
        "$K8S_API"
        kill -TERM "${pid[$2]}" ;;
    esac
}

ways=(term kill outage pause)
: >"$work/beats"
: >"$work/woken"
changes=0
for ((round = 0; round < rounds; round++)); do
    way=${ways[round % ${#ways[@]}]}
    wait_for_leader || break
    before=$leads
    disturb "$way" "${before%-*}"
    if ! wait_for_leader "$before"; then
        printf '# round %d: nobody follows %s, %s\n' "$round" "$before" "$way"
        break
    fi
    changes=$((changes + 1))
done
for who in ours theirs; do
    kill -TERM "${pid[$who]}" 2>/dev/null || true
    wait "${pid[$who]}" 2>/dev/null || true
    pid[$who]=
done

verdict "$rounds changes of leaders" test "$changes" = "$rounds"
# The lines are in the order of their writing. Whoever writes after somebody newer did, led beside
# it. But who was stopped by a signal cannot know at the moment it is woken: that is what tokens are
# for, and such lines are counted apart. Ours is told at once; client-go finds out when its next
# renewal fails.
python3 - "$work/beats" "$work/woken" <<'JUDGE' >"$work/judged"
import sys
grace_ms = {"ours": 500, "theirs": 4000}
woken = [(who, int(at)) for _, who, at in (line.split() for line in open(sys.argv[2]))]
seen, last, terms, beside, late = set(), None, 0, 0, {"ours": 0, "theirs": 0}
for line in open(sys.argv[1]):
    name, at = line.split()
    who = name.split("-")[0]
    if name == last:
        continue
    if name not in seen:
        seen.add(name)
        last, terms = name, terms + 1
    elif any(who == one and 0 <= int(at) - then < grace_ms[who] for one, then in woken):
        late[who] += 1
    else:
        beside += 1
print(terms, beside, late["ours"], late["theirs"])
JUDGE
read -r terms beside ours theirs <"$work/judged"
printf '# %d terms; lines of two leaders at once: %d; of one just woken: %d ours, %d theirs\n' \
    "$terms" "$beside" "$ours" "$theirs"
verdict 'never two leaders' test "$beside" = 0
verdict 'both were leaders' test "$(grep -c '^ours' "$work/beats")" -gt 0 -a \
    "$(grep -c '^theirs' "$work/beats")" -gt 0
((wrong == 0)) || tail -n 5 "$work/ours.log" "$work/theirs.log" | sed 's/^/# /'
printf '1..%d\n' "$number"
exit "$wrong"
