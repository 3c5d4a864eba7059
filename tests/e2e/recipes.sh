#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The recipes of docs/recipes.md: recipes.sh PROGRAM PAGE. Each block of the page whose first line
# names a file is written to that file, and does what the page says. Paths and stores of the page
# are replaced by ones of the test, nothing else. Prints TAP.
set -euo pipefail

program=$(realpath "$1")
script=$(realpath "$0")
page=$(realpath "$2")
# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
mkdir "$work/bin" "$work/home" "$work/srv"
ln -s "$program" "$work/bin/leasehold"
export PATH=$work/bin:$PATH HOME=$work/home LEASEHOLD_STORE=file:$work/locks.log
cd "$work"

awk -v quote='```' '
    index($0, quote) == 1 && NF == 2 { file = $2; next }
    index($0, quote) == 1 { file = "" }
    file != "" { print >file }' "$page"
sed -i "s|PATH=/usr/local/bin:|PATH=$work/bin:|; s|/usr/local/bin/|$work/|
    s|=leasehold |=$work/bin/leasehold |; s|/srv/web|$work/srv|
    s|redis://locks.example.net|$LEASEHOLD_STORE|" ./*.cron ./*.service ./*.timer post-receive
chmod +x ./*.sh post-receive

# program NAME LINE…: a command that the page leaves to the reader
program() {
    printf '#!/bin/sh\n' >"$1"
    printf '%s\n' "${@:2}" >>"$1"
    chmod +x "$1"
}
fails() { ! "$@"; }
status_of() { # status_of COMMAND…
    local status=0
    "$@" || status=$?
    printf '%s\n' "$status"
}
until_says() { # until_says FILE PATTERN
    until grep -qE "$2" "$1" 2>/dev/null; do sleep 0.02; done
}
exec_of() { # exec_of UNIT: its command line
    sed -n 's/^ExecStart=//p' "$1"
}
verify() { # verify UNIT…: where systemd can
    ! command -v systemd-analyze >/dev/null || systemd-analyze verify --man=no "$@"
}

crontab_runs_on_one_host() {
    local line environment i pids=()
    mapfile -t environment < <(grep -E '^[A-Z_]+=' report.cron)
    line=$(sed -n 's/^0 3 \* \* \* report //p' report.cron)
    [[ ${#environment[@]} == 2 && $line == 'leasehold run '* ]]
    as_cron() { env -i "$@" HOME="$HOME" "${environment[@]}" /bin/sh -c "$line"; }
    program report 'echo "by $LEASEHOLD_HOLDER"' 'sleep 0.3'
    for i in 1 2 3; do
        as_cron LEASEHOLD_HOLDER="host$i" >"mail$i" 2>&1 &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i" || (($? == 75)); done
    [[ $(cat mail?) == 'by host'? ]] # in one mail only
    [[ $(status_of as_cron 2>&1) == 73 ]] # a late clock
    leasehold clear report --quiet
    program report 'echo broken' 'exit 3'
    [[ $(status_of as_cron) == $'broken\n3' ]]
    [[ $(status_of as_cron) == $'broken\n3' ]]
}

timer_and_service() {
    verify ./report.timer ./report.service ./indexer.service
    program report 'echo reported'
    leasehold acquire report --ttl 1h >token
    grep -x 'SuccessExitStatus=73 75' report.service
    [[ $(status_of sh -c "$(exec_of report.service)" 2>err) == 75 ]]
    leasehold release report --token "$(<token)" --quiet
    [[ $(sh -c "$(exec_of report.service)") == reported ]]
    [[ $(status_of sh -c "$(exec_of report.service)" 2>err) == 73 ]]
}

leader_is_replaced() {
    local first second
    program indexer 'trap "echo ended >>log; exit" TERM' 'echo "leads $LEASEHOLD_HOLDER" >>log' \
        'while :; do sleep 0.05; done'
    LEASEHOLD_HOLDER=one sh -c "exec $(exec_of indexer.service)" &
    first=$!
    until_says log 'leads one'
    LEASEHOLD_HOLDER=two sh -c "exec $(exec_of indexer.service)" &
    second=$!
    until leasehold status indexer | grep -q '^held: .* by one .*1 waiting'; do sleep 0.02; done
    kill -KILL "$first"
    wait "$first" || true
    until_says log 'leads two'
    fails grep ended log # it was killed, too
    kill -TERM "$second" # as systemctl stop does, with KillMode=mixed
    wait "$second" || true
    until_says log ended
    leasehold status indexer | grep '^free'
}

script_locks_itself() {
    local token
    [[ $(./backup.sh all) == 'backing up all with token '+([0-9]) ]]
    token=$(leasehold acquire backup --ttl 1h --holder ann)
    [[ $(status_of ./backup.sh all 2>err) == 75 ]]
    grep 'busy: backup is held by ann' err
    leasehold release backup --token "$token" --quiet
    [[ $(./import.sh) == 'importing with token '+([0-9]) ]]
    until leasehold status import | grep '^free'; do sleep 0.02; done
    token=$(leasehold acquire import --ttl 1h --holder ann)
    [[ $(status_of ./import.sh 2>err) == 75 ]]
    grep 'busy: import is held by ann' err
}

hook_checks_out() {
    local token
    git init --quiet --bare --initial-branch=main repo.git
    cp post-receive repo.git/hooks
    git -c init.defaultBranch=main init --quiet clone
    cd clone
    git config user.name test
    git config user.email test@example.net
    echo one >page
    git add page
    git commit --quiet -m one
    git push --quiet ../repo.git main
    [[ $(<../srv/page) == one ]]
    echo two >page
    git commit --quiet -a -m two
    token=$(leasehold acquire deploy/web --ttl 1h --holder ann)
    sed -i 's/--wait 5m/--wait 200ms/' ../repo.git/hooks/post-receive
    git push --quiet ../repo.git main 2>&1 | tee said
    grep 'busy: deploy/web is held by ann' said
    [[ $(<../srv/page) == one ]]
    leasehold release deploy/web --token "$token" --quiet
}

make_targets() {
    local token
    program deploy.sh 'echo "deploying $1 as $LEASEHOLD_KEY"'
    [[ $(make -s -f deploy.mk deploy-web) == 'deploying web as deploy/web' ]]
    [[ $(make -s -f deploy.mk migrate) == 'deploying migrate as migrate' ]]
    token=$(leasehold acquire deploy/web --ttl 1h --holder ann)
    [[ $(status_of make -s -f deploy.mk deploy-web 2>err) == 2 ]]
    grep 'busy: deploy/web is held by ann' err
    leasehold release deploy/web --token "$token" --quiet
}

ci_jobs_take_turns() {
    local first second
    program deploy.sh 'echo "begin $CI_JOB_URL" >>jobs' 'while [ ! -e go ]; do sleep 0.02; done' \
        'echo "end $CI_JOB_URL" >>jobs'
    export ENVIRONMENT=shop CI_COMMIT_SHA=3f2a
    CI_JOB_URL=https://ci/1 ./ci-deploy.sh &
    first=$!
    until_says jobs 'begin https://ci/1'
    leasehold status deploy/shop --json |
        jq -e '.holder == "https://ci/1" and .meta.commit == "3f2a"'
    CI_JOB_URL=https://ci/2 ./ci-deploy.sh 2>log &
    second=$!
    until_says log '^waiting: deploy/shop is held by https://ci/1'
    touch go
    wait "$first"
    wait "$second"
    [[ $(cut -d' ' -f1 jobs | tr '\n' ' ') == 'begin end begin end ' ]]
}

webhook_is_handled_once() {
    local i pids=()
    program handle-event 'echo handled >>handled' 'sleep 0.2' '[ ! -e fail ] || exit 4' \
        'echo "order $(cat "$1") accepted"'
    echo 17 >body
    for i in 1 2 3; do
        ./webhook.sh event-9 body >"answer$i" 2>"err$i" &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i"; done
    [[ $(sort -u answer1 answer2 answer3) == 'order 17 accepted' && $(wc -l <handled) == 1 ]]
    echo 18 >other
    [[ $(status_of ./webhook.sh event-9 other 2>err) == 65 ]]
    touch fail
    [[ $(status_of ./webhook.sh event-10 body) == 4 ]]
    rm fail
    [[ $(./webhook.sh event-10 body) == 'order 17 accepted' ]]
}

every_file_is_used() { # a recipe that the test does not know has no test
    local file
    for file in $(sed -n 's/^```[a-z]* \(.*\)/\1/p' "$page"); do
        grep -qF "${file%.sh}" "$script" || { printf 'no test: %s\n' "$file" && return 1; }
        [[ -s $file ]]
    done
    [[ $(grep -c '^```[a-z]* .' "$page") -ge 9 ]]
}

shopt -s extglob
case_of 'every file of the page is run here' every_file_is_used
case_of 'a crontab on many hosts runs on one, and is silent on others' crontab_runs_on_one_host
leasehold clear report --quiet
case_of 'a systemd timer and its service' timer_and_service
case_of 'a daemon has one leader, which is replaced' leader_is_replaced
case_of 'a script locks itself' script_locks_itself
case_of 'a git hook checks out under a lock' hook_checks_out
case_of 'targets of a Makefile' make_targets
case_of 'deploy jobs of a CI take turns' ci_jobs_take_turns
case_of 'a webhook is handled once' webhook_is_handled_once
finish
