#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A store is backed up, used, restored, and its epoch raised, on file: and on a Redis server of its
# own: epoch.sh BUILD. Tokens must grow above all that were granted before, and writers from before
# the restore must be refused. As root it hides /var/lib, where doctor and epoch keep what they saw.
# Prints TAP.
set -euo pipefail

if ((EUID == 0)) && [[ -z ${EPOCH_ALONE:-} ]]; then
    # shellcheck disable=SC2016
    EPOCH_ALONE=1 exec unshare --mount bash -c \
        'mount -t tmpfs none /var/lib && mkdir -m 700 /var/lib/leasehold && exec "$@"' - "$0" "$@"
fi
build=$(realpath "$1")
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/kit.sh
. tests/e2e/kit.sh
# shellcheck source=scripts/redis-kit.sh
. scripts/redis-kit.sh
at_end() { redis_end; }
redis_begin "$work/redis"
mkdir "$work/redis"
export HOME=$work PATH=$build:$PATH
mkdir -p -m 700 "$work/.local/state/leasehold"
seen=$work/.local/state/leasehold/observed
((EUID != 0)) || seen=/var/lib/leasehold/observed

# ---- the two stores ----

file_backup() { cp "$work/locks.log" "$work/backup.log"; }
file_restore() {
    rm -f "$work"/locks.log*
    cp "$work/backup.log" "$work/locks.log"
}
redis_folder=$work/redis/one
redis_stop() { # the server is a child of an earlier case, so its end cannot be waited for
    local pid=${redis_pid[one]}
    redis_kill one TERM
    gone "$pid"
}
redis_backup() {
    redis_stop
    rm -rf "$work/backup"
    cp -r "$redis_folder" "$work/backup"
    redis_start one
}
redis_restore() {
    redis_stop
    rm -rf "$redis_folder"
    cp -r "$work/backup" "$redis_folder"
    redis_start one
}

# ---- steps ----

fence=$work/fence
checks() { leasehold check --guard "$fence" --key job --token "$1" --quiet; }
turn() { # turn KEY: acquires and releases it; prints the token
    local token
    token=$(leasehold acquire "$1" -n --ttl 1h)
    leasehold release "$1" --token "$token" --quiet
    printf '%s\n' "$token"
}
epoch_of() { printf '%s\n' $(($1 >> 55)); }
revision() { leasehold epoch --json | sed 's/.*"revision":"\([0-9]*\)".*/\1/'; }

before() { # what the backup contains, and what it does not
    kept=$(leasehold acquire kept --ttl 1h)
    first=$(turn job)
    checks "$first"
    [[ $(leasehold epoch) == 0 ]]
    leasehold doctor >"$work/doctor"
    grep -q '^ok: the epoch of tokens is 0' "$work/doctor"
    "${1}_backup"
}
goes_on() { # a recovered log skips 65,536 revisions, so more are needed to go back behind them
    local least i
    if [[ $1 == file ]]; then
        least=$(($(revision) + 66000))
        while (($(revision) < least)); do
            leasehold bench --flight 64 --duration 500ms --quiet >/dev/null
        done
    fi
    for ((i = 0; i < 5; i++)); do last=$(turn job); done
    ((last > first))
    checks "$last"
    leasehold doctor >"$work/doctor"
    grep -q 'is 0, and the store is not behind what this host saw$' "$work/doctor"
}

