#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Functions for scripts with Redis servers of their own; to be sourced. Servers listen on free
# loopback ports and on a socket in their folder, which the script itself uses. They are durable
# (AOF, always), unless configured otherwise, and are stopped by pid. The caller names the folder:
# redis_begin FOLDER, and calls redis_end in its trap.
# shellcheck disable=SC2034 # what is set here is for the caller
set -euo pipefail

redis_program=${REDIS_PROGRAM:-redis-server}
redis_admin_password=admin-of-the-test

redis_begin() {
    redis_root=$1
    declare -gA redis_pid=() redis_port=()
}

redis_end() {
    local name
    for name in "${!redis_pid[@]}"; do redis_kill "$name"; done
}

# A free port of the loopback. Below the ephemeral port range, with room above for a cluster's
# second port.
redis_free_port() {
    local port
    while :; do
        port=$((10000 + SRANDOM % 10000))
        (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    printf '%s\n' "$port"
}

# redis_cli NAME ARGUMENT…: as the server's administrator, whatever it requires of others
redis_cli() {
    local folder=$redis_root/$1
    shift
    if [[ -e $folder/acl ]]; then
        (cd "$folder" && REDISCLI_AUTH=$redis_admin_password \
            redis-cli -s socket --user admin --no-auth-warning "$@")
    else
        (cd "$folder" && redis-cli -s socket "$@")
    fi
}

# True if this server replies, and not another one on its port.
redis_answers() {
    [[ $(redis_cli "$1" info server 2>/dev/null) == *process_id:"${redis_pid[$1]}"$'\r'* ]]
}

redis_wait() { # redis_wait NAME: until it answers; false when it ended instead
    local i
    for ((i = 0; i < 500; i++)); do
        redis_answers "$1" && return 0
        kill -0 "${redis_pid[$1]}" 2>/dev/null || return 1
        sleep 0.02
    done
    return 1
}

# redis_launch NAME ARGUMENT…: starts a server in its folder, which may contain older data. Its pid
# is in the file `pid` there.
redis_launch() {
    local name=$1 program=$redis_program
    shift
    (cd "$redis_root/$name" && exec "$program" "$@" >>log 2>&1 </dev/null) &
    redis_pid[$name]=$!
    printf '%s\n' "$!" >"$redis_root/$name/pid"
}

# redis_start NAME ARGUMENT…: on a port of its own (the same one after a restart). A port that
# another process took meanwhile is replaced.
redis_start() {
    local name=$1 try folder=$redis_root/$1
    local arguments=(--bind 127.0.0.1 --unixsocket socket --save '' --appendonly yes
        --appendfsync always --dir . --daemonize no)
    shift
    [[ ! -e $folder/acl ]] || arguments+=(--aclfile acl)
    mkdir -p "$folder"
    for ((try = 0; try < 20; try++)); do
        [[ -n ${redis_port[$name]:-} ]] || redis_port[$name]=$(redis_free_port)
        rm -f "$folder/socket"
        if [[ " $* " == *' --tls-cert-file '* ]]; then
            redis_launch "$name" "${arguments[@]}" --port 0 --tls-port "${redis_port[$name]}" "$@"
        else
            redis_launch "$name" "${arguments[@]}" --port "${redis_port[$name]}" "$@"
        fi
        redis_wait "$name" && return 0
        redis_kill "$name"
        grep -q 'Address already in use' "$folder/log" || break
        unset "redis_port[$name]"
    done
    tail -n 20 "$folder/log" >&2
    return 1
}

# redis_kill NAME [SIGNAL]: and reaps it
redis_kill() {
    local pid=${redis_pid[$1]:-}
    [[ -n $pid ]] || return 0
    kill -CONT "$pid" 2>/dev/null || true
    kill "-${2:-KILL}" "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    unset "redis_pid[$1]"
}

# ---- certificates ----

# redis_sign FOLDER NAME SUBJECT EXTENSIONS: a key and a certificate of the folder's authority
redis_sign() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1/$2.key" \
        -subj "/CN=$3" -out "$1/$2.csr" 2>/dev/null
    openssl x509 -req -in "$1/$2.csr" -CA "$1/ca.crt" -CAkey "$1/ca.key" -CAcreateserial -days 2 \
        -extfile <(printf '%s\n' "$4") -out "$1/$2.crt" 2>/dev/null
}

