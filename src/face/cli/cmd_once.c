/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold once, in steps; `once ID -- CMD` is in once_run.c. A claim outlives this process until
 * its TTL ends, and any process can finish it by its token. If the token cannot be printed, the
 * claim is abandoned.
 */
#include "face/cli/ids.h"
#include "face/cli/run_command.h"

#include <stdio.h>
#include <string.h>

static int once_step_begin(struct context *context, const char *id)
{
    const struct settings *settings = &context->settings;
    struct lh_once_options options = LH_ONCE_OPTIONS_INIT;
    char hash[IDS_HASH_SIZE];
    struct lh_once once = LH_ONCE_INIT;
    struct lh_report report = LH_REPORT_INIT;
    int status = ids_read_payload(context, hash, &options.payload);
    if (status == EXIT_DONE)
        status = context_open_store_to_acquire(context);
    if (status != EXIT_DONE)
        return status;
    options.ttl_ms = settings->ttl_ms;
    options.wait_ms = settings->wait_ms;
    enum lh_outcome outcome = lh_once_begin(context->client, id, &options, &once, &report);
    if (!ids_is_state(outcome))
        return output_report(context, id, &report);
    ids_output(context, id, &once, &report, /* decided= */ true);
    if (outcome != LH_OK || (fflush(stdout) == 0 && !ferror(stdout)))
        return outcome_exit_status(outcome);
    (void)lh_once_abandon(context->client, id, once.token, NULL);
    return output_error(context, LH_FAILED, "the token could not be written; nothing is claimed");
}

static int once_step_finish(struct context *context, const char *id)
{
    struct lh_completion done;
    struct lh_report report = LH_REPORT_INIT;
    int status = ids_read_done(context, &done);
    if (status == EXIT_DONE)
        status = context_open_store(context);
    if (status != EXIT_DONE)
        return status;
    if (lh_once_finish(context->client, id, context->settings.token, &done, &report) != LH_OK)
        return output_report(context, id, &report);
    return ids_output_done(context, "finished", id, "done");
}

static int once_step_abandon(struct context *context, const char *id)
{
    struct lh_report report = LH_REPORT_INIT;
    int status = context_open_store(context);
    if (status != EXIT_DONE)
        return status;
    if (lh_once_abandon(context->client, id, context->settings.token, &report) != LH_OK)
        return output_report(context, id, &report);
    return ids_output_done(context, "abandoned", id, "new");
}

static int once_step_status(struct context *context, const char *id)
{
    struct lh_once once = LH_ONCE_INIT;
    struct lh_report report = LH_REPORT_INIT;
    int status = context_open_store(context);
    if (status != EXIT_DONE)
        return status;
    if (!ids_is_state(lh_once_status(context->client, id, &once, &report)))
        return output_report(context, id, &report);
    ids_output(context, id, &once, &report, /* decided= */ false);
    return EXIT_DONE;
}

struct once_step {
    const char *name;
    int (*run)(struct context *context, const char *id);
    bool claims, by_token, remembers;
};

static const struct once_step steps[] = {
    {.name = "begin", .run = once_step_begin, .claims = true},
    {.name = "finish", .run = once_step_finish, .by_token = true, .remembers = true},
    {.name = "abandon", .run = once_step_abandon, .by_token = true},
    {.name = "status", .run = once_step_status},
};

/* Refuses options that the step would ignore. */
static int once_check_step(const struct context *context, const struct once_step *step)
{
    const struct settings *settings = &context->settings;
    if (step->by_token && settings->token == 0)
        return usage_error(context, "once %s needs the token: leasehold once %s ID --token N",
                           step->name, step->name);
    if (!step->by_token && settings->token != 0)
        return usage_error(context, "once %s takes no --token", step->name);
    if (!step->claims && settings->payload_hash != NULL)
        return usage_error(context, "once %s takes no --payload-hash", step->name);
    if (!step->remembers &&
        (settings->result != NULL || settings->watermark != NULL || settings->until != NULL))
        return usage_error(context, "--result, --watermark and --until are for once finish");
    if (settings->keep_failures)
        return usage_error(context, "--keep-failures is for leasehold once ID -- CMD...");
    return EXIT_DONE;
}

static int cmd_once(struct context *context)
{
    const struct once_step *step = NULL;
    int status = run_use_shell(context);
    if (status != EXIT_DONE)
        return status;
    if (context->program != NULL) /* before "--" even the name of a step is an ID */
        return once_run(context);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (strcmp(steps[i].name, context->args[0]) == 0)
            step = &steps[i];
    }
    if (step == NULL || context->arg_count < 2)
        return usage_error(
            context, "no step or no ID; usage: leasehold once begin|finish|abandon|status ID, "
                     "or leasehold once ID -- CMD...");
    status = check_keys(context, context->args + 1, 1);
    if (status == EXIT_DONE)
        status = once_check_step(context, step);
    return status == EXIT_DONE ? step->run(context, context->args[1]) : status;
}

