/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leader election in which the leader yields to waiters: leader URL NAME TERMS. The leader works in
 * small steps, checks before each that it still leads, and steps down when another process waits.
 * Ends after TERMS terms. Prints "NAME TOKEN" for each: tokens grow over all leaders.
 */
#include <leasehold.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static bool somebody_waits(struct lh_client *client)
{
    struct lh_view view = LH_VIEW_INIT;
    return lh_status(client, "leader", &view, NULL) == LH_OK && view.waiters > 0;
}

/* True if it stepped down by itself, false if the lease was lost. */
static bool lead(struct lh_client *client, struct lh_lease *lease)
{
    const struct timespec step = {.tv_nsec = 20000000};
    for (int i = 0; i < 25; i++) {
        if (!lh_held(lease))
            return false;
        (void)nanosleep(&step, NULL); /* the work of one step */
        if (somebody_waits(client))
            return true;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct lh_open_options open = LH_OPEN_OPTIONS_INIT;
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_client *client = NULL;
    struct lh_report report = LH_REPORT_INIT;
    long terms = argc == 4 ? strtol(argv[3], NULL, 10) : 0, led = 0;
    if (terms <= 0) {
        fprintf(stderr, "usage: leader URL NAME TERMS\n");
        return 64;
    }
    open.holder = argv[2];
    options.wait_ms = LH_WAIT_FOREVER;
    options.ttl_ms = 10000;
    if (lh_open(argv[1], &open, &client, &report) != LH_OK) {
        fprintf(stderr, "leader: %s\n", report.text);
        return 69;
    }
    while (led < terms) {
        struct lh_lease *lease = NULL;
        if (lh_acquire(client, "leader", &options, &lease, &report) != LH_OK) {
            fprintf(stderr, "leader: %s\n", report.text);
            break;
        }
        printf("%s %" PRIu64 "\n", argv[2], lh_token(lease));
        (void)fflush(stdout);
        led += lead(client, lease) ? 1 : 0;
        (void)lh_release(&lease, NULL);
    }
    lh_close(&client);
    return led == terms ? 0 : 1;
}
