/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold mark: claims and finishes an id in one write; exactly one caller gets status 0. */
#include "face/cli/ids.h"

static int cmd_mark(struct context *context)
{
    const char *id = context->args[0];
    struct lh_completion done;
    struct lh_report report = LH_REPORT_INIT;
    int status = check_keys(context, context->args, 1);
    if (status == EXIT_DONE)
        status = ids_read_done(context, &done);
    if (status == EXIT_DONE)
        status = context_open_store(context);
    if (status != EXIT_DONE)
        return status;
    enum lh_outcome outcome = lh_mark(context->client, id, &done, &report);
    if (outcome == LH_OK)
        return ids_output_done(context, "marked", id, "done");
    if (!ids_is_state(outcome))
        return output_report(context, id, &report);
    if (!context->settings.quiet)
        ids_output(context, id, /* once= */ NULL, &report, /* decided= */ true);
    return EXIT_NO;
}

static const struct option *const mark_options[] = {&option_keep, &option_watermark, &option_until,
                                                    &option_holder, NULL};

const struct command command_mark = {
    .name = "mark",
    .args = "ID",
    .summary = "mark an id as done and report whether it was new",
    .about =
        "Marks ID as done, in one write. The status is 0 if ID was new, and 1 if it was done "
        "already or is running. Of any number of callers exactly one gets 0. The mark is kept for "
        "--keep.\n\n"
        "The mark precedes the work: a process that crashes in between leaves an id marked whose "
        "work was never done. Where that matters, use once begin and once finish.",
    .example = "  leasehold mark mail/4711 --quiet && send-mail 4711",
    .options = mark_options,
    .min_args = 1,
    .max_args = 1,
    .run = cmd_mark,
};
