/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold status: prints the state of keys: holder, since when, until when, and waiters. */
#include "face/cli/cli.h"

static bool output_status_view(void *user, const struct lh_view *view)
{
    output_view(user, view);
    return false;
}

static int cmd_status(struct context *context)
{
    struct lh_report report = LH_REPORT_INIT;
    int status = check_keys(context, context->args, context->arg_count);
    if (status == EXIT_DONE)
        status = context_open_store(context);
    for (size_t i = 0; i < context->arg_count && status == EXIT_DONE; i++) {
        const char *key = context->args[i];
        if (lh_status_details(context->client, key, output_status_view, context, &report) != LH_OK)
            status = output_report(context, key, &report);
    }
    return status;
}

const struct command command_status = {
    .name = "status",
    .args = "KEY...",
    .summary = "print who holds a key, since when and until when",
    .about =
        "Prints the state of each KEY: free, held, cooling after a release, delayed after a crash "
        "of its holder, or offered to the next waiter. An id is named once:ID and is running, done "
        "or failed; a watermark is named watermark:NAME. A free key is not an error: status 0. The "
        "state can change at any time: to skip work that is running or was just done, use "
        "`run -n`, which then exits with 75 or 73.",
    .example = "  leasehold status nightly\n"
               "  leasehold status nightly --json | jq -r .holder",
    .min_args = 1,
    .max_args = LH_KEYS_MAX,
    .run = cmd_status,
};
