/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks on a Redis server through the public calls, alternating with the usual commands on the same
 * server: bench_redis redis://127.0.0.1:PORT. See rounds.h for the statistics.
 */
#include "bench_redis.h"

#include "leasehold.h"
#include "redis_bare.h"
#include "redis_peer.h"
#include "rounds.h"

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { FLIGHT_MOST = 64, PAIRS_EACH = 1500, TIMEOUT_MS = 10000 };

/* One operation in flight in an event loop. */
struct in_flight {
    struct lh_client *client;
    struct lh_request *request;
    char key[33];
    size_t *begun, *done, pairs;
};

static struct lh_client *open_client(const char *url, bool own_loop)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    struct lh_client *client = NULL;
    struct lh_report report = LH_REPORT_INIT;
    options.own_loop = own_loop;
    if (lh_open(url, &options, &client, &report) != LH_OK)
        rounds_fail("lh_open", report.text);
    return client;
}

static void start_pair(struct in_flight *in_flight);

static void on_released(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct in_flight *in_flight = user;
    (void)lease;
    if (report->outcome != LH_OK)
        rounds_fail("release", report->text);
    ++*in_flight->done;
    if (*in_flight->begun < in_flight->pairs)
        start_pair(in_flight);
}

static void on_held(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    const struct in_flight *in_flight = user;
    lh_request_free(in_flight->request);
    if (report->outcome != LH_OK || lh_release_start(&lease, on_released, user) != LH_OK)
        rounds_fail("acquire", report->text);
}

static void start_pair(struct in_flight *in_flight)
{
    struct lh_report report = LH_REPORT_INIT;
    ++*in_flight->begun;
    in_flight->request =
        lh_acquire_start(in_flight->client, in_flight->key, NULL, on_held, in_flight, &report);
    if (in_flight->request == NULL)
        rounds_fail("lh_acquire_start", report.text);
}

/* By the calls for event loops, N in flight in one thread. */
static double loop_pair_us(struct lh_client *client, size_t together, size_t pairs)
{
    struct in_flight all_in_flight[FLIGHT_MOST];
    struct pollfd news = {.fd = lh_fd(client), .events = POLLIN};
    size_t begun = 0, done = 0;
    double from = rounds_seconds();
    for (size_t i = 0; i < together; i++) {
        all_in_flight[i] =
            (struct in_flight){.client = client, .begun = &begun, .done = &done, .pairs = pairs};
        (void)snprintf(all_in_flight[i].key, sizeof all_in_flight[i].key, "our-%028zu", i);
        start_pair(&all_in_flight[i]);
    }
    for (;;) {
        (void)lh_step(client);
        if (done == pairs)
            return (rounds_seconds() - from) * 1e6 / (double)pairs;
        if (poll(&news, 1, TIMEOUT_MS) <= 0)
            rounds_fail("lh_step", "nothing comes");
    }
}

/* By the blocking calls, one after the other. */
static double blocking_pair_us(struct lh_client *client, size_t pairs)
{
    double from = rounds_seconds();
    for (size_t i = 0; i < pairs; i++) {
        struct lh_lease *lease = NULL;
        struct lh_report report = LH_REPORT_INIT;
        if (lh_acquire(client, "our-0000000000000000000000000000", NULL, &lease, &report) !=
                LH_OK ||
            lh_release(&lease, &report) != LH_OK)
            rounds_fail("a pair", report.text);
    }
    return (rounds_seconds() - from) * 1e6 / (double)pairs;
}

