#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what the suites need and runs them: test.sh [--proof] [--k8s]. Every suite speaks TAP; its
# output is kept in build/logs and shown when something in it failed, or when it has figures to
# tell: seeds and states, the table of mutants, branches. They run one after another, for many look
# at the time; those that only think run beside them, where these leave the processors idle.
# --k8s runs those that need a Kubernetes API server, and no others; without it they run when the
# server is there. The last line is "N passed, N failed".
set -euo pipefail

# suite  | shape   | in make test  | in make proof: = is the same, .. X with X as its last word
suites='
gates    |         | scripts/check-gates.sh                  | =
format   |         | scripts/gate.sh format                  | =
layers   |         | scripts/gate.sh layers                  | =
size     |         | scripts/gate.sh size                    | =
cppcheck |         | scripts/gate.sh cppcheck                | =
tidy     |         | scripts/gate.sh tidy                    | =
bait     | asan    | tests/gates/sanitizers.sh build/asan    | =
bait-ts  | tsan    | tests/gates/sanitizers.sh build/tsan --races | =
unit     | asan    | scripts/units.sh build/asan             | =
cli      | asan    | tests/e2e/cli.sh build/asan/leasehold   | =
exits    | asan    | tests/e2e/exits.sh build/asan/leasehold | =
usage    | asan    | tests/e2e/usage.sh build/asan           | =
check    | asan    | tests/e2e/check.sh build/asan/leasehold 40 | .. 400
fencing  | sim     | tests/e2e/fencing.sh build/sim/leasehold 10 | .. 100
once     | sim     | tests/e2e/once.sh build/sim/leasehold 5 | .. 50
doctor   | asan    | tests/e2e/doctor.sh build/asan | =
fenced   | asan    | tests/e2e/fenced.sh build/asan/leasehold docs/fencing.md | =
docs     |         | tests/e2e/docs.sh                       | =
tour     | release | tests/e2e/tour.sh build/leasehold README.md docs/first-five-minutes.md | =
shipped  | release | tests/e2e/cli.sh build/leasehold        | =
header   | release | tests/e2e/header.sh build               | =
install  | release | tests/e2e/install.sh                    | =
lean     |         | tests/e2e/lean.sh                       | =
examples | asan    | tests/e2e/examples.sh build/asan        | =
trace    | asan    | scripts/stories.sh build/asan           | =
memory   | asan    | build/asan/tests/simulation --seeds 300 | =
desk-as  | asan    | build/asan/tests/simulation --desk 1 --seeds 600 | =
conform  | asan    | build/asan/tests/conformance memory:    | =
planted  | asan    | build/asan/tests/conformance memory: --mutants | scripts/planted.sh build/asan
beside   | asan    | scripts/on-file.sh build/asan/tests/conformance --processes 4 --beside | =
file-1   | asan    | scripts/on-file.sh build/asan/tests/conformance --processes 1 | =
file-2   | asan    | scripts/on-file.sh build/asan/tests/conformance --processes 2 | =
file-8   | asan    | scripts/on-file.sh build/asan/tests/conformance --processes 8 | =
redis    | asan    | scripts/on-redis.sh plain build/asan/tests/conformance --processes 4 | =
redis-pl | sim     | scripts/on-redis.sh plain build/sim/tests/conformance --mutants | =
redis-2  | asan    | scripts/on-redis.sh resp2 build/asan/tests/conformance --processes 2 | =
redis-no | asan    | scripts/on-redis.sh noscript build/asan/tests/conformance --processes 2 | =
redis-tls | asan   | scripts/on-redis.sh tls build/asan/tests/conformance --processes 2 | =
redis-acl | sim    | scripts/on-redis.sh acl build/sim/tests/conformance --processes 2 | =
redis-clu | asan   | scripts/on-redis.sh cluster build/asan/tests/conformance --processes 2 | =
redis-sen | sim    | scripts/on-redis.sh sentinel build/sim/tests/conformance --processes 2 | =
valkey   | sim     | scripts/on-redis.sh valkey build/sim/tests/conformance --processes 2 | =
redis-bad | asan   | tests/e2e/redis.sh build/asan           | =
entra    | asan    | tests/e2e/redis-entra.sh build/asan     | =
redis-weak | sim   | tests/e2e/redis-weak.sh build/sim        | =
redis-one | asan   | tests/e2e/redis-count.sh build/asan     | =
contend  | sim | scripts/on-redis.sh plain tests/peers/contend.sh build/sim/leasehold 20 | .. 200
servers  | sim     | build/sim/tests/server_faults --rounds 2 | .. 20
cuts     | sim     | build/sim/tests/server_cuts --rounds 4 | .. 20
k8s      | asan    | scripts/on-k8s.sh tests/e2e/k8s.sh build/asan | =
k8s-1    | asan    | scripts/on-k8s.sh build/asan/tests/conformance --processes 1 | =
k8s-2    | asan    | scripts/on-k8s.sh build/asan/tests/conformance --processes 2 | =
k8s-4    | sim     | scripts/on-k8s.sh build/sim/tests/conformance --processes 4 | =
k8s-plant | sim    | scripts/on-k8s.sh build/sim/tests/conformance --mutants | =
k8s-elect | sim    | scripts/on-k8s.sh tests/peers/elect.sh build/sim 5 | .. 50
k8s-fault | sim    | scripts/on-k8s.sh build/sim/tests/api_faults --rounds 1 | .. 20
k8s-way  | sim     | scripts/on-k8s.sh tests/peers/give_way.sh build/sim/leasehold 2 | .. 10
k8s-load | sim     | scripts/on-k8s.sh tests/e2e/workload.sh build/sim/leasehold 1 | .. 10
k8s-look | asan    | scripts/on-k8s.sh build/asan/tests/workload_look | =
k8s-crowd | sim    | scripts/on-k8s.sh build/sim/tests/check_then_create --rounds 2 | .. 20
k8s-tasks | sim    | scripts/on-k8s.sh build/sim/tests/shared_tasks --rounds 10 | .. 100
k8s-dead | sim     | scripts/on-k8s.sh build/sim/tests/dead_waiter --rounds 2 | .. 10
k8s-roll | sim     | scripts/on-k8s.sh tests/e2e/task_leases.sh build/sim/leasehold | =
k8s-dist |         | scripts/on-k8s.sh tests/e2e/manifests.sh | =
k8s-name | asan    | scripts/on-k8s.sh tests/e2e/k8s_names.sh build/asan/leasehold | =
k8s-doc  | asan    | scripts/on-k8s.sh tests/e2e/k8s_doctor.sh build/asan/leasehold | =
k8s-left | sim     | scripts/on-k8s.sh tests/e2e/k8s_collect.sh build/sim/leasehold 100 | .. 500
k8s-tell | asan    | scripts/on-k8s.sh tests/e2e/k8s_events.sh build/asan/leasehold | =
k8s-edit | asan    | scripts/on-k8s.sh tests/e2e/k8s_edits.sh build/asan/leasehold | =
kills    | sim     | build/sim/tests/kill_processes --rounds 200 | .. 2000
kills-as | asan    | build/asan/tests/kill_processes --rounds 30 | =
stops    | sim     | build/sim/tests/stop_in_lock --rounds 5 | .. 50
history  | sim     | build/sim/tests/live_histories --rounds 100 | .. 1100
waiters  | sim     | build/sim/tests/hundred_waiters --rounds 2 | .. 10
power    | sim     | build/sim/tests/power_loss --every 97   | .. 1
damage   | asan    | build/asan/tests/damage                 | =
failing  | asan    | build/asan/tests/failing_calls          | =
steps    | asan    | build/asan/tests/every_step             | =
dead     | sim     | build/sim/tests/dead_waiter --rounds 4 | .. 20
poller   | sim     | build/sim/tests/poller_kills --rounds 6 | .. 60
deaths   | sim     | build/sim/tests/hand_over_after_kill --rounds 20 | .. 200
runkills | sim     | build/sim/tests/run_kills --rounds 50 | .. 500
runstops | sim     | build/sim/tests/run_stops --rounds 1 | .. 10
runline  | sim     | build/sim/tests/run_waiters --rounds 1 | .. 5
terminal | sim     | build/sim/tests/terminal build/sim/leasehold | =
run      | asan    | tests/e2e/run.sh build/asan/leasehold 2 | .. 20
threads  | sim     | build/sim/tests/threads --rounds 100    | .. 1000
tasks    | sim     | build/sim/tests/shared_tasks --rounds 10 | .. 100
threads-as | asan  | build/asan/tests/threads --rounds 10    | =
forks    | sim     | build/sim/tests/fork_anywhere --rounds 100 | .. 1000
lost     | sim     | build/sim/tests/lost_before_granted --rounds 50 | .. 500
races    | tsan    | scripts/units.sh build/tsan beside lookup loop file* lib_l* lib_s* | =
races-th | tsan    | build/tsan/tests/threads --rounds 10    | .. 100
torture  | asan    | build/asan/tests/lib_torture            | =
rd-run   | sim     | scripts/in-redis.sh tests/e2e/run.sh build/sim/leasehold 1 | .. 10
rd-once  | sim     | scripts/in-redis.sh tests/e2e/once.sh build/sim/leasehold 1 | .. 20
rd-fence | sim     | scripts/in-redis.sh tests/e2e/fencing.sh build/sim/leasehold 4 | .. 40
rd-exits | sim     | scripts/in-redis.sh tests/e2e/exits.sh build/sim/leasehold 8 | .. 1
rd-ex    | asan    | scripts/in-redis.sh tests/e2e/examples.sh build/asan | =
rd-hist  | sim     | scripts/in-redis.sh build/sim/tests/live_histories --rounds 100 | .. 1000
rd-line  | sim     | scripts/in-redis.sh build/sim/tests/hundred_waiters --rounds 1 | .. 6
rd-dead  | sim     | scripts/in-redis.sh build/sim/tests/dead_waiter --rounds 1 | .. 10
rd-lost  | sim     | scripts/in-redis.sh build/sim/tests/lost_before_granted --rounds 16 | .. 160
rd-kills | sim     | scripts/in-redis.sh build/sim/tests/run_kills --rounds 3 | .. 50
rd-forks | sim     | scripts/in-redis.sh build/sim/tests/fork_anywhere --rounds 20 | .. 200
rd-thr   | asan    | scripts/in-redis.sh build/asan/tests/threads --rounds 10 | .. 100
rd-tasks | sim     | scripts/in-redis.sh build/sim/tests/shared_tasks --rounds 10 | .. 100
rd-mute  | asan    | build/asan/tests/silent_server --rounds 2 | .. 10
simulate | sim     | scripts/simulate.sh 10000               | scripts/simulate.sh 1000000
executor | sim     | build/sim/tests/simulation --executor 1 --seeds 2000 | .. 200000
desk     | sim     | build/sim/tests/simulation --desk 1 --seeds 2000 | .. 200000
explore  | sim     | build/sim/tests/explore                 | build/sim/tests/explore --proof
mutants  | mutants | scripts/mutants.sh 2000                 | scripts/mutants.sh 2000 all
fuzz     | fuzz    | scripts/fuzz.sh                         | scripts/fuzz.sh --proof
coverage |         | scripts/coverage.sh core 100            | =
'
figures='k8s check fencing once power damage failing kills runkills runstops runline stops history'
figures+=' waiters dead poller deaths threads forks lost torture simulate executor desk explore'
figures+=' redis-one contend servers cuts mutants fuzz coverage rd-once rd-hist rd-line rd-dead'
figures+=' rd-lost rd-kills rd-thr rd-mute k8s-elect k8s-fault k8s-crowd k8s-tasks k8s-dead'
figures+=' k8s-left k8s-way'
thinking=' gates format layers size cppcheck tidy simulate executor desk explore mutants fuzz '
limit_s=1200
proof=false
only_k8s=false
for argument in "$@"; do
    case $argument in
    --proof)
        proof=true
        limit_s=14400 ;;
    --k8s) only_k8s=true ;;
    esac
