/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client reaches a real server (--server) through a proxy that cuts its connection at a byte:
 * of each verb's request and of its reply, at both ends, within, and right after. The client only
 * learns that the connection is gone; its result must be correct all the same. A second client with
 * a direct connection verifies: a reported holder does hold, a released key is free at once, tokens
 * grow, waiters enter, and no call exceeds its timeout. A round is a position of the cut, for each
 * verb and direction.
 */
#include "leasehold.h"
#include "proxy_kit.h"
#include "server_program.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

enum cut_call { ACQUIRE, RENEW, RELEASE, WAIT, CUT_CALLS };
enum way { UP, DOWN, WAYS };
enum {
    TTL_MS = 6000,
    LONGER_MS = 2 * TTL_MS,
    TIMEOUT_MS = 3000,
    TWICE_MS = 2 * TIMEOUT_MS,
    BUSY_MS = 1000, /* allowance of a call on a loaded machine */
    IN_MS = 8000,   /* limit for a waiter to enter: a slow poll and its delay */
    GHOST_MS = TTL_MS + IN_MS,
    KEY = 32,
};

static const char *const way_names[WAYS] = {"up", "down"};

struct play {
    struct fixture *fixture;
    struct proxy_run proxy;
    struct lh_client *cut, *direct; /* the one behind the proxy, and the one that verifies */
    uint64_t number, token;         /* of the key: its own, and its highest */
    char key[KEY];
    unsigned cuts, untrue, late, shrunk;
    uint64_t outcomes[LH_FAILED + 1], carried[WAYS]; /* bytes of the last verb */
    int64_t longest_ms;
};

static void complain(struct play *play, unsigned *count, const char *what,
                     const struct lh_report *report)
{
    ++*count;
    fixture_print("%s: %s: %s", play->key, what, report->text);
}

static struct lh_client *open_client(const char *url)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    struct lh_client *client = NULL;
    options.timeout_ms = TIMEOUT_MS;
    return lh_open(url, &options, &client, NULL) == LH_OK ? client : NULL;
}

/* Of this key: others have tokens of their own. */
static void note_token(struct play *play, const struct lh_lease *lease)
{
    uint64_t token = lh_token(lease);
    if (token <= play->token) {
        play->shrunk++;
        fixture_print("%s: token %" PRIu64 " after %" PRIu64, play->key, token, play->token);
    }
    play->token = token > play->token ? token : play->token;
}

static struct lh_lease *take(struct play *play, struct lh_client *client, int64_t wait_ms,
                             struct lh_report *report)
{
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *lease = NULL;
    options.ttl_ms = TTL_MS;
    options.wait_ms = wait_ms;
    if (lh_acquire(client, play->key, &options, &lease, report) == LH_OK)
        note_token(play, lease);
    return lease;
}

/* ---- the verbs, with the checks of the second client ---- */

static void look_whether_held(struct play *play, uint64_t token)
{
    struct lh_view view = LH_VIEW_INIT;
    struct lh_report report = LH_REPORT_INIT;
    bool seen = lh_status(play->direct, play->key, &view, &report) == LH_OK;
    if (!seen || view.state != LH_HELD || view.token != token)
        complain(play, &play->untrue, "it is not held as was said", &report);
}

/* A key reported as free is free; an unknown grant may last for one TTL. */
static void look_whether_free(struct play *play, bool certain)
{
    struct lh_report report = LH_REPORT_INIT;
    struct lh_lease *lease = take(play, play->direct, certain ? 0 : GHOST_MS, &report);
    if (lease == NULL)
        complain(play, &play->untrue, "it is not free as was said", &report);
    else
        (void)lh_release(&lease, NULL);
}

/* A verb of the first client. *held is its input, and afterwards the grant to release. */
static enum lh_outcome do_acquire(struct play *play, struct lh_lease **held,
                                  struct lh_report *report)
{
    *held = take(play, play->cut, /* wait_ms= */ 0, report);
    if (*held != NULL)
        look_whether_held(play, lh_token(*held));
    return report->outcome;
}

