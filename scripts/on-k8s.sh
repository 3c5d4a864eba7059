#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a program on a Kubernetes API server of its own, which is removed afterwards: on-k8s.sh
# PROGRAM [ARGUMENT…]. The program gets the URL first. The server is the real one
# (scripts/kube-apiserver.sh), on loopback, with its own etcd and with RBAC enabled; the program has
# the Role of dist/kubernetes and nothing else. Further variables:
#   KUBECONFIG        access with that Role          K8S_ADMIN  access with all rights
#   KUBECTL, ELECTOR  programs of the same version   K8S_AUDIT  the server's log, a line a request
#   K8S_SERVER        its address                    K8S_CA     its certificate authority
#   K8S_API           a program that restarts the API server, after it was killed …
#   K8S_PID           … by the pid in this file      K8S_USERS  its table of tokens
#   K8S_PODS          a folder with pod-1.token to pod-3.token: more users with that Role, which
#                     the server's log distinguishes (user.uid is 11 to 13)
#   K8S_ETCD          one that starts its etcd …     K8S_ETCD_PID … and its pid
#   K8S_ETCD_URL      its address
# Without the server it fails, and prints how to get it.
set -euo pipefail

cd "$(dirname "$0")/.."
program=${1:?usage: on-k8s.sh PROGRAM [ARGUMENT…]}
shift
namespace=leasehold-test
timeout_s=120

fail() {
    printf 'not ok - %s\n' "$*"
    exit 1
}

mapfile -t programs < <(scripts/kube-apiserver.sh --paths)
((${#programs[@]} == 3)) || fail 'there is no kube-apiserver here: make test-full builds it'
server=${programs[0]}
export ELECTOR=${programs[1]} KUBECTL=${programs[2]}

# end PID: a process that may not be our own child. Without a reaction it is killed.
end() {
    local tries
    kill "$1" 2>/dev/null || return 0
    for ((tries = 0; tries < 200; tries++)); do
        grep -q '^State:[[:space:]]*[^Z]' "/proc/$1/status" 2>/dev/null || return 0
        sleep 0.05
    done
    kill -KILL "$1" 2>/dev/null || true
}

# The API server before its etcd: otherwise it would wait for etcd.
clean_up() {
    [[ ! -s $folder/api.pid ]] || end "$(<"$folder/api.pid")"
    [[ ! -s $folder/etcd.pid ]] || end "$(<"$folder/etcd.pid")"
    rm -rf "$folder" "$memory"
}

folder=$(mktemp -d)
memory=
# In memory where there is room: etcd fails requests when other suites keep the disk busy.
if (($(df --output=avail -B 1M /dev/shm 2>/dev/null | tail -n 1) >= 1024)); then
    memory=$(mktemp -d -p /dev/shm)
fi
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

# Below the ephemeral port range: the ports must be free again when a server restarts.
free_ports() {
    python3 - "$1" <<'PORTS'
import random, socket, sys
sockets = []
while len(sockets) < int(sys.argv[1]):
    one = socket.socket()
    try:
        one.bind(("127.0.0.1", random.randrange(10000, 30000)))
        sockets.append(one)
    except OSError:
        one.close()
print(*(one.getsockname()[1] for one in sockets))
PORTS
}

make_certificates() {
    cd "$folder"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=ca \
        -keyout ca.key -out ca.crt
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=kube-apiserver \
        -keyout srv.key -out srv.csr
    printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\n' >srv.ext
    openssl x509 -req -in srv.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 \
        -extfile srv.ext -out srv.crt
    openssl genrsa -out sa.key 2048
    cd - >/dev/null
}

# write_kubeconfig NAME: the user's token is in a file beside it.
write_kubeconfig() {
    cat >"$folder/$1.kubeconfig" <<CONFIG
apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: "$K8S_SERVER", certificate-authority: ca.crt}}]
users: [{name: test, user: {tokenFile: $folder/$1.token}}]
contexts: [{name: test, context: {cluster: test, user: test, namespace: $namespace}}]
CONFIG
}

# Both servers are separate programs, so that tests can stop and restart them.
write_store() {
    cat >"$K8S_ETCD" <<STORE
#!/usr/bin/env bash
etcd --name k8s --data-dir "${memory:-$folder}/etcd" --log-level error \\
    --listen-client-urls "http://127.0.0.1:$1" --advertise-client-urls "http://127.0.0.1:$1" \\
    --listen-peer-urls "http://127.0.0.1:$2" \\
    --initial-advertise-peer-urls "http://127.0.0.1:$2" \\
    --initial-cluster "k8s=http://127.0.0.1:$2" >>"$folder/etcd.log" 2>&1 </dev/null &
echo \$! >"$folder/etcd.pid"
STORE
    chmod 700 "$K8S_ETCD"
}

