#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The file store in every possible state: file_states.sh BUILD. `leasehold doctor` reports a problem
# (69) exactly where `leasehold run` cannot take a lock (69), and no problem (0) exactly where it
# can. States that need rights which the user of the test does not have are left out. Prints TAP.
set -euo pipefail

build=$(realpath "$1")
program=$build/leasehold
# Nothing here has to survive a power loss, and each state costs some syncs.
[[ ! -w /dev/shm ]] || export TMPDIR=/dev/shm
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
cd "$work"
export HOME=$work/home
mkdir home
named=(--store "file:$work/s/l")
around=() # what the program is run in

# A store with a few keys, including the one to be locked; cases use a copy.
mkdir template
for key in a k b; do
    "$program" --store "file:$work/template/l" run "$key" --cooldown 1ms -- true
done
store() { cp "$work"/template/l* "$work/s/"; }

# agree STATUS STATE: the state is made anew for each of the two; both exit with the status.
agree() {
    local wanted=$1 state=$2 said_by_doctor=0 said_by_run=0
    shift 2
    made "$state" "$@"
    "${around[@]}" "$program" "${named[@]}" doctor >said 2>&1 </dev/null || said_by_doctor=$?
    made "$state" "$@"
    "${around[@]}" "$program" "${named[@]}" --store-timeout 2s run k --no-wait -- true \
        >>said 2>&1 </dev/null ||
        said_by_run=$?
    local good=false
    [[ $said_by_doctor != "$wanted" || $said_by_run != "$wanted" ]] || good=true
    printf 'doctor %s, run %s\n' "$said_by_doctor" "$said_by_run" >>said
    tell "$good" "$wanted: ${state//_/ }${*:+ $*}"
}
made() {
    chmod -R u+rwx s home 2>/dev/null || true
    rm -rf s home
    mkdir -p s home
    "$@"
}
put() { # put OFFSET FILE: bytes of stdin
    dd of="$2" bs=1 seek="$1" conv=notrunc status=none
}

# ---- no log yet ----

nothing_there() { :; }
log_missing() { store && rm s/l; }
log_and_index_missing() { store && rm s/l s/l.index; }
all_but_an_empty_lock_file_missing() { : >s/l.lock; }
lock_file_of_an_earlier_boot() { store && rm s/l && printf 'another!' | put 8 s/l.lock; }
foreign_lock_file() { echo 'whatever somebody keeps here' >s/l.lock; }
lock_file_is_a_folder() { mkdir s/l.lock; }
lock_file_is_a_link() { ln -s "$work/elsewhere" s/l.lock; }
lock_file_is_a_fifo() { mkfifo s/l.lock; }
lock_file_has_two_names() { : >s/l.lock && ln s/l.lock s/other; }
new_log_is_a_folder() { mkdir s/l.mend; }
new_index_is_a_folder() { mkdir s/l.index.mend; }
index_is_a_folder() { mkdir s/l.index; }
new_log_left_behind() { echo half >s/l.mend; }
agree 0 nothing_there
agree 69 log_missing
agree 69 log_and_index_missing
agree 0 all_but_an_empty_lock_file_missing
agree 0 lock_file_of_an_earlier_boot
agree 69 foreign_lock_file
agree 69 lock_file_is_a_folder
agree 69 lock_file_is_a_link
agree 69 lock_file_is_a_fifo
agree 69 lock_file_has_two_names
agree 69 new_log_is_a_folder
agree 69 new_index_is_a_folder
agree 69 index_is_a_folder
agree 0 new_log_left_behind

# ---- a log ----

