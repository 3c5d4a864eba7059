#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --metrics-file: metrics.sh PROGRAM. What each outcome adds to the file, that no process loses a
# count, that Prometheus' own tool accepts the text, and that a file which cannot be used changes
# neither the exit status nor itself.
# shellcheck disable=SC2016 # $PPID is for the command that leasehold runs
set -euo pipefail

# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"

program=$(realpath "$1")
export LEASEHOLD_STORE=file:$work/locks.log
file=$work/m.prom

leasehold() { "$program" "$@"; }
# value SERIES [FILE]: without the prefix; "none" if it is missing.
value() {
    awk -v name="leasehold_$1" '$1 == name { print $2; n++ } END { if (n != 1) print "none" }' \
        "${2:-$file}"
}
# has FILE SERIES=VALUE…: all of them.
has() {
    local pair found where=$1
    shift
    for pair in "$@"; do
        found=$(value "${pair%=*}" "$where")
        [[ $found == "${pair##*=}" ]] || { printf '%s: %s\n' "$pair" "$found" && return 1; }
    done
}
# ends STATUS COMMAND…: it exits so, and prints nothing about metrics.
ends() {
    local wanted=$1 status=0
    shift
    "$@" </dev/null >"$work/out" 2>&1 || status=$?
    cat "$work/out"
    [[ $status == "$wanted" ]] && ! grep -q metrics "$work/out"
}
failures() { printf 'lock_acquisition_failures_total{reason="%s"}' "$1"; }
claims() { printf 'once_claims_total{outcome="%s"}' "$1"; }

# ---- what is counted ----

a_run() {
    (umask 077 && ends 0 leasehold run k --metrics-file "$file" -- true)
    has "$file" lock_acquisition_attempts_total=1 lock_acquisition_successes_total=1 \
        lock_releases_total=1 lock_hold_duration_seconds_count=1 lock_lost_total=0 \
        lock_acquisition_duration_seconds_count=1 "$(failures contention)=0" \
        'store_request_duration_seconds_count{verb="swap"}=1'
    [[ $(stat -c %a "$file") == 644 ]]
    ! grep -qE 'gauge|locks_held|lock_waiters|breaker_open' "$file"
}
case_of 'a run is counted, in a file that other users can read, without gauges' a_run

a_second_run() {
    local before
    before=$(stat -c %i "$file")
    chmod 640 "$file"
    ends 3 leasehold run k --metrics-file "$file" -- sh -c 'exit 3'
    has "$file" lock_acquisition_attempts_total=2 lock_releases_total=2 \
        lock_hold_duration_seconds_count=2 'lock_hold_duration_seconds_bucket{le="+Inf"}=2'
    [[ $(stat -c %a "$file") == 640 && $(stat -c %i "$file") != "$before" ]]
    [[ ! -e $file.new ]]
}
case_of 'a second run is added, the file is replaced and keeps its mode' a_second_run

refusals() {
    local m=$work/refused.prom token
    token=$(leasehold acquire held --metrics-file "$m")
    has "$m" lock_acquisition_successes_total=1 lock_releases_total=0
    ends 75 leasehold run -n held --metrics-file "$m" -- true
    ends 75 leasehold run -w 0.05 held --metrics-file "$m" -- true
    leasehold release held --token "$token"
    ends 0 leasehold run done --cooldown 1h --metrics-file "$m" -- true
    ends 73 leasehold run done --metrics-file "$m" -- true
    has "$m" lock_acquisition_attempts_total=5 lock_acquisition_successes_total=2 \
        "$(failures contention)=1" "$(failures timeout)=1" "$(failures cooling)=1" \
        lock_wait_duration_seconds_count=1
}
case_of 'busy, timeout and cooling are counted' refusals

