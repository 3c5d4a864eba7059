#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# leasehold claim for its users: on-github.sh front github_claim.sh PROGRAM. The order, what CMD
# gets, what people see, success, failure, a worker killed between the two steps of a success, the
# number of writes, refusals; then LOCK.CLAIM of the daemon. Prints TAP.
# shellcheck disable=SC2016 # what is in single quotes is for another shell, or Python
set -euo pipefail

here=$(dirname "$(realpath "$0")")
url=$1
program=$(realpath "$2")
# shellcheck source=tests/e2e/kit.sh
. "$here/kit.sh"
# shellcheck source=tests/e2e/github_kit.sh
. "$here/github_kit.sh"
export HOME=$work LEASEHOLD_HOLDER=w1
long='github://alice/locks?stale=5m&poll=1s&pace=0&writes=100000&budget=100000'

# ---- the repository, through its API ----

issue() { # issue TITLE LABEL…: its number
    local title=$1 labels
    shift
    labels=$(printf ',"%s"' "$@")
    api POST issues "{\"title\":\"$title\",\"labels\":[${labels#,}]}" | gives 'it["number"]'
}
labels() { api GET "issues/$1" | gives '" ".join(sorted(l["name"] for l in it["labels"]))'; }
seen() { # seen NUMBER: who works on it, for people
    api GET "issues/$1" | gives '" ".join([a["login"] for a in it["assignees"]] +
        [l["name"] for l in it["labels"] if l["name"].startswith("leasehold")])'
}
comments() { # comments NUMBER EXPRESSION: of each, as `lock`
    api GET "issues/$1/comments" | gives "[($2) for c in it for lock in
        [json.loads(c['body'].split('\`\`\`json')[1].split('\`\`\`')[0])['lock']]]"
}
claim() { "$program" --store "$url" claim -n --label "$@"; }
runs() { claim "$@" -- sh -c 'echo "ran $LEASEHOLD_ISSUE_NUMBER"'; }

# ---- order and environment ----

in_order() {
    local first second
    first=$(issue one order) second=$(issue two order)
    says 0 "^ran $first\$" runs order && says 0 "^ran $second\$" runs order
    says 75 '^busy: no open issue of alice/locks with label order is free$' runs order
}
by_priority() {
    local none low nine high
    none=$(issue none prio) low=$(issue low prio priority:low) nine=$(issue nine prio priority:9)
    high=$(issue high prio high)
    runs prio --order priority-label --max 0 >"$work/order"
    [[ $(<"$work/order") == "$(printf 'ran %s\n' "$nine" "$high" "$low" "$none")" ]]
}
environment() {
    local number
    number=$(issue 'a\u001b[1m\ttitle' 'needs work/now')
    claim 'needs work/now' -- sh -c \
        'printf "%s|%s|%s|%s\n" "$LEASEHOLD_ISSUE_NUMBER" "$LEASEHOLD_ISSUE_TITLE" \
             "$LEASEHOLD_ISSUE_URL" "$LEASEHOLD_KEY"' >"$work/environment"
    grep -qE "^$number\|a\?\[1m title\|http.*/alice/locks/issues/$number\|$number\$" \
        "$work/environment"
    [[ -z $(labels "$number") ]]
}
pulls_are_skipped() {
    local head number
    head=$(api GET git/ref/heads/main | gives 'it["object"]["sha"]')
    api POST git/refs "{\"ref\":\"refs/heads/change\",\"sha\":\"$head\"}" >/dev/null
    number=$(api POST pulls '{"title":"change","head":"change","base":"main"}' |
        gives 'it["number"]')
    api POST "issues/$number/labels" '{"labels":["pull"]}' >/dev/null
    says 75 'no open issue' runs pull
}
waits() {
    local number
    "$program" --store "$url" claim --label later -c 'echo "ran $LEASEHOLD_ISSUE_NUMBER"' \
        >"$work/later" &
    sleep 1.5
    number=$(issue later later)
    wait $!
    [[ $(<"$work/later") == "ran $number" ]]
    says 75 'no open issue' claim later -w 1.5s -- true
}
goes_on() { # past the deadline of a lease that it has released
    local first second
    first=$(issue one on) second=$(issue two on)
    "$program" --store "${long/5m/6s}" claim --label on --max 0 -w 8s \
        -c 'echo "ran $LEASEHOLD_ISSUE_NUMBER"' >"$work/on"
    [[ $(<"$work/on") == "$(printf 'ran %s\n' "$first" "$second")" ]]
}
is_interrupted() {
    "$program" --store "$url" claim --label never -- true &
    sleep 0.7
    kill -TERM $!
    says 143 '' wait $!
}

