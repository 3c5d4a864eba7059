#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# client-go's leader election and ours on one Lease: elect.sh URL BUILD ROUNDS [SEED], run by
# scripts/on-k8s.sh. Each round hands the Lease over, from ours to theirs, from theirs to ours, or
# from one of theirs to another while one of ours, which waits, is stopped and continued. The leader
# gets SIGTERM, is killed, stopped beyond its lease, cut off, or gets no replies; or the API server
# is stopped, or killed and restarted. Every leader writes a line with the time every few
# milliseconds (elect_judge.py reads them): no two may lead at the same time. Prints TAP.
set -euo pipefail

url=$1
build=$(realpath "$2")
rounds=$3
seed=${4:-$((SRANDOM % 1000000))}
lease_s=4
timeout_s=60
slots=3
key=elect
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/e2e/kit.sh
. "$here/../e2e/kit.sh"
declare -A pid=() slot_of=() face_of=() # of those that were begun and not ended, by name
declare -a taken=() pipes=()            # who sits in a slot; the way to its proxy
at_end() {
    local name
    for name in "${!pid[@]}"; do signal_all KILL "$name"; done
    for name in "${pipes[@]}"; do exec {name}>&-; done # a proxy ends with its input
}
export LEASEHOLD_STORE=$url HOME=$work
generation=0
RANDOM=$seed

note() { printf '%s %s\n' "$*" "$(now_ms)" >>"$work/notes"; }
kubectl() { "$KUBECTL" --kubeconfig "$K8S_ADMIN" -n leasehold-test --request-timeout=5s "$@"; }

# The command that `run` executes while it leads.
cat >"$work/lead.sh" <<'LEAD'
while :; do
    printf '%s %s\n' "$2" $((${EPOCHREALTIME//[!0-9]/} / 1000)) >>"$1"
    sleep 0.005
done
LEAD

# ---- contenders ----

# Each slot has a proxy of its own before the API server, so that one contender can be cut off.
open_slots() {
    local slot pipe
    for ((slot = 0; slot < slots; slot++)); do
        mkfifo "$work/commands-$slot"
        : >"$work/proxy-$slot"
        "$build/tests/proxy" --to "${K8S_SERVER##*:}" <"$work/commands-$slot" \
            >"$work/proxy-$slot" &
        exec {pipe}>"$work/commands-$slot"
        pipes[slot]=$pipe
        until read -r _ port <"$work/proxy-$slot"; do sleep 0.01; done
        sed -e "s#$K8S_SERVER#${K8S_SERVER%:*}:$port#" -e "s#ca\.crt#$K8S_CA#" "$KUBECONFIG" \
            >"$work/config-$slot"
    done
}

network() { # network SLOT COMMAND...
    local slot=$1 command
    shift
    for command in "$@"; do printf '%s\n' "$command" >&"${pipes[slot]}"; done
}

# All processes of a contender: its command has a process group of its own in the same session.
signal_all() { # signal_all SIGNAL NAME
    local all
    mapfile -t all < <(pgrep -s "${pid[$2]}" || true)
    ((${#all[@]} == 0)) || kill "-$1" "${all[@]}" 2>/dev/null || true
}

is_ours() { [[ $1 != client-go* ]]; }

# begin FACE: a session of its own, with a unique name; sets `begun`.
begin() {
    local slot=0 config
    while [[ -n ${taken[slot]:-} ]]; do slot=$((slot + 1)); done
    generation=$((generation + 1))
    begun=$1-$generation
    config=$work/config-$slot
    network "$slot" pass accept
    case $1 in
    run) exec env KUBECONFIG="$config" setsid "$build/leasehold" run "$key" \
        --ttl "${lease_s}s" --kill-grace 500ms --holder "$begun" -- \
        bash "$work/lead.sh" "$work/beats" "$begun" ;;
    library) exec env KUBECONFIG="$config" setsid "$build/tests/leader" "$url" "$key" \
        $((lease_s * 1000)) "$begun" "$work/beats" ;;
    client-go) exec setsid "$ELECTOR" -kubeconfig "$config" -namespace leasehold-test \
        -lease "$key" -name "$begun" -beats "$work/beats" -duration "${lease_s}s" ;;
    esac >"$work/$begun.log" 2>&1 </dev/null &
    pid[$begun]=$!
    disown "$!" # nobody wants to read how it ended
    slot_of[$begun]=$slot
    face_of[$begun]=$1
    taken[slot]=$begun
}

lives() { kill -0 "${pid[$1]}" 2>/dev/null; }

# A contender that lost, or got SIGTERM, exits by itself; then its slot is free.
see_off() {
    local name=$1 since=$SECONDS
    while lives "$name" && ((SECONDS - since < 30)); do sleep 0.05; done
    if lives "$name"; then
        printf '# %s did not end\n' "$name"
        lingered=$((lingered + 1))
        signal_all KILL "$name"
    fi
    taken[${slot_of[$name]}]=
    unset "pid[$name]" "slot_of[$name]" "face_of[$name]"
}

# The last writer, if that was not long ago.
leader() {
    local name at
    read -r name at < <(tail -n 1 "$work/beats") || return 1
    (($(now_ms) - at < 300)) || return 1
    printf '%s\n' "$name"
}

# Until the challenger leads; one that gave up, as `run` does without a server, is restarted.
await_leader() {
    local since=$SECONDS
    while [[ $(leader) != "$challenger" ]]; do
        ((SECONDS - since < timeout_s)) || return 1
        if ! lives "$challenger"; then
            local face=${face_of[$challenger]}
            see_off "$challenger"
            begin "$face"
            challenger=$begun
        fi
        sleep 0.03
    done
}

# ---- hand-offs ----

# disturb KIND LEADER: faults that last until another process leads are undone by restore().
disturb() {
    local slot=${slot_of[$2]}
    note "$1" "$2"
    case $1 in
    released) kill -TERM "${pid[$2]}" ;;
    killed) signal_all KILL "$2" ;;
    paused) signal_all STOP "$2" ;;
    cut-off) network "$slot" refuse cut ;;
    unanswered) network "$slot" 'hold down' ;;
    server-stopped)
        kill -STOP "$(<"$K8S_PID")"
        sleep $((lease_s + 1))
        kill -CONT "$(<"$K8S_PID")" ;;
    server-killed)
        kill_api
        sleep 1
        "$K8S_API" ;;
    esac
}

