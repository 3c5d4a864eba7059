/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold seen: was this id done, or is somebody at it? Only a look: claiming it is another. */
#include "face/cli/ids.h"

static int cmd_seen(struct context *context)
{
    const char *id = context->args[0];
    struct lh_once once;
    struct lh_report report;
    int status = check_keys(context, context->args, 1);
    if (status == EXIT_DONE)
        status = context_open_store(context);
    if (status != EXIT_DONE)
        return status;
    enum lh_outcome outcome = lh_once_status(context->client, id, &once, &report);
    if (!ids_is_state(outcome))
        return output_report(context, id, &report);
    if (!context->settings.quiet)
        ids_output(context, id, &once, &report, /* decided= */ false);
    return outcome == LH_OK ? EXIT_NO : EXIT_DONE;
}

const struct command command_seen = {
    .name = "seen",
    .args = "ID",
    .summary = "say whether an id was done, or is being done",
    .about = "Status 0 when ID was done or somebody is at it, status 1 when not. It only looks: "
             "between seen and a later mark somebody else may come. Who wants to know and to "
             "decide in one step asks mark, or once begin.",
    .example = "  leasehold seen invoice/4711 --quiet && echo 'nothing to do'",
    .min_args = 1,
    .max_args = 1,
    .run = cmd_seen,
};