static enum lh_outcome do_renew(struct play *play, struct lh_lease **held, struct lh_report *report)
{
    enum lh_outcome outcome =
        lh_renew(play->cut, play->key, lh_token(*held), /* ttl_ms= */ LONGER_MS, report);
    if (outcome == LH_OK)
        look_whether_held(play, lh_token(*held));
    return outcome;
}

static enum lh_outcome do_release(struct play *play, struct lh_lease **held,
                                  struct lh_report *report)
{
    (void)play;
    return lh_release(held, report);
}

/* Called when the waiter was granted, or failed. */
struct landing {
    _Atomic bool done;
    struct lh_lease *lease;
    struct lh_report report;
};

static void land(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct landing *landing = user;
    landing->lease = lease;
    landing->report = *report;
    atomic_store(&landing->done, true);
}

/* The second client holds, and releases when the first has a queue entry, or has tried. */
static enum lh_outcome do_wait(struct play *play, struct lh_lease **held, struct lh_report *report)
{
    enum { IN_LINE_US = 150000 };
    struct lh_acquire_options options = LH_ACQUIRE_OPTIONS_INIT;
    struct landing landing = {.done = false};
    options.ttl_ms = TTL_MS;
    options.wait_ms = IN_MS;
    struct lh_request *request =
        lh_acquire_start(play->cut, play->key, &options, land, &landing, report);
    if (request == NULL)
        return report->outcome;
    fixture_pause_us(IN_LINE_US);
    (void)lh_release(held, NULL);
    while (!atomic_load(&landing.done))
        fixture_pause_us(500);
    lh_request_free(request);
    *report = landing.report;
    *held = landing.lease;
    if (*held != NULL) {
        note_token(play, *held);
        look_whether_held(play, lh_token(*held));
    }
    return report->outcome;
}

static const struct {
    const char *name;
    enum lh_outcome (*run)(struct play *play, struct lh_lease **held, struct lh_report *report);
    bool needs_held, by_other; /* a lease of the second client */
    int64_t limit_ms;
} cut_calls[CUT_CALLS] = {
    [ACQUIRE] = {"acquire", do_acquire, false, false, TWICE_MS},
    [RENEW] = {"renew", do_renew, true, false, TWICE_MS},
    [RELEASE] = {"release", do_release, true, false, TIMEOUT_MS},
    [WAIT] = {"wait in line", do_wait, true, true, IN_MS + TWICE_MS},
};

/* ---- rounds ---- */

/* One verb on a key of its own; `command` is sent to the proxy just before. */
static void play_once(struct play *play, enum cut_call cut_call, const char *command)
{
    struct lh_report report = {.size = sizeof report, .text = ""};
    struct lh_lease *held = NULL;
    (void)snprintf(play->key, sizeof play->key, "key-%" PRIu64, play->number++);
    play->token = 0;
    if (cut_calls[cut_call].needs_held)
        held = take(play, cut_calls[cut_call].by_other ? play->direct : play->cut, TIMEOUT_MS,
                    &report);
    if (cut_calls[cut_call].needs_held && held == NULL) {
        complain(play, &play->untrue, "a free key is not to be had", &report);
        return;
    }
    (void)proxy_say(&play->proxy, command);
    for (enum way way = 0; way < WAYS; way++)
        play->carried[way] = 0 - proxy_count(&play->proxy, way_names[way]);
    int64_t began_ms = live_now_ms();
    enum lh_outcome outcome = cut_calls[cut_call].run(play, &held, &report);
    int64_t took_ms = live_now_ms() - began_ms;
    play->outcomes[outcome]++;
    if (took_ms > play->longest_ms)
        play->longest_ms = took_ms;
    if (took_ms > cut_calls[cut_call].limit_ms + BUSY_MS)
        complain(play, &play->late, "it lasted too long", &report);
    if (outcome != LH_OK && outcome != LH_UNAVAILABLE)
        complain(play, &play->untrue, "nothing of that kind has happened", &report);
    for (enum way way = 0; way < WAYS; way++)
        play->carried[way] += proxy_count(&play->proxy, way_names[way]);
    if (held != NULL && lh_release(&held, &report) != LH_OK)
        outcome = LH_UNAVAILABLE;
    look_whether_free(play, outcome == LH_OK);
}