/* The limit of this server; each line is compared with the peer's. */
static void say_bounds(const struct bench_server *server, size_t together, size_t pairs,
                       struct redis_peer *peer)
{
    static const char *const names[] = {[BARE_TOKEN] = "bound: the least script that gives a token",
                                        [BARE_OURS] = "bound: our commands in a bare script"};
    for (enum redis_bare_kind kind = BARE_TOKEN; kind <= BARE_OURS; kind++) {
        double most[ROUNDS], theirs[ROUNDS];
        struct redis_bare *bare = redis_bare_open(server->port, kind, together);
        (void)redis_bare_pair_us(bare, pairs / 2);
        for (size_t i = 0; i < ROUNDS; i++) {
            most[i] = 1e6 / redis_bare_pair_us(bare, pairs / 2);
            theirs[i] = 1e6 / redis_peer_pair_us(peer, pairs / 2);
        }
        rounds_say(names[kind], most, "pairs/s");
        rounds_ratio(most, theirs);
        redis_bare_close(&bare);
    }
}

static void one_at_a_time(const struct bench_server *server)
{
    double ours[ROUNDS], threaded[ROUNDS], theirs[ROUNDS];
    struct redis_peer *peer = redis_peer_open(server->port, /* clients= */ 1, /* compares= */ true);
    struct lh_client *client = open_client(server->url, /* own_loop= */ true);
    struct lh_client *with_thread = open_client(server->url, /* own_loop= */ false);
    (void)blocking_pair_us(client, PAIRS_EACH);
    (void)blocking_pair_us(with_thread, PAIRS_EACH);
    for (size_t i = 0; i < ROUNDS; i++) {
        ours[i] = 1e6 / blocking_pair_us(client, PAIRS_EACH);
        theirs[i] = 1e6 / redis_peer_pair_us(peer, PAIRS_EACH);
        threaded[i] = 1e6 / blocking_pair_us(with_thread, PAIRS_EACH);
    }
    printf("== redis: acquire+release, one client, one request at a time\n");
    rounds_say("ours, blocking calls", ours, "pairs/s");
    rounds_say("SET NX PX, compare and delete", theirs, "pairs/s");
    rounds_aim(ours, theirs, AT_LEAST, 0.9);
    rounds_say("ours with a thread of its own", threaded, "pairs/s");
    rounds_ratio(threaded, theirs);
    lh_close(&with_thread);
    lh_close(&client);
    say_bounds(server, /* together= */ 1, PAIRS_EACH, peer);
    redis_peer_close(&peer);
}

static void many_at_once(const struct bench_server *server, size_t together, double aim)
{
    double ours[ROUNDS], theirs[ROUNDS];
    size_t pairs = (size_t)PAIRS_EACH * 8;
    struct redis_peer *peer = redis_peer_open(server->port, together, /* compares= */ true);
    struct lh_client *client = open_client(server->url, /* own_loop= */ true);
    (void)loop_pair_us(client, together, pairs);
    for (size_t i = 0; i < ROUNDS; i++) {
        ours[i] = 1e6 / loop_pair_us(client, together, pairs);
        theirs[i] = 1e6 / redis_peer_pair_us(peer, pairs);
    }
    printf("== redis: acquire+release, %zu in flight by the event-loop calls of one client,\n"
           "   against as many clients that await each answer\n",
           together);
    rounds_say("ours", ours, "pairs/s");
    rounds_say("SET NX PX, compare and delete", theirs, "pairs/s");
    if (aim > 0)
        rounds_aim(ours, theirs, AT_LEAST, aim);
    else
        rounds_ratio(ours, theirs);
    lh_close(&client);
    say_bounds(server, together, pairs, peer);
    redis_peer_close(&peer);
}

void bench_redis_pairs(const struct bench_server *server)
{
    one_at_a_time(server);
    many_at_once(server, /* together= */ 16, /* aim= */ 0);
    many_at_once(server, /* together= */ FLIGHT_MOST, /* aim= */ 1.2);
}

int main(int count, char **argv)
{
    if (count != 2 || strrchr(argv[1], ':') == NULL)
        rounds_fail("usage", "bench_redis redis://127.0.0.1:PORT");
    struct bench_server server = {.port = strrchr(argv[1], ':') + 1, .url = argv[1]};
    bench_redis_pairs(&server);
    bench_redis_hand_over(&server);
    bench_redis_crowd(&server);
    return 0;
}
