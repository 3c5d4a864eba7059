/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold watch: prints changes until a signal or an error of the store ends it. */
#include "face/cli/cli.h"
#include "face/cli/signals.h"

#include <stdio.h>

struct watch_output {
    const struct context *context;
    bool ended;
    struct lh_report report; /* why it ended */
};

static void watch_on_change(void *user, const struct lh_view *view, const struct lh_report *report)
{
    struct watch_output *watch = user;
    if (view == NULL) {
        watch->report = *report;
        watch->ended = true;
        return;
    }
    output_view(watch->context, view);
    (void)fflush(stdout);
}

static int cmd_watch(struct context *context)
{
    struct watch_output watch = {.context = context, .report = LH_REPORT_INIT};
    struct lh_watcher *watcher = NULL;
    struct signals signals;
    const char *prefix = context->arg_count > 0 ? context->args[0] : "";
    int status = context_open_store(context);
    if (status != EXIT_DONE)
        return status;
    if (lh_watch(context->client, prefix, watch_on_change, &watch, &watcher, &watch.report) !=
        LH_OK)
        return output_report(context, NULL, &watch.report);
    output_detail(context, "%s", watch.report.text);
    signals_begin(&signals);
    while (!watch.ended && signals_caught() == 0 && !ferror(stdout)) {
        signals_wait(&signals, context->client, /* length_ms= */ -1);
        (void)lh_step(context->client);
    }
    signals_end(&signals);
    (void)lh_unwatch(&watcher, NULL);
    if (watch.ended)
        return output_report(context, NULL, &watch.report);
    return signals_caught() != 0 ? EXIT_SIGNAL + signals_caught() : EXIT_DONE;
}

const struct command command_watch = {
    .name = "watch",
    .args = "[PREFIX]",
    .summary = "print changes as they happen",
    .about = "Prints one line for each change of a key that begins with PREFIX, from now on, until "
             "it is interrupted. A record that cannot be read is printed as unreadable, with the "
             "cause. An unavailable store ends it with status 69.",
    .example = "  leasehold watch production/ --json",
    .max_args = 1,
    .run = cmd_watch,
};
