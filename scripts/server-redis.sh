#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A Redis server (AOF, always) for the tests that kill, stop and restart their server:
# server-redis.sh VERB FOLDER [PORT]; tests/faults/server_program.h lists the verbs.
set -euo pipefail

verb=${1:?usage: server-redis.sh VERB FOLDER [PORT]}
folder=${2:?usage: server-redis.sh VERB FOLDER [PORT]}
mkdir -p "$folder"
# shellcheck source=scripts/redis-kit.sh
. "$(dirname "$0")/redis-kit.sh"
redis_begin "$folder"

# True if the process in the file `pid` is the server: after its end the number may be another's.
is_server() { [[ /proc/$(<"$folder/one/pid")/cwd -ef $folder/one ]]; }
# state_is LETTERS: the server is in one of these states; X: there is none.
state_is() {
    local state=
    ! is_server ||
        state=$(sed 's/.*) \(.\).*/\1/' "/proc/$(<"$folder/one/pid")/stat" 2>/dev/null) || true
    [[ $1 == *"${state:-X}"* ]]
}
send() { # send SIGNAL LETTERS: until its state is one of these
    [[ -s $folder/one/pid ]] || return 0
    ! is_server || kill "-$1" "$(<"$folder/one/pid")" 2>/dev/null || true
    redis_until "$1" state_is "$2"
}

case $verb in
start)
    port=$(cat "$folder/port" 2>/dev/null || true)
    [[ -z $port ]] || redis_port[one]=$port
    redis_start one
    [[ -z $port || $port == "${redis_port[one]}" ]] || { # another process took it
        redis_kill one
        rm -f "$folder/one/pid"
        exit 1
    }
    printf '%s\n' "${redis_port[one]}" >"$folder/port" ;;
url) printf 'redis://127.0.0.1:%s\n' "${3:-$(<"$folder/port")}" ;;
port) cat "$folder/port" ;;
freeze) send STOP T ;;
thaw) send CONT RSDXZ ;;
kill)
    send KILL XZ
    rm -f "$folder/one/pid" ;;
stop)
    send CONT RSDXZ
    send TERM XZ
    rm -f "$folder/one/pid" ;;
*)
    printf 'server-redis.sh: unknown verb %s\n' "$verb" >&2
    exit 1 ;;
esac