whole() { store; }
lock_file_missing() { store && rm s/l.lock; }
index_missing() { store && rm s/l.index; }
index_empty() { store && : >s/l.index; }
index_cut() { store && truncate -s 5000 s/l.index; }
index_of_something_else() { store && echo 'not an index at all' >s/l.index; }
index_full_of_garbage() { # but for its head
    store
    head -c 131072 /dev/urandom | put 4096 s/l.index
}
index_a_folder() { store && rm s/l.index && mkdir s/l.index; }
lock_file_cut() { store && : >s/l.lock; }
lock_file_foreign() { store && echo 'whatever somebody keeps here' >s/l.lock; }
lock_file_a_folder() { store && rm s/l.lock && mkdir s/l.lock; }
page_full_of_garbage() { # but for magic and boot
    store
    head -c 160 /dev/urandom | put 16 s/l.lock
}
page_word() { # page_word NUMBER BYTES
    store
    printf '%b' "$2" | put $((8 * $1)) s/l.lock
}
generation_poisoned() { store && printf '\1' | put 120 s/l.lock; }
all_generations_poisoned() { store && printf '\377\377\377' | put 120 s/l.lock; }
somebody_died_writing() { store && printf '\2' | put 16 s/l.lock; }
somebody_died_recovering() { store && printf '\0' | put 16 s/l.lock; }
torn_tail() { # what was never synced, after a boot
    store
    rm s/l.lock
    printf 'half a record, as a power loss leaves it' |
        put "$(python3 -c 'print(len(open("s/l", "rb").read().rstrip(b"\0")) // 8 * 8 + 8)')" s/l
}
foreign_file() { echo 'no log of anybody, but long enough to look at' >s/l; }
empty_file() { : >s/l; }
newer_version() { store && rm s/l.lock && printf '\2' | put 8 s/l; }
header_damaged() { store && printf X | put 100 s/l; }
header_damaged_after_a_boot() { store && rm s/l.lock && printf X | put 100 s/l; }
record_damaged() { # of the key: the last one that names it
    store
    printf X | put "$(python3 -c 'print(open("s/l", "rb").read().rindex(b"\"key\":\"k\""))')" s/l
}
record_damaged_after_a_boot() { record_damaged && rm s/l.lock; }
log_cut() { store && truncate -s 4096 s/l; }
log_cut_after_a_boot() { store && rm s/l.lock && truncate -s 4200 s/l; }
log_a_link() { store && mv s/l s/real && ln -s real s/l; }
log_a_folder() { mkdir s/l; }
log_a_fifo() { mkfifo s/l; }
log_with_two_names() { store && ln s/l s/other; }
older_copy_in_its_place() {
    store
    "$program" --store "file:$work/s/l" run k -- true
    cp template/l s/l
}
agree 0 whole
agree 0 lock_file_missing
agree 0 index_missing
agree 0 index_empty
agree 0 index_cut
agree 0 index_of_something_else
agree 69 index_full_of_garbage
agree 69 index_a_folder
agree 0 lock_file_cut
agree 69 lock_file_foreign
agree 69 lock_file_a_folder
agree 69 page_full_of_garbage
# magic boot state attachment generation tail end last chain revision used synced ready ceiling
# syncing poisoned base foreign epoch: an invalid value is refused, and crashes no process.
for word in 2 4 5 6 9 15 16 18; do
    agree 69 page_word $word '\377\377\377\377\377\377\377\177'
done
agree 69 page_word 6 '\1\0\0\0\0\0\0\0'
agree 69 page_word 6 '\11\20\0\0\0\0\0\0'
agree 69 page_word 6 '\0\40\0\0\0\0\0\0'
agree 69 page_word 7 '\10\0\0\0\0\0\0\0'
agree 69 page_word 11 '\377\377\377\377\377\27\0\0'
agree 69 page_word 12 '\1\0\0\0\0\20\0\0'
agree 69 page_word 16 '\0\0\0\0\0\0\0\200'
agree 0 generation_poisoned
agree 69 all_generations_poisoned
agree 0 somebody_died_writing
agree 0 somebody_died_recovering
agree 0 torn_tail
agree 69 foreign_file
agree 69 empty_file
agree 69 newer_version
agree 69 header_damaged
agree 69 header_damaged_after_a_boot
agree 69 record_damaged
agree 69 record_damaged_after_a_boot
agree 69 log_cut
agree 69 log_cut_after_a_boot
agree 69 log_a_link
agree 69 log_a_folder
agree 69 log_a_fifo
agree 69 log_with_two_names
agree 69 older_copy_in_its_place

# A valid record that is foreign, or of another version.
record_unreadable() { store && "$build/tests/put_bytes" s/l k "$1"; }
agree 69 record_unreadable 'no JSON'
agree 69 record_unreadable '{"leasehold":99,"key":"k"}'


# ---- the folder ----

