#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A GitHub for the tests that kill, stop and restart their server: server-github.sh VERB FOLDER
# [PORT]; tests/faults/server_program.h lists the verbs. The server is the front of the emulator
# (tests/peers/github_front.py). The emulator keeps its data in memory only, so `kill` and `freeze`
# do not reach it: it lives until `stop` or until the process that called `start` first has ended.
set -euo pipefail

verb=${1:?usage: server-github.sh VERB FOLDER [PORT]}
folder=$(realpath -m "${2:?usage: server-github.sh VERB FOLDER [PORT]}")
cd "$(dirname "$0")/.."
mkdir -p "$folder"
# shellcheck source=scripts/github-kit.sh
. scripts/github-kit.sh

# True if the process in the file NAME.pid is the server: after its end the number may be another's.
is_server() { # is_server NAME
    [[ -s $folder/$1.pid ]] && grep -qsF "$folder/" "/proc/$(<"$folder/$1.pid")/cmdline"
}
# state_is NAME LETTERS: it is in one of these states; X: there is none.
state_is() {
    local state=
    ! is_server "$1" ||
        state=$(sed 's/.*) \(.\).*/\1/' "/proc/$(<"$folder/$1.pid")/stat" 2>/dev/null) || true
    [[ $2 == *"${state:-X}"* ]]
}
send() { # send NAME SIGNAL LETTERS: until its state is one of these; for up to 20 s
    local i
    ! is_server "$1" || kill "-$2" "$(<"$folder/$1.pid")" 2>/dev/null || true
    for ((i = 0; i < 1000; i++)); do
        ! state_is "$1" "$3" || return 0
        sleep 0.02
    done
    printf 'server-github.sh: %s is not in one of the states %s\n' "$1" "$3" >&2
    return 1
}
end() { # end NAME SIGNAL
    send "$1" CONT RSDXZ
    send "$1" "$2" XZ
    rm -f "$folder/$1.pid"
}

# Ends the emulator after the process OWNER, which may be killed without any `stop`.
watch_owner() { # watch_owner OWNER
    while kill -0 "$1" 2>/dev/null && is_server emulator; do sleep 0.5; done
    end emulator KILL
}

start() {
    github_begin "$folder"
    if is_server emulator; then
        github_port[emulator]=$(<"$folder/emulator.port")
        github_port[front]=$(<"$folder/port")
    else
        github_start
        printf '%s\n' "${github_port[emulator]}" >"$folder/emulator.port"
        watch_owner "$PPID" >/dev/null 2>&1 </dev/null &
    fi
    github_start_front --limit 1000000/3600 --writes 1000000/3600
    [[ ! -s $folder/port || $(<"$folder/port") == "${github_port[front]}" ]] || {
        end front KILL # another process took its port
        return 1
    }
    printf '%s\n' "${github_port[front]}" >"$folder/port"
}

case $verb in
start) start ;;
url)
    printf 'GITHUB_API_URL=http://127.0.0.1:%s GITHUB_TOKEN=tok_alice %s\n' \
        "${3:-$(<"$folder/port")}" "$(github_url alice/locks)" ;;
port) cat "$folder/port" ;;
freeze) send front STOP T ;;
thaw) send front CONT RSDXZ ;;
kill) end front KILL ;;
stop)
    end front TERM
    end emulator TERM ;;
*)
    printf 'server-github.sh: unknown verb %s\n' "$verb" >&2
    exit 1 ;;
esac
