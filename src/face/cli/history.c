/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold history: what happened to a key, as far as the store keeps it. */
#include "face/cli/cli.h"

#include <stdio.h>

static bool show(void *user, const struct lh_view *view)
{
    const struct visit *visit = user;
    char line[LINE_SIZE];
    struct text text;
    text_init(&text, line, sizeof line);
    if (visit->settings.json) {
        say_view_json(visit, view, NULL, /* past= */ true, &text);
    } else {
        char when[32];
        text_add(&text, say_written(view, when)[0] != '\0' ? when : "-");
        text_add(&text, " ");
        say_view_line(view, &text);
    }
    say_line(&text, stdout);
    return !ferror(stdout);
}

static int run_history(struct visit *visit)
{
    const char *key = visit->words[0];
    struct lh_report report;
    int status = take_check_keys(visit, visit->words, 1);
    if (status == EXIT_DONE)
        status = visit_open(visit);
    if (status != EXIT_DONE)
        return status;
    if (lh_history(visit->client, key, show, visit, &report) != LH_OK)
        return say_report(visit, key, &report);
    return EXIT_DONE;
}

const struct command command_history = {
    .name = "history",
    .words = "KEY",
    .summary = "show the kept changes of a key, newest first",
    .about = "Prints one line for each change of KEY that the store kept, newest first: when it "
             "was written, and how the key stood then. Stores that keep none refuse (64).",
    .example = "  leasehold history production/deployment",
    .least_words = 1,
    .most_words = 1,
    .run = run_history,
};
