/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold status: who holds a key, since when, until when, and who waits. */
#include "face/cli/cli.h"

static bool output_status_view(void *user, const struct lh_view *view)
{
    output_view(user, view);
    return false;
}

static int cmd_status(struct context *context)
{
    struct lh_report report;
    int status = check_keys(context, context->args, context->arg_count);
    if (status == EXIT_DONE)
        status = context_open_store(context);
    for (size_t i = 0; i < context->arg_count && status == EXIT_DONE; i++) {
        const char *key = context->args[i];
        if (lh_look(context->client, key, output_status_view, context, &report) != LH_OK)
            status = output_report(context, key, &report);
    }
    return status;
}

const struct command command_status = {
    .name = "status",
    .args = "KEY...",
    .summary = "say who holds a key, since when and until when",
    .about =
        "Asks the store about each KEY: free, held, cooling after it was done, delayed after "
        "a crash, or offered to the next in line. An id is named once:ID and is running, done or "
        "failed; a watermark is named watermark:NAME. A free key is no error: status 0. It is a "
        "look and no promise: to skip work that somebody is at or has just done, try it with "
        "`run -n`, whose status is 75 or 73 then.",
    .example = "  leasehold status nightly\n"
               "  leasehold status nightly --json | jq -r .holder",
    .min_args = 1,
    .max_args = LH_KEYS_MAX,
    .run = cmd_status,
};
