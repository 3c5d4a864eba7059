#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches test programs that are not in Debian 12, and prints their path:
#   peer.sh valkey    the program valkey-server of bookworm-backports
#   peer.sh node      the folder of the npm packages redlock and ioredis
#   peer.sh github    the folder of the npm package emulate, which emulates GitHub's REST API
#   peer.sh openapi   the folder of the npm package @redocly/cli, which checks OpenAPI documents
# They are cached in ${XDG_CACHE_HOME:-~/.cache}/leasehold, outside the tree; the machine's own
# packages and their sources are not changed. Failures are printed on stderr, with status 1.
set -euo pipefail

cache=${XDG_CACHE_HOME:-$HOME/.cache}/leasehold
redlock_packages=(redlock@4.2.0 ioredis@5.4.1)
github_packages=(emulate@0.11.2 commander@14.0.3 picocolors@1.1.1 yaml@2.9.1)
openapi_packages=(@redocly/cli@1.34.5)

fail() {
    printf 'peer.sh: %s\n' "$*" >&2
    exit 1
}

# The machine's own Debian source, with another release: "deb URI bookworm-backports main".
backports_line() {
    # shellcheck disable=SC2016 # apt fills these in
    apt-get indextargets --format '$(CODENAME) $(REPO_URI) $(RELEASE)' \
        'Created-By: Packages' 'Origin: Debian' 'Component: main' |
        awk '$1 == "bookworm" && $3 == "bookworm" { uri = $2 }
            END { if (uri != "") print "deb", uri, "bookworm-backports main" }'
}

# In a folder of its own: apt's lists of the machine are not changed.
fetch_valkey() {
    local to=$1 line options
    line=$(backports_line)
    [[ -n $line ]] || fail 'the apt sources of this machine have no Debian bookworm'
    mkdir -p "$to/lists/partial"
    printf '%s\n' "$line" >"$to/sources.list"
    options=(-q -o "Dir::Etc::sourcelist=$to/sources.list" -o Dir::Etc::sourceparts=-
        -o "Dir::State::lists=$to/lists" -o APT::Sandbox::User=root -o "Dir::Cache=$to")
    (cd "$to" && apt-get "${options[@]}" update &&
        apt-get "${options[@]}" download valkey-server valkey-tools) >"$to/log" 2>&1 || {
        tail -n 3 "$to/log" >&2
        fail 'bookworm-backports cannot be reached'
    }
    for file in "$to"/*.deb; do dpkg-deb -x "$file" "$to"; done
    rm -rf "$to"/lists "$to"/*.deb "$to"/*.bin
    "$to/usr/bin/valkey-server" --version >/dev/null || fail 'valkey-server does not run here'
}

fetch_npm() { # of npm_packages
    command -v npm >/dev/null || fail 'there is no npm here'
    npm install --no-save --no-audit --no-fund --fetch-retries 1 --fetch-timeout 20000 \
        --prefix "$1" "${npm_packages[@]}" >"$1/log" 2>&1 || {
        tail -n 3 "$1/log" >&2
        fail "npm cannot install ${npm_packages[*]}"
    }
}

place_npm() { # place_npm NAME PACKAGE…: prints their folder
    local name
    npm_packages=("${@:2}")
    name=$1-$(printf '%s-' "${npm_packages[@]//\//_}")
    place "${name%-}" fetch_npm
    printf '%s\n' "$cache/${name%-}"
}

# Built aside and renamed as a whole: another process may need it at the same time.
place() { # place NAME FETCH
    [[ ! -d $cache/$1 ]] || return 0
    mkdir -p "$cache"
    aside=$(mktemp -d "$cache/$1.XXXXXX")
    chmod 755 "$aside"
    trap 'rm -rf "$aside"' EXIT
    trap 'exit 130' INT TERM HUP
    "$2" "$aside"
    mv -T "$aside" "$cache/$1" 2>/dev/null || [[ -d $cache/$1 ]]
}

case ${1:-} in
valkey)
    place valkey-8 fetch_valkey
    printf '%s\n' "$cache/valkey-8/usr/bin/valkey-server" ;;
node) place_npm node "${redlock_packages[@]}" ;;
github) place_npm github "${github_packages[@]}" ;;
openapi) place_npm openapi "${openapi_packages[@]}" ;;
*)
    fail 'say which: valkey, node, github or openapi' ;;
esac
