/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold seen: reports whether an id is done or running. It only queries and claims nothing. */
#include "face/cli/ids.h"

static int cmd_seen(struct context *context)
{
    const char *id = context->args[0];
    struct lh_once once = LH_ONCE_INIT;
    struct lh_report report = LH_REPORT_INIT;
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
    .summary = "report whether an id is done or running",
    .about = "Exits with 0 if ID is done or running, and with 1 if it is new. seen only queries: "
             "another caller may claim ID before a later mark. To check and claim in one step, use "
             "mark or once begin.",
    .example = "  leasehold seen invoice/4711 --quiet && echo 'nothing to do'",
    .min_args = 1,
    .max_args = 1,
    .run = cmd_seen,
};
