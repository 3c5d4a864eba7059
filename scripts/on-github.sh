#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a program on a GitHub of its own, an emulator that ends with it and leaves nothing:
# on-github.sh SHAPE PROGRAM [ARGUMENT…]. The program gets the store's URL first. Shapes:
#   plain   the emulator, not changed           front   through tests/peers/github_front.py
#   short   as front, with shorter times
#   tokens  as plain, with a new token every second, since each has 5,000 requests an hour, and with
#           shorter times. For one process only: of two ref writes at once the emulator can accept
#           both (tests/peers/github_front.py)
# scripts/github-kit.sh lists the repositories, users and tokens. Variables:
#   GITHUB_OPTIONS     of the store's URL, instead of the short times for tests
#   GITHUB_TEST_TOKEN  the program's GITHUB_TOKEN, instead of tok_alice
#   GITHUB_FRONT       arguments of the front, instead of limits that tests do not reach
# and for the program:
#   GITHUB_API_URL     the server                GITHUB_FOLDER  its logs and app.pem
#   GITHUB_LOG         of the front, a line a request
# A machine on which the emulator cannot be had: one TAP line that says so, and success.
set -euo pipefail

cd "$(dirname "$0")/.."
# shellcheck source=scripts/github-kit.sh
. scripts/github-kit.sh

shape=${1:?usage: on-github.sh SHAPE PROGRAM [ARGUMENT…]}
program=${2:?usage: on-github.sh SHAPE PROGRAM [ARGUMENT…]}
shift 2
mkdir -p build
folder=$(mktemp -d "$PWD/build/github.XXXXXX")
clean_up() {
    [[ -z ${turner:-} ]] || kill "$turner" 2>/dev/null || true
    github_end
    rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP
if ! github_begin "$folder" 2>"$folder/why"; then
    printf 'ok 1 - emulate cannot be had here, so nothing was tried: %s\n1..1\n' \
        "$(tail -n 1 "$folder/why")"
    exit 0
fi
export GITHUB_FOLDER=$folder
case $shape in short | tokens) GITHUB_OPTIONS=${GITHUB_OPTIONS:-$github_options_short} ;; esac

case $shape in
plain)
    github_start
    github_use emulator ;;
tokens)
    github_start
    github_use emulator
    unset GITHUB_TOKEN
    printf 'of-alice-0\n' >"$folder/token"
    chmod 600 "$folder/token"
    (for ((i = 1; ; i++)); do
        sleep 1
        (umask 077 && printf 'of-alice-%s\n' "$i" >"$folder/token.new")
        mv "$folder/token.new" "$folder/token"
    done) &
    turner=$!
    url=$(github_url alice/locks)\&token-file=$folder/token ;;
front | short)
    github_start
    read -ra arguments <<<"${GITHUB_FRONT:---limit 1000000/3600 --writes 1000000/3600}"
    github_start_front "${arguments[@]}"
    export GITHUB_LOG=$folder/requests
    github_use front ;;
*)
    printf 'on-github.sh: unknown shape %s\n' "$shape" >&2
    exit 1 ;;
esac
"$program" "${url:-$(github_url alice/locks)}" "$@"
