/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short histories of a few processes on one or two keys, with leases that expire, holders that are
 * broken, and kills. Each process logs its requests and replies; together they must be
 * linearizable. A round is a history. With --server, the server is killed and started again in
 * every eighth one. At the end the store returns wrong replies on purpose, and
 * the checker has to detect them.
 */
#include "oplog.h"
#include "faulty_driver.h"
#include "linear_text.h"
#include "fixture.h"
#include "server_program.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    CLIENTS_MOST = 5,
    CLIENTS_LEAST = 3,
    KEYS = 2,
    TIMEOUT_MS = 10000,
    SLACK_US = 2000, /* the store counts whole milliseconds */
    LONG_TTL_MS = 20000,
    DEFECT_ROUNDS = 40, /* histories for each fault */
    BRINKS = 4,         /* renewals at the last moment, in such a history */
    NEAR_US = 800,
    SERVER_EVERY = 8, /* histories: the server is killed */
    SHOWN = 1,        /* history that is not linearizable, verbatim */
};

/* Parameters of one history. */
struct setting {
    size_t clients, keys;
    int64_t ttl_ms;
    bool short_ttl;
    bool brinks; /* one client renews at the last moment, while others query */
    _Atomic int64_t ends_us;
    char names[KEYS][32];
};

struct client {
    uint64_t session, seed;
    _Atomic uint64_t done; /* the last history it has played */
    struct oplog oplog;
};

struct shared {
    _Atomic uint64_t number; /* of the next history */
    struct setting setting;
    struct client clients[CLIENTS_MOST];
};

struct figures {
    uint64_t histories, judged, spoiled, undecided, refused, operations, unknown, kills, stray;
    uint64_t server_kills;
    uint64_t kinds[LINEAR_CLEAR + 1], expiries;
    int64_t began_us;
};

/* Clients that died in a history. */
struct deaths {
    bool dead[CLIENTS_MOST];
    bool of_server; /* it is to be killed; afterwards: it was, and started again */
    uint64_t kills, stray;
};

/* One process in one history. */
struct player {
    struct shared *shared;
    struct client *client;
    struct live *live;
    struct random random;
    uint64_t tokens[KEYS]; /* its last grant */
};

static int64_t up_to(struct player *player, int64_t most)
{
    return (int64_t)random_below(&player->random, (uint64_t)most + 1);
}

static void acquire(struct player *player, size_t key)
{
    const struct setting *setting = &player->shared->setting;
    struct live_request wanted = {
        .key = setting->names[key], .ttl_ms = setting->ttl_ms, .poll_ms = 50};
    if (up_to(player, 2) == 0)
        wanted.wait_ms = 1 + up_to(player, 8);
    if (live_acquire(player->live, &wanted) != OUTCOME_OK)
        return;
    player->tokens[key] = live_lease(player->live)->token;
    bool stays = up_to(player, 1) == 0;
    if (!stays) {
        live_forget(player->live);
        return;
    }
    (void)live_work(player->live, setting->short_ttl ? up_to(player, setting->ttl_ms) : 0);
    (void)live_release(player->live);
}

static void play_operation(struct player *player)
{
    const struct setting *setting = &player->shared->setting;
    size_t key = random_below(&player->random, setting->keys);
    const char *name = setting->names[key];
    uint64_t token = player->tokens[key];
    int64_t what = up_to(player, 99);
    player->client->oplog.key = name;
    if (setting->short_ttl && up_to(player, 2) == 0)
        fixture_pause_us(up_to(player, setting->ttl_ms * 1000));
    if (what < 25)
        (void)live_verb(player->live, VERB_QUERY, name, /* token= */ 0, setting->ttl_ms);
    else if (what < 30)
        (void)live_verb(player->live, VERB_BREAK, name, /* token= */ 0, setting->ttl_ms);
    else if (what < 50 && token != 0)
        (void)live_verb(player->live, VERB_RENEW, name, token, setting->ttl_ms);
    else if (what < 70 && token != 0)
        (void)live_verb(player->live, VERB_RELEASE, name, token, setting->ttl_ms);
    else
        acquire(player, key);
}

