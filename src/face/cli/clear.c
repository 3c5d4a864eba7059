/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold clear: ends a cooldown early. */
#include "face/cli/cli.h"

static int run_clear(struct visit *visit)
{
    const char *key = visit->words[0];
    struct lh_report report;
    int status = take_check_keys(visit, visit->words, 1);
    if (status == EXIT_DONE)
        status = visit_open(visit);
    if (status != EXIT_DONE)
        return status;
    if (lh_clear(visit->client, key, &report) != LH_OK)
        return say_report(visit, key, &report);
    return say_done(visit, "cleared", key);
}

const struct command command_clear = {
    .name = "clear",
    .words = "KEY",
    .summary = "end a cooldown early",
    .about = "Ends the cooldown of KEY, so that it can be taken again. A key that is not cooling "
             "is no error; one that is held stays held.",
    .example = "  leasehold clear production/deployment",
    .least_words = 1,
    .most_words = 1,
    .run = run_clear,
};
