/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold watch: changes as they happen, until it is stopped. */
#include "face/cli/cli.h"
#include "face/cli/stop.h"

#include <stdio.h>

struct watching {
    const struct visit *visit;
    bool ended;
    struct lh_report report; /* why */
};

static void on_change(void *user, const struct lh_view *view, const struct lh_report *report)
{
    struct watching *watching = user;
    if (view == NULL) {
        watching->report = *report;
        watching->ended = true;
        return;
    }
    say_view(watching->visit, view);
    (void)fflush(stdout);
}

static int run_watch(struct visit *visit)
{
    struct watching watching = {.visit = visit};
    struct lh_watcher *watcher = NULL;
    struct stop stop;
    const char *prefix = visit->word_count > 0 ? visit->words[0] : "";
    int status = visit_open(visit);
    if (status != EXIT_DONE)
        return status;
    if (lh_watch(visit->client, prefix, on_change, &watching, &watcher, &watching.report) != LH_OK)
        return say_report(visit, NULL, &watching.report);
    say_detail(visit, "%s", watching.report.text);
    stop_begin(&stop);
    while (!watching.ended && stop_caught() == 0 && !ferror(stdout)) {
        stop_sleep(&stop, visit->client, /* length_ms= */ -1);
        (void)lh_step(visit->client);
    }
    stop_end(&stop);
    (void)lh_unwatch(&watcher, NULL);
    if (watching.ended)
        return say_report(visit, NULL, &watching.report);
    return stop_caught() != 0 ? EXIT_SIGNAL + stop_caught() : EXIT_DONE;
}

const struct command command_watch = {
    .name = "watch",
    .words = "[PREFIX]",
    .summary = "print changes as they happen",
    .about = "Prints one line for every change of a key that begins with PREFIX, from now on, "
             "until it is stopped. A record that cannot be read is shown as unreadable, with the "
             "cause. A store that is in trouble ends it with status 69.",
    .example = "  leasehold watch production/ --json",
    .most_words = 1,
    .run = run_watch,
};