# ---- the end ----

success() {
    local number
    number=$(issue fine good other)
    says 0 '^ran' runs good --done-label 'is done'
    [[ $(labels "$number") == 'is done other' ]]
    "$program" --store "$url" status "$number" | grep -q '^cooling: '
}
failure() {
    local number
    number=$(issue broken bad)
    says 3 '' claim bad --max 5 -- sh -c 'exit 3' # once: this worker does not try again
    [[ $(labels "$number") == bad ]]
    says 0 "^ran $number\$" runs bad
    [[ $(comments "$number" 'lock["outcome"], lock["result"]') == \
        "[('failed', 'exit status 3'), ('succeeded', 'exit status 0')]" ]]
}
label_again() {
    local number
    number=$(issue again anew)
    says 0 "^ran $number\$" runs anew
    sleep 1.1 # its times are whole seconds
    api POST "issues/$number/labels" '{"labels":["anew"]}' >/dev/null
    says 0 "^ran $number\$" runs anew
    says 75 'no open issue' runs anew
}
until_done() { # until_done NUMBER
    local i
    for ((i = 0; i < 200; i++)); do
        ! "$program" --store "$url" status "$1" | grep -q '^cooling: ' || return 0
        sleep 0.05
    done
    return 1
}
# The label's removal hangs; then all processes of the worker are killed.
killed_between() {
    local number pid
    number=$(issue killed mid)
    fault '{"match":"^DELETE .*/labels/mid$","times":1,"delay_ms":3000,"drop":"before"}'
    "$program" --store "$url" claim --label mid -n -- sh -c 'echo ran; sleep 0.5' >"$work/mid" &
    pid=$!
    until_done "$number"
    # shellcheck disable=SC2046 # pids
    kill -KILL "$pid" $(pgrep -P "$pid")
    wait "$pid" || true
    api POST /_front/reset '{}' >/dev/null
    [[ $(<"$work/mid") == ran && $(labels "$number") == *mid* ]]
    says 75 'no open issue' runs mid --done-label 'is done' # and this one completes it
    [[ $(labels "$number") == 'is done' ]]
}
supervisor_killed() {
    local pid number
    number=$(issue orphan orphan)
    "$program" --store "$url" claim --label orphan -n -- sh -c 'echo ran; sleep 60' \
        >"$work/orphan" 2>"$work/said" &
    pid=$!
    await "$work/orphan"
    kill -KILL "$(pgrep -P "$pid")"
    says 70 '' wait "$pid"
    says 0 "^ran $number\$" runs orphan
}

is_lost() {
    local pid number
    number=$(issue lost lost)
    "$program" --store "$url" claim --label lost -n -- sh -c 'echo ran; sleep 60' >"$work/lost" &
    pid=$!
    await "$work/lost"
    "$program" --store "$url" break "$number" --now --reason test
    says 76 '' wait "$pid"
    [[ $(labels "$number") == lost && $(comments "$number" 'lock["outcome"]') == "['lost']" ]]
    says 0 "^ran $number\$" runs lost
}

# ---- for people, and in numbers ----

