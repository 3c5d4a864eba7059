/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold renew: extends a lease by its token, from wherever. */
#include "face/cli/cli.h"

static int cmd_renew(struct context *context)
{
    const char *key = context->args[0];
    struct lh_report report;
    if (context->settings.token == 0)
        return usage_error(context, "renew needs the token: leasehold renew KEY --token N");
    int status = check_keys(context, context->args, 1);
    if (status == EXIT_DONE)
        status = context_open_store(context);
    if (status != EXIT_DONE)
        return status;
    if (lh_renew(context->client, key, context->settings.token, context->settings.renewal_ms,
                 &report) != LH_OK)
        return output_report(context, key, &report);
    return output_done(context, "renewed", key);
}

/* Apart from that of other commands: a default from the environment or a file is for new leases. */
static const struct option option_renewal = {
    .name = "ttl",
    .kind = VALUE_DURATION,
    .at = offsetof(struct settings, renewal_ms),
    .value = "DUR",
    .min = 1,
    .max = (int64_t)24 * 3600 * 1000,
    .flag_only = true,
    .help = "the new TTL, if it is longer; without it the lease keeps its own"};

static const struct option *const renew_options[] = {&option_token, &option_renewal, NULL};

const struct command command_renew = {
    .name = "renew",
    .args = "KEY --token N",
    .summary = "extend a lease by its token",
    .about = "Lets the lease of KEY last for another TTL from now on: its own, or a longer one. A "
             "token that does not hold "
             "the key any more changes nothing and ends with status 78.",
    .example = "  leasehold renew nightly --token \"$T\" --ttl 10m",
    .options = renew_options,
    .min_args = 1,
    .max_args = 1,
    .run = cmd_renew,
};
