/* SPDX-License-Identifier: Apache-2.0 */
/* See hand_off.h. */
#include "hand_off.h"

#include "bench_process.h"
#include "rounds.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SETTLE_US = 1000 };

static const char key[] = "one key that goes round";

struct shared {
    _Atomic bool waits; /* the other process is in the queue */
    double let_go_at;
    double us[]; /* of all hand-offs, then of all writes */
};

struct runner {
    const struct hand_off_setup *setup;
    struct shared *shared;
    int me, partner; /* a stream to the other process */
    double *handed_us, *written_us;
};

static void note_waiting(void *user, const struct lh_event *event)
{
    struct shared *shared = user;
    if (event->kind == LH_EVENT_WAITING)
        atomic_store(&shared->waits, true);
}

struct lh_client *hand_off_open(const char *url, lh_event_fn *on_event, void *user)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    struct lh_client *client = NULL;
    struct lh_report report = LH_REPORT_INIT;
    options.own_loop = true;
    options.on_event = on_event;
    options.user = user;
    if (lh_open(url, &options, &client, &report) != LH_OK)
        rounds_fail("lh_open", report.text);
    return client;
}

struct lh_lease *hand_off_acquire(struct lh_client *client, const char *wanted)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *lease = NULL;
    struct lh_report report = LH_REPORT_INIT;
    options.wait_ms = LH_WAIT_FOREVER;
    if (lh_acquire(client, wanted, &options, &lease, &report) != LH_OK)
        rounds_fail("lh_acquire", report.text);
    return lease;
}

void hand_off_release(struct lh_lease *lease)
{
    struct lh_report report = LH_REPORT_INIT;
    if (lh_release(&lease, &report) != LH_OK)
        rounds_fail("lh_release", report.text);
}

static void swap_word(const struct runner *runner, bool hears)
{
    char word = 'w';
    if ((hears ? read(runner->partner, &word, 1) : write(runner->partner, &word, 1)) != 1)
        rounds_fail("hand-over", "the other process is gone");
}

/* The releaser waits until the other process waits, and lets it fall asleep. */
static void give_over(const struct runner *runner, struct lh_lease *lease)
{
    struct shared *shared = runner->shared;
    while (!atomic_load(&shared->waits))
        (void)sched_yield();
    bench_sleep_us(SETTLE_US);
    atomic_store(&shared->waits, false);
    shared->let_go_at = rounds_seconds();
    hand_off_release(lease);
    swap_word(runner, /* hears= */ true);
}

static double write_cheaply(const struct runner *runner, void *connection)
{
    bench_sleep_us(SETTLE_US);
    double from = rounds_seconds();
    runner->setup->write(connection);
    return (rounds_seconds() - from) * 1e6;
}

/* Both run the same rounds and hold alternately. */
static void run(const struct runner *runner)
{
    const struct hand_off_setup *setup = runner->setup;
    struct lh_client *client = hand_off_open(setup->url, note_waiting, runner->shared);
    void *connection = setup->connect(setup->owner);
    struct lh_lease *lease = NULL;
    if (runner->me == 0)
        lease = hand_off_acquire(client, key);
    swap_word(runner, /* hears= */ runner->me == 1);
    for (int i = 0; i < ROUNDS * setup->handovers; i++) {
        if (i % 2 == runner->me) {
            give_over(runner, lease);
            runner->written_us[i] = write_cheaply(runner, connection);
        } else {
            lease = hand_off_acquire(client, key);
            runner->handed_us[i] = (rounds_seconds() - runner->shared->let_go_at) * 1e6;
            swap_word(runner, /* hears= */ false);
        }
    }
    if (ROUNDS * setup->handovers % 2 == runner->me)
        hand_off_release(lease);
    setup->disconnect(connection);
    lh_close(&client);
}

static void say(const struct hand_off_setup *setup, const struct runner *runner)
{
    size_t each = (size_t)setup->handovers;
    double handed[ROUNDS], written[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++) {
        handed[i] = rounds_share(runner->handed_us + i * each, each, 0.5);
        written[i] = rounds_share(runner->written_us + i * each, each, 0.5);
    }
    (void)printf("== %s: a lock goes from one process to the next in line\n", setup->store);
    rounds_say("from release to held (median of a round)", handed, "us");
    rounds_say(setup->cheapest, written, "us");
    rounds_aim(handed, written, AT_MOST, 2);
}

void hand_off_measure(const struct hand_off_setup *setup)
{
    int streams[2];
    size_t all = ROUNDS * (size_t)setup->handovers;
    size_t size = sizeof(struct shared) + 2 * all * sizeof(double);
    struct shared *shared = bench_share(size);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, streams) != 0)
        rounds_fail("socketpair", strerror(errno));
    pid_t child = bench_fork();
    int me = child == 0 ? 1 : 0;
    struct runner runner = {.setup = setup,
                            .shared = shared,
                            .me = me,
                            .partner = streams[me],
                            .handed_us = shared->us,
                            .written_us = shared->us + all};
    (void)close(streams[1 - me]);
    run(&runner);
    if (child == 0)
        _exit(0);
    bench_wait(child);
    say(setup, &runner);
    (void)close(streams[me]);
    bench_unshare(shared, size);
}
