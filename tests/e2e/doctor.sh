#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each finding of leasehold doctor, provoked: doctor.sh BUILD. Cases that need rights that the user
# of the test does not have (to mount, to change owners) are left out. Prints TAP.
set -euo pipefail

build=$(realpath "$1")
program=$build/leasehold
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
export HOME=$work
cd "$work"
status=0

# expect STATUS PATTERN OPTION...: the pattern is one of a whole line of the report
expect() {
    local wanted=$1 pattern=$2 good=false
    shift 2
    status=0
    "${before[@]}" "$program" doctor "$@" >said 2>&1 </dev/null || status=$?
    [[ $status != "$wanted" ]] || ! grep -qxE -- "$pattern" said || good=true
    printf 'exit %s\n' "$status" >>said
    tell "$good" "$wanted: $pattern"
}
before=()

# ---- which store, and its origin ----

named=file:$work/locks.log
expect 0 'ok: leasehold [0-9.]+, with the stores file, .*' --store "$named"
expect 0 "ok: the store is $named, named by --store" --store "$named"
expect 0 'ok: there is no log yet; the first lock makes it' --store "$named"
verdict 'nothing was made' test ! -e locks.log -a ! -e locks.log.lock
before=(env LEASEHOLD_STORE="$named")
expect 0 "ok: the store is $named, named by LEASEHOLD_STORE"
printf 'store: %s\n' "$named" >config.yaml
before=()
expect 0 "ok: the store is $named, named in config.yaml" --config config.yaml
expect 0 'ok: the config file is config.yaml' --config config.yaml
before=(env LEASEHOLD_STORE=memory:)
expect 0 "ok: the store is $named, named by --store" --config config.yaml --store "$named"
expect 0 'ok: the store is memory:, named by LEASEHOLD_STORE' --config config.yaml
before=()
expect 0 'warning: memory: is private to each process .*; name a file: store .*' --store memory:
expect 69 'problem: not built in: "etcd"; a URL begins with .*' --store etcd://u:secret@host
verdict 'no secret is shown' bash -c '! grep -q secret said'
expect 64 'problem: unknown store scheme "reddis"; a URL begins with .*' --store reddis://host
expect 64 "leasehold: doctor takes no argument, but got 'now'" now

# ---- folder, file system, rights ----

expect 0 "ok: $work is on [A-Za-z0-9]+" --store "$named"
expect 0 'ok: [0-9]+ MiB are free' --store "$named"
expect 0 'ok: the rights of folder and file are fine' --store "$named"
expect 69 "problem: $work/none is not there; make it with mkdir -p, .*" --store "file:$work/none/l"
expect 69 'problem: .*/config.yaml cannot be used: Not a directory; .*' \
    --store "file:$work/config.yaml/l"
expect 69 'problem: /proc is on a file system of type 0x9fa0, .*; use a local disk' \
    --store file:/proc/l
mkdir -m 777 open
chmod 777 open
expect 69 'problem: .*/open: the folder is world-writable; use one of your own' \
    --store "file:$work/open/l"
mkdir group
chmod 770 group
expect 69 'problem: .*/group: the group may write to the folder; take that right away, .*' \
    --store "file:$work/group/l"
ln -s nowhere link
expect 69 'problem: .*/link: a symbolic link; name the file itself' --store "file:$work/link"
mkdir folder
expect 69 'problem: .*/folder: not a regular file' --store "file:$work/folder"

# ---- the log ----

for key in a b c; do "$program" --store "$named" acquire $key --ttl 1h >/dev/null; done
expect 0 'ok: the log is whole; keys: 3, records: 4, revision [0-9]+, generation 1, made .* ago' \
    --store "$named"
verdict 'people who want only trouble see none' \
    test -z "$("$program" --store "$named" --quiet doctor)"
verdict 'as JSON it is one object for each line' bash -c '
    "$0" --store "$1" doctor --json | python3 -c "
