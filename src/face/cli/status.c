/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold status: who holds a key, since when, until when, and who waits. */
#include "face/cli/cli.h"

static bool show(void *user, const struct lh_view *view)
{
    say_view(user, view);
    return false;
}

static int run_status(struct visit *visit)
{
    struct lh_report report;
    int status = take_check_keys(visit, visit->words, visit->word_count);
    if (status == EXIT_DONE)
        status = visit_open(visit);
    for (size_t i = 0; i < visit->word_count && status == EXIT_DONE; i++) {
        const char *key = visit->words[i];
        if (lh_look(visit->client, key, show, visit, &report) != LH_OK)
            status = say_report(visit, key, &report);
    }
    return status;
}

const struct command command_status = {
    .name = "status",
    .words = "KEY...",
    .summary = "say who holds a key, since when and until when",
    .about =
        "Asks the store about each KEY: free, held, cooling after it was done, delayed after "
        "a crash, or offered to the next in line. An id is named once:ID and is running, done or "
        "failed; a watermark is named watermark:NAME. A free key is no error: status 0. It is a "
        "look and no promise: to skip work that somebody is at or has just done, try it with "
        "`run -n`, whose status is 75 or 73 then.",
    .example = "  leasehold status nightly\n"
               "  leasehold status nightly --json | jq -r .holder",
    .least_words = 1,
    .most_words = LH_KEYS_MAX,
    .run = run_status,
};
