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

# state_is LETTERS: the process in the file `pid` is in one of these states; X: there is none.
state_is() {
    local state=
    state=$(sed 's/.*) \(.\).*/\1/' "/proc/$(<"$folder/pid")/stat" 2>/dev/null) || true
    [[ $1 == *"${state:-X}"* ]]
}
send() { # send SIGNAL LETTERS: until its state is one of these
    [[ -s $folder/pid ]] || return 0
    kill "-$1" "$(<"$folder/pid")" 2>/dev/null || true
    redis_until "$1" state_is "$2"
}

case $verb in
start)
    port=$(cat "$folder/port" 2>/dev/null || true)
    [[ -z $port ]] || redis_port[one]=$port
    redis_start one
    [[ -z $port || $port == "${redis_port[one]}" ]] # else another process took it
    printf '%s\n' "${redis_port[one]}" >"$folder/port"
    printf '%s\n' "${redis_pid[one]}" >"$folder/pid" ;;
url) printf 'redis://127.0.0.1:%s\n' "${3:-$(<"$folder/port")}" ;;
port) cat "$folder/port" ;;
freeze) send STOP T ;;
thaw) send CONT RSDXZ ;;
kill) send KILL XZ ;;
stop)
    send CONT RSDXZ
    send TERM XZ ;;
*)
    printf 'server-redis.sh: unknown verb %s\n' "$verb" >&2
    exit 1 ;;
esac