repeats() { # without a raise
    "${1}_restore"
    leasehold doctor >"$work/doctor"
    grep -q '^warning: the store looks restored from a backup: .*; end all users .* epoch raise$' \
        "$work/doctor"
    local token
    token=$(turn job)
    ((token <= last))
    ! checks "$token"
}
grows() {
    "${1}_restore"
    [[ $(leasehold epoch raise) == 1 ]]
    [[ $(leasehold epoch) == 1 && $(leasehold epoch show) == 1 ]]
    local token
    token=$(turn job)
    ((token > last)) && [[ $(epoch_of "$token") == 1 ]]
    checks "$token"
    says 78 'stale' checks "$last"
    says 78 'stale' checks "$first"
    printf '%s\n' "$token" >"$work/newest"
    leasehold doctor >"$work/doctor"
    grep -q '^ok: the epoch of tokens is 1, and the store is not behind' "$work/doctor"
}
keeps() { # the grant of the backup
    leasehold renew kept --token "$kept" --ttl 1h
    [[ $(field kept token) == "$kept" ]]
    leasehold release kept --token "$kept"
    (($(turn kept) > kept))
}
holds() { # a live holder and its waiter beside a raise
    local holder token
    rm -f "$work/held" "$work/waited"
    leasehold hold live --ttl 600ms --until-signal >"$work/held" &
    holder=$!
    await "$work/held"
    token=$(field live token)
    leasehold acquire live --ttl 1h >"$work/waited" &
    until_is live waiters 1
    leasehold epoch raise
    sleep 1.3
    kill -0 "$holder"
    [[ $(field live token) == "$token" ]]
    kill -TERM "$holder"
    await "$work/waited"
    (($(<"$work/waited") > token)) && [[ $(epoch_of "$(<"$work/waited")") == 2 ]]
}
restored_twice() { # the backup is older than the raise: this host, or a token, knows of it
    local newest
    newest=$(<"$work/newest")
    "${1}_restore"
    [[ $(leasehold epoch) == 0 ]]
    leasehold doctor >"$work/doctor"
    grep -q '^warning: the store looks restored .* of epoch 0, and this host saw .* of epoch 2 ' \
        "$work/doctor"
    cp "$seen" "$work/seen"
    rm "$seen"
    [[ $(leasehold epoch raise --above "$newest") == 2 ]]
    [[ $(leasehold epoch raise --above "$newest") == 2 ]]
    "${1}_restore"
    cp "$work/seen" "$seen"
    [[ $(leasehold epoch raise) == 3 ]]
    (($(turn job) > newest))
}
refused() {
    says 64 "'x' is not a token" leasehold epoch raise --above x
    says 64 'would be 256, and the highest is 255' leasehold epoch raise --above $((2 ** 63 - 1))
    says 64 'would be 512' leasehold epoch raise --above 18446744073709551615
    says 64 'no step .lift.; use show or raise' leasehold epoch lift
    says 64 '[-]-above is for raise' leasehold epoch show --above 5
    says 64 'memory: has no epoch' leasehold --store memory: epoch raise
    says 64 'memory: has no epoch' leasehold --store memory: epoch --json
    says 69 'unavailable|no such|No such' leasehold --store file:/no/such/x.log epoch raise
    [[ $(leasehold epoch) == 3 ]]
    says 0 '"outcome":"ok","epoch":254,"revision":"[0-9]+"' \
        leasehold epoch raise --above $((253 << 55)) --json
    [[ $(leasehold epoch raise) == 255 ]]
    says 64 'would be 256' leasehold epoch raise
    [[ $(epoch_of "$(turn job)") == 255 ]]
}
on() { # on STORE: all cases
    local store=$1
    rm -f "$fence" "$fence".*
    case_of "$store: tokens and a backup" steps before "$store"
    case_of "$store: the store goes on" steps goes_on "$store"
    case_of "$store: after a restore tokens repeat, and doctor tells" steps repeats "$store"
    case_of "$store: after a raise they grow, and late writers are refused" steps grows "$store"
    case_of "$store: a grant of the backup keeps its token" steps keeps
    case_of "$store: a holder and a waiter live through a raise" steps holds
    case_of "$store: a backup from before a raise" steps restored_twice "$store"
    case_of "$store: wrong calls change nothing" steps refused
}
# Cases run in processes of their own, which pass variables on in a file.
steps() {
    # shellcheck source=/dev/null
    ! [[ -e $work/vars ]] || . "$work/vars"
    set -euo pipefail
    "$@"
    printf '%s=%q\n' kept "${kept:-}" first "${first:-}" last "${last:-}" >"$work/vars"
    [[ -z ${redis_pid[one]:-} ]] || printf 'redis_pid[one]=%s\n' "${redis_pid[one]}" >>"$work/vars"
}

# ---- file: ----

export LEASEHOLD_STORE=file:$work/locks.log
on file
kept_in_log() { # a compaction, a crash, and a lock file that is gone, as after a boot
    leasehold doctor >"$work/doctor"
    while grep -q 'generation 1,' "$work/doctor"; do
        leasehold bench --flight 64 --duration 300ms --quiet >/dev/null
        leasehold doctor >"$work/doctor"
    done
    [[ $(leasehold epoch) == 255 ]]
    rm "$work/locks.log.lock"
    [[ $(leasehold epoch) == 255 ]]
}
case_of 'file: the epoch outlives compaction and boot' kept_in_log
nothing_made() {
    [[ $(leasehold --store "file:$work/none.log" epoch) == 0 ]]
    [[ ! -e $work/none.log ]]
    leasehold --store "file:$work/none.log" epoch raise
    [[ $(epoch_of "$(leasehold --store "file:$work/none.log" acquire k)") == 1 ]]
}
case_of 'file: show creates no store, raise does' nothing_made
small() { [[ $(wc -c <"$seen") -lt 1000 && $(stat -c %a "$seen") == 600 ]] && ! grep -q / "$seen"; }
case_of 'what this host saw is small, private, and names no store' small

# ---- Redis ----

rm -f "$work/vars"
redis_start one
export LEASEHOLD_STORE=redis://127.0.0.1:${redis_port[one]}
on redis
# shellcheck source=/dev/null
. "$work/vars"
denied() {
    redis_cli one acl setuser weak on '>pw' '~*' '&*' +@all -incrby >/dev/null
    export LEASEHOLD_STORE=redis://weak:pw@127.0.0.1:${redis_port[one]}
    redis_cli one flushall >/dev/null
    says 77 'NOPERM' leasehold epoch raise
    [[ $(leasehold epoch) == 0 && $(redis_cli one dbsize) == 0 ]]
    ! grep -q pw "$seen"
}
case_of 'redis: a user without the right is refused, and nothing is changed' denied
unreadable() {
    redis_cli one flushall >/dev/null
    leasehold acquire job >/dev/null
    redis_cli one set "$(redis_cli one --scan --pattern 'leasehold:{*}')" nonsense >/dev/null
    says 69 'revision counter .* is not a number; delete it' leasehold epoch
    says 69 'the epoch of tokens cannot be read: ' leasehold doctor
}
case_of 'redis: a counter that is no number is named, by doctor too' unreadable
finish