/* Holds the first key, and renews it just before it expires. */
static void renew_at_brink(struct player *player)
{
    struct setting *setting = &player->shared->setting;
    struct live_request wanted = {.key = setting->names[0], .ttl_ms = setting->ttl_ms};
    player->client->oplog.key = wanted.key;
    bool held = live_acquire(player->live, &wanted) == OUTCOME_OK;
    const struct lease *lease = live_lease(player->live);
    uint64_t token = lease->token;
    int64_t ends_us = (lease->start_ms + setting->ttl_ms) * 1000;
    live_forget(player->live);
    for (int i = 0; i < BRINKS && held; i++) {
        atomic_store(&setting->ends_us, ends_us);
        fixture_pause_us(ends_us - NEAR_US - fixture_now_us());
        fixture_spin_us(up_to(player, NEAR_US));
        ends_us = fixture_now_us() + setting->ttl_ms * 1000;
        held =
            live_verb(player->live, VERB_RENEW, wanted.key, token, setting->ttl_ms) == OUTCOME_OK;
    }
    atomic_store(&setting->ends_us, -1);
}

/* Queries it around those moments; the last client keeps the store busy with another key. */
static void look_at_brink(struct player *player, bool writes)
{
    enum { LOOKS = OPLOG_MAX / BRINKS };
    struct setting *setting = &player->shared->setting;
    int64_t seen_us = 0;
    for (int left = 0; seen_us >= 0;) {
        int64_t ends_us = atomic_load(&setting->ends_us);
        left = ends_us != seen_us ? LOOKS / 2 : left;
        seen_us = ends_us;
        int64_t away_us = ends_us - fixture_now_us();
        if (left == 0 || away_us > NEAR_US) {
            fixture_pause_us(50);
            continue;
        }
        left--;
        player->client->oplog.key = setting->names[writes ? 1 : 0];
        if (writes)
            acquire(player, 1);
        else
            (void)live_verb(player->live, VERB_QUERY, setting->names[0], 0, setting->ttl_ms);
    }
}

static void play_brinks(struct player *player, size_t child)
{
    if (child == 0)
        renew_at_brink(player);
    else
        look_at_brink(player, /* writes= */ child + 1 == player->shared->setting.clients);
}

static void play_client(struct fixture *fixture, size_t child)
{
    struct shared *shared = fixture->shared;
    struct player player = {.shared = shared, .client = &shared->clients[child]};
    uint64_t played = atomic_load(&player.client->done);
    player.live = fixture_live(fixture, player.client->session, TIMEOUT_MS);
    live_watch(player.live, oplog_write, &player.client->oplog);
    for (;;) {
        uint64_t number = atomic_load(&shared->number);
        if (number == played) {
            fixture_pause_us(50);
            continue;
        }
        played = number;
        player.random.state = player.client->seed;
        player.tokens[0] = player.tokens[1] = 0;
        if (shared->setting.brinks && child < shared->setting.clients)
            play_brinks(&player, child);
        int64_t operations = child < shared->setting.clients ? 2 + up_to(&player, 4) : 0;
        for (int64_t i = 0; i < operations && !shared->setting.brinks; i++)
            play_operation(&player);
        atomic_store(&player.client->done, number);
    }
}

static void start_client(struct fixture *fixture, size_t child)
{
    struct shared *shared = fixture->shared;
    shared->clients[child].session = fixture_session(fixture);
    atomic_store(&shared->clients[child].done, atomic_load(&shared->number));
    fixture_start(fixture, child, play_client);
}

static void set_up(struct fixture *fixture, uint64_t number)
{
    struct shared *shared = fixture->shared;
    struct setting *setting = &shared->setting;
    struct random *random = &fixture->random;
    setting->clients = CLIENTS_LEAST + random_below(random, CLIENTS_MOST - CLIENTS_LEAST + 1);
    setting->keys = 1 + random_below(random, KEYS);
    setting->short_ttl = random_below(random, 3) == 0;
    setting->ttl_ms =
        setting->short_ttl ? 15 + (int64_t)random_below(random, 20) : (int64_t)LONG_TTL_MS;
    setting->brinks = setting->short_ttl && random_below(random, 3) == 0;
    atomic_store(&setting->ends_us, 0);
    for (size_t i = 0; i < KEYS; i++)
        (void)snprintf(setting->names[i], sizeof setting->names[i], "%" PRIu64 "/%zu", number, i);
    for (size_t i = 0; i < CLIENTS_MOST; i++) {
        shared->clients[i].seed = random_next(random);
        oplog_init(&shared->clients[i].oplog, (int)i);
    }
}