folder_missing() { rmdir s; }
folder_is_a_file() { rmdir s && : >s; }
folder_is_a_link_to_nowhere() { rmdir s && ln -s nowhere s; }
folder_open_to_all() { chmod 777 s; }
folder_open_to_its_group() { store && chmod 770 s; }
folder_without_rights() { store && chmod 0 s; }
folder_read_only() { store && chmod 555 s; }
log_read_only() { store && chmod 400 s/l; }
lock_file_read_only() { store && chmod 400 s/l.lock; }
lock_file_read_only_alone() { : >s/l.lock && chmod 400 s/l.lock; }
index_read_only() { store && chmod 400 s/l.index; }
agree 69 folder_missing
agree 69 folder_is_a_file
agree 69 folder_is_a_link_to_nowhere
agree 69 folder_open_to_all
agree 69 folder_open_to_its_group
if ((EUID == 0)); then
    theirs() { store && chown 65534 "$1"; }
    lock_file_theirs_alone() { : >s/l.lock && chown 65534 s/l.lock; }
    agree 69 theirs s
    agree 69 theirs s/l
    agree 69 theirs s/l.lock
    agree 69 theirs s/l.index
    agree 69 lock_file_theirs_alone
else
    agree 69 folder_without_rights
    agree 69 folder_read_only
    agree 69 log_read_only
    agree 69 lock_file_read_only
    agree 69 lock_file_read_only_alone
    agree 69 index_read_only
fi

# ---- names ----

for name in "$work/s/" "$work/s/." "$work/s/.." "$work/s/$(printf 'x%.0s' {1..300})" /proc/l; do
    named=(--store "file:$name")
    agree 69 nothing_there "in ${name:0:40}"
done
named=(--store file:s/l)
agree 0 whole 'by a relative name'
agree 69 log_missing 'by a relative name'

# ---- the default store, whose folder is created ----

above_is_a_file() { : >home/.local; }
above_is_a_link_to_nowhere() { mkdir home/.local && ln -s nowhere home/.local/state; }
above_read_only() { mkdir home/.local && chmod 500 home/.local; }
there_already() {
    mkdir -p home/.local/state/leasehold
    cp template/l* home/.local/state/leasehold
}
if ((EUID != 0)); then
    named=()
    agree 0 nothing_there 'by default'
    agree 0 there_already 'by default'
    agree 69 above_is_a_file
    agree 69 above_is_a_link_to_nowhere
    agree 69 above_read_only
fi

# ---- cases that mount: other file systems, read-only ones, full ones ----

alone=(unshare --mount)
((EUID == 0)) || alone=(unshare --user --map-root-user --mount)
on_small() { # on_small SIZE COMMAND: s/ is a file system so large, after the command
    around=("${alone[@]}" bash -c "mount -t tmpfs -o size=$1 none s; chmod 700 s; $2; "'"$@"' -)
}
filled='cp template/l* s/; head -c 64m /dev/zero >s/filler 2>/dev/null || true'
# As many records as fit into the grown log; the last part is reserved for renewals.
used_up="$filled; \"$build/tests/put_bytes\" s/l $(printf 'x%.0s' {1..500}) '' 9999 2>/dev/null"
if "${alone[@]}" mount -t tmpfs none /mnt 2>/dev/null; then
    named=(--store "file:$work/s/l")
    for size in 64 1024 1100 1156 1160 1164 1200 1300 2048; do
        on_small "${size}k" :
        wanted=0
        ((size >= 1160)) || wanted=69
        agree $wanted nothing_there "on a disk of $size KiB"
    done
    on_small 8m "$filled"
    agree 0 nothing_there 'but a log with room, on a full disk'
    on_small 8m "$used_up"
    agree 69 nothing_there 'but a log without room, on a full disk'
    on_small 8m "mount -o remount,bind,ro s"
    agree 69 nothing_there 'on a disk that is read-only'
    on_small 8m "cp template/l* s/; mount -o remount,bind,ro s"
    agree 69 nothing_there 'but a log, on a disk that is read-only'
    around=("${alone[@]}" bash -c 'mount -t ramfs none s; chmod 700 s; "$@"' -)
    agree 69 nothing_there 'on a file system that is not known'
fi

finish
