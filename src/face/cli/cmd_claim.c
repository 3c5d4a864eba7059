/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold claim: runs a command for the next issue of a GitHub repository. The library decides
 * which issue that is and when it is done (leasehold_github.h); this file waits between two tries,
 * passes the issue to the command, and reports. All but cmd_claim() runs in the supervisor.
 */
#include "face/cli/metrics_file.h"
#include "face/cli/run_command.h"

#include "leasehold_github.h"
#include "wire/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the supervisor, over all commands of --max. */
static struct {
    struct lh_claims *claims;
    struct lh_claim issue;
    int64_t ended; /* commands that have ended */
    int status;    /* of the last one */
} claim;

/* ---- acquire ---- */

static int claim_open(struct context *context)
{
    struct lh_claims_options options = LH_CLAIMS_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    options.label = context->settings.label;
    options.done_label = context->settings.done_label;
    options.order = (enum lh_claim_order)context->settings.order;
    if (claim.claims != NULL ||
        lh_claims_open(context->client, &options, &claim.claims, &report) == LH_OK)
        return EXIT_DONE;
    return output_report(context, NULL, &report);
}

/* Until the next try. False if a signal arrived, or the foreground process is gone. */
static bool claim_sleep(struct run_state *run, int64_t length_ms)
{
    struct supervisor *supervisor = run->supervisor;
    supervisor->wake_at_ms = supervisor_now_ms() + length_ms;
    while (supervisor_is_wanted(supervisor) && supervisor_now_ms() < supervisor->wake_at_ms) {
        if (supervisor_wait(supervisor, lh_fd(run->context->client)))
            (void)lh_step(run->context->client);
    }
    supervisor->wake_at_ms = CHILD_NEVER;
    return supervisor_is_wanted(supervisor);
}

/* Tries until an issue is claimed or --wait has passed. False: a signal ended it. */
static bool claim_wait_for_issue(struct run_state *run, struct lh_report *report)
{
    const struct settings *settings = &run->context->settings;
    struct lh_claim_options options = LH_CLAIM_OPTIONS_INIT;
    int64_t began_ms = supervisor_now_ms();
    options.meta = settings->meta;
    options.meta_count = settings->meta_count;
    options.on_lost = run_on_lost;
    options.user = run;
    for (;;) {
        claim.issue = (struct lh_claim)LH_CLAIM_INIT;
        if (lh_claim_next(claim.claims, &options, &run->lease, &claim.issue, report) != LH_BUSY)
            return true;
        int64_t waited_ms = supervisor_now_ms() - began_ms;
        if (settings->wait_ms >= 0 && waited_ms + claim.issue.poll_ms > settings->wait_ms)
            return true;
        output_detail(run->context, "%s; polling again in %lld ms", report->text,
                      (long long)claim.issue.poll_ms);
        if (!claim_sleep(run, claim.issue.poll_ms))
            return false;
    }
}

static int claim_acquire(struct run_state *run)
{
    struct context *context = run->context;
    struct lh_report report = LH_REPORT_INIT;
    char number[24];
    int status = claim_open(context);
    if (status != EXIT_DONE)
        return status;
    if (!claim_wait_for_issue(run, &report))
        return EXIT_SIGNAL + run->supervisor->end_signal;
    if (run->lease == NULL && report.outcome == LH_BUSY && claim.ended > 0)
        return claim.status; /* all is done */
    if (run->lease == NULL) {
        metrics_file_update(context); /* before the report */
        return output_report(context, NULL, &report);
    }
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)claim.issue.number);
    if (setenv("LEASEHOLD_ISSUE_NUMBER", number, 1) == 0 &&
        setenv("LEASEHOLD_ISSUE_TITLE", claim.issue.title, 1) == 0 &&
        setenv("LEASEHOLD_ISSUE_URL", claim.issue.url, 1) == 0)
        return EXIT_DONE;
    (void)lh_abandon(&run->lease, NULL);
    return output_error(context, LH_FAILED, "out of memory");
}

/* ---- finish ---- */

