/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Power loss, by replay: power_loss [--every N]. Runs every N-th workload, and some of them with
 * each of their file calls failing once, and checks every image that a loss at any moment could
 * leave (power_loss.h). Finally it plants bugs, and must detect each of them. Prints TAP.
 */
#include "power_loss.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FAILING_EVERY = 97,  /* of the workloads that run, and … */
    PLANTED_EVERY = 101, /* … of all of them, with a bug; no divisors of their numbers */
};

static unsigned number;
static bool good = true;
static uint64_t images;

static void report(const char *what, bool fine)
{
    good &= fine;
    printf("%s %u - %s\n", fine ? "ok" : "not ok", ++number, what);
    if (!fine || loss_figures.violations > 0)
        printf("# %s\n", fine || loss_figures.violations > 0 ? loss_figures.what : "not seen");
    printf(
        "# %" PRIu64 " workloads, %" PRIu64 " images, %" PRIu64 " of a second loss; %" PRIu64
        " compactions, %" PRIu64 " new segments, %" PRIu64 " tails cut, %" PRIu64 " failed calls\n",
        loss_figures.workloads, loss_figures.images, loss_figures.interrupted,
        loss_figures.compactions, loss_figures.segments, loss_figures.cuts, loss_figures.failures);
    (void)fflush(stdout);
    images += loss_figures.images + loss_figures.interrupted;
    memset(&loss_figures, 0, sizeof loss_figures);
}

static bool is_fine(void)
{
    return loss_figures.violations == 0;
}

static void play_all(unsigned every)
{
    (void)loss_run_first(/* fails= */ 0);
    for (unsigned i = 0; i < loss_workloads() && is_fine(); i += every)
        (void)loss_run(i, /* fails= */ 0);
    report("nothing told is lost, nothing invented, no revision or time goes back",
           is_fine() && loss_figures.compactions > 0 && loss_figures.segments > 0 &&
               loss_figures.cuts > 0 && loss_figures.interrupted > 0);
}

static void play_failing(unsigned every)
{
    for (unsigned fails = 1; is_fine() && loss_run_first(fails);)
        fails++;
    for (unsigned i = 7; i < loss_workloads() && is_fine(); i += FAILING_EVERY * every)
        for (unsigned fails = 1; is_fine() && loss_run(i, fails);)
            fails++;
    report("also when any one call, such as a sync, failed before",
           is_fine() && loss_figures.failures > 0);
}

static void play_planted(void)
{
    char what[128];
    for (loss_bug = BUG_NONE + 1; loss_bug < BUG_COUNT; loss_bug++) {
        bool failing = loss_bug == BUG_SYNC_AGAIN;
        for (unsigned i = 0; i < loss_workloads() && is_fine(); i += PLANTED_EVERY)
            for (unsigned fails = failing ? 1 : 0; is_fine() && loss_run(i, fails) && failing;)
                fails++;
        (void)snprintf(what, sizeof what, "planted and seen: %s", loss_bug_texts[loss_bug]);
        uint64_t before = images;
        report(what, !is_fine());
        images = before;
    }
}

int main(int count, char **argv)
{
    unsigned every = 1;
    if (count == 3 && strcmp(argv[1], "--every") == 0)
        every = (unsigned)strtoul(argv[2], NULL, 10);
    if ((count != 1 && count != 3) || every == 0) {
        (void)fprintf(stderr, "usage: power_loss [--every N]\n");
        return 64;
    }
    play_all(every);
    play_failing(every);
    printf("# %" PRIu64 " images in all\n", images);
    play_planted();
    printf("1..%u\n", number);
    return good ? 0 : 1;
}
