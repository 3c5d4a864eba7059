/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turns of a program with its own loop, as a daemon has it, for counting system calls:
 *
 *     strace -c -f bench_turns URL step|run COUNT
 *
 * COUNT acquisitions, which are left to their TTL, are started in batches of 16. Each turn handles
 * one batch, by lh_step() or by lh_run(); while replies are outstanding it polls lh_fd() and calls
 * lh_step(). The difference of two counts shows the turns alone.
 */
#include "leasehold_admin.h"

#include "rounds.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TURN_BATCH = 16, TURN_KEY_SIZE = 32 };

static struct lh_client *turn_client;
static struct lh_acquire_options turn_options = LH_ACQUIRE_OPTIONS_INIT;
static struct lh_request *started[TURN_BATCH];
static unsigned done_count;

static void on_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct lh_request **request = user;
    if (lh_token(lease) == 0)
        rounds_fail("an acquisition", report->text);
    lh_request_free(*request);
    done_count++;
}

static void start_batch(unsigned first, unsigned count)
{
    struct lh_report report = LH_REPORT_INIT;
    for (unsigned i = 0; i < count; i++) {
        char key[TURN_KEY_SIZE];
        (void)snprintf(key, sizeof key, "orders/%06u", first + i);
        started[i] =
            lh_acquire_start(turn_client, key, &turn_options, on_done, &started[i], &report);
        if (started[i] == NULL)
            rounds_fail("lh_acquire_start", report.text);
    }
}

static void take_turns(bool runs, unsigned count)
{
    struct pollfd wait = {.fd = lh_fd(turn_client), .events = POLLIN};
    for (unsigned first = 0; first < count; first += TURN_BATCH) {
        unsigned end = first + TURN_BATCH < count ? first + TURN_BATCH : count;
        start_batch(first, end - first);
        enum lh_outcome outcome = runs ? lh_run(turn_client) : lh_step(turn_client);
        while (outcome == LH_OK && done_count < end) {
            (void)poll(&wait, 1, /* timeout= */ -1);
            outcome = lh_step(turn_client);
        }
        if (outcome != LH_OK)
            rounds_fail("a turn", lh_outcome_name(outcome));
    }
}

int main(int argc, char **argv)
{
    struct lh_open_options open = LH_OPEN_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    if (argc != 4)
        rounds_fail("usage", "bench_turns URL step|run COUNT");
    open.own_loop = true;
    turn_options.unbound = turn_options.detach = true;
    unsigned count = (unsigned)strtoul(argv[3], NULL, 10);
    if (lh_open(argv[1], &open, &turn_client, &report) != LH_OK)
        rounds_fail("lh_open", report.text);
    double began = rounds_seconds();
    take_turns(strcmp(argv[2], "step") != 0, count);
    printf("%u acquisitions, %.2f us each\n", count, (rounds_seconds() - began) * 1e6 / count);
    lh_close(&turn_client);
    return 0;
}