/* Kills the victim when its time has come, and reaps those that exited. */
static void watch_over(struct fixture *fixture, size_t victim, int64_t kill_at_us,
                       struct deaths *deaths)
{
    struct shared *shared = fixture->shared;
    if (victim < CLIENTS_MOST && !deaths->dead[victim] && fixture_now_us() >= kill_at_us) {
        deaths->kills += fixture_kill(fixture, victim) ? 1 : 0;
        deaths->dead[victim] = true;
    }
    for (size_t i = 0; i < CLIENTS_MOST; i++) {
        if (deaths->dead[i] || fixture_lives(fixture, i))
            continue;
        deaths->stray++;
        deaths->dead[i] = true;
        atomic_store(&shared->setting.ends_us, -1);
    }
}

/* Until every client has played, or is dead. */
static void let_play(struct fixture *fixture, uint64_t number, bool kills, struct deaths *deaths)
{
    struct shared *shared = fixture->shared;
    size_t victim = kills ? random_below(&fixture->random, shared->setting.clients) : CLIENTS_MOST;
    int64_t kill_at_us = fixture_now_us() + (int64_t)random_below(&fixture->random, 6000);
    atomic_store(&shared->number, number);
    if (deaths->of_server) {
        fixture_pause_us((int64_t)random_below(&fixture->random, 6000));
        deaths->of_server = server_kill(fixture) && server_start(fixture);
    }
    for (size_t i = 0; i < CLIENTS_MOST && !fixture_late(fixture);) {
        if (deaths->dead[i] || atomic_load(&shared->clients[i].done) == number)
            i++;
        else
            fixture_pause_us(50);
        watch_over(fixture, victim, kill_at_us, deaths);
    }
}

static size_t gather(struct fixture *fixture, const struct deaths *deaths, struct linear_op *ops,
                     struct figures *figures)
{
    struct shared *shared = fixture->shared;
    size_t count = 0;
    bool spoiled = false;
    for (size_t i = 0; i < CLIENTS_MOST; i++) {
        const struct oplog *oplog = &shared->clients[i].oplog;
        spoiled = spoiled || oplog->spoiled || (deaths->dead[i] && oplog->leaving);
        for (size_t j = 0; j < oplog->count; j++) {
            ops[count++] = oplog->ops[j];
            figures->kinds[oplog->ops[j].kind]++;
            figures->unknown += oplog->ops[j].result == LINEAR_UNKNOWN ? 1 : 0;
        }
    }
    figures->operations += count;
    figures->spoiled += spoiled ? 1 : 0;
    return spoiled ? 0 : count;
}

/* True when the history is linearizable. */
static bool judge(const struct linear_op *ops, size_t count, bool quiet, struct figures *figures)
{
    struct linear_report finding;
    struct linear_options options = LINEAR_OPTIONS_DEFAULT;
    options.slack_ms = SLACK_US;
    enum linear_verdict verdict = linear_check(ops, count, &options, &finding);
    figures->judged++;
    figures->undecided += verdict == LINEAR_UNDECIDED ? 1 : 0;
    if (verdict == LINEAR_ACCEPTED || verdict == LINEAR_UNDECIDED)
        return true;
    figures->refused++;
    if (quiet || figures->refused > SHOWN)
        return false;
    fixture_print("no order (times in us): %s", finding.text);
    for (size_t i = 0; i < count; i++) {
        char line[200];
        if (strcmp(ops[i].key, finding.key) != 0)
            continue;
        linear_text_op(&ops[i], i, line, sizeof line);
        fixture_print("  %s", line);
    }
    return false;
}

static void play_history(struct fixture *fixture, bool lied_to, struct figures *figures)
{
    static struct linear_op ops[CLIENTS_MOST * OPLOG_MAX];
    struct shared *shared = fixture->shared;
    uint64_t number = atomic_load(&shared->number) + 1;
    set_up(fixture, number);
    bool kills = !lied_to && !shared->setting.brinks && random_below(&fixture->random, 3) == 0;
    bool restarts = fixture->server != NULL && !lied_to && number % SERVER_EVERY == 0;
    struct deaths deaths = {.of_server = restarts};
    let_play(fixture, number, kills, &deaths);
    figures->histories++;
    figures->expiries += shared->setting.short_ttl ? 1 : 0;
    figures->kills += deaths.kills;
    figures->server_kills += deaths.of_server ? 1 : 0;
    figures->stray += deaths.stray;
    size_t count = gather(fixture, &deaths, ops, figures);
    if (count > 0)
        (void)judge(ops, count, lied_to, figures);
    for (size_t i = 0; i < CLIENTS_MOST; i++) {
        if (!deaths.dead[i])
            continue;
        (void)fixture_kill(fixture, i);
        start_client(fixture, i);
    }
}