unavailable() {
    local m=$work/unavailable.prom
    ends 69 leasehold --store "file:$work/none/locks.log" run k --metrics-file "$m" -- true
    ends 69 leasehold --store redis://127.0.0.1:1 run -n k --metrics-file "$m" -- true
    printf '%s\n' 'apiVersion: v1' 'kind: Config' 'current-context: c' \
        'clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]' \
        'users: [{name: u, user: {}}]' \
        'contexts: [{name: c, context: {cluster: c, user: u}}]' >"$work/kubeconfig"
    printf '%s\n' 'apiVersion: batch/v1' 'kind: Job' 'metadata: {}' 'spec: {}' >"$work/job.yaml"
    KUBECONFIG=$work/kubeconfig ends 69 leasehold --store k8s://a --store-timeout 0.2 \
        k8s-run --target t -f "$work/job.yaml" --metrics-file "$m"
    has "$m" lock_acquisition_attempts_total=3 lock_acquisition_successes_total=0 \
        "$(failures api_error)=3"
}
case_of 'a store that is unavailable is counted: file, Redis, Kubernetes' unavailable

lost() {
    local m=$work/lost.prom
    ends 76 leasehold run k --ttl 2s --metrics-file "$m" -- sh -c \
        '"$1" break k --reason test --now >/dev/null; sleep 60' - "$program"
    has "$m" lock_acquisition_successes_total=1 lock_lost_total=1 \
        lock_hold_duration_seconds_count=1
}
case_of 'a lost lock is counted' lost

# The lock that it leaves to the foreground process is released by token.
supervisor_killed() {
    local m=$work/killed.prom
    ends 70 leasehold run k --metrics-file "$m" -- sh -c 'kill -KILL $PPID; sleep 60'
    has "$m" lock_acquisition_attempts_total=1 lock_acquisition_successes_total=1 \
        lock_releases_total=1
}
case_of 'a run whose supervisor is killed is counted by the other process' supervisor_killed

ids() {
    local m=$work/once.prom token
    ends 0 leasehold once a --metrics-file "$m" -- true
    ends 0 leasehold once a --metrics-file "$m" -- false
    token=$(leasehold once begin b --metrics-file "$m")
    ends 75 leasehold once begin b --metrics-file "$m"
    ends 0 leasehold once finish b --token "${token#new }" --metrics-file "$m"
    has "$m" "$(claims new)=2" "$(claims running)=1" "$(claims done)=1" \
        "$(failures duplicate)=1" lock_releases_total=2
}
case_of 'claims of ids are counted, also in steps' ids

held() {
    local m=$work/hold.prom i
    ends 0 leasehold hold k l --metrics-file "$m"
    has "$m" lock_acquisition_successes_total=1 lock_releases_total=1
    ends 69 leasehold --store "file:$work/none/locks.log" hold k --metrics-file "$m"
    ends 69 leasehold --store "file:$work/none/locks.log" acquire k --metrics-file "$m"
    has "$m" "$(failures api_error)=2"
    sleep 0.2 &
    leasehold acquire k --pid $! --metrics-file "$m"
    for ((i = 0; i < 500; i++)); do
        [[ $(value lock_releases_total "$m") != 2 ]] || break
        sleep 0.02
    done
    has "$m" lock_acquisition_successes_total=2 lock_releases_total=2
}
case_of 'hold and acquire --pid are counted when they have released' held

from_config() {
    local m=$work/config.prom
    printf 'metrics-file: %s\n' "$m" >"$work/config.yaml"
    ends 0 leasehold --config "$work/config.yaml" run k -- true
    ends 0 leasehold --config "$work/config.yaml" status k
    has "$m" lock_acquisition_attempts_total=1 'store_request_duration_seconds_count{verb="read"}=0'
}
case_of 'the configuration file sets the path, and only for commands that acquire' from_config

# ---- the text ----

accepted() {
    promtool check metrics <"$file" >"$work/promtool" 2>&1
    [[ ! -s $work/promtool ]]
    # Without the tool's own opinion: every line is a comment or a series of ours.
    local label='[a-z]+="[^"]+"' other
    other=$(grep -vE "^# (HELP|TYPE) leasehold_|^leasehold_[a-z_]+(\\{$label(,$label)?\\})? [0-9]" \
        "$file")
    [[ $other == '# EOF' ]]
    ! grep -qE '[{,](key|holder|store|text)=' "$file"
}
case_of 'promtool accepts the file' accepted

# ---- many processes ----