# redis_certificates FOLDER: an authority, a server's and a client's certificate
redis_certificates() {
    mkdir -p "$1"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1/ca.key" \
        -subj '/CN=authority of a test' -days 2 -out "$1/ca.crt" 2>/dev/null
    redis_sign "$1" server 'server of a test' 'subjectAltName=DNS:localhost,IP:127.0.0.1'
    redis_sign "$1" client 'client of a test' 'extendedKeyUsage=clientAuth'
}

# redis_start_tls NAME CERTIFICATES ARGUMENT…: a client's certificate is required
redis_start_tls() {
    local name=$1 certificates
    certificates=$(realpath "$2")
    shift 2
    redis_start "$name" --tls-cert-file "$certificates/server.crt" \
        --tls-key-file "$certificates/server.key" --tls-ca-cert-file "$certificates/ca.crt" "$@"
}

# ---- users ----

# redis_users NAME PASSWORD RULE…: before its start. The default user is off; `leasehold` has the
# permissions of the rules and no others.
redis_users() {
    local folder=$redis_root/$1 password=$2
    shift 2
    mkdir -p "$folder"
    printf '%s\n' 'user default off' "user leasehold on >$password $*" \
        "user admin on >$redis_admin_password ~* &* +@all" >"$folder/acl"
}

# ---- many servers ----

redis_until() { # redis_until WHAT COMMAND…: 20 s
    local what=$1 i
    shift
    for ((i = 0; i < 400; i++)); do
        ! "$@" || return 0
        sleep 0.05
    done
    printf 'redis-kit: in vain: %s\n' "$what" >&2
    return 1
}

redis_says() { # redis_says NAME PATTERN COMMAND…: does the answer hold the pattern?
    local name=$1 pattern=$2 said
    shift 2
    said=$(redis_cli "$name" "$@" 2>/dev/null) && [[ $said == *$pattern* ]]
}

# redis_start_cluster ARGUMENT…: three masters, one, two and three
redis_start_cluster() {
    local name addresses=()
    for name in one two three; do
        redis_start "$name" --cluster-enabled yes --cluster-node-timeout 2000 "$@" || return 1
        addresses+=("127.0.0.1:${redis_port[$name]}")
    done
    redis-cli --cluster create "${addresses[@]}" --cluster-yes >"$redis_root/cluster.log" 2>&1 || {
        cat "$redis_root/cluster.log" >&2
        return 1
    }
    for name in one two three; do
        redis_until "cluster of $name" redis_says "$name" cluster_state:ok cluster info || return 1
        redis_until "peers of $name" redis_says "$name" cluster_known_nodes:3 cluster info ||
            return 1
    done
}

redis_start_replica() { # redis_start_replica NAME MASTER ARGUMENT…
    local name=$1 master=$2
    shift 2
    redis_start "$name" --replicaof 127.0.0.1 "${redis_port[$master]}" "$@" || return 1
    redis_until "link of $name" redis_says "$name" master_link_status:up info replication
}

# redis_start_sentinels MASTER NAME…: they agree that the master, called `locks`, is down after a
# second of silence
redis_start_sentinels() {
    local master=$1 name port
    shift
    for name in "$@"; do
        mkdir -p "$redis_root/$name"
        port=$(redis_free_port)
        redis_port[$name]=$port
        printf '%s\n' "port $port" 'bind 127.0.0.1' 'unixsocket socket' 'dir .' \
            "sentinel monitor locks 127.0.0.1 ${redis_port[$master]} 2" \
            'sentinel down-after-milliseconds locks 1000' \
            'sentinel failover-timeout locks 5000' >"$redis_root/$name/sentinel.conf"
        redis_launch "$name" sentinel.conf --sentinel
        redis_wait "$name" || { tail "$redis_root/$name/log" >&2; return 1; }
    done
    for name in "$@"; do
        redis_until "peers of $name" redis_says "$name" "sentinels=$#" info sentinel || return 1
    done
}