static const struct option option_claim_ttl = {
    .name = "ttl",
    .kind = VALUE_DURATION,
    .at = offsetof(struct settings, ttl_ms),
    .value = "DUR",
    .min = 1,
    .max = (int64_t)24 * 3600 * 1000,
    .default_value = "5m",
    .environment = "LEASEHOLD_TTL",
    .help = "lifetime of the claim unless finished, at most 24h; renewed while CMD runs"};
static const struct option option_claim_wait = {
    .name = "wait",
    .letter = 'w',
    .kind = VALUE_DURATION,
    .at = offsetof(struct settings, wait_ms),
    .value = "DUR",
    .max = (int64_t)366 * 24 * 3600 * 1000,
    .word = "forever",
    .word_value = LH_WAIT_FOREVER,
    .default_value = "0",
    .help = "begin, CMD: wait at most this time if ID is running"};
static const struct option option_payload_hash = {
    .name = "payload-hash",
    .kind = VALUE_TEXT,
    .at = offsetof(struct settings, payload_hash),
    .value = "HEX",
    .flag_only = true,
    .help = "begin, CMD: hash of the payload; the same ID with another hash is refused"};
static const struct option option_result = {.name = "result",
                                            .kind = VALUE_TEXT,
                                            .at = offsetof(struct settings, result),
                                            .value = "TEXT",
                                            .flag_only = true,
                                            .help =
                                                "finish: result for later callers, at most 1 KiB"};

static const struct option option_keep_failures = {
    .name = "keep-failures",
    .kind = VALUE_FLAG,
    .at = offsetof(struct settings, keep_failures),
    .help = "CMD: keep ID as done even if CMD fails; otherwise ID can be claimed again"};

static const struct option *const once_options[] = {&option_claim_ttl,     &option_claim_wait,
                                                    &option_keep,          &option_watermark,
                                                    &option_until,         &option_payload_hash,
                                                    &option_keep_failures, &option_command,
                                                    &option_max_hold,      &option_holder,
                                                    &option_token,         &option_result,
                                                    &option_metrics_file,  NULL};

const struct command command_once = {
    .name = "once",
    .args = "begin|finish|abandon|status ID | ID -- CMD...",
    .summary = "run CMD only if ID was never done, or do the same in steps",
    .about =
        "Runs CMD if ID was never done, and stores its exit status and the last line that it wrote "
        "to stdout. Later callers, within --keep, get both without running CMD: the line on "
        "stdout, the exit status, and on stderr the holder and time of that run. With --json, once "
        "ends with an object on stderr, in which \"ran\" is true if this call ran CMD. While "
        "another "
        "caller runs ID, the status is 75, at once or after --wait.\n\n"
        "CMD runs as under 'run': the claim is renewed while CMD runs. If the claim is lost, all "
        "processes that CMD started are ended before another caller can claim ID (status 76). If "
        "leasehold is killed, CMD is killed too, and ID can be claimed again at once. Only stdout "
        "of CMD differs: it is a pipe, passed on unchanged. LEASEHOLD_KEY is once:ID.\n\n"
        "If CMD fails, ID can be claimed again, unless --keep-failures stores the failure. If CMD "
        "is ended from outside (by HUP, INT, QUIT, TERM or KILL), ID can always be claimed again. "
        "With --max-hold a CMD that takes longer is ended and has failed, with exit status 124. "
        "At most 1 KiB of the last line is stored: empty lines are ignored, and bytes that are "
        "not UTF-8 become question marks.\n\n"
        "In steps: begin claims ID and prints 'new TOKEN' (status 0) for exactly one of any number "
        "of callers, which then does the work. The others get 'running HOLDER' (status 75) or, "
        "once ID is done, 'done RESULT' (status 73). The claim lasts for its TTL; after that "
        "another caller can claim ID, and the token of the late caller is refused.\n\n"
        "finish marks ID as done, by its token, and stores the result for --keep. abandon returns "
        "ID undone. A token that no longer holds the claim changes nothing: status 78.\n\n"
        "status prints 'new', 'running HOLDER', 'done RESULT', or 'failed RESULT' for a stored "
        "failure, always with status 0.\n\n"
        "With --payload-hash the same ID with another payload is refused: status 65. An argument "
        "before -- is an ID, even if it is the name of a step.",
    .example = "  leasehold once invoice/4711 -- send-invoice 4711\n"
               "  read -r state token < <(leasehold once begin invoice/4711) &&\n"
               "      [ \"$state\" = new ] && send-invoice 4711 &&\n"
               "      leasehold once finish invoice/4711 --token \"$token\" --result sent",
    .options = once_options,
    .min_args = 1,
    .max_args = 2,
    .takes_program = true,
    .run = cmd_once,
};