static void claim_report(const struct run_state *run, const struct lh_report *finished, bool done,
                         int status)
{
    static char line[LINE_SIZE];
    const struct context *context = run->context;
    struct text text;
    bool lost = run->lost_running;
    text_init(&text, line, sizeof line);
    json_begin(&text);
    json_add_string(&text, "outcome", lh_outcome_name(lost ? LH_LOST : finished->outcome));
    if (lost || finished->outcome != LH_OK)
        json_add_string(&text, "refusal", report_refusal_word(lost ? &run->loss : finished));
    json_add_string(&text, "key", run->keys);
    json_add_string(&text, "token", run->tokens);
    json_add_number(&text, "issue", (int64_t)claim.issue.number);
    json_add_string(&text, "title", claim.issue.title);
    json_add_string(&text, "url", claim.issue.url);
    json_add_bool(&text, "done", done);
    json_add_number(&text, "exit_status", status);
    json_add_length(&text, "held_ms", supervisor_now_ms() - run->began_ms);
    json_add_string(&text, "text", lost ? run->loss.text : finished->text);
    json_add_bool(&text, "timed_out", run->timed_out);
    json_add_length(&text, "requests_left", claim.issue.requests_left);
    json_add_string(&text, "store", context->shown);
    json_end(&text);
    text_add(&text, "\n");
    (void)write_status_file(context, line);
    if (context->settings.json)
        (void)fputs(line, stderr);
}

static int claim_finish(struct run_state *run, int status)
{
    struct context *context = run->context;
    struct lh_report report = LH_REPORT_INIT;
    char text[64];
    bool success = status == 0 && !run->lost, done = false;
    (void)snprintf(text, sizeof text, "exit status %d%s", status,
                   run->timed_out ? ": ended by --max-hold" : "");
    (void)lh_claim_finish(claim.claims, &run->lease, success, text, &done, &report);
    if (report.outcome == LH_OK)
        output_released(context, run->keys, supervisor_now_ms() - run->began_ms);
    if (report.outcome != LH_OK && !run->lost_running && !context->settings.json)
        fprintf(stderr, "%s%s\n", report.text,
                done ? "; the issue is done, and the next worker changes its labels" : "");
    if (context->settings.claims_max == 1)
        metrics_file_update(context); /* the object is the last line on stderr */
    if (context->settings.json || context->settings.status_file != NULL)
        claim_report(run, &report, done, status);
    claim.ended++;
    /* A success that is not recorded means that CMD will run again: this outranks its status. */
    bool outranked = success && (!done || report.outcome == LH_DENIED);
    claim.status = outranked ? outcome_exit_status(report.outcome) : status;
    return claim.status;
}

/* A failure of CMD is its issue's; a loss or a store that cannot be used ends the worker. */
static bool claim_repeats(struct run_state *run, int status)
{
    int64_t most = run->context->settings.claims_max;
    bool again = run->supervisor->started && (most == 0 || claim.ended < most) &&
                 (run->timed_out || status == child_exit_status(&run->supervisor->child)) &&
                 !run->lost;
    if (!again)
        lh_claims_close(&claim.claims);
    return again;
}

/* ---- the command ---- */

/* --repo alone is the store; a store of that repository may add options. */
static int claim_choose_store(struct context *context)
{
    static char url[URL_SIZE];
    struct settings *settings = &context->settings;
    const char *store = settings->store;
    int length = settings->repository != NULL
                     ? snprintf(url, sizeof url, "github://%s", settings->repository)
                     : 0;
    bool fits = store != NULL && length > 0 && strncmp(store, url, (size_t)length) == 0 &&
                (store[length] == '\0' || store[length] == '?');
    if (length > 0 && (strchr(settings->repository, '?') != NULL || length >= URL_SIZE))
        return usage_error(context, "--repo is OWNER/REPO, as in octocat/hello-world");
    if (length > 0 && !fits && store != NULL && context->store_from == FROM_FLAG)
        return usage_error(context, "--repo and --store are different repositories");
    if (length > 0 && !fits) {
        settings->store = url;
        context->store_from = FROM_FLAG;
    }
    int status = context_find_store(context);
    if (status == EXIT_DONE && strncmp(context->url, "github:", 7) != 0)
        status = usage_error(context, "claim needs a repository: give --repo OWNER/REPO");
    return status;
}

static int cmd_claim(struct context *context)
{
    static const struct run_mode mode = {
        .acquire = claim_acquire, .finish = claim_finish, .repeats = claim_repeats};
    int status = run_use_shell(context);
    if (status != EXIT_DONE)
        return status;
    if (context->program == NULL || context->program[0] == NULL || context->settings.label == NULL)
        return usage_error(context, "a label and a command are required; usage: leasehold claim "
                                    "--repo OWNER/REPO --label L -- CMD...");
    status = claim_choose_store(context);
    return status == EXIT_DONE ? run_command(context, &mode) : status;
}