static void run_defects(struct fixture *fixture)
{
    static const char *const names[DEFECTS] = {[DEFECT_SWAPPED] = "a swap that never was",
                                               [DEFECT_OLD_READ] = "an old record as a new one"};
    const struct store_driver *honest = fixture->driver;
    for (int defect = 0; defect < DEFECTS; defect++) {
        struct figures figures = {0};
        fixture_name_store(fixture, names[defect]);
        fixture->driver = faulty_driver_prepare((enum defect)defect, honest);
        for (size_t child = 0; child < CLIENTS_MOST; child++) {
            (void)fixture_kill(fixture, child);
            start_client(fixture, child);
        }
        for (int i = 0; i < DEFECT_ROUNDS && !fixture_late(fixture); i++)
            play_history(fixture, /* lied_to= */ true, &figures);
        fixture_case(fixture, figures.refused > 0, "noticed: %s (in %" PRIu64 " of %d histories)",
                     names[defect], figures.refused, DEFECT_ROUNDS);
    }
    fixture->driver = honest;
}

static void report(struct fixture *fixture, const struct figures *figures)
{
    int64_t took_us = fixture_now_us() - figures->began_us;
    fixture_print("histories %" PRIu64 ", judged %" PRIu64 ", left out %" PRIu64
                  ", undecided %" PRIu64 ", %" PRId64 " us each",
                  figures->histories, figures->judged, figures->spoiled, figures->undecided,
                  took_us / (int64_t)fixture->rounds);
    fixture_print("operations %" PRIu64 ", without an answer %" PRIu64 ", kills %" PRIu64
                  ", histories with leases that run out %" PRIu64,
                  figures->operations, figures->unknown, figures->kills, figures->expiries);
    fixture_print("acquire %" PRIu64 ", renew %" PRIu64 ", release %" PRIu64 ", look %" PRIu64
                  ", break %" PRIu64,
                  figures->kinds[LINEAR_ACQUIRE], figures->kinds[LINEAR_RENEW],
                  figures->kinds[LINEAR_RELEASE], figures->kinds[LINEAR_STATUS],
                  figures->kinds[LINEAR_BREAK_NOW]);
    fixture_case(fixture, figures->histories == fixture->rounds, "%" PRIu64 " histories in time",
                 figures->histories);
    fixture_case(fixture, figures->stray == 0, "nobody ended by itself (%" PRIu64 ")",
                 figures->stray);
    fixture_case(fixture, figures->refused == 0, "each has an order (%" PRIu64 " have none)",
                 figures->refused);
    /* A request that the killed server did not answer leaves its history out. */
    uint64_t least = fixture->server != NULL ? fixture->rounds / 2 : fixture->rounds * 3 / 4;
    fixture_case(fixture, figures->judged > least, "most of them could be judged");
    fixture_case(fixture, figures->undecided <= fixture->rounds / 100, "and were decided");
    if (fixture->server != NULL)
        fixture_case(fixture, figures->server_kills == fixture->rounds / SERVER_EVERY,
                     "the server was killed and started again %" PRIu64 " times",
                     figures->server_kills);
    fixture_case(fixture, figures->kills > 0 && figures->expiries > 0 && figures->unknown > 0,
                 "with kills, lost answers and leases that run out");
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    struct figures figures = {.began_us = fixture_now_us()};
    fixture_open(&fixture, argc, argv, /* rounds= */ 100, /* limit_s= */ 60, /* round_ms= */ 200,
                 sizeof(struct shared));
    for (size_t child = 0; child < CLIENTS_MOST; child++)
        start_client(&fixture, child);
    for (uint64_t round = 0; round < fixture.rounds && !fixture_late(&fixture); round++)
        play_history(&fixture, /* lied_to= */ false, &figures);
    report(&fixture, &figures);
    run_defects(&fixture);
    return fixture_close(&fixture);
}
