#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what the suites of tests/suites.txt need and runs one tier of them:
# test.sh [--full | --proof | --only NAME…].
#   (nothing)  tier `test`: what a newcomer runs; at most 10 minutes on two cores once built
#   --full     tier `full`: everything else, at its sample size
#   --proof    both tiers, with every round
#   --only     the rows that are named, at their sample size
# Every suite prints TAP. Its output is kept in build/logs and shown when a case failed, or when it
# has figures to report. Suites of a lane run one after another: `time`, which measure time, `k8s`,
# which mostly wait for a server, and, at low priority, `cpu`, which never wait. The three lanes run
# side by side. The last line is "N passed, N failed".
set -euo pipefail

table=tests/suites.txt
figures='k8s check fencing once power damage failing kills runkills runstops runline stops history'
figures+=' waiters dead poller deaths threads forks lost torture simulate executor local-queue'
figures+=' explore redis-one contend servers cuts mutants fuzz coverage rd-once rd-hist rd-line'
figures+=' rd-dead rd-lost rd-kills rd-thr rd-mute k8s-elect k8s-fault k8s-crowd k8s-tasks'
figures+=' container rd-proc k8s-dead k8s-left k8s-way hostile-r hostile-k hostile-rm hostile-km'
figures+=' hostile-g github github-num github-st github-w'
# Planted faults of the network stores take turns: this commit's hash chooses a quarter of them.
turns=4
commit=$(git -C "$(dirname "$0")" rev-parse --short=6 HEAD 2>/dev/null || echo 000000)
turn=$((16#$commit % turns + 1))/$turns
limit_s=2400
tier='test'
proof=false
chosen=
case ${1:-} in
'') ;;
--full) tier=full ;;
--proof)
    proof=true
    limit_s=14400 ;;
--only)
    shift
    chosen=" $* " ;;
*)
    printf 'usage: test.sh [--full | --proof | --only NAME…]\n' >&2
    exit 64 ;;
esac

cd "$(dirname "$0")/.."
logs=build/logs
mkdir -p "$logs"
: >"$logs/times"
passed=0
failed=0
running=
declare -A lanes=()

# timeout(1) leads a process group of its own; a signal to it ends the suite and all its children.
stop_suite() {
    [[ -z $running ]] || kill -- "-$running" 2>/dev/null || true
}
stop_all() {
    local lane
    stop_suite
    for lane in "${lanes[@]}"; do { kill "$lane" && wait "$lane"; } 2>/dev/null || true; done
}
trap stop_all EXIT
trap 'exit 130' INT TERM HUP

# Succeeds while the group has a live process. Zombies do not count.
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

# Builds a shape before the first suite that needs it; a failed build fails all its suites.
declare -A build_status=()
build_once() {
    local log=$logs/build-$1.log
    if [[ -z ${build_status[$1]:-} ]]; then
        local began=$SECONDS
        run_logged "$log" flock "$logs/build-$1.lock" scripts/build.sh "$1"
        build_status[$1]=$status
        ((status == 0)) || cat "$log"
        printf '%d build-%s\n' $(((SECONDS - began) * 1000)) "$1" >>"$logs/times"
    fi
    return "${build_status[$1]}"
}

run_suite() {
    local name=$1 shape=$2 log=$logs/$1.tap report built=true began
    shift 2
    [[ -z $shape ]] || build_once "$shape" || built=false
    began=$EPOCHREALTIME
    if $built; then
        run_logged "$log" "$@"
    else
        status=1
        printf 'not ok 1 - build/%s did not build\n' "$shape" >"$log"
    fi

    local good bad took_ms=$(((${EPOCHREALTIME//[!0-9]/} - ${began//[!0-9]/}) / 1000))
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
    # The two lanes print one report at a time.
    { flock 9 && printf '%s\n' "$report" && printf '%d %s\n' "$took_ms" "$name" >>"$logs/times"; } \
        9>>"$logs/report.lock"
}

# The CPU lane builds the API server first.
wait_for_server() {
    until scripts/kube-apiserver.sh --paths >/dev/null 2>&1; do
        [[ -e /proc/${cpu_lane:-none} ]] || return 0
        ! grep -q ' kube-server$' "$logs/times" || return 0
        sleep 1
    done
}

# Runs the suites of a lane.
run_lane() {
    local only=$1 name in_tier lane shape sample full command rounds
    while IFS='|' read -r name in_tier lane shape sample full; do
        read -r name <<<"$name"
        read -r in_tier <<<"$in_tier"
        read -r lane <<<"$lane"
        read -r shape <<<"$shape"
        read -ra command <<<"$sample"
        read -ra rounds <<<"$full"
        [[ ${command[0]:-} != scripts/on-k8s.sh ]] || lane=k8s
        [[ -n $name && ${lane:-time} == "$only" ]] || continue
        if [[ -n $chosen ]]; then
            [[ $chosen == *" $name "* ]] || continue
        else
            $proof || [[ $in_tier == "$tier" ]] || continue
        fi
        if $proof && [[ ${rounds[0]} == .. ]]; then
            command[-1]=${rounds[1]}
        elif $proof && [[ ${rounds[0]} != = ]]; then
            command=("${rounds[@]}")
        fi
        command=("${command[@]/#\{turn\}/$turn}")
        [[ $only != k8s ]] || wait_for_server
        run_suite "$name" "$shape" "${command[@]}"
    done < <(grep -v '^#' "$table")
}

# start_lane NAME NICENESS: in the background; its totals are in a file when it ends.
start_lane() {
    rm -f "$logs/lane-$1"
    (
        cpu_lane=${lanes[cpu]:-}
        lanes=()
        trap stop_suite EXIT
        trap 'exit 130' INT TERM HUP
        renice -n "$2" -p "$BASHPID" >/dev/null
        run_lane "$1"
        printf '%d %d\n' "$passed" "$failed" >"$logs/lane-$1"
    ) &
    lanes[$1]=$!
}

join_lane() {
    local good bad
    wait "${lanes[$1]}"
    unset "lanes[$1]"
    read -r good bad <"$logs/lane-$1"
    passed=$((passed + good))
    failed=$((failed + bad))
}

# A row that --only names but that does not exist is a typing error.
for name in $chosen; do
    grep -q "^$name *|" "$table" || {
        printf 'test.sh: there is no suite %s\n' "$name" >&2
        exit 64
    }
done

[[ $tier == test ]] || printf '== planted faults of network stores: turn %s by commit %s\n' \
    "$turn" "$commit"
start_lane cpu 19
start_lane k8s 0
run_lane time
join_lane k8s
join_lane cpu

printf '== %d min %d s; the slowest:' $((SECONDS / 60)) $((SECONDS % 60))
sort -rn "$logs/times" | head -n 10 | awk '{ printf " %s %d s", $2, $1 / 1000 }
    END { print "" }'
printf '%d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
