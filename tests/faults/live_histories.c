/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short histories of a few processes on one or two keys, with leases that run out, holders that are
 * broken, and kills. Everybody writes down what it asked and heard; all of it must have one order
 * that a correct lock could have given. A round is a history. At the end the store is made to lie,
 * and the checker has to notice.
 */
#include "diary.h"
#include "liar.h"
#include "linear_text.h"
#include "rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    CLIENTS_MOST = 5,
    CLIENTS_LEAST = 3,
    KEYS = 2,
    PATIENCE_MS = 10000,
    SLACK_US = 2000, /* the store counts whole milliseconds */
    LONG_TTL_MS = 20000,
    LIED_TO = 40, /* histories for each lie */
    BRINKS = 4,   /* renewals at the last moment, in a history of such */
    NEAR_US = 800,
    SHOWN = 1, /* history without an order, word for word */
};

/* What one history is like. */
struct setting {
    size_t clients, keys;
    int64_t ttl_ms;
    bool short_ttl;
    bool brinks; /* somebody renews at the last moment, while others look */
    _Atomic int64_t ends_us;
    char names[KEYS][32];
};

struct client {
    uint64_t session, seed;
    _Atomic uint64_t done; /* the last history it has played */
    struct diary diary;
};

struct shared {
    _Atomic uint64_t number; /* of the history that is to be played */
    struct setting setting;
    struct client clients[CLIENTS_MOST];
};

struct figures {
    uint64_t histories, judged, spoiled, undecided, refused, operations, unknown, kills, stray;
    uint64_t kinds[LINEAR_CLEAR + 1], expiries;
    int64_t began_us;
};

/* Who died in a history. */
struct toll {
    bool dead[CLIENTS_MOST];
    uint64_t kills, stray;
};

/* One process in one history. */
struct player {
    struct shared *shared;
    struct client *client;
    struct live *live;
    struct random random;
    uint64_t tokens[KEYS]; /* the last one it was given */
};

static int64_t up_to(struct player *player, int64_t most)
{
    return (int64_t)random_below(&player->random, (uint64_t)most + 1);
}

static void acquire(struct player *player, size_t key)
{
    const struct setting *setting = &player->shared->setting;
    struct live_wish wish = {.key = setting->names[key], .ttl_ms = setting->ttl_ms, .look_ms = 50};
    if (up_to(player, 2) == 0)
        wish.wait_ms = 1 + up_to(player, 8);
    if (live_acquire(player->live, &wish) != OUTCOME_OK)
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
    player->client->diary.key = name;
    if (setting->short_ttl && up_to(player, 2) == 0)
        rig_pause_us(up_to(player, setting->ttl_ms * 1000));
    if (what < 25)
        (void)live_errand(player->live, VERB_LOOK, name, /* token= */ 0, setting->ttl_ms);
    else if (what < 30)
        (void)live_errand(player->live, VERB_BREAK, name, /* token= */ 0, setting->ttl_ms);
    else if (what < 50 && token != 0)
        (void)live_errand(player->live, VERB_RENEW, name, token, setting->ttl_ms);
    else if (what < 70 && token != 0)
        (void)live_errand(player->live, VERB_RELEASE, name, token, setting->ttl_ms);
    else
        acquire(player, key);
}

/* Holds the first key, and renews it when it has all but run out. */
static void renew_at_brink(struct player *player)
{
    struct setting *setting = &player->shared->setting;
    struct live_wish wish = {.key = setting->names[0], .ttl_ms = setting->ttl_ms};
    player->client->diary.key = wish.key;
    bool held = live_acquire(player->live, &wish) == OUTCOME_OK;
    const struct lease *lease = live_lease(player->live);
    uint64_t token = lease->token;
    int64_t ends_us = (lease->start_ms + setting->ttl_ms) * 1000;
    live_forget(player->live);
    for (int i = 0; i < BRINKS && held; i++) {
        atomic_store(&setting->ends_us, ends_us);
        rig_pause_us(ends_us - NEAR_US - rig_now_us());
        rig_spin_us(up_to(player, NEAR_US));
        ends_us = rig_now_us() + setting->ttl_ms * 1000;
        held =
            live_errand(player->live, VERB_RENEW, wish.key, token, setting->ttl_ms) == OUTCOME_OK;
    }
    atomic_store(&setting->ends_us, -1);
}