static const struct option option_repo = {.name = "repo",
                                          .kind = VALUE_TEXT,
                                          .at = offsetof(struct settings, repository),
                                          .value = "OWNER/REPO",
                                          .help = "the repository; same as --store "
                                                  "github://OWNER/REPO"};
static const struct option option_label = {.name = "label",
                                           .kind = VALUE_TEXT,
                                           .at = offsetof(struct settings, label),
                                           .value = "L",
                                           .help = "label of issues to claim; removed on success"};
static const struct option option_done_label = {.name = "done-label",
                                                .kind = VALUE_TEXT,
                                                .at = offsetof(struct settings, done_label),
                                                .value = "D",
                                                .help = "label to add on success"};
static const char *const order_names[] = {
    [LH_CLAIM_BY_NUMBER] = "number", [LH_CLAIM_BY_PRIORITY] = "priority-label", NULL};
static const struct option option_order = {
    .name = "order",
    .kind = VALUE_CHOICE,
    .at = offsetof(struct settings, order),
    .value = "HOW",
    .choices = order_names,
    .default_value = "number",
    .help = "lowest number first; or by labels priority:N or high, medium, low"};
static const struct option option_max = {.name = "max",
                                         .kind = VALUE_COUNT,
                                         .at = offsetof(struct settings, claims_max),
                                         .value = "N",
                                         .max = 1000,
                                         .default_value = "1",
                                         .help = "run CMD for at most N issues, one after the "
                                                 "other; 0: no limit"};
static const struct option option_issue_wait = {.name = "wait",
                                                .letter = 'w',
                                                .aliases = "--timeout",
                                                .kind = VALUE_DURATION,
                                                .at = offsetof(struct settings, wait_ms),
                                                .value = "DUR",
                                                .max = (int64_t)366 * 24 * 3600 * 1000,
                                                .word = "forever",
                                                .word_value = LH_WAIT_FOREVER,
                                                .default_value = "forever",
                                                .help = "wait for an issue for at most this time"};

static const struct option *const claim_options[] = {&option_repo,
                                                     &option_label,
                                                     &option_done_label,
                                                     &option_order,
                                                     &option_max,
                                                     &option_issue_wait,
                                                     &option_no_wait,
                                                     &option_command,
                                                     &option_max_hold,
                                                     &option_on_lost,
                                                     &option_kill_grace,
                                                     &option_holder,
                                                     &option_meta,
                                                     &option_conflict_status,
                                                     &option_status_file,
                                                     &option_metrics_file,
                                                     NULL};

const struct command command_claim = {
    .name = "claim",
    .args = "--repo OWNER/REPO --label L -- CMD...",
    .summary = "run CMD for the next issue of a GitHub repository",
    .about =
        "Claims the open issue with label L, lowest number first, that nobody holds, and runs CMD "
        "as under 'run': the lock is the key with the issue's number in github://OWNER/REPO. Any "
        "number of workers on any hosts, with one account or several, get different issues. The "
        "environment of CMD has LEASEHOLD_ISSUE_NUMBER, LEASEHOLD_ISSUE_TITLE and "
        "LEASEHOLD_ISSUE_URL besides the variables of 'run'.\n\n"
        "If CMD succeeds, the issue is done: label L is removed, and --done-label is added. It is "
        "not claimed again, not even if the worker is killed before it could remove the label, "
        "until somebody adds L again. If CMD fails, L stays, and other workers can claim the "
        "issue; this one does not try it again. If a worker dies, another one gets its issue "
        "after the stale time of the store's URL.\n\n"
        "The status is that of CMD; with --max, of the last one. If there is no issue: 75 at once "
        "with -n, or after --wait; 0 or the last status, if --max has run CMD before. Status 69 if "
        "the server cannot be used or its limit is reached, 76 if the lock was lost, 77 if the "
        "token lacks a right. With --json, claim ends with an object on stderr, for each issue.\n\n"
        "--order priority-label takes the highest N of labels priority:N first; low is 1, medium "
        "is 2, high is 3, and an issue without such a label has 0. At most 1,000 issues are "
        "considered, and pull requests are not. A wait polls at the interval of the store's "
        "URL.\n\n"
        "The token is GITHUB_TOKEN, GH_TOKEN or that of the store's URL, with the rights Contents: "
        "write and Issues: write. CMD inherits these variables.",
    .example = "  leasehold claim --repo octocat/hello-world --label agent-ready \\\n"
               "      --done-label agent-done --max 0 -- ./handle-issue",
    .options = claim_options,
    .takes_program = true,
    .run = cmd_claim,
};
