#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The GitHub store in trouble: on-github.sh front github_bad.sh PROGRAM. Repositories and tokens
# that cannot be used, limits with each combination of headers, and refs that people changed by
# hand. Prints TAP.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
options='stale=9s&heartbeat=3s&poll=1s&pace=0&budget=100000'
url=${1%%\?*}"?$options&writes=100000"
program=$(realpath "$2")
# shellcheck source=tests/e2e/kit.sh
. "$here/kit.sh"
# shellcheck source=tests/e2e/github_kit.sh
. "$here/github_kit.sh"
export HOME=$work LEASEHOLD_STORE=$url LEASEHOLD_HOLDER=w1
acquire() { "$program" acquire -n --ttl 1m "$@"; }
# hold KEY SECONDS: in the background; its pid is in `held`.
hold() {
    "$program" run "$1" -n -- sh -c "echo held >$work/$1; exec sleep $2" 2>"$work/$1.err" &
    held=$!
    await "$work/$1"
}
ends() { # ends KEY STATUS [PATTERN]: the holder, with such a line on stderr
    local status=0
    wait "$held" || status=$?
    cat "$work/$1.err"
    [[ $status == "$2" ]] && { [[ $# == 2 ]] || grep -qE -- "$3" "$work/$1.err"; }
}

# A case may fail before its faults are used up.
case_alone() { # as case_of
    reset
    : >"$GITHUB_LOG"
    case_of "$@"
}

# ---- repositories and tokens ----

repositories() {
    local at=github://alice
    says 77 '^denied: k: GitHub has no such repository.*Contents: write' \
        acquire k --store "$at/nowhere?$options"
    says 77 '^denied: k: the repository is empty; push' acquire k --store "$at/empty?$options"
    says 77 '^denied: .*the repository is empty' "$program" list --store "$at/empty?$options"
    says 77 '^denied: k: the repository is archived' acquire k --store "$at/archived?$options"
    says 77 '^denied: k: .*no such repository' \
        env GITHUB_TOKEN=tok_bob "$program" acquire k -n --store "$at/secret?$options"
}
tokens() {
    says 77 '^denied: k: the token may not write .*Contents: write' \
        env GITHUB_TOKEN=tok_carol "$program" acquire k -n
    says 77 '^denied: k: .*401.*Bad credentials' env GITHUB_TOKEN=wrong "$program" acquire k -n
    says 69 'there is no token' env GITHUB_TOKEN= "$program" acquire k -n
    fault '{"match":"^POST .*git/commits","times":9,"status":403,
        "body":{"message":"Resource not accessible by personal access token"}}'
    says 77 '^denied: k: .*not accessible' acquire k
    reset
}
redirects() {
    local headers
    headers="\"headers\":{\"Location\":\"$GITHUB_API_URL/stolen\"}"
    fault "{\"match\":\"^GET .*git/ref/\",\"times\":99,\"status\":301,$headers}"
    fault "{\"match\":\"^POST .*git/commits\",\"times\":99,\"status\":307,$headers}"
    says 69 '^unavailable: k: .*301' acquire k --store-timeout 1s
    says 69 '' "$program" run k --store-timeout 1s -- true
    reset
    ! grep -q /stolen "$GITHUB_LOG"
}
workers_limit() {
    says 69 '1 workers exceed 60 writes an hour; use a longer .stale=, fewer workers or more' \
        "$program" run k --store-timeout 8s --store "${url%%\?*}?stale=5m&writes=60" -- true
    hold room 12
    says 69 '^unavailable: k: .* 2 workers exceed 4000 writes' \
        "$program" run k --store-timeout 5s --store "${url%%\?*}?$options&writes=4000" -- true
    ends room 0
}

# ---- limits ----

# limited KEY STATUS HEADERS MESSAGE: the next request for its ref.
limited() {
    fault "{\"match\":\"git/ref/.*/$1\$\",\"times\":1,\"status\":$2,\"headers\":{$3},
        \"body\":{\"message\":\"$4\"}}"
}
reset_in() { printf '"x-ratelimit-remaining":"0","x-ratelimit-reset":"%s"' $(($(date +%s) + $1)); }
secondary='You have exceeded a secondary rate limit'
again=' again at [0-9:]{8} UTC, in '
# A short pause is kept: the request is sent again, and nothing fails.
short_pauses() {
    local status key pids=()
    for status in 403 429; do
        limited "after-$status" "$status" '"Retry-After":"1"' "$secondary"
        limited "reset-$status" "$status" "$(reset_in 2)" 'API rate limit exceeded'
        limited "both-$status" "$status" "\"Retry-After\":\"1\",$(reset_in 2)" "$secondary"
        for key in after reset both; do
            pauses "$key-$status" &
            pids+=($!)
        done
    done
    for pid in "${pids[@]}"; do wait "$pid"; done
}
pauses() {
    local since
    since=$(now_ms)
    acquire "$1" && (($(now_ms) - since >= 1000))
    printf '%s: %s ms\n' "$1" $(($(now_ms) - since))
}
# A longer one is not waited for: the error states when it ends.
long_pauses() {
    local status
    for status in 403 429; do
        limited k "$status" '"Retry-After":"90"' "$secondary"
        says 69 "^unavailable: k: .*limit is reached.*${again}1m(29|30)" acquire k
        limited k "$status" "$(reset_in 600)" 'API rate limit exceeded'
        says 69 "limit is reached.*${again}(9m5|10m)" acquire k
        limited k "$status" "\"Retry-After\":\"90\",$(reset_in 600)" "$secondary"
        says 69 "limit is reached.*${again}(9m5|10m)" acquire k
        limited k "$status" '' "$secondary"
        says 69 "limit is reached.*${again}(59|60|1m)" acquire k
        limited k "$status" '"x-ratelimit-remaining":"4000"' "$secondary"
        says 69 "limit is reached.*${again}(59|60|1m)" acquire k
    done
    limited k 429 '' 'slow down'
    says 69 "limit is reached.*${again}(59|60|1m)" acquire k
    limited k 403 '' 'Forbidden'
    says 77 '^denied: k: .*403.*Forbidden' acquire k
}
# Between the requests of a grant: each is refused once.
within_acquire() {
    local match
    for match in '^GET /repos/alice/locks$' '^POST .*git/trees' '^POST .*git/commits' \
        '^POST .*git/refs$'; do
        fault "{\"match\":\"$match\",\"times\":1,\"status\":403,\"headers\":{\"Retry-After\":\"1\"},
            \"body\":{\"message\":\"$secondary\"}}"
    done
    says 0 '' "$program" run within -- true
    [[ $(grep -c ' 403 .* fault$' "$GITHUB_LOG") == 4 ]]
}
# The two writes of a heartbeat are refused, one at a time; another client is refused, too.
within_hold() {
    hold beats 11
    fault "{\"match\":\"^POST .*git/commits\",\"times\":1,\"status\":403,
        \"headers\":{\"Retry-After\":\"2\"},\"body\":{\"message\":\"$secondary\"}}"
    sleep 6
    fault "{\"match\":\"^PATCH .*leasehold/w/\",\"times\":1,\"status\":429,
        \"headers\":{\"Retry-After\":\"2\"},\"body\":{\"message\":\"$secondary\"}}"
    ends beats 0
    [[ $(grep -c ' \(403\|429\) .* fault$' "$GITHUB_LOG") == 2 ]]
}
# A pause that outlasts the lease: the holder ends before others may take over.
past_the_lease() {
    hold gone 60
    fault "{\"match\":\"^POST .*git/commits\",\"times\":9,\"status\":429,
        \"headers\":{\"Retry-After\":\"60\"},\"body\":{\"message\":\"$secondary\"}}"
    ends gone 76 '^lost: gone: '
    reset
    says 0 '' "$program" run gone -w 30s -- true
}

# ---- by hand ----

ref_deleted() {
    hold deleted 60
    api DELETE git/refs/leasehold/k/deleted
    ends deleted 76 '^lost: deleted: '
}
worker_deleted() {
    local ref
    hold worker 60
    for ref in $(api GET git/matching-refs/leasehold/w | gives '" ".join(w["ref"] for w in it)'); do
        api DELETE "git/$ref" # of a worker that was lost before, too
    done
    ends worker 76 '^lost: worker: '
}
moved_back() {
    local old
    acquire back >"$work/token"
    old=$(head_of back)
    "$program" release back --token "$(<"$work/token")"
    hold back 60
    api PATCH git/refs/leasehold/k/back "{\"sha\":\"$old\",\"force\":true}" >/dev/null
    ends back 76 '^lost: back: '
    # A process that saw the newer commits refuses the old one.
    hold waits 60
    "$program" acquire waits --store-timeout 3s -w 20s 2>&1 &
    until [[ $(message_of waits) == *', 1 waiting'* ]]; do sleep 0.1; done
    sleep 1 # for its first poll
    api PATCH git/refs/leasehold/k/waits \
        "{\"sha\":\"$(api GET "git/commits/$(head_of waits)" | gives 'it["parents"][0]["sha"]')\",
        \"force\":true}" >/dev/null
    says 69 'the ref was moved back, so tokens could repeat; move it' wait $!
    kill -TERM "$held"
}
foreign() {
    local sha
    sha=$(api GET git/ref/heads/main | gives 'it["object"]["sha"]')
    api POST git/refs "{\"ref\":\"refs/leasehold/k/foreign\",\"sha\":\"$sha\"}" >/dev/null
    says 69 '^unavailable: foreign: .*the commit is not a record' acquire foreign --store-timeout 1s
    says 0 '^unreadable: foreign: .*the commit is not a record' "$program" list
    says 0 '' acquire other
}

pull_request() {
    local sha number
    sha=$(api GET git/ref/heads/main | gives 'it["object"]["sha"]')
    api POST git/refs "{\"ref\":\"refs/heads/change\",\"sha\":\"$sha\"}" >/dev/null
    number=$(api POST pulls '{"title":"change","head":"change","base":"main"}' |
        gives 'it["number"]')
    says 64 "^usage: $number: it is the number of a pull request" acquire "$number"
    says 64 'number of a pull request' "$program" run "$number" -- true
    [[ $(grep -c " GET [^ ]*issues/$number " "$GITHUB_LOG") == 2 ]]
    [[ $(api GET "git/matching-refs/leasehold/k/$number") == '[]' ]]
    # Numbers of nothing are locked, and other keys without a question.
    says 0 '' acquire 987654
    says 0 '' acquire no-number
    grep -q 'issues/987654 ' "$GITHUB_LOG"
    ! grep -q 'issues/no-number' "$GITHUB_LOG"
}
# The releases share the store timeout. The last case, because the server ends.
server_gone() {
    local since took keys=(a b c d e f g h i j k l)
    since=$(now_ms)
    says 0 'unavailable: ' "$program" run "${keys[@]}" --store-timeout 3s -- \
        kill "$(<"$GITHUB_FOLDER/front.pid")"
    took=$(($(now_ms) - since))
    printf '# twelve keys and a server that ends: %s ms\n' "$took" >&3
    ((took < 12000))
    since=$(now_ms)
    says 69 '^unavailable: a: ' "$program" run "${keys[@]}" --store-timeout 3s -- true
    (($(now_ms) - since < 6000))
}

exec 3>&1
case_alone 'a repository that is missing, empty, archived or private: 77, and why' repositories
case_alone 'a token without rights, refused or missing' tokens
case_alone 'no redirect is followed' redirects
case_alone 'too many workers: 69, and what to do' workers_limit
case_alone 'limits: a short pause is kept, by 403 and 429, Retry-After and reset' short_pauses
case_alone 'limits: the end of a long pause is stated' long_pauses
case_alone 'limits: within a grant, each request is sent again' within_acquire
case_alone 'limits: within a heartbeat, the lock is not lost' within_hold
case_alone 'limits: past the lease, the lock is lost before others get it' past_the_lease
case_alone 'a ref deleted by hand: the holder has lost' ref_deleted
case_alone 'the ref of a worker deleted by hand: it has lost' worker_deleted
case_alone 'a ref moved back: refused, and the holder has lost' moved_back
case_alone 'a commit that is no record: 69 for that key, and it is listed' foreign
case_alone 'the number of a pull request: 64' pull_request
case_alone 'a dozen keys and a server that is gone: about one timeout' server_gone
finish