/* The ends, the middle, and then random positions. */
static uint64_t place_of(struct play *play, uint64_t round, uint64_t length)
{
    const uint64_t first[] = {1, length, length - 1, length / 2, 2, 3};
    if (round < sizeof first / sizeof first[0] && first[round] > 0)
        return first[round];
    return 1 + random_below(&play->fixture->random, length);
}

static void play_way(struct play *play, enum cut_call cut_call, enum way way)
{
    struct fixture *fixture = play->fixture;
    char command[64];
    play_once(play, cut_call, "pass"); /* measures its length */
    uint64_t length = play->carried[way], rounds = 0;
    unsigned cut_before = play->proxy.did_cut;
    for (; rounds < fixture->rounds && !fixture_late(fixture); rounds++) {
        uint64_t at = place_of(play, rounds, length);
        (void)snprintf(command, sizeof command, "cut %s %" PRIu64, way_names[way], at);
        play_once(play, cut_call, command);
        (void)proxy_say(&play->proxy, "pass");
    }
    play->cuts += play->proxy.did_cut - cut_before;
    fixture_case(fixture, rounds == fixture->rounds && play->proxy.did_cut > cut_before,
                 "%s, cut %s at %" PRIu64 " places of %" PRIu64 " bytes (%u cuts)",
                 cut_calls[cut_call].name, way_names[way], rounds, length,
                 play->proxy.did_cut - cut_before);
}

static void print_results(struct play *play)
{
    struct fixture *fixture = play->fixture;
    for (size_t i = 0; i <= LH_FAILED; i++)
        if (play->outcomes[i] > 0)
            fixture_print("heard %s %" PRIu64, lh_outcome_name((enum lh_outcome)i),
                          play->outcomes[i]);
    fixture_print("cuts %u, the longest call %" PRId64 " ms", play->cuts, play->longest_ms);
    fixture_case(fixture, play->untrue == 0, "what was said is what the other one sees (%u)",
                 play->untrue);
    fixture_case(fixture, play->late == 0, "no call lasted beyond its time (%u)", play->late);
    fixture_case(fixture, play->shrunk == 0, "tokens grew (%u)", play->shrunk);
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    struct play play = {.fixture = &fixture};
    fixture_open(&fixture, argc, argv, /* rounds= */ 4, /* limit_s= */ 60, /* round_ms= */ 30000,
                 /* shared_size= */ 1);
    char through[sizeof fixture.url];
    bool up = fixture.server != NULL &&
              proxy_start(&play.proxy, server_port(&fixture), fixture.seed, /* control= */ NULL) &&
              server_url(&fixture, play.proxy.port, through, sizeof through);
    play.cut = up ? open_client(through) : NULL;
    play.direct = up ? open_client(fixture.url) : NULL;
    fixture_case(&fixture, play.cut != NULL && play.direct != NULL,
                 "server, proxy and clients are there");
    if (play.cut != NULL && play.direct != NULL) {
        play_once(&play, ACQUIRE,
                  "pass"); /* opens the connections, and loads the scripts, which happens once */
        for (enum cut_call cut_call = 0; cut_call < CUT_CALLS; cut_call++)
            for (enum way way = 0; way < WAYS; way++)
                play_way(&play, cut_call, way);
        print_results(&play);
    }
    lh_close(&play.cut);
    lh_close(&play.direct);
    fixture_case(&fixture, proxy_stop(&play.proxy), "the proxy ends in order");
    return fixture_close(&fixture);
}