done

cd "$(dirname "$0")/.."
logs=build/logs
mkdir -p "$logs"
passed=0
failed=0
running=
thinker=

# timeout(1) leads a process group of its own; ending it ends the suite and all its children.
stop_suite() {
    [[ -z $running ]] || kill -- "-$running" 2>/dev/null || true
}
stop_all() {
    stop_suite
    [[ -z $thinker ]] || { kill "$thinker" && wait "$thinker"; } 2>/dev/null || true
}
trap stop_all EXIT
trap 'exit 130' INT TERM HUP

# Is a process of this group still at work? Dead ones that nobody collected do not count.
group_lives() {
    { cat /proc/[0-9]*/stat 2>/dev/null || true; } |
        awk -v group="$1" '{ sub(/.*\) /, "") } $3 == group && $1 != "Z" { found = 1 }
            END { exit !found }'
}

# Runs "$@" with its output in a log, and sets `status`.
run_logged() {
    local log=$1
    shift
    env --default-signal timeout --kill-after=10 "$limit_s" "$@" >"$log" 2>&1 </dev/null &
    running=$!
    status=0
    wait "$running" || status=$?
    if group_lives "$running" && sleep 1 && group_lives "$running"; then
        stop_suite
        printf 'not ok - left a process behind, which was ended\n' >>"$log"
    fi
    running=
}

