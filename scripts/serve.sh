#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the daemon for a person: serve.sh PROGRAM. On a temporary store and loopback, at its default
# ports or, if these are in use, free ones. Says what to type, then shows the log until a signal.
# The store is removed at the end. Exits 0 if the daemon ended in an orderly way.
set -euo pipefail

program=${1:?usage: serve.sh PROGRAM}
work=$(mktemp -d)
daemon=
stop() { [[ -z $daemon ]] || kill -TERM "$daemon" 2>/dev/null || true; }
clean_up() {
    stop
    [[ -z $daemon ]] || wait "$daemon" 2>/dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

in_use() { (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
address() { # address PORT
    if in_use "$1"; then printf '127.0.0.1:0\n'; else printf '127.0.0.1:%s\n' "$1"; fi
}
# moved NAME DEFAULT PORT
moved() { [[ $2 == "$3" ]] || printf 'port %s is in use; %s is at port %s\n' "$2" "$1" "$3"; }

# In a process group of its own: Ctrl-C reaches only this script, which ends the daemon once. A
# second signal ends it at once. If this script is killed, the daemon ends too.
set -m
setpriv --pdeathsig TERM "$program" serve --store "file:$work/locks.log" --unix off \
    --listen "$(address 7379)" --http "$(address 7380)" >"$work/addresses" </dev/null &
daemon=$!
set +m
until grep -qs http: "$work/addresses"; do
    [[ -e /proc/$daemon ]] || { wait "$daemon" && exit 1; }
    sleep 0.02
done
port=$(sed -n '1s/.*://p' "$work/addresses")
web_port=$(sed -n 's/.*http:.*://p' "$work/addresses")
web=http://127.0.0.1:$web_port
moved RESP 7379 "$port"
moved HTTP 7380 "$web_port"
cat <<END
leasehold serves a temporary store; the log follows. Try in another terminal:
  redis-cli -p $port LOCK.ACQUIRE backup me 30000
  curl --json '{"holder":"you","ttl_ms":30000}' $web/v1/locks/backup/acquire
  curl -s $web/metrics | grep ^leasehold_locks_held
Ctrl-C ends it and removes the store. One of your own: $program serve --store URL
END

# A signal interrupts the wait.
signalled=true
trap 'signalled=true && stop' INT TERM HUP
while $signalled; do
    signalled=false
    status=0
    wait "$daemon" || status=$?
done
daemon=
exit "$status"
