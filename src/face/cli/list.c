/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold list: all keys that somebody holds, cools or waits for. */
#include "face/cli/cli.h"

#include <stdio.h>

static const struct option option_names = {.name = "names",
                                           .kind = VALUE_FLAG,
                                           .at = offsetof(struct settings, names),
                                           .flag_only = true,
                                           .does = "print the keys alone"};

static bool show(void *user, const struct lh_view *view)
{
    const struct visit *visit = user;
    if (view->state == LH_FREE && view->waiters == 0 && view->kind != LH_WATERMARK)
        return true; /* a lease that ran out, and that nobody wanted since */
    if (visit->settings.names)
        puts(view->key);
    else
        say_view(visit, view);
    return !ferror(stdout);
}

static int run_list(struct visit *visit)
{
    const char *prefix = visit->word_count > 0 ? visit->words[0] : "";
    struct lh_report report;
    int status = visit_open(visit);
    if (status != EXIT_DONE)
        return status;
    if (lh_list(visit->client, prefix, show, visit, &report) != LH_OK)
        return say_report(visit, NULL, &report);
    return EXIT_DONE;
}

static const struct option *const list_options[] = {&option_names, NULL};

const struct command command_list = {
    .name = "list",
    .words = "[PREFIX]",
    .summary = "list the keys that are held, cooling or waited for",
    .about =
        "Prints one line for each key that begins with PREFIX and is held, cooling, delayed, "
        "offered or waited for, in any order, and for each watermark. Ids that are to be done "
        "once are there as running, done or failed. Free keys cost nothing, and are not "
        "listed. A record that cannot be read, because it was damaged or a newer version wrote "
        "it, is shown as unreadable, with the cause; status of that key ends with 69.",
    .example = "  leasehold list production/",
    .options = list_options,
    .most_words = 1,
    .run = run_list,
};