# Builds a shape the first time a suite asks for it; a broken one fails every suite that needs it.
declare -A build_status=()
build_once() {
    local log=$logs/build-$1.log
    if [[ -z ${build_status[$1]:-} ]]; then
        run_logged "$log" flock "$logs/build-$1.lock" scripts/build.sh "$1"
        build_status[$1]=$status
        ((status == 0)) || cat "$log"
    fi
    return "${build_status[$1]}"
}

run_suite() {
    local name=$1 shape=$2 log=$logs/$1.tap began=$EPOCHREALTIME report
    shift 2
    if [[ -z $shape ]] || build_once "$shape"; then
        run_logged "$log" "$@"
    else
        status=1
        printf 'not ok 1 - build/%s did not build\n' "$shape" >"$log"
    fi

    local good bad took_ms=$(((${EPOCHREALTIME/./} - ${began/./}) / 1000))
    read -r good bad < <(scripts/tap-count.sh "$status" <"$log")
    passed=$((passed + good))
    failed=$((failed + bad))
    report=$(
        printf '== %-12s %4d ok %4d not ok %6d.%d s\n' "$name" "$good" "$bad" \
            $((took_ms / 1000)) $((took_ms % 1000 / 100))
        if ((bad)); then
            cat "$log"
            printf '== end of %s (status %s)\n' "$name" "$status"
        elif [[ " $figures " == *" $name "* ]]; then
            sed '/ of [0-9]* seeds$/d; s/^/    /' "$log"
        fi
    )
    # One speaks at a time.
    { flock 9 && printf '%s\n' "$report"; } 9>>"$logs/report.lock"
}

