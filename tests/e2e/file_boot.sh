#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The file store under another boot id and another time of day: file_boot.sh PROGRAM. A container
# manager may mount its own boot id: a mount namespace does so here, and faketime moves the wall
# clock. No process is granted beside a live holder; without a live process a new boot id is a
# reboot. Cases that need the right to mount are left out where it is missing. Prints TAP.
set -euo pipefail

program=$(realpath "$1")
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
cd "$work"
store=file:$work/locks.log

alone=(unshare --mount)
((EUID == 0)) || alone=(unshare --user --map-root-user --mount)
id_file=/proc/sys/kernel/random/boot_id
printf '%s\n' 11111111-2222-3333-4444-555555555555 >boot_id
printf '%s\n' 99999999999999999999999999999999 >other_machine
machine=''
# Not through the program faketime, which would be between us and the process to end.
faketime=$(echo /usr/lib/*/faketime/libfaketime.so.1)

# elsewhere COMMAND…: replaces this shell, under the other boot id, with another machine id if
# `machine` names a file, and with the wall clock an hour ahead. The clock since boot stays the
# host's: a container cannot set it.
elsewhere() {
    exec "${alone[@]}" bash -c '
        mount --bind "$1" "$2"
        mount -t tmpfs none /dev/shm # a process that is killed leaves what libfaketime puts there
        [[ -z $3 ]] || mount --bind "$3" /etc/machine-id
        export ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0
        export LD_PRELOAD=$4 FAKETIME=+1h FAKETIME_DONT_FAKE_MONOTONIC=1
        shift 4
        exec "$@"
    ' - "$work/boot_id" "$id_file" "$machine" "$faketime" "$@"
}
here() { exec "$@"; }
in_a_shell() { ("$@"); }

# hold HERE|ELSEWHERE KEY: in the background, bound to its process, until end_holder.
hold() {
    "$1" "$program" --store "$store" run "$2" --ttl 20s -- sleep 600 2>/dev/null &
    started=($!)
    until "$program" --store "$store" status "$2" | grep -q '^held'; do sleep 0.05; done
}
end_holder() {
    { kill -KILL "${started[0]}" && wait "${started[0]}"; } 2>/dev/null || true
    started=()
}

# Every requester, here or elsewhere, finds the holder; other keys can be used all the while.
stands_alone() {
    says 75 'held by' "$program" --store "$store" run k --no-wait -- true
    $mounts || return 0
    says 75 'held by' in_a_shell elsewhere "$program" --store "$store" run k --no-wait -- true
    says 0 '^held: k by' in_a_shell elsewhere "$program" --store "$store" status k
    says 0 '' in_a_shell elsewhere "$program" --store "$store" run other --no-wait -- true
    says 75 'held by' "$program" --store "$store" run k --no-wait -- true
}
freed() {
    local i
    for ((i = 0; i < 100; i++)); do
        ! says 0 '' in_a_shell elsewhere "$program" --store "$store" run k --no-wait -- true ||
            return 0
        sleep 0.05
    done
    return 1
}
read_anew() {
    rm "$work/locks.log.index"
    stands_alone
}
rebooted() {
    "$program" --store "$store" acquire unbound --ttl 30m >/dev/null
    printf '%s\n' 66666666-2222-3333-4444-555555555555 >"$work/boot_id"
    says 0 '^free' in_a_shell elsewhere "$program" --store "$store" status unbound
    # The store's time never goes back, whatever clock comes next.
    says 0 '^free' "$program" --store "$store" status unbound
}

mounts=false
! "${alone[@]}" mount --bind boot_id "$id_file" 2>/dev/null || mounts=true
verdict 'faketime is at hand' test -e "$faketime"
hold here k
case_of 'another boot id and a wall clock set forward let nobody in beside a holder' stands_alone
if $mounts; then
    case_of 'nor when the log has to be read anew' read_anew
    machine=$work/other_machine
    case_of 'nor under another machine id' stands_alone
    case_of 'nor when it has to be read anew there' read_anew
    machine=''
    end_holder
    case_of 'a holder that died is seen to be dead under another boot id' freed
    rm -f locks.log locks.log.*
    hold elsewhere k
    case_of 'a holder under another boot id is respected here' stands_alone
    end_holder
    case_of 'and its end is seen' freed
    rm -f locks.log locks.log.*
    case_of 'with nobody alive another boot id is a reboot, and the time of day counts' rebooted
fi

finish