shown() {
    local number pid
    number=$(issue shown view)
    "$program" --store "$url" claim --label view -n --meta type=bug-fix --meta 'n=`5`' -- \
        sh -c "until [ -e $work/go ]; do sleep 0.05; done" &
    pid=$!
    for ((i = 0; i < 100; i++)); do
        [[ $(api GET "issues/$number/comments") == '[]' ]] || break
        sleep 0.05
    done
    [[ $(seen "$number") == 'alice leasehold:held' ]]
    [[ $(comments "$number" '" ".join(sorted(lock)), lock["task_info"], lock["worker_id"]') == \
        "[('claimed_at heartbeat_last node_id task_info worker_id', "*", 'w1')]" ]]
    [[ $(comments "$number" 'lock["task_info"]') == "[{'type': 'bug-fix', 'n': '\`5\`'}]" ]]
    touch "$work/go"
    wait "$pid"
    [[ -z $(seen "$number") && $(comments "$number" 'lock["outcome"]') == "['succeeded']" ]]
}
# Without the worker's start and end: a tree, a commit, a ref, and its removal.
writes() { # writes MOST OPTIONS
    local count
    issue a count >/dev/null && issue b count >/dev/null && issue c count >/dev/null
    : >"$GITHUB_LOG"
    "$program" --store "$long$2" claim -n --label count --done-label counted --max 0 -- sleep 0.4
    count=$(grep -cE ' (POST|PATCH|PUT|DELETE) [^ ]*/(git|issues)/[^ ]* 20' "$GITHUB_LOG")
    printf '# %s writes for 3 claims and a worker%s\n' "$count" "$2" >&3
    (((count - 4) <= 3 * $1))
}
json() {
    local number
    number=$(issue 'for \"machines\"' json)
    says 0 '"outcome":"ok"' claim json --json --status-file "$work/status" -- true
    gives '([it[k] for k in ("issue", "title", "done", "exit_status")], it["requests_left"] > 0,
        it["url"].endswith("/issues/" + it["key"]))' <"$work/status" >"$work/json"
    [[ $(<"$work/json") == "([$number, 'for \"machines\"', True, 0], True, True)" ]]
    says 75 '"outcome":"busy"' claim json --json -- true
}

# ---- refusals ----

refusals() {
    issue limited limited >/dev/null
    fault '{"match":"^GET .*/issues.q?","times":9,"status":403,"headers":{"Retry-After":"90"}}'
    says 69 '^unavailable: .*[0-9]' claim limited --store-timeout 1s -- true
    reset
    says 77 '^denied: ' env GITHUB_TOKEN=tok_carol "$program" --store "$url" claim -n \
        --label limited -- true
    says 77 '^denied: ' "$program" claim --repo alice/nowhere --label limited -n -- true
    says 64 'different repositories' "$program" --store "$url" claim --repo a/b --label l -- true
}

# A lock that heartbeats keep has no end that could be stated.
explained() {
    "$program" --store "$long" run explained --holder ann -- sleep 60 &
    local run=$!
    until "$program" --store "$long" status explained | grep -q '^held'; do sleep 0.1; done
    says 75 'by ann for .*, until its worker ends or sends no heartbeat for 5m0s$' \
        "$program" --store "$long" acquire explained -n
    says 0 '^alive     yes, by its heartbeats$' "$program" --store "$long" why explained
    says 0 '^ends      when no heartbeat arrives for its stale time \(5m0s\)$' \
        "$program" --store "$long" why explained
    kill "$run"
    says 143 '' wait "$run"
}

exec 3>&1
case_of 'issues are claimed by number' in_order
case_of 'or by the priority of their labels' by_priority
case_of 'CMD gets the issue, without control characters' environment
case_of 'pull requests are no issues' pulls_are_skipped
case_of 'a worker waits for an issue, without or with a limit' waits
case_of 'also after others, for longer than a lease lasts' goes_on
case_of 'and ends by a signal' is_interrupted
case_of 'success: the label is replaced, the record says done' success
case_of 'failure: the label stays, and another worker can claim the issue' failure
case_of 'an issue that gets the label again is claimed again' label_again
case_of 'a worker killed before it removed the label: CMD does not run again' killed_between
case_of 'a killed supervisor: the issue is free at once' supervisor_killed
case_of 'a lost lock: CMD ends, and the issue is not done' is_lost
case_of 'assignee, label and comment are there for people, and end' shown
case_of 'at most 12 writes for a claim' writes 12 ''
case_of 'at most 6 with show=off' writes 6 '&show=off'
case_of 'JSON for machines' json
case_of 'limits, missing rights, no repository, wrong calls' refusals
case_of 'a refusal and why name the heartbeats of the holder' explained
# LOCK.CLAIM of the daemon, as a part of this list.
"$here/serve_claim.py" "$url" "$program" >"$work/serve" 2>&1 || true
: >"$work/said"
while IFS= read -r line; do
    case $line in
    'ok '*) tell true "serve: ${line#ok * - }" ;;
    'not ok '*) tell false "serve: ${line#not ok * - }" ;;
    1..*) ;;
    *) printf '%s\n' "$line" ;;
    esac
done <"$work/serve"
verdict 'serve: to its end' grep -q '^1\.\.' "$work/serve"
finish
