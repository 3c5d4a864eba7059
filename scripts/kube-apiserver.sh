#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Kubernetes programs for the tests from Debian's own packages, and keeps them in
# ${XDG_CACHE_HOME:-~/.cache}/leasehold: kube-apiserver-VERSION, compiled with Debian's Go;
# leader-election-VERSION-SUM, which is tests/peers/leader_election.go on the client-go of the same
# source; and kubectl-VERSION as Debian ships it. Existing ones are reused; the first time takes
# minutes on two cores. Prints TAP.
#   kube-apiserver.sh           build what is missing
#   kube-apiserver.sh --paths   print the three paths, one per line; fails when one is missing
# Sources come from this machine's package sources.
set -euo pipefail

cd "$(dirname "$0")/.."
version=1.20.2
suite=bookworm
election=$PWD/tests/peers/leader_election.go
cache=${XDG_CACHE_HOME:-$HOME/.cache}/leasehold
api_server=$cache/kube-apiserver-$version
elector=$cache/leader-election-$version-$(sha256sum <"$election" | cut -c 1-8)
kubectl=$cache/kubectl-$version

step() {
    printf '== [%4d s] %s\n' "$SECONDS" "$*"
}

fail() {
    printf 'not ok 1 - kube-apiserver: %s\n' "$*"
    exit 1
}

# apt with lists and caches of its own: the machine's are not changed.
own_apt() {
    apt-get -q -o Dir::Etc::sourcelist="$work/apt/sources.list" -o Dir::Etc::sourceparts=- \
        -o Dir::State::lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" \
        -o APT::Sandbox::User=root "$@"
}

prepare_apt() {
    local uri
    mkdir -p "$work"/apt/{lists,cache/archives}/partial
    # shellcheck disable=SC2016 # apt fills these in
    uri=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' \
        'Created-By: Packages' 'Origin: Debian' 'Component: main' |
        awk -v suite="$suite" '$1 == suite { print $2; exit }')
    [[ -n $uri ]] || fail "the apt sources of this machine have no Debian $suite main"
    printf '%s %s %s main\n' deb "$uri" "$suite" deb-src "$uri" "$suite" >"$work/apt/sources.list"
    own_apt update >/dev/null
}

# Moved into the cache at once: an existing program is complete.
keep() {
    install -m 755 "$1" "$2.new.$$"
    mv -f "$2.new.$$" "$2"
    step "$2"
}

get_kubectl() {
    step "kubectl $version from Debian's kubernetes-client"
    (cd "$work" && own_apt download kubernetes-client >/dev/null &&
        dpkg-deb -x kubernetes-client_*.deb client)
    keep "$work/client/usr/bin/kubectl" "$kubectl"
}

# The tree must be where Go looks for it; its own makefile needs a folder below GOPATH.
get_source() {
    step "the source of Kubernetes $version"
    (cd "$work" && own_apt source kubernetes >"$work/source.log" 2>&1) || {
        tail -n 5 "$work/source.log"
        fail 'the source package cannot be had'
    }
    local source=("$work"/kubernetes-1.20*/)
    export GOPATH=$work/go PATH=/usr/lib/go-1.19/bin:$PATH CGO_ENABLED=0 GOPROXY=off
    export GOCACHE=$work/gocache GO111MODULE=off
    export KUBE_GIT_COMMIT=debian KUBE_GIT_VERSION=v$version KUBE_GIT_TREE_STATE=clean
    export KUBE_GIT_MAJOR=1 KUBE_GIT_MINOR=20
    mkdir -p "$GOPATH/src/k8s.io"
    tree=$GOPATH/src/k8s.io/kubernetes
    mv "${source[0]}" "$tree"
    chmod -R u+w "$tree"
    cd "$tree"
}

# The vendored reflect2 iterates over maps as Go did before 1.18; with a newer Go the first custom
# resource would crash the server. This is the fix of its own later version.
mend_source() {
    local folder=vendor/github.com/modern-go/reflect2
    sed -i -e 's/^func mapiterinit(.*$/func mapiterinit(rtype, m unsafe.Pointer, it *hiter)/' \
        -e 's/^\t\/\/ rest fields are ignored$/\tt, h, buckets, bptr unsafe.Pointer\
\toverflow, oldoverflow *[]unsafe.Pointer\
\tstartBucket uintptr\
\toffset uint8\
\twrapped bool\
\tB, i uint8\
\tbucket, checkBucket uintptr/' "$folder/unsafe_link.go"
    sed -i 's/mapiterinit(type2.rtype, /beginMap(type2.rtype, /' "$folder/unsafe_map.go"
    cat >>"$folder/unsafe_map.go" <<'GO'

func beginMap(rtype, m unsafe.Pointer) *hiter {
	it := new(hiter)
	mapiterinit(rtype, m, it)
	return it
}
GO
    grep -q checkBucket "$folder/unsafe_link.go" && grep -q 'it \*hiter' "$folder/unsafe_link.go" &&
        grep -q ' beginMap(type2' "$folder/unsafe_map.go" ||
        fail 'the source is not what it was: reflect2 cannot be mended'
}

# The makefile of Kubernetes has a cache of its own.
compiled_mb() {
    { du -scm "$GOCACHE" _output 2>/dev/null || true; } | tail -n 1 | cut -f 1
}

# Compiles "$@" and prints progress, since it takes minutes.
compile() {
    local log=$work/compile.log
    nice "$@" >"$log" 2>&1 &
    compiler=$!
    local waited=0
    while kill -0 "$compiler" 2>/dev/null; do
        sleep 1
        ((++waited % 30)) ||
            step "still compiling, $(compiled_mb) MB so far"
    done
    wait "$compiler" || {
        tail -n 20 "$log"
        fail 'it did not compile'
    }
    compiler=
}

make_server() {
    step "compiling kube-apiserver $version (about 6 minutes on two cores)"
    compile make WHAT=cmd/kube-apiserver GOLDFLAGS='-s -w'
    keep _output/bin/kube-apiserver "$api_server"
}

make_elector() {
    step "compiling the leader election of client-go $version"
    mkdir -p cmd/leader_election
    cp "$election" cmd/leader_election/main.go
    compile go build -o "$work/leader_election" ./cmd/leader_election
    keep "$work/leader_election" "$elector"
}

clean_up() {
    [[ -z ${compiler:-} ]] || kill "$compiler" 2>/dev/null || true
    rm -rf "$work"
}

all_there() {
    [[ -x $api_server && -x $elector && -x $kubectl ]]
}

make_missing() {
    mkdir -p "$cache"
    # One builder at a time; the second one finds everything done.
    exec 9<"$cache"
    flock 9
    ! all_there || return 0
    work=$(mktemp -d "$cache/build.XXXXXX")
    trap clean_up EXIT
    trap 'exit 130' INT TERM HUP
    prepare_apt
    [[ -x $kubectl ]] || get_kubectl
    [[ ! -x $api_server || ! -x $elector ]] || return 0
    get_source
    mend_source
    [[ -x $elector ]] || make_elector
    [[ -x $api_server ]] || make_server
}

if [[ ${1:-} == --paths ]]; then
    all_there || exit 1
    printf '%s\n' "$api_server" "$elector" "$kubectl"
    exit
fi
all_there || make_missing
printf 'ok 1 - kube-apiserver, kubectl and client-go %s are here\n' "$version"