together() {
    local m=$work/many.prom i pids=()
    for ((i = 0; i < 50; i++)); do
        leasehold -q run "k$i" --metrics-file "$m" -- true >>"$work/many.log" 2>&1 &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i"; done
    cat "$work/many.log"
    [[ ! -s $work/many.log ]]
    has "$m" lock_acquisition_attempts_total=50 lock_acquisition_successes_total=50 \
        lock_releases_total=50 lock_hold_duration_seconds_count=50
}
case_of '50 processes at once lose no count' together

# ---- a file that cannot be used ----

# refuses PATH PATTERN: the command succeeds with one warning that matches.
refuses() {
    local status=0
    leasehold run k --metrics-file "$1" -- sh -c 'exit 5' >"$work/out" 2>&1 || status=$?
    cat "$work/out"
    [[ $status == 5 && $(wc -l <"$work/out") == 1 ]] &&
        grep -qE -- "^leasehold: warning: the metrics were not added to .*$2" "$work/out"
}
foreign() {
    local m=$work/foreign.prom
    printf 'node_load1 0.5\n' >"$m"
    cp "$m" "$m.before"
    refuses "$m" 'line 1: expected .*remove it, or give another path'
    cmp "$m" "$m.before"
    head -c 5000 "$file" >"$m"
    cp "$m" "$m.before"
    refuses "$m" 'line [0-9]+: expected'
    cmp "$m" "$m.before"
    sed 's/attempts_total 2$/attempts_total -2/' "$file" >"$m"
    refuses "$m" 'line 3: expected a whole number'
    head -c 70000 /dev/zero >"$m"
    refuses "$m" 'longer than 64 KiB'
    : >"$m"
    ends 0 leasehold run k --metrics-file "$m" -- true
    has "$m" lock_acquisition_attempts_total=1
}
case_of 'a foreign, damaged or oversized file stays as it is; an empty one is used' foreign

# last WORD…: the object of the outcome comes after the warning.
last() {
    leasehold --json "$1" --metrics-file "$work/missing/m" "${@:2}" >"$work/out" 2>&1 || true
    cat "$work/out"
    jq -es 'length == 2 and .[0].warning != null and .[1].outcome != null' "$work/out"
}
unusable() {
    ln -s "$file" "$work/link.prom"
    refuses "$work/link.prom" 'it is a symbolic link'
    mkdir "$work/folder.prom"
    refuses "$work/folder.prom" 'not a regular file'
    mkfifo "$work/fifo.prom"
    refuses "$work/fifo.prom" 'not a regular file'
    refuses "$work/missing/m.prom" 'lock file .*/missing/m.prom.lock: No such file'
    ends 0 leasehold --json run k --metrics-file "$work/m2.prom" -- true
    leasehold --json run k --metrics-file "$work/missing/m" -- true >"$work/out" 2>&1
    jq -es 'map(select(.warning != null)) | length == 1' "$work/out"
    last run k -- sh -c 'exit 3'
    last once id -- true
    last once id -- true
    last run k --store file:/no/such/x.log -- true
    last acquire k --store file:/no/such/x.log
    leasehold acquire held --ttl 1h >/dev/null
    last run held -n -- true
    ! leasehold run k --metrics-file "" -- true
}
case_of 'a link, a folder, a pipe or a missing folder is one warning' unusable

# Both wait for about two seconds, so they do it together.
slow() {
    local m=$work/slow.prom late=$work/late.prom began pid status=0
    leasehold run late --ttl 2s --metrics-file "$late" -- \
        sh -c 'sleep 0.3; kill -STOP $PPID; exec sleep 60' >"$work/late.out" 2>&1 &
    pid=$!
    : >"$m.lock"
    exec 7<"$m.lock"
    flock 7
    began=$(now_ms)
    refuses "$m" 'another process holds its lock file'
    (($(now_ms) - began < 10000))
    exec 7<&-
    ends 0 leasehold run k --metrics-file "$m" -- true
    has "$m" lock_acquisition_attempts_total=1
    wait "$pid" || status=$?
    [[ $status == 76 ]]
    has "$late" lock_acquisition_successes_total=1 lock_lost_total=1
}
case_of 'a lock that is held for long ends the wait; a run that hangs counts as lost' slow

finish