import json, sys
found = [json.loads(line) for line in sys.stdin]
assert len(found) == 8, found
assert all(list(one) == [\"finding\", \"about\", \"text\", \"do\"] for one in found), found
assert [one[\"about\"] for one in found] == [
    \"version\", \"store\", \"clock\", \"file-system\", \"room\", \"rights\", \"log\",
    \"epoch\"], found
"' "$program" "$named"
# The last line says what to do first: about a problem rather than about a warning before it.
concludes() { # concludes LINE OPTION…
    local wanted=$1
    shift
    "$program" doctor "$@" >said 2>&1 || true
    [[ $(tail -n 1 said) =~ ^$wanted$ ]]
}
verdict 'the last line says that all is well' concludes 'all is well' --store "$named"
verdict 'or what to do about a warning' \
    concludes 'locks work; to do first: name a file: store .*' --store memory:
verdict 'or what to do about a problem' \
    concludes 'to do first: make it with mkdir -p, .* \(.*/none is not there\)' \
    --store "file:$work/none/l"
verdict 'or about the URL' concludes 'to do first: .*a URL begins with .*' --store reddis://host
printf 'no log of anybody, but long enough to look at\n' >foreign
expect 69 'problem: this is not a leasehold log; it was left unchanged, choose another path.*' \
    --store "file:$work/foreign"
verdict 'what is not ours is left alone' test ! -e foreign.lock
# In a record that is not the last one: other commands do not read it.
cp locks.log copy.log
"$program" --store "file:$work/copy.log" status a >/dev/null
printf 'X' | dd of=copy.log bs=1 seek=4300 conv=notrunc status=none
expect 69 'problem: the log is damaged at offset [0-9]+; end all users of the store, .*' \
    --store "file:$work/copy.log"
rm copy.log.lock copy.log.index
expect 69 'problem: the log.s synced part is damaged; .* \(damage at offset [0-9]+\)' \
    --store "file:$work/copy.log"

# ---- a process that is stopped in the store's lock ----

"$build/tests/keep_lock" busy.log &
busy=$!
started=("$busy")
until grep -q '^State:.T' "/proc/$busy/status"; do sleep 0.02; done
expect 69 "problem: process $busy \(keep_lock\), which is stopped, has held the store's lock .*\
; let it go on with kill -CONT $busy, or end it" --store "file:$work/busy.log"
kill -CONT "$busy"
wait "$busy"
started=()
expect 0 'ok: the log is whole; .*' --store "file:$work/busy.log"

# ---- cases that need rights ----

alone=(unshare --mount)
((EUID == 0)) || alone=(unshare --user --map-root-user --mount)
if "${alone[@]}" mount -t tmpfs none /mnt 2>/dev/null; then
    mkdir small state
    in_small() { # in_small SIZE COMMAND: calls are made where small/ is so small, after a command
        before=("${alone[@]}" bash -c "mount -t tmpfs -o size=$1 none small; $2; "'"$@"' -)
    }
    in_small 1m true
    expect 69 'problem: only [0-9]+ KiB are free; a new store needs [0-9]+ KiB; free some, .*' \
        --store "file:$work/small/l"
    in_small 8m true
    expect 0 'warning: only [0-9]+ KiB are free; on a full disk .*; free some, .*' \
        --store "file:$work/small/l"
    # Root has a default store of its own; here it is an empty one.
    hidden="export XDG_STATE_HOME=$work/state; mount -t tmpfs none /var/lib"
    in_small 8m "$hidden"
    expect 0 'ok: the store is file:/var/lib/leasehold/locks.log, the default of root'
    expect 0 'ok: /var/lib/leasehold is not there yet; the first lock makes it'
    mkdir state/leasehold
    cp locks.log state/leasehold/locks.log
    expect 0 "warning: there is another default store, $work/state/leasehold/locks.log, which \
users other than root use without --store; .*; name one store everywhere.*"
    in_small 8m "$hidden; mkdir -m 700 /var/lib/leasehold; cp locks.log /var/lib/leasehold"
    expect 0 'warning: there is another default store, /var/lib/leasehold/locks.log, which root.*' \
        --store "file:$work/state/leasehold/locks.log"
fi
before=()
if ((EUID == 0)); then
    mkdir -m 755 theirs
    chown 65534 theirs
    expect 69 'problem: .*/theirs: the folder belongs to another user; use one of your own' \
        --store "file:$work/theirs/l"
    cp locks.log their.log
    chown 65534 their.log
    expect 69 'problem: .*/their.log: the file belongs to another user' \
        --store "file:$work/their.log"
    chmod 711 "$work"
    install -m 755 "$program" "$work/program"
    verdict 'a folder that cannot be written to' \
        says 69 '^problem: /usr: cannot write to the folder: ' \
        setpriv --reuid 65534 --clear-groups "$work/program" --store file:/usr/l doctor
fi
# Root's folder is closed to others: a store that cannot be checked counts as existing.
if ((EUID == 0)) && unshare --mount mount -t tmpfs none /mnt 2>/dev/null; then
    mkdir -p user/.local
    chown -R 65534 user
    # as_user SETUP COMMAND…: with an empty /var/lib, after the setup, as a user other than root
    as_user() {
        local setup=$1
        shift
        unshare --mount bash -c '
            mount -t tmpfs none /var/lib
            eval "$1"
            shift
            HOME=$PWD/user exec setpriv --reuid 65534 --clear-groups "$@"
        ' - "$setup" "$@"
    }
    shut='mkdir -m 700 /var/lib/leasehold; touch /var/lib/leasehold/locks.log'
    may='there may be another default store, /var/lib/leasehold/locks.log, which root uses'
    on_terminal=(script -qec "$work/program run k -- true" /dev/null)
    verdict "a user's doctor tells of root's store, which it may not look at" \
        says 0 "^warning: $may .*permission denied" as_user "$shut" "$work/program" doctor
    verdict 'so does run with -v' says 0 "^leasehold: $may" as_user "$shut" \
        "$work/program" -v run k -- true
    verdict 'and run on a terminal' says 0 "^leasehold: $may" as_user "$shut" "${on_terminal[@]}"
    verdict 'in one line' test "$(grep -c 'another default' said)" = 1
    silent() { says 0 '' as_user "$@" && ! grep -q 'another default' said; }
    verdict 'not without one' silent "$shut" "$work/program" run k -- true
    verdict 'not where a store is named' silent "$shut" "$work/program" -v \
        --store "file:$work/user/l" run k -- true
    verdict 'nor where root has no store' silent : "$work/program" -v run k -- true
    # And root, through sudo, is shown the user's.
    passwd="printf 'somebody:x:65534:65534::$work/user:/bin/sh\n' >passwd.other
        mount --bind passwd.other /etc/passwd"
    verdict 'root is told of the store of the user who called sudo' \
        says 0 "^leasehold: there is another default store, $work/user/.local/.*, which the user" \
        unshare --mount bash -c "mount -t tmpfs none /var/lib; $passwd"'; shift 0; "$@"' - \
        env SUDO_UID=65534 "$program" -v run k -- true
fi
ahead=(unshare --time --fork --boottime 100000)
if "${ahead[@]}" true 2>/dev/null; then
    before=("${ahead[@]}")
    expect 0 "ok: the host's clock is .*; this is a time namespace, 27h46m ahead, .*" \
        --store "$named"
fi

finish
