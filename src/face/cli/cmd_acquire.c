/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold acquire: acquires keys for their TTL and prints the tokens. The lease is not bound to
 * this process, which exits at once. If the tokens cannot be printed, the lease is abandoned.
 */
#include "face/cli/cli.h"

#include <stdio.h>

/* Collects the granted keys as lines of JSON. */
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

/* Prints tokens to stdout, or objects with --json, and writes objects to the status file. */
static int output_grants(struct context *context, const struct lh_lease *lease)
{
    static char lines[LH_KEYS_MAX * LINE_SIZE];
    struct text text;
    struct grant_output grant = {context, &text};
    struct lh_report report = LH_REPORT_INIT;
    bool json = context->settings.json || context->settings.status_file != NULL;
    text_init(&text, lines, sizeof lines);
    for (size_t i = 0; json && lh_key_at(lease, i) != NULL; i++) {
        const char *key = lh_key_at(lease, i);
        if (lh_status_details(context->client, key, output_grant, &grant, &report) != LH_OK)
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
    struct lh_report report = LH_REPORT_INIT;
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
    .summary = "acquire keys for their TTL and print their tokens",
    .about =
        "Acquires KEY and prints its fencing token on stdout. The lease is not bound to a process: "
        "it lasts for its TTL, unless it is renewed or released with the token.\n\n"
        "Several keys are acquired in sorted order, all or none; the tokens are printed in that "
        "order, one per line. While acquire waits, it shows the current holder on a terminal.\n\n"
        "An expired lease, by the clock of the store, can be acquired by any client; the fencing "
        "token excludes the late holder. A lease that has not expired is never taken over. "
        "Therefore --on-conflict steal-stale is equivalent to fail. Only an operator takes a key "
        "from a live holder: see leasehold break.",
    .example = "  T=$(leasehold acquire nightly --ttl 10m -n) || exit\n"
               "  leasehold release nightly --token \"$T\"",
    .options = acquire_options,
    .min_args = 1,
    .max_args = LH_KEYS_MAX,
    .run = cmd_acquire,
};
