/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several processes contend for one key of a Redis server: the time of a hand-off, and the
 * throughput of sixteen contenders, compared with sixteen that poll every 100 ms.
 */
#include "bench_redis.h"

#include "bench_process.h"
#include "redis_peer.h"
#include "hand_off.h"
#include "rounds.h"

#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HANDOVERS = 100, CROWD = 16, CROWD_MS = 1000, POLL_MS = 100 };

static const char key[] = "one key that everybody wants";
static const char cheapest_write[] = "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$1\r\ny\r\n";

struct shared {
    _Atomic unsigned ready;
    _Atomic bool go, stop;
    uint64_t came[CROWD]; /* rounds of each */
};

/* ---- hand-off ---- */

static void *connect_to(const void *owner)
{
    const struct bench_server *server = owner;
    int *file = rounds_memory(sizeof *file);
    *file = redis_peer_connect(server->port);
    return file;
}

static void write_to(void *connection)
{
    const int *file = connection;
    (void)redis_peer_call(*file, cheapest_write, sizeof cheapest_write - 1, "+OK\r\n");
}

static void disconnect(void *connection)
{
    int *file = connection;
    (void)close(*file);
    free(file);
}

void bench_redis_hand_over(const struct bench_server *server)
{
    hand_off_measure(
        &(struct hand_off_setup){.store = "redis",
                                 .url = server->url,
                                 .cheapest = "the cheapest write (SET), one round trip",
                                 .connect = connect_to,
                                 .write = write_to,
                                 .disconnect = disconnect,
                                 .owner = server,
                                 .handovers = HANDOVERS});
}

/* ---- sixteen contenders ---- */

static void await_go(struct shared *shared)
{
    atomic_fetch_add(&shared->ready, 1);
    while (!atomic_load(&shared->go))
        bench_sleep_us(200);
}

static void count_round(struct shared *shared, size_t me)
{
    if (!atomic_load(&shared->stop))
        shared->came[me]++;
}

static void come_in_line(const struct bench_server *server, struct shared *shared, size_t me)
{
    struct lh_client *client = hand_off_open(server->url, NULL, NULL);
    await_go(shared);
    while (!atomic_load(&shared->stop)) {
        hand_off_release(hand_off_acquire(client, key));
        count_round(shared, me);
    }
    lh_close(&client);
}

/* Polls every 100 ms regardless of the reply; or, eager, immediately after its round: then one
 * client enters all the time and the others hardly ever. */
static void poll_for_it(const struct bench_server *server, struct shared *shared, size_t me,
                        bool eager)
{
    struct redis_commands text;
    int file = redis_peer_connect(server->port);
    redis_peer_commands(file, /* key= */ 1000, (size_t)getpid(), /* compares= */ true, &text);
    await_go(shared);
    while (!atomic_load(&shared->stop)) {
        bool came = redis_peer_call(file, text.set, text.set_length, "+OK\r\n");
        if (came) {
            (void)redis_peer_call(file, text.free, text.free_length, ":1\r\n");
            count_round(shared, me);
        }
        if (!came || !eager)
            bench_sleep_us(POLL_MS * 1000L);
    }
    (void)close(file);
}

static void come_by_polling(const struct bench_server *server, struct shared *shared, size_t me)
{
    poll_for_it(server, shared, me, /* eager= */ false);
}

static void come_eagerly(const struct bench_server *server, struct shared *shared, size_t me)
{
    poll_for_it(server, shared, me, /* eager= */ true);
}

typedef void come_in(const struct bench_server *server, struct shared *shared, size_t me);

/* Rounds per second: of all together, and of the client with the fewest. */
static double rate_of(const struct bench_server *server, struct shared *shared, come_in *come,
                      double *out_fewest)
{
    pid_t children[CROWD];
    memset(shared, 0, sizeof *shared);
    for (size_t i = 0; i < CROWD; i++) {
        children[i] = bench_fork();
        if (children[i] == 0) {
            come(server, shared, i);
            _exit(0);
        }
    }
    while (atomic_load(&shared->ready) < CROWD)
        bench_sleep_us(200);
    double from = rounds_seconds();
    atomic_store(&shared->go, true);
    bench_sleep_us(CROWD_MS * 1000L);
    atomic_store(&shared->stop, true);
    double came = 0, took = rounds_seconds() - from;
    *out_fewest = HUGE_VAL;
    for (size_t i = 0; i < CROWD; i++) {
        bench_wait(children[i]);
        double rate = (double)shared->came[i] / took;
        came += rate;
        *out_fewest = rate < *out_fewest ? rate : *out_fewest;
    }
    return came;
}

void bench_redis_crowd(const struct bench_server *server)
{
    double line[ROUNDS], polls[ROUNDS], eager[ROUNDS], least[3][ROUNDS];
    struct shared *shared = bench_share(sizeof *shared);
    for (size_t i = 0; i < ROUNDS; i++) {
        line[i] = rate_of(server, shared, come_in_line, &least[0][i]);
        polls[i] = rate_of(server, shared, come_by_polling, &least[1][i]);
        eager[i] = rate_of(server, shared, come_eagerly, &least[2][i]);
    }
    printf("== redis: sixteen processes want one key all the time\n");
    rounds_say("ours, in line", line, "rounds/s");
    rounds_say("each asks every 100 ms", polls, "rounds/s");
    rounds_aim(line, polls, AT_LEAST, 5);
    rounds_say("each asks so, but at once after its round", eager, "rounds/s");
    rounds_ratio(line, eager);
    rounds_say("the one with the fewest: ours", least[0], "rounds/s");
    rounds_say("asking every 100 ms", least[1], "rounds/s");
    rounds_say("asking at once after its round", least[2], "rounds/s");
    bench_unshare(shared, sizeof *shared);
}
