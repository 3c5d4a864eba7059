/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold acquire: takes a key for its TTL and prints the token. The lease is not bound to this
 * process, which ends at once; a token that nobody could read is given back.
 */
#include "face/cli/cli.h"

#include <stdio.h>

/* What the store says of the grant, as JSON lines. */
struct grant_output {
    const struct context *context;
    struct text *text;
};

static bool output_grant(void *user, const struct lh_view *view)
{
    const struct grant_output *grant = user;
    view_to_json(grant->context, view, "ok", /* past= */ false, grant->text);
    text_add(grant->text, "\n");
    return false;
}

/* Token lines on stdout, objects with --json and in the status file. */
static int output_grants(struct context *context, const struct lh_lease *lease)
{
    static char lines[LH_KEYS_MAX * LINE_SIZE];
    struct text text;
    struct grant_output grant = {context, &text};
    struct lh_report report;
    bool json = context->settings.json || context->settings.status_file != NULL;
    text_init(&text, lines, sizeof lines);
    for (size_t i = 0; json && lh_key_at(lease, i) != NULL; i++) {
        const char *key = lh_key_at(lease, i);
        if (lh_look(context->client, key, output_grant, &grant, &report) != LH_OK)
            return output_report(context, key, &report);
    }
    int status = write_status_file(context, lines);
    if (status != EXIT_DONE)
        return status;
    for (size_t i = 0; !context->settings.json && lh_key_at(lease, i) != NULL; i++)
        printf("%llu\n", (unsigned long long)lh_token_at(lease, i));
    if (context->settings.json)
        (void)fputs(lines, stdout);
    if (fflush(stdout) != 0 || ferror(stdout))
        return output_error(context, LH_FAILED, "the token could not be written; nothing is held");
    return EXIT_DONE;
}

static int cmd_acquire(struct context *context)
{
    struct lh_acquire_options options;
    struct lh_lease *lease = NULL;
    struct lh_report report;
    int status = check_keys(context, context->args, context->arg_count);
    if (status == EXIT_DONE)
        status = context_open_store(context);
    if (status != EXIT_DONE)
        return status;
    acquire_fill_options(context, &options);
    options.unbound = true;
    status = acquire_keys(context, context->args, context->arg_count, &options, &lease);
    if (status != EXIT_DONE)
        return status;
    status = output_grants(context, lease);
    if (status != EXIT_DONE) {
        (void)lh_abandon(&lease, NULL);
        return status;
    }
    if (lh_detach(&lease, &report) != LH_OK)
        return output_report(context, NULL, &report);
    return EXIT_DONE;
}

static const struct option *const acquire_options[] = {ACQUIRE_OPTIONS, NULL};

const struct command command_acquire = {
    .name = "acquire",
    .args = "KEY...",
    .summary = "take a key and print its token; it lives until its TTL unless renewed",
    .about =
        "Takes KEY and prints its fencing token alone on stdout. The lease belongs to nobody's "
        "process: it lasts for its TTL, unless it is renewed or released with the token.\n\n"
        "Several keys are taken in sorted order, all or none; there is one token in each line, in "
        "that order. While it waits for its turn, a terminal shows who holds the key.\n\n"
        "A lease that has run out is anybody's to take, by the store's clock, and its late holder "
        "is kept out by its token: there is nothing to steal from the dead, and nothing is ever "
        "stolen from the living. So --on-conflict steal-stale is fail in other words; to take a "
        "key from a living holder is an operator's decision: leasehold break.",
    .example = "  T=$(leasehold acquire nightly --ttl 10m -n) || exit\n"
               "  leasehold release nightly --token \"$T\"",
    .options = acquire_options,
    .min_args = 1,
    .max_args = LH_KEYS_MAX,
    .run = cmd_acquire,
};
