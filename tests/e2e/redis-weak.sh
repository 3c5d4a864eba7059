#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Losses under weaker settings of a Redis server, provoked: redis-weak.sh BUILD. Each case of
# docs/guarantees.md that says "can be lost" is lost here, beside the setting that keeps it; and
# doctor reports it before. Prints TAP.
set -euo pipefail

build=$(realpath "$1")
program=$build/leasehold
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/redis-kit.sh
. scripts/redis-kit.sh
# shellcheck source=tests/e2e/kit.sh
. tests/e2e/kit.sh
at_end() { redis_end; }
redis_begin "$work"
export HOME=$work

lock() { # lock NAME KEY: prints the token; for an hour, whoever dies
    LEASEHOLD_STORE=redis://127.0.0.1:${redis_port[$1]} "$program" acquire "$2" --no-wait --ttl 1h
}
is_kept() { ! lock "$1" "$2" >/dev/null 2>&1; }
is_lost() { lock "$1" "$2" >/dev/null 2>&1; }
warns() { # warns NAME PATTERN: doctor does
    LEASEHOLD_STORE=redis://127.0.0.1:${redis_port[$1]} "$program" doctor >"$work/said" 2>&1 || true
    grep -qE "^(warning|problem): .*$2" "$work/said"
}

# ---- asynchronous replication ----

redis_start master
redis_start_replica replica master
lock master kept >/dev/null
redis_until 'the replica has it' redis_says replica 1 exists lock:kept
again=$(lock master again)
LEASEHOLD_STORE=redis://127.0.0.1:${redis_port[master]} "$program" release again --token "$again"
redis_until 'the replica knows it' redis_says replica 0 exists lock:again
verdict 'doctor says what a failover can lose' warns master 'failover'
redis_cli replica replicaof 127.0.0.1 1 >/dev/null # the network between them is gone
before=$(lock master lost)
again=$(lock master again)
redis_kill master
redis_cli replica replicaof no one >/dev/null
verdict 'what had reached the replica is kept over a failover' is_kept replica kept
after=$(lock replica lost || printf 0)
verdict 'a lock that had not is lost: a second one holds it' test "$after" -gt 0
printf '# tokens: %s before the failover, %s after it\n' "$before" "$after"
verdict 'and its token can come again: after a failover tokens tell nothing' \
    test "$(lock replica again)" -le "$again"
redis_kill replica

# ---- a disk that is synced every second ----

lose_tail() { # lose_tail NAME: power is lost before the last write was synced
    local name=$1 file size
    lock "$name" first >/dev/null
    file=$(ls "$redis_root/$name"/appendonlydir/*.incr.aof)
    size=$(stat -c %s "$file")
    lock "$name" second >/dev/null
    redis_kill "$name"
    truncate -s "$size" "$file"
}
redis_start weak --appendfsync everysec
verdict 'doctor says what everysec can lose' warns weak 'appendfsync'
lose_tail weak
redis_start weak --appendfsync everysec
verdict 'everysec: what was synced is kept' is_kept weak first
verdict 'everysec: the last second is lost with the power' is_lost weak second
redis_kill weak

redis_start none --appendonly no
verdict 'doctor says what no persistence loses' warns none 'append'
before=$(lock none first)
redis_kill none
redis_start none --appendonly no
after=$(lock none first || printf 0)
verdict 'no persistence: everything is lost with the process' test "$after" -gt 0
verdict 'but tokens go on above, for they begin with the time' test "$after" -gt "$before"
redis_kill none

# ---- eviction ----

fill() { # fill NAME: more than it may keep
    local i
    for ((i = 0; i < 3000; i++)); do printf 'set ballast-%d %01000d\n' "$i" 0; done |
        redis_cli "$1" >/dev/null
}
redis_start evicts --maxmemory 3mb --maxmemory-policy allkeys-lru --maxmemory-samples 10
verdict 'doctor says what eviction can lose' warns evicts 'maxmemory-policy'
lock evicts job >/dev/null
sleep 1.1 # the server counts ages in seconds
# The server draws samples and counts ages in seconds: on a busy machine once may not be enough.
is_evicted() {
    local i
    for ((i = 0; i < 10; i++)); do
        fill evicts
        ! is_lost evicts job || return 0
        sleep 1.1
    done
    return 1
}
verdict 'allkeys-lru: a lock that nobody touches is lost' is_evicted
redis_kill evicts
redis_start keeps --maxmemory 3mb --maxmemory-policy noeviction
lock keeps job >/dev/null
fill keeps || true
verdict 'noeviction: it is kept, and the server says that it is full' eval \
    'is_kept keeps job && redis_says keeps noeviction config get maxmemory-policy'
redis_kill keeps

# ---- a clock that steps ----

step() { # step SECONDS: of the server's clock, in place, for it is mapped
    printf '%+010d' "$1" | dd of="$work/offset" conv=notrunc status=none
    sleep 0.2
}
step 0
cat >"$work/redis-elsewhen" <<ELSEWHEN
#!/bin/sh
exec env LD_PRELOAD=$build/tests/libclock_step.so CLOCK_STEP_FILE=$work/offset redis-server "\$@"
ELSEWHEN
chmod +x "$work/redis-elsewhen"
redis_program=$work/redis-elsewhen
redis_start steps
before=$(lock steps job)
verdict 'a lock holds' is_kept steps job
step 7200
after=$(lock steps job || printf 0)
verdict 'a step ahead ends every lease before its time' test "$after" -gt 0
verdict 'and tokens grow all the same' test "$after" -gt "$before"
step -7200
verdict 'a step back makes leases last longer' is_kept steps job
verdict 'doctor says that the clocks differ' warns steps 'clock'

finish
