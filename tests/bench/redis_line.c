/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More than one process wants the same key of a Redis server: how long it takes from one to the
 * next, and how many come in where sixteen want to, beside sixteen that ask again every 100 ms.
 */
#include "bench_redis.h"

#include "leasehold.h"
#include "redis_peer.h"
#include "rounds.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HANDOVERS = 100, CROWD = 16, CROWD_MS = 1000, POLL_MS = 100, SETTLE_US = 1000 };

static const char key[] = "one key that everybody wants";
static const char cheapest_write[] = "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$1\r\ny\r\n";

struct shared {
    _Atomic unsigned ready;
    _Atomic bool go, stop;
    uint64_t came[CROWD]; /* rounds of each */
    _Atomic bool waits;   /* the other one is in line */
    double let_go_at;
    double handed_us[ROUNDS * HANDOVERS], written_us[ROUNDS * HANDOVERS];
};

static struct shared *share(void)
{
    int file = memfd_create("shared", MFD_CLOEXEC);
    void *page = MAP_FAILED;
    if (file >= 0 && ftruncate(file, sizeof(struct shared)) == 0)
        page = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, file,
                    /* offset= */ 0);
    if (page == MAP_FAILED)
        rounds_fail("share", strerror(errno));
    (void)close(file);
    return page;
}

static void sleep_us(long us)
{
    struct timespec length = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    (void)nanosleep(&length, NULL);
}

static pid_t fork_child(void)
{
    pid_t parent = getpid(), child = fork();
    if (child < 0)
        rounds_fail("fork", strerror(errno));
    if (child == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent))
        _exit(1);
    return child;
}

static void await_child(pid_t child)
{
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0)
        rounds_fail("a process of the benchmark", "did not end well");
}

static void note_waiting(void *user, const struct lh_event *event)
{
    struct shared *shared = user;
    if (event->kind == LH_EVENT_WAITING)
        atomic_store(&shared->waits, true);
}

static struct lh_client *sit_down(const struct bench_server *server, struct shared *shared)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    struct lh_client *client = NULL;
    struct lh_report report;
    options.own_loop = true;
    options.on_event = note_waiting;
    options.user = shared;
    if (lh_open(server->url, &options, &client, &report) != LH_OK)
        rounds_fail("lh_open", report.text);
    return client;
}

static struct lh_lease *take(struct lh_client *client)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *lease = NULL;
    struct lh_report report;
    options.wait_ms = LH_WAIT_FOREVER;
    if (lh_acquire(client, key, &options, &lease, &report) != LH_OK)
        rounds_fail("lh_acquire", report.text);
    return lease;
}

static void give(struct lh_lease *lease)
{
    struct lh_report report;
    if (lh_release(&lease, &report) != LH_OK)
        rounds_fail("lh_release", report.text);
}

/* ---- from one to the next ---- */

static void swap_word(int partner, bool hears)
{
    char word = 'w';
    if ((hears ? read(partner, &word, 1) : write(partner, &word, 1)) != 1)
        rounds_fail("hand-over", "the other process is gone");
}

/* The one who gives sees that the other one waits, and lets it fall asleep. */
static void give_over(struct shared *shared, int partner, struct lh_lease *lease)
{
    while (!atomic_load(&shared->waits))
        (void)sched_yield();
    sleep_us(SETTLE_US);
    atomic_store(&shared->waits, false);
    shared->let_go_at = rounds_seconds();
    give(lease);
    swap_word(partner, /* hears= */ true);
}

static void write_cheaply(int file, double *out_us)
{
    sleep_us(SETTLE_US);
    double from = rounds_seconds();
    (void)redis_peer_call(file, cheapest_write, sizeof cheapest_write - 1, "+OK\r\n");
    *out_us = (rounds_seconds() - from) * 1e6;
}

/* Both play the same rounds and hold by turns. */
static void relay(const struct bench_server *server, struct shared *shared, int me, int partner)
{
    struct lh_client *client = sit_down(server, shared);
    int file = redis_peer_connect(server->port);
    struct lh_lease *lease = NULL;
    if (me == 0)
        lease = take(client);
    swap_word(partner, /* hears= */ me == 1);
    for (int i = 0; i < ROUNDS * HANDOVERS; i++) {
        if (i % 2 == me) {
            give_over(shared, partner, lease);
            write_cheaply(file, &shared->written_us[i]);
        } else {
            lease = take(client);
            shared->handed_us[i] = (rounds_seconds() - shared->let_go_at) * 1e6;
            swap_word(partner, /* hears= */ false);
        }
    }
    if (ROUNDS * HANDOVERS % 2 == me)
        give(lease);
    (void)close(file);
    lh_close(&client);
}

