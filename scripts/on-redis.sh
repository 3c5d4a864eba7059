#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a program on Redis servers of its own, which end with it and leave nothing: on-redis.sh SHAPE
# PROGRAM [ARGUMENT…]. The program gets the store's URL first. In build/ and not in /tmp, which can
# be a tmpfs: the tests need a disk.
# Shapes: plain, resp2, resp3, noscript, tls, acl, cluster, sentinel, valkey.
set -euo pipefail

cd "$(dirname "$0")/.."
# shellcheck source=scripts/redis-kit.sh
. scripts/redis-kit.sh

shape=${1:?usage: on-redis.sh SHAPE PROGRAM [ARGUMENT…]}
program=${2:?usage: on-redis.sh SHAPE PROGRAM [ARGUMENT…]}
shift 2
folder=$(mktemp -d "$PWD/build/redis.XXXXXX")
clean_up() {
    redis_end
    rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP
redis_begin "$folder"

addresses() { # addresses NAME…: host:port, host:port
    local name list=
    for name in "$@"; do list+=,127.0.0.1:${redis_port[$name]}; done
    printf '%s\n' "${list#,}"
}

case $shape in
plain)
    redis_start one
    url=redis://$(addresses one) ;;
resp2 | resp3)
    redis_start one
    url=redis://$(addresses one)?protocol=${shape#resp} ;;
noscript)
    redis_start one
    url=redis://$(addresses one)?scripts=no ;;
tls)
    redis_certificates "$folder/certificates"
    redis_start_tls one "$folder/certificates"
    url=rediss://localhost:${redis_port[one]}?ca=$folder/certificates/ca.crt
    url+="&cert=$folder/certificates/client.crt&tls-key=$folder/certificates/client.key" ;;
acl)
    read -ra rules < <(scripts/redis-user.sh)
    redis_users one open-sesame "${rules[@]}"
    redis_start one
    printf 'open-sesame\n' >"$folder/password"
    url="redis://leasehold@$(addresses one)?password-file=$folder/password" ;;
cluster)
    redis_start_cluster
    url=redis://$(addresses one two three) ;;
sentinel)
    redis_start one
    redis_start_replica two one
    redis_start_sentinels one first second third
    url=redis://$(addresses first second third)?sentinel=locks ;;
valkey)
    if ! redis_program=$(scripts/peer.sh valkey 2>"$folder/why"); then
        printf 'ok 1 - Valkey cannot be had here, so nothing was tried: %s\n1..1\n' \
            "$(<"$folder/why")"
        exit 0
    fi
    redis_start one
    url=redis://$(addresses one) ;;
*)
    printf 'on-redis.sh: unknown shape %s\n' "$shape" >&2
    exit 1 ;;
esac
"$program" "$url" "$@"