/* Looks at it around those moments; the last one keeps the store busy with another key. */
static void look_at_brink(struct player *player, bool writes)
{
    enum { LOOKS = DIARY_MAX / BRINKS };
    struct setting *setting = &player->shared->setting;
    int64_t seen_us = 0;
    for (int left = 0; seen_us >= 0;) {
        int64_t ends_us = atomic_load(&setting->ends_us);
        left = ends_us != seen_us ? LOOKS / 2 : left;
        seen_us = ends_us;
        int64_t away_us = ends_us - rig_now_us();
        if (left == 0 || away_us > NEAR_US) {
            rig_pause_us(50);
            continue;
        }
        left--;
        player->client->diary.key = setting->names[writes ? 1 : 0];
        if (writes)
            acquire(player, 1);
        else
            (void)live_errand(player->live, VERB_LOOK, setting->names[0], 0, setting->ttl_ms);
    }
}

static void play_brinks(struct player *player, size_t seat)
{
    if (seat == 0)
        renew_at_brink(player);
    else
        look_at_brink(player, /* writes= */ seat + 1 == player->shared->setting.clients);
}

static void play_client(struct rig *rig, size_t seat)
{
    struct shared *shared = rig->shared;
    struct player player = {.shared = shared, .client = &shared->clients[seat]};
    uint64_t played = atomic_load(&player.client->done);
    player.live = rig_live(rig, player.client->session, PATIENCE_MS);
    live_watch(player.live, diary_write, &player.client->diary);
    for (;;) {
        uint64_t number = atomic_load(&shared->number);
        if (number == played) {
            rig_pause_us(50);
            continue;
        }
        played = number;
        player.random.state = player.client->seed;
        player.tokens[0] = player.tokens[1] = 0;
        if (shared->setting.brinks && seat < shared->setting.clients)
            play_brinks(&player, seat);
        int64_t operations = seat < shared->setting.clients ? 2 + up_to(&player, 4) : 0;
        for (int64_t i = 0; i < operations && !shared->setting.brinks; i++)
            play_operation(&player);
        atomic_store(&player.client->done, number);
    }
}

static void seat_client(struct rig *rig, size_t seat)
{
    struct shared *shared = rig->shared;
    shared->clients[seat].session = rig_session(rig);
    atomic_store(&shared->clients[seat].done, atomic_load(&shared->number));
    rig_start(rig, seat, play_client);
}

static void set_up(struct rig *rig, uint64_t number)
{
    struct shared *shared = rig->shared;
    struct setting *setting = &shared->setting;
    struct random *random = &rig->random;
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
        diary_init(&shared->clients[i].diary, (int)i);
    }
}

/* Kills the victim when its time has come, and finds those that ended by themselves. */
static void watch_over(struct rig *rig, size_t victim, int64_t kill_at_us, struct toll *toll)
{
    struct shared *shared = rig->shared;
    if (victim < CLIENTS_MOST && !toll->dead[victim] && rig_now_us() >= kill_at_us) {
        toll->kills += rig_kill(rig, victim) ? 1 : 0;
        toll->dead[victim] = true;
    }
    for (size_t i = 0; i < CLIENTS_MOST; i++) {
        if (toll->dead[i] || rig_lives(rig, i))
            continue;
        toll->stray++;
        toll->dead[i] = true;
        atomic_store(&shared->setting.ends_us, -1);
    }
}

/* Until everybody has played, or is dead. */
static void let_play(struct rig *rig, uint64_t number, bool kills, struct toll *toll)
{
    struct shared *shared = rig->shared;
    size_t victim = kills ? random_below(&rig->random, shared->setting.clients) : CLIENTS_MOST;
    int64_t kill_at_us = rig_now_us() + (int64_t)random_below(&rig->random, 6000);
    atomic_store(&shared->number, number);
    for (size_t i = 0; i < CLIENTS_MOST && !rig_late(rig);) {
        if (toll->dead[i] || atomic_load(&shared->clients[i].done) == number)
            i++;
        else
            rig_pause_us(50);
        watch_over(rig, victim, kill_at_us, toll);
    }
}

static size_t gather(struct rig *rig, const struct toll *toll, struct linear_op *ops,
                     struct figures *figures)
{
    struct shared *shared = rig->shared;
    size_t count = 0;
    bool spoiled = false;
    for (size_t i = 0; i < CLIENTS_MOST; i++) {
        const struct diary *diary = &shared->clients[i].diary;
        spoiled = spoiled || diary->spoiled || (toll->dead[i] && diary->leaving);
        for (size_t j = 0; j < diary->count; j++) {
            ops[count++] = diary->ops[j];
            figures->kinds[diary->ops[j].kind]++;
            figures->unknown += diary->ops[j].result == LINEAR_UNKNOWN ? 1 : 0;
        }
    }
    figures->operations += count;
    figures->spoiled += spoiled ? 1 : 0;
    return spoiled ? 0 : count;
}

