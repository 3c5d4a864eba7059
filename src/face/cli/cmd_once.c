/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold once: a thing that is to be done once, in steps; whole, by a command, it is
 * once_run.c's. The claim is left to its TTL when this process ends, and its token finishes it
 * from any other; a claim whose token nobody could read is given up again.
 */
#include "face/cli/ids.h"

#include <stdio.h>
#include <string.h>

static int once_step_begin(struct context *context, const char *id)
{
    const struct settings *settings = &context->settings;
    struct lh_once_options options = LH_ONCE_OPTIONS_INIT;
    char hash[IDS_HASH_SIZE];
    struct lh_once once;
    struct lh_report report;
    int status = ids_read_payload(context, hash, &options.payload);
    if (status == EXIT_DONE)
        status = context_open_store(context);
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
    struct lh_done done;
    struct lh_report report;
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
    struct lh_report report;
    int status = context_open_store(context);
    if (status != EXIT_DONE)
        return status;
    if (lh_once_abandon(context->client, id, context->settings.token, &report) != LH_OK)
        return output_report(context, id, &report);
    return ids_output_done(context, "abandoned", id, "new");
}

static int once_step_status(struct context *context, const char *id)
{
    struct lh_once once;
    struct lh_report report;
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

/* An option that the step would pass over was meant for another one. */
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
    if (context->program != NULL) /* a word before "--" is an ID, whatever it says */
        return once_run(context);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (strcmp(steps[i].name, context->args[0]) == 0)
            step = &steps[i];
    }
    if (step == NULL || context->arg_count < 2)
        return usage_error(context,
                           "say the step: leasehold once begin|finish|abandon|status ID, or "
                           "what to run: leasehold once ID -- CMD...");
    int status = check_keys(context, context->args + 1, 1);
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
    .help = "how long the claim lasts unless finished, at most 24h; for CMD it is renewed"};
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
    .help = "begin, CMD: wait at most so long for whoever is at it"};
static const struct option option_payload_hash = {
    .name = "payload-hash",
    .kind = VALUE_TEXT,
    .at = offsetof(struct settings, payload_hash),
    .value = "HEX",
    .flag_only = true,
    .help = "begin, CMD: a fingerprint; the same ID with another one is refused"};
static const struct option option_result = {.name = "result",
                                            .kind = VALUE_TEXT,
                                            .at = offsetof(struct settings, result),
                                            .value = "TEXT",
                                            .flag_only = true,
                                            .help = "finish: for later callers, at most 1 KiB"};

static const struct option option_keep_failures = {
    .name = "keep-failures",
    .kind = VALUE_FLAG,
    .at = offsetof(struct settings, keep_failures),
    .help = "CMD: also when it fails it was done; otherwise ID can be claimed again then"};

static const struct option *const once_options[] = {&option_claim_ttl,
                                                    &option_claim_wait,
                                                    &option_keep,
                                                    &option_watermark,
                                                    &option_until,
                                                    &option_payload_hash,
                                                    &option_keep_failures,
                                                    &option_holder,
                                                    &option_token,
                                                    &option_result,
                                                    NULL};

const struct command command_once = {
    .name = "once",
    .args = "begin|finish|abandon|status ID | ID -- CMD...",
    .summary = "run CMD only if ID was never done; or the same in steps",
    .about =
        "Runs CMD if ID was never done, and remembers its exit status and the last line that it "
        "wrote to stdout. Whoever comes later, within --keep, gets both without CMD being run: the "
        "line on stdout, the status as ours, and on stderr who did it and when; with --json an "
        "object on stderr, last, in which \"ran\" tells which it was. While somebody is at it the "
        "status is 75, at once or after --wait.\n\n"
        "CMD works as under 'run': the claim is renewed while it runs, all that CMD started is "
        "ended before a claim that was lost can be somebody else's (status 76), and if leasehold "
        "is killed, so is CMD; then ID can be claimed again at once. Only its stdout is a pipe, "
        "which is passed on unchanged. LEASEHOLD_KEY is once:ID.\n\n"
        "A CMD that fails leaves ID to be claimed again, unless --keep-failures says that it was "
        "done; one that was ended from outside (by HUP, INT, QUIT, TERM or KILL) always does. Of "
        "the last line at most 1 KiB is kept, as text: empty lines do not count, and what is no "
        "UTF-8 becomes a question mark.\n\n"
        "In steps: begin claims ID and prints 'new TOKEN' (status 0): it is yours to do. Of any "
        "number of "
        "callers exactly one hears that; the others get 'running HOLDER' (status 75) or, once it "
        "is done, 'done RESULT' (status 73). The claim lasts for its TTL; then anybody may claim "
        "ID again, and the late one is refused by its token.\n\n"
        "finish says with the token that it was done, and what came of it; that is remembered for "
        "--keep. abandon gives ID back undone. A token that does not hold the claim any more "
        "changes nothing: status 78.\n\n"
        "status prints 'new', 'running HOLDER', 'done RESULT', or 'failed RESULT' where a failure "
        "was kept, always with status 0.\n\n"
        "With --payload-hash the same ID with another payload is refused: status 65. A word "
        "before -- is an ID, also when it is the name of a step.",
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