restore() {
    case $1 in
    paused)
        note woken "$2"
        signal_all CONT "$2" ;;
    cut-off | unanswered) network "${slot_of[$2]}" pass accept ;;
    esac
}

# Every kind equally often, in an order by the seed.
kinds=(released killed paused cut-off unanswered server-stopped server-killed)
bag=()
draw_kind() {
    local at
    ((${#bag[@]} > 0)) || bag=("${kinds[@]}")
    at=$((RANDOM % ${#bag[@]}))
    kind=${bag[at]}
    bag=("${bag[@]:0:at}" "${bag[@]:at+1}")
}

draw_ours() {
    local faces=(run library)
    begin "${faces[RANDOM % 2]}"
}

# The new waiter is the challenger; `bystander`, if any, waits beside it.
draw_challenger() {
    bystander=
    if is_ours "$leads"; then
        begin client-go
    elif [[ -n $waiting ]]; then
        begun=$waiting
    elif ((RANDOM % 3 == 0)); then
        draw_ours
        bystander=$begun
        begin client-go
    else
        draw_ours
    fi
    challenger=$begun
    waiting=
}

# kubectl shows the leader as the holder, and can replace the Lease with what it showed.
look_with_kubectl() {
    local tries
    for ((tries = 0; tries < 5; tries++)); do
        kubectl get lease "$key" -o yaml >"$work/lease.yaml" || continue
        if grep -q "holderIdentity: $leads\$" "$work/lease.yaml" &&
            kubectl replace -f "$work/lease.yaml" >/dev/null 2>&1; then # nobody wrote in between
            accepted=$((accepted + 1))
            return
        fi
    done
    printf '# kubectl does not show and accept %s\n' "$leads"
    cat "$work/lease.yaml"
}

hand_over() {
    local before=$leads
    draw_kind
    draw_challenger
    sleep 0.7
    if [[ -n $bystander ]]; then signal_all STOP "$bystander"; fi
    disturb "$kind" "$before"
    await_leader || return 1
    leads=$challenger
    restore "$kind" "$before"
    if [[ -n $bystander ]]; then
        signal_all CONT "$bystander"
        waiting=$bystander
        sleep 1
    fi
    see_off "$before"
    if is_ours "$leads"; then
        ours=$((ours + 1))
        look_with_kubectl
    fi
    note "round $kind ${before%-*} ${leads%-*}"
}

printf '# seed %s\n' "$seed"
: >"$work/beats"
: >"$work/notes"
open_slots
changes=0 ours=0 accepted=0 lingered=0 waiting=
if ((RANDOM % 2)); then draw_ours; else begin client-go; fi
challenger=$begun
await_leader
leads=$challenger
for ((changes = 0; changes < rounds; changes++)); do
    hand_over || {
        printf '# nobody follows %s, %s: %s\n' "$leads" "$kind" "$challenger"
        break
    }
done
for name in "${!pid[@]}"; do
    kill -TERM "${pid[$name]}" 2>/dev/null || true
    see_off "$name"
done

verdict "$rounds changes of leaders" test "$changes" = "$rounds"
verdict 'whoever lost ended by itself' test "$lingered" = 0
verdict "kubectl shows and accepts ours, each of $ours times" test "$accepted" = "$ours"
judged=0
python3 "$here/elect_judge.py" $((lease_s * 1000)) "$work" >"$work/judged" || judged=$?
sed 's/^/# /' "$work/judged"
verdict 'never two leaders' test "$judged" = 0
((wrong == 0)) || tail -n 5 "$work"/*-[0-9]*.log | sed 's/^/# /'
finish