/* True when the history has an order. */
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
    rig_say("no order (times in us): %s", finding.text);
    for (size_t i = 0; i < count; i++) {
        char line[200];
        if (strcmp(ops[i].key, finding.key) != 0)
            continue;
        linear_text_op(&ops[i], i, line, sizeof line);
        rig_say("  %s", line);
    }
    return false;
}

static void play_history(struct rig *rig, bool lied_to, struct figures *figures)
{
    static struct linear_op ops[CLIENTS_MOST * DIARY_MAX];
    struct shared *shared = rig->shared;
    uint64_t number = atomic_load(&shared->number) + 1;
    set_up(rig, number);
    bool kills = !lied_to && !shared->setting.brinks && random_below(&rig->random, 3) == 0;
    struct toll toll = {0};
    let_play(rig, number, kills, &toll);
    figures->histories++;
    figures->expiries += shared->setting.short_ttl ? 1 : 0;
    figures->kills += toll.kills;
    figures->stray += toll.stray;
    size_t count = gather(rig, &toll, ops, figures);
    if (count > 0)
        (void)judge(ops, count, lied_to, figures);
    for (size_t i = 0; i < CLIENTS_MOST; i++) {
        if (!toll.dead[i])
            continue;
        (void)rig_kill(rig, i);
        seat_client(rig, i);
    }
}

static void play_lies(struct rig *rig)
{
    static const char *const names[LIES] = {
        [LIE_SWAPPED] = "a swap that never was", [LIE_OLD_READ] = "an old record as a new one"};
    const struct store_driver *honest = rig->driver;
    for (int lie = 0; lie < LIES; lie++) {
        struct figures figures = {0};
        rig_name_store(rig, names[lie]);
        rig->driver = liar_prepare((enum lie)lie, honest);
        for (size_t seat = 0; seat < CLIENTS_MOST; seat++) {
            (void)rig_kill(rig, seat);
            seat_client(rig, seat);
        }
        for (int i = 0; i < LIED_TO && !rig_late(rig); i++)
            play_history(rig, /* lied_to= */ true, &figures);
        rig_case(rig, figures.refused > 0, "noticed: %s (in %" PRIu64 " of %d histories)",
                 names[lie], figures.refused, LIED_TO);
    }
    rig->driver = honest;
}

static void report(struct rig *rig, const struct figures *figures)
{
    int64_t took_us = rig_now_us() - figures->began_us;
    rig_say("histories %" PRIu64 ", judged %" PRIu64 ", left out %" PRIu64 ", undecided %" PRIu64
            ", %" PRId64 " us each",
            figures->histories, figures->judged, figures->spoiled, figures->undecided,
            took_us / (int64_t)rig->rounds);
    rig_say("operations %" PRIu64 ", without an answer %" PRIu64 ", kills %" PRIu64
            ", histories with leases that run out %" PRIu64,
            figures->operations, figures->unknown, figures->kills, figures->expiries);
    rig_say("acquire %" PRIu64 ", renew %" PRIu64 ", release %" PRIu64 ", look %" PRIu64
            ", break %" PRIu64,
            figures->kinds[LINEAR_ACQUIRE], figures->kinds[LINEAR_RENEW],
            figures->kinds[LINEAR_RELEASE], figures->kinds[LINEAR_STATUS],
            figures->kinds[LINEAR_BREAK_NOW]);
    rig_case(rig, figures->histories == rig->rounds, "%" PRIu64 " histories in time",
             figures->histories);
    rig_case(rig, figures->stray == 0, "nobody ended by itself (%" PRIu64 ")", figures->stray);
    rig_case(rig, figures->refused == 0, "each has an order (%" PRIu64 " have none)",
             figures->refused);
    rig_case(rig, figures->judged > rig->rounds * 3 / 4, "most of them could be judged");
    rig_case(rig, figures->undecided <= rig->rounds / 100, "and were decided");
    rig_case(rig, figures->kills > 0 && figures->expiries > 0 && figures->unknown > 0,
             "with kills, lost answers and leases that run out");
}

int main(int argc, char **argv)
{
    struct rig rig;
    struct figures figures = {.began_us = rig_now_us()};
    rig_open(&rig, argc, argv, /* rounds= */ 100, /* limit_s= */ 60, /* round_ms= */ 200,
             sizeof(struct shared));
    for (size_t seat = 0; seat < CLIENTS_MOST; seat++)
        seat_client(&rig, seat);
    for (uint64_t round = 0; round < rig.rounds && !rig_late(&rig); round++)
        play_history(&rig, /* lied_to= */ false, &figures);
    report(&rig, &figures);
    play_lies(&rig);
    return rig_close(&rig);
}