void bench_redis_hand_over(const struct bench_server *server)
{
    int streams[2];
    double handed[ROUNDS], written[ROUNDS];
    struct shared *shared = share();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, streams) != 0)
        rounds_fail("socketpair", strerror(errno));
    pid_t child = fork_child();
    relay(server, shared, child == 0 ? 1 : 0, streams[child == 0 ? 1 : 0]);
    if (child == 0)
        _exit(0);
    await_child(child);
    for (size_t i = 0; i < ROUNDS; i++) {
        handed[i] = rounds_share(shared->handed_us + i * HANDOVERS, HANDOVERS, 0.5);
        written[i] = rounds_share(shared->written_us + i * HANDOVERS, HANDOVERS, 0.5);
    }
    printf("== redis: a lock goes from one process to the next in line\n");
    rounds_say("from release to held (median of a round)", handed, "us");
    rounds_say("the cheapest write (SET), one round trip", written, "us");
    rounds_aim(handed, written, AT_MOST, 2);
    (void)close(streams[0]);
    (void)close(streams[1]);
    (void)munmap(shared, sizeof *shared);
}

/* ---- a crowd ---- */

static void await_go(struct shared *shared)
{
    atomic_fetch_add(&shared->ready, 1);
    while (!atomic_load(&shared->go))
        sleep_us(200);
}

static void count_round(struct shared *shared, size_t me)
{
    if (!atomic_load(&shared->stop))
        shared->came[me]++;
}

static void come_in_line(const struct bench_server *server, struct shared *shared, size_t me)
{
    struct lh_client *client = sit_down(server, shared);
    await_go(shared);
    while (!atomic_load(&shared->stop)) {
        give(take(client));
        count_round(shared, me);
    }
    lh_close(&client);
}

/* Asks every 100 ms whatever it heard; or, eager, again at once after its round: then one of them
 * comes in all the time and the others hardly ever. */
static void poll_for_it(const struct bench_server *server, struct shared *shared, size_t me,
                        bool eager)
{
    struct redis_words words;
    int file = redis_peer_connect(server->port);
    redis_peer_words(file, /* key= */ 1000, (size_t)getpid(), /* compares= */ true, &words);
    await_go(shared);
    while (!atomic_load(&shared->stop)) {
        bool came = redis_peer_call(file, words.set, words.set_length, "+OK\r\n");
        if (came) {
            (void)redis_peer_call(file, words.free, words.free_length, ":1\r\n");
            count_round(shared, me);
        }
        if (!came || !eager)
            sleep_us(POLL_MS * 1000L);
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

/* Rounds a second: of all together, and of the one who had the fewest. */
static double rate_of(const struct bench_server *server, struct shared *shared, come_in *come,
                      double *out_fewest)
{
    pid_t children[CROWD];
    memset(shared, 0, sizeof *shared);
    for (size_t i = 0; i < CROWD; i++) {
        children[i] = fork_child();
        if (children[i] == 0) {
            come(server, shared, i);
            _exit(0);
        }
    }
    while (atomic_load(&shared->ready) < CROWD)
        sleep_us(200);
    double from = rounds_seconds();
    atomic_store(&shared->go, true);
    sleep_us(CROWD_MS * 1000L);
    atomic_store(&shared->stop, true);
    double came = 0, took = rounds_seconds() - from;
    *out_fewest = HUGE_VAL;
    for (size_t i = 0; i < CROWD; i++) {
        await_child(children[i]);
        double rate = (double)shared->came[i] / took;
        came += rate;
        *out_fewest = rate < *out_fewest ? rate : *out_fewest;
    }
    return came;
}

void bench_redis_crowd(const struct bench_server *server)
{
    double line[ROUNDS], polls[ROUNDS], eager[ROUNDS], least[3][ROUNDS];
    struct shared *shared = share();
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
    (void)munmap(shared, sizeof *shared);
}