has_server=true
command -v etcd >/dev/null && scripts/kube-apiserver.sh --paths >/dev/null || has_server=false

# Runs the suites that only think, or the others.
run_suites() {
    local thinks=$1 name shape sample full command rounds
    while IFS='|' read -r name shape sample full; do
        read -r name <<<"$name"
        read -r shape <<<"$shape"
        read -ra command <<<"$sample"
        read -ra rounds <<<"$full"
        [[ -n $name ]] || continue
        if $thinks; then
            [[ $thinking == *" $name "* ]] || continue
        elif [[ $thinking == *" $name "* ]]; then
            continue
        fi
        if [[ ${command[0]} != scripts/on-k8s.sh ]]; then
            ! $only_k8s || continue
        elif ! $has_server; then
            printf '== %-12s not run: there is no Kubernetes API server (make test-k8s)\n' "$name"
            continue
        fi
        if $proof && [[ ${rounds[0]} == .. ]]; then
            command[-1]=${rounds[1]}
        elif $proof && [[ ${rounds[0]} != = ]]; then
            command=("${rounds[@]}")
        fi
        run_suite "$name" "$shape" "${command[@]}"
    done <<<"$suites"
}

think() {
    thinker=
    trap stop_suite EXIT
    trap 'exit 130' INT TERM HUP
    renice -n 19 -p "$BASHPID" >/dev/null
    run_suites true
    printf '%d %d\n' "$passed" "$failed" >"$logs/thinking"
}

rm -f "$logs/thinking"
think &
thinker=$!
run_suites false
wait "$thinker"
thinker=
read -r good bad <"$logs/thinking"
passed=$((passed + good))
failed=$((failed + bad))

printf '%d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
