/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold renew: extends a lease by its token, from any process. */
#include "face/cli/cli.h"

static int cmd_renew(struct context *context)
{
    const char *key = context->args[0];
    struct lh_report report = LH_REPORT_INIT;
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

/* Not option_ttl: a TTL from environment or config file applies to new leases only. */
static const struct option option_renewal = {
    .name = "ttl",
    .kind = VALUE_DURATION,
    .at = offsetof(struct settings, renewal_ms),
    .value = "DUR",
    .min = 1,
    .max = (int64_t)24 * 3600 * 1000,
    .flag_only = true,
    .help = "new TTL, if it is longer; otherwise the lease keeps its TTL"};

static const struct option *const renew_options[] = {&option_token, &option_renewal, NULL};

const struct command command_renew = {
    .name = "renew",
    .args = "KEY --token N",
    .summary = "extend a lease by its token",
    .about =
        "Extends the lease of KEY by its TTL from now on, or by the longer one given by --ttl. "
        "A token that no longer holds the key changes nothing and exits with status 78.",
    .example = "  leasehold renew nightly --token \"$T\" --ttl 10m",
    .options = renew_options,
    .min_args = 1,
    .max_args = 1,
    .run = cmd_renew,
};