# The server refuses an unknown flag, and --help comes after the flags: the flag that it names is
# left out. Newer servers have no --insecure-port.
choose_flags() {
    local flag said kept
    flags=("--etcd-servers=http://127.0.0.1:${ports[0]}" --bind-address=127.0.0.1
        --advertise-address=127.0.0.1 "--secure-port=${ports[2]}" --insecure-port=0
        --tls-cert-file=srv.crt --tls-private-key-file=srv.key --client-ca-file=ca.crt
        --token-auth-file=tokens.csv --authorization-mode=RBAC --anonymous-auth=false
        --service-account-key-file=sa.key --service-account-signing-key-file=sa.key
        --service-account-issuer=https://kubernetes.default.svc
        --service-cluster-ip-range=10.0.0.0/24 --disable-admission-plugins=ServiceAccount
        --endpoint-reconciler-type=none --audit-policy-file=audit.yaml
        --audit-log-path=audit.log --audit-log-mode=blocking)
    until said=$("$server" "${flags[@]}" --help 2>&1); do
        [[ $said =~ unknown\ flag:\ (--[a-z-]+) ]] || fail "kube-apiserver: ${said:0:500}"
        kept=()
        for flag in "${flags[@]}"; do
            [[ ${flag%%=*} == "${BASH_REMATCH[1]}" ]] || kept+=("$flag")
        done
        ((${#kept[@]} < ${#flags[@]})) || fail "kube-apiserver: ${said:0:500}"
        flags=("${kept[@]}")
    done
}

write_api() {
    local flags
    choose_flags
    cat >"$K8S_API" <<API
#!/usr/bin/env bash
cd "$folder"
"$server" ${flags[@]@Q} >>api.log 2>&1 </dev/null &
echo \$! >api.pid
API
    chmod 700 "$K8S_API"
}

kubectl() {
    "$KUBECTL" --kubeconfig "$K8S_ADMIN" --request-timeout=20s "$@"
}

wait_for_api() {
    local since=$SECONDS
    until kubectl get --raw /readyz >/dev/null 2>&1; do
        kill -0 "$(<"$K8S_PID")" 2>/dev/null && ((SECONDS - since < timeout_s)) || {
            tail -n 20 "$folder/api.log"
            fail 'the API server does not get ready'
        }
        sleep 0.2
    done
}

give_rights() {
    kubectl create namespace "$namespace"
    kubectl -n "$namespace" apply -f dist/kubernetes/role.yaml
    kubectl -n "$namespace" create rolebinding leasehold --role=leasehold --user=locker
}

make_certificates >"$folder/openssl.log" 2>&1 || fail "$(tail -n 3 "$folder/openssl.log")"
read -ra ports < <(free_ports 3)
export K8S_SERVER=https://127.0.0.1:${ports[2]} K8S_CA=$folder/ca.crt K8S_AUDIT=$folder/audit.log
export K8S_API=$folder/api.sh K8S_PID=$folder/api.pid K8S_USERS=$folder/tokens.csv
export K8S_ETCD=$folder/etcd.sh K8S_ETCD_PID=$folder/etcd.pid
export K8S_ETCD_URL=http://127.0.0.1:${ports[0]}
export K8S_ADMIN=$folder/admin.kubeconfig KUBECONFIG=$folder/locker.kubeconfig
export K8S_PODS=$folder
export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
cat >"$folder/audit.yaml" <<'AUDIT'
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - level: Metadata
    users: [locker]
  - level: None
AUDIT
umask 077
for name in admin locker; do
    openssl rand -hex 16 >"$folder/$name.token"
    write_kubeconfig "$name"
done
printf '%s,admin,1,"system:masters"\n%s,locker,2,"testers"\n' \
    "$(<"$folder/admin.token")" "$(<"$folder/locker.token")" >"$folder/tokens.csv"
for number in 1 2 3; do
    openssl rand -hex 16 >"$folder/pod-$number.token"
    printf '%s,locker,1%d,"testers"\n' "$(<"$folder/pod-$number.token")" "$number"
done >>"$folder/tokens.csv"

write_store "${ports[0]}" "${ports[1]}"
write_api
"$K8S_ETCD"
"$K8S_API"
wait_for_api
give_rights >"$folder/rights.log" 2>&1 || fail "$(tail -n 3 "$folder/rights.log")"

"$program" "k8s://$namespace?skew=0" "$@"
