/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold once: a thing that is to be done once, in steps; whole, by a command, it is
 * once_command.c's. The claim is left to its TTL when this process ends, and its token finishes it
 * from any other; a claim whose token nobody could read is given up again.
 */
#include "face/cli/ids.h"

#include <stdio.h>
#include <string.h>

static int step_begin(struct visit *visit, const char *id)
{
    const struct settings *settings = &visit->settings;
    struct lh_once_options options = LH_ONCE_OPTIONS_INIT;
    char hash[IDS_HASH_SIZE];
    struct lh_once once;
    struct lh_report report;
    int status = ids_payload(visit, hash, &options.payload);
    if (status == EXIT_DONE)
        status = visit_open(visit);
    if (status != EXIT_DONE)
        return status;
    options.ttl_ms = settings->ttl_ms;
    options.wait_ms = settings->wait_ms;
    enum lh_outcome outcome = lh_once_begin(visit->client, id, &options, &once, &report);
    if (!ids_is_state(outcome))
        return say_report(visit, id, &report);
    ids_say(visit, id, &once, &report, /* decided= */ true);
    if (outcome != LH_OK || (fflush(stdout) == 0 && !ferror(stdout)))
        return say_status(outcome);
    (void)lh_once_abandon(visit->client, id, once.token, NULL);
    return say_trouble(visit, LH_FAILED, "the token could not be written; nothing is claimed");
}

static int step_finish(struct visit *visit, const char *id)
{
    struct lh_done done;
    struct lh_report report;
    int status = ids_done(visit, &done);
    if (status == EXIT_DONE)
        status = visit_open(visit);
    if (status != EXIT_DONE)
        return status;
    if (lh_once_finish(visit->client, id, visit->settings.token, &done, &report) != LH_OK)
        return say_report(visit, id, &report);
    return ids_say_done(visit, "finished", id, "done");
}

static int step_abandon(struct visit *visit, const char *id)
{
    struct lh_report report;
    int status = visit_open(visit);
    if (status != EXIT_DONE)
        return status;
    if (lh_once_abandon(visit->client, id, visit->settings.token, &report) != LH_OK)
        return say_report(visit, id, &report);
    return ids_say_done(visit, "abandoned", id, "new");
}

static int step_status(struct visit *visit, const char *id)
{
    struct lh_once once;
    struct lh_report report;
    int status = visit_open(visit);
    if (status != EXIT_DONE)
        return status;
    if (!ids_is_state(lh_once_status(visit->client, id, &once, &report)))
        return say_report(visit, id, &report);
    ids_say(visit, id, &once, &report, /* decided= */ false);
    return EXIT_DONE;
}

struct step {
    const char *name;
    int (*take)(struct visit *visit, const char *id);
    bool claims, by_token, remembers;
};

static const struct step steps[] = {
    {.name = "begin", .take = step_begin, .claims = true},
    {.name = "finish", .take = step_finish, .by_token = true, .remembers = true},
    {.name = "abandon", .take = step_abandon, .by_token = true},
    {.name = "status", .take = step_status},
};

/* An option that the step would pass over was meant for another one. */
static int check_step(const struct visit *visit, const struct step *step)
{
    const struct settings *settings = &visit->settings;
    if (step->by_token && settings->token == 0)
        return say_usage(visit, "once %s needs the token: leasehold once %s ID --token N",
                         step->name, step->name);
    if (!step->by_token && settings->token != 0)
        return say_usage(visit, "once %s takes no --token", step->name);
    if (!step->claims && settings->payload_hash != NULL)
        return say_usage(visit, "once %s takes no --payload-hash", step->name);
    if (!step->remembers &&
        (settings->result != NULL || settings->watermark != NULL || settings->until != NULL))
        return say_usage(visit, "--result, --watermark and --until are for once finish");
    if (settings->keep_failures)
        return say_usage(visit, "--keep-failures is for leasehold once ID -- CMD...");
    return EXIT_DONE;
}

static int run_once(struct visit *visit)
{
    const struct step *step = NULL;
    if (visit->program != NULL) /* a word before "--" is an ID, whatever it says */
        return once_command(visit);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (strcmp(steps[i].name, visit->words[0]) == 0)
            step = &steps[i];
    }
    if (step == NULL || visit->word_count < 2)
        return say_usage(visit, "say the step: leasehold once begin|finish|abandon|status ID, or "
                                "what to run: leasehold once ID -- CMD...");
    int status = take_check_keys(visit, visit->words + 1, 1);
    if (status == EXIT_DONE)
        status = check_step(visit, step);
    return status == EXIT_DONE ? step->take(visit, visit->words[1]) : status;
}

static const struct option option_claim_ttl = {
    .name = "ttl",
    .kind = VALUE_DURATION,
    .at = offsetof(struct settings, ttl_ms),
    .value = "DUR",
    .least = 1,
    .most = (int64_t)24 * 3600 * 1000,
    .usual = "5m",
    .environment = "LEASEHOLD_TTL",
    .does = "how long the claim lasts unless finished, at most 24h; for CMD it is renewed"};
static const struct option option_claim_wait = {
    .name = "wait",
    .letter = 'w',
    .kind = VALUE_DURATION,
    .at = offsetof(struct settings, wait_ms),
    .value = "DUR",
    .most = (int64_t)366 * 24 * 3600 * 1000,
    .word = "forever",
    .stands_for = LH_WAIT_FOREVER,
    .usual = "0",
    .does = "begin, CMD: wait at most so long for whoever is at it"};
static const struct option option_payload_hash = {
    .name = "payload-hash",
    .kind = VALUE_TEXT,
    .at = offsetof(struct settings, payload_hash),
    .value = "HEX",
    .flag_only = true,
    .does = "begin, CMD: a fingerprint; the same ID with another one is refused"};
static const struct option option_result = {.name = "result",
                                            .kind = VALUE_TEXT,
                                            .at = offsetof(struct settings, result),
                                            .value = "TEXT",
                                            .flag_only = true,
                                            .does = "finish: for later callers, at most 1 KiB"};

static const struct option option_keep_failures = {
    .name = "keep-failures",
    .kind = VALUE_FLAG,
    .at = offsetof(struct settings, keep_failures),
    .does = "CMD: also when it fails it was done; otherwise ID can be claimed again then"};

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
    .words = "begin|finish|abandon|status ID | ID -- CMD...",
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
    .least_words = 1,
    .most_words = 2,
    .takes_program = true,
    .run = run_once,
};
