/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold clear: ends a cooldown early. */
#include "face/cli/cli.h"

static int cmd_clear(struct context *context)
{
    const char *key = context->args[0];
    struct lh_report report = LH_REPORT_INIT;
    int status = check_keys(context, context->args, 1);
    if (status == EXIT_DONE)
        status = context_open_store(context);
    if (status != EXIT_DONE)
        return status;
    if (lh_clear(context->client, key, &report) != LH_OK)
        return output_report(context, key, &report);
    return output_done(context, "cleared", key);
}

const struct command command_clear = {
    .name = "clear",
    .args = "KEY",
    .summary = "end a cooldown early",
    .about = "Ends the cooldown of KEY, so that it can be acquired again. A key that is not "
             "cooling is not an error. A key that is held stays held.",
    .example = "  leasehold clear production/deployment",
    .min_args = 1,
    .max_args = 1,
    .run = cmd_clear,
};
