/* SPDX-License-Identifier: Apache-2.0 */
/* leasehold seen: was this id done, or is somebody at it? Only a look: claiming it is another. */
#include "face/cli/ids.h"

static int run_seen(struct visit *visit)
{
    const char *id = visit->words[0];
    struct lh_once once;
    struct lh_report report;
    int status = take_check_keys(visit, visit->words, 1);
    if (status == EXIT_DONE)
        status = visit_open(visit);
    if (status != EXIT_DONE)
        return status;
    enum lh_outcome outcome = lh_once_status(visit->client, id, &once, &report);
    if (!ids_is_state(outcome))
        return say_report(visit, id, &report);
    if (!visit->settings.quiet)
        ids_say(visit, id, &once, &report, /* decided= */ false);
    return outcome == LH_OK ? EXIT_NO : EXIT_DONE;
}

const struct command command_seen = {
    .name = "seen",
    .words = "ID",
    .summary = "say whether an id was done, or is being done",
    .about = "Status 0 when ID was done or somebody is at it, status 1 when not. It only looks: "
             "between seen and a later mark somebody else may come. Who wants to know and to "
             "decide in one step asks mark, or once begin.",
    .example = "  leasehold seen invoice/4711 --quiet && echo 'nothing to do'",
    .least_words = 1,
    .most_words = 1,
    .run = run_seen,
};
