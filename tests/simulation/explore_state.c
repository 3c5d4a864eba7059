/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoded records, each kept once, and the canonical hash of a world. Worlds that behave alike
 * should hash alike: times are relative to now, revisions and tickets count only by their order,
 * serials relative to the lease's own, messages without order, and unused data not at all. Padding
 * and pointers are never hashed. Decides nothing.
 */
#include "explore.h"

#include "base/check.h"
#include "wire/record_codec.h"

#include <stdlib.h>
#include <string.h>

/* Pages */

static struct {
    struct page **table;
    size_t size, count;
} pages;

static struct record scratch;

static struct mark mark_of(const struct stamp *stamp)
{
    bool timed = stamp->revision != THIS_WRITE && stamp->time_ms != TIME_UNKNOWN;
    ASSERT(stamp->revision < REVISIONS_MAX);
    return (struct mark){.at_ms = timed ? (int32_t)(stamp->time_ms - BEGIN_MS) : UNTIMED,
                         .revision = (uint8_t)stamp->revision};
}

/* "1.2" is the third acquisition of client 1. */
static uint8_t request_number(const char *request)
{
    ASSERT(strlen(request) == 3);
    return request_id((uint8_t)(request[0] - '0'), (uint8_t)(request[2] - '0'));
}

static void brief_grants(const struct record *record, struct brief *out)
{
    for (size_t i = 0; i < record->grant_count; i++) {
        const struct grant *grant = &record->grants[i];
        out->grants[i] = (struct brief_grant){.granted = mark_of(&grant->granted),
                                              .renewed = mark_of(&grant->renewed),
                                              .ttl_ms = (int32_t)grant->ttl_ms,
                                              .lock_delay_ms = (int32_t)grant->lock_delay_ms,
                                              .n = grant->n,
                                              .request = request_number(grant->request),
                                              .session = (uint8_t)grant->session,
                                              .mode = (uint8_t)grant->mode,
                                              .bound = grant->bound,
                                              .broken = grant->broken};
    }
}

static void brief_places(const struct record *record, struct brief *out)
{
    for (size_t i = 0; i < record->waiter_count; i++) {
        const struct waiter *waiter = &record->waiters[i];
        out->waiters[i] =
            (struct brief_place){.ticket = waiter->ticket,
                                 .rank = (int16_t)(waiter->priority + (int32_t)waiter->passed),
                                 .request = request_number(waiter->request),
                                 .session = (uint8_t)waiter->session,
                                 .mode = (uint8_t)waiter->mode,
                                 .bound = waiter->bound,
                                 .offered = waiter->offered};
        if (waiter->offered)
            out->waiters[i].offer = mark_of(&waiter->offer);
    }
}

static void brief_record(const struct record *record, struct brief *out)
{
    memset(out, 0, sizeof *out);
    ASSERT(record->grant_count <= BRIEF_MAX && record->waiter_count <= BRIEF_MAX);
    ASSERT(strlen(record->key) < sizeof out->key);
    memcpy(out->key, record->key, strlen(record->key));
    out->grant_count = (uint8_t)record->grant_count;
    out->waiter_count = (uint8_t)record->waiter_count;
    out->limit = (uint8_t)record->limit;
    out->next_ticket = record->next_ticket;
    brief_grants(record, out);
    brief_places(record, out);
    if (record->cooling.length_ms > 0)
        out->cooling = (struct brief_span){.since = mark_of(&record->cooling.since),
                                           .length_ms = (int32_t)record->cooling.length_ms};
    if (record->delay.length_ms > 0)
        out->delay = (struct brief_span){.since = mark_of(&record->delay.since),
                                         .length_ms = (int32_t)record->delay.length_ms};
}

static uint64_t hash_bytes(const char *bytes, size_t length)
{
    uint64_t hash = 0x9e3779b97f4a7c15U ^ length, word;
    for (; length >= sizeof word; bytes += sizeof word, length -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = (hash ^ word) * 0xff51afd7ed558ccdU;
        hash ^= hash >> 32;
    }
    for (; length > 0; bytes++, length--)
        hash = (hash ^ (unsigned char)*bytes) * 0x100000001b3U;
    return hash ^ (hash >> 31);
}

static size_t page_slot(uint64_t hash, const char *bytes, size_t length)
{
    size_t at = hash & (pages.size - 1);
    for (; pages.table[at] != NULL; at = (at + 1) & (pages.size - 1)) {
        const struct page *page = pages.table[at];
        if (page->hash == hash && page->length == length && memcmp(page->bytes, bytes, length) == 0)
            break;
    }
    return at;
}

static void pages_grow(void)
{
    enum { FIRST = 1 << 12 };
    struct page **old = pages.table;
    size_t old_size = pages.size;
    pages.size = old_size == 0 ? FIRST : old_size * 2;
    pages.table = calloc(pages.size, sizeof(struct page *));
    ASSERT(pages.table != NULL);
    for (size_t i = 0; i < old_size; i++)
        if (old[i] != NULL)
            pages.table[page_slot(old[i]->hash, old[i]->bytes, old[i]->length)] = old[i];
    free(old);
}

const struct page *page_of(const char *bytes, size_t length)
{
    if (pages.count * 2 >= pages.size)
        pages_grow();
    uint64_t hash = hash_bytes(bytes, length);
    size_t at = page_slot(hash, bytes, length);
    if (pages.table[at] != NULL)
        return pages.table[at];
    struct codec_error error;
    if (record_decode(bytes, length, &scratch, &error) != DECODE_OK)
        return NULL;
    struct page *page = malloc(sizeof *page + length);
    if (page == NULL)
        return NULL;
    page->hash = hash;
    page->length = (uint16_t)length;
    memcpy(page->bytes, bytes, length);
    brief_record(&scratch, &page->brief);
    pages.table[at] = page;
    pages.count++;
    return page;
}

void pages_forget(void)
{
    for (size_t i = 0; i < pages.size; i++)
        free(pages.table[i]);
    free(pages.table);
    memset(&pages, 0, sizeof pages);
}

size_t pages_kept(void)
{
    return pages.count;
}

static void resolve(struct mark *mark, const struct mark *written)
{
    if (mark->revision == 0)
        *mark = *written;
}

struct brief brief_of(const struct page *page, uint64_t revision, int64_t time_ms)
{
    if (page == NULL)
        return (struct brief){.next_ticket = 1};
    struct brief brief = page->brief;
    struct stamp stamp = {.revision = revision, .time_ms = time_ms};
    struct mark written = mark_of(&stamp);
    for (size_t i = 0; i < brief.grant_count; i++) {
        resolve(&brief.grants[i].granted, &written);
        resolve(&brief.grants[i].renewed, &written);
    }
    for (size_t i = 0; i < brief.waiter_count; i++)
        if (brief.waiters[i].offered)
            resolve(&brief.waiters[i].offer, &written);
    if (brief.cooling.length_ms > 0)
        resolve(&brief.cooling.since, &written);
    if (brief.delay.length_ms > 0)
        resolve(&brief.delay.since, &written);
    return brief;
}

/* The revisions that a world refers to, since only their order matters; and the actors' names. */

struct ranks {
    uint64_t bits[REVISIONS_MAX / 64];
    uint8_t name[ACTORS_MAX]; /* actors with the same part are distinguished by their state */
};

static void name_revision(struct ranks *ranks, uint64_t revision)
{
    if (revision < 64)
        ranks->bits[0] |= (uint64_t)1 << revision;
    else if (revision < REVISIONS_MAX) /* a token that is not made of a revision has no rank */
        ranks->bits[1] |= (uint64_t)1 << (revision - 64);
}

static void name_token(struct ranks *ranks, uint64_t token)
{
    name_revision(ranks, token >> 10);
}

static void name_page(struct ranks *ranks, const struct page *page, uint64_t written)
{
    name_revision(ranks, written);
    if (page == NULL)
        return;
    const struct brief *brief = &page->brief;
    for (size_t i = 0; i < brief->grant_count; i++) {
        name_revision(ranks, brief->grants[i].granted.revision);
        name_revision(ranks, brief->grants[i].renewed.revision);
    }
    for (size_t i = 0; i < brief->waiter_count; i++)
        name_revision(ranks, brief->waiters[i].offer.revision);
    name_revision(ranks, brief->cooling.since.revision);
    name_revision(ranks, brief->delay.since.revision);
}

static uint64_t rank_of(const struct ranks *ranks, uint64_t revision)
{
    if (revision == 0 || revision >= REVISIONS_MAX)
        return revision;
    uint64_t low = ranks->bits[0], high = ranks->bits[1];
    if (revision < 64)
        return 1 + (uint64_t)__builtin_popcountll(low & (((uint64_t)1 << revision) - 1));
    high &= ((uint64_t)1 << (revision - 64)) - 1;
    return 1 + (uint64_t)__builtin_popcountll(low) + (uint64_t)__builtin_popcountll(high);
}

static uint64_t token_rank(const struct ranks *ranks, uint64_t token)
{
    return (rank_of(ranks, token >> 10) << 10) + (token & 1023);
}

static struct ranks ranks_of(const struct world *world)
{
    struct ranks ranks = {.bits = {1, 0}};
    bool observed = playing->facts.judge == JUDGE_OBSERVED;
    name_page(&ranks, world->page, world->written.revision);
    name_token(&ranks, world->last_token);
    name_token(&ranks, world->first_token);
    for (size_t i = 0; i < ACTORS_MAX; i++) {
        const struct actor *actor = &world->actors[i];
        name_token(&ranks, actor->lease.token);
        name_token(&ranks, actor->granted);
        name_token(&ranks, actor->token);
        if (actor->lease.state == LEASE_OPERATION)
            name_revision(&ranks, actor->lease.up_to);
        name_revision(&ranks, actor->observations.offer);
        if (playing->remembers)
            name_page(&ranks, actor->heard.page, actor->heard.written.revision);
        for (size_t j = 0; observed && j < actor->observations.count; j++) {
            name_token(&ranks, actor->observations.observed[j].token);
            name_revision(&ranks, actor->observations.observed[j].revision);
        }
    }
    for (size_t i = 0; i < world->message_count; i++) {
        const struct message *message = &world->messages[i];
        name_token(&ranks, message->token);
        name_token(&ranks, message->condition.token);
        name_revision(&ranks, message->condition.revision);
        name_page(&ranks, message->page, 0);
        name_page(&ranks, message->store_view.page, message->store_view.written.revision);
    }
    return ranks;
}

/* The hash */

static void add(struct digest *digest, uint64_t word)
{
    digest->a = (digest->a ^ word) * 0xff51afd7ed558ccdU;
    digest->a ^= digest->a >> 29;
    digest->b = (digest->b + word + 0x9e3779b97f4a7c15U) * 0xc4ceb9fe1a85ec53U;
    digest->b ^= digest->b >> 32;
}

static uint64_t pair(uint64_t low, int64_t high)
{
    return (uint32_t)low | (uint64_t)high << 32;
}

/* Relative to now; never and unknown stay as they are. */
static int64_t since_now(const struct world *world, int64_t time_ms)
{
    enum { FAR = 1 << 30 };
    if (time_ms == NEVER)
        return FAR;
    return time_ms == TIME_UNKNOWN ? -FAR : time_ms - world->now_ms;
}

/* A time of which only matters whether it has come. */
static int64_t until(const struct world *world, int64_t time_ms)
{
    return time_ms <= world->now_ms ? 0 : since_now(world, time_ms);
}

static uint64_t name_session(const struct ranks *ranks, uint64_t session)
{
    uint64_t actor = (session - 1) % ACTORS_MAX;
    return session - actor + ranks->name[actor];
}

static uint64_t name_who(const struct ranks *ranks, uint8_t request, uint8_t session)
{
    uint64_t named = request_id(ranks->name[request / 16], request % 16);
    return named << 8 | name_session(ranks, session) << 16;
}

static uint64_t name_sessions(const struct ranks *ranks, uint16_t sessions)
{
    uint64_t named = 0;
    for (; sessions != 0; sessions = (uint16_t)(sessions & (sessions - 1)))
        named |= (uint64_t)1 << name_session(ranks, (uint64_t)__builtin_ctz(sessions));
    return named;
}

static uint64_t name_actors(const struct ranks *ranks, uint8_t actors)
{
    uint64_t named = 0;
    for (size_t i = 0; i < ACTORS_MAX; i++)
        named |= (uint64_t)(actors >> i & 1) << ranks->name[i];
    return named;
}

static void add_mark(struct digest *digest, const struct world *world, const struct ranks *ranks,
                     const struct mark *mark, bool truth)
{
    int64_t at_ms = mark->at_ms;
    if (at_ms == UNTIMED && truth && mark->revision != 0)
        at_ms = world->written_at_ms[mark->revision];
    int64_t observed_ms = at_ms == UNTIMED ? TIME_UNKNOWN : at_ms + BEGIN_MS;
    add(digest, pair(rank_of(ranks, mark->revision), since_now(world, observed_ms)));
}

/* `truth`: the store's own copy, whose times are known even if replies have none. */
static void add_brief(struct digest *digest, const struct world *world, const struct ranks *ranks,
                      const struct brief *brief, bool truth)
{
    uint64_t key = 0;
    memcpy(&key, brief->key, 4);
    add(digest, pair(key, brief->limit) + ((uint64_t)brief->grant_count << 40) +
                    ((uint64_t)brief->waiter_count << 48));
    for (size_t i = 0; i < brief->grant_count; i++) {
        const struct brief_grant *grant = &brief->grants[i];
        add_mark(digest, world, ranks, &grant->granted, truth);
        add_mark(digest, world, ranks, &grant->renewed, truth);
        add(digest, pair((uint64_t)grant->ttl_ms, grant->lock_delay_ms));
        add(digest, pair(name_who(ranks, grant->request, grant->session) | (uint64_t)grant->mode |
                             (uint64_t)grant->bound << 2 | (uint64_t)grant->broken << 3,
                         grant->n));
    }
    for (size_t i = 0; i < brief->waiter_count; i++) {
        const struct brief_place *waiter = &brief->waiters[i];
        if (waiter->offered)
            add_mark(digest, world, ranks, &waiter->offer, truth);
        add(digest,
            pair(name_who(ranks, waiter->request, waiter->session) | (uint64_t)waiter->mode |
                     (uint64_t)waiter->bound << 2 | (uint64_t)waiter->offered << 3,
                 waiter->rank));
    }
    add_mark(digest, world, ranks, &brief->cooling.since, truth);
    add_mark(digest, world, ranks, &brief->delay.since, truth);
    add(digest, pair((uint64_t)brief->cooling.length_ms, brief->delay.length_ms));
}

static void add_page(struct digest *digest, const struct world *world, const struct ranks *ranks,
                     const struct page *page, const struct stamp *written, bool truth)
{
    add(digest, rank_of(ranks, written->revision) + (page == NULL ? 1 << 16 : 0));
    if (page == NULL)
        return;
    struct brief brief =
        written->revision == 0 ? page->brief : brief_of(page, written->revision, written->time_ms);
    add_brief(digest, world, ranks, &brief, truth);
}

static void add_store_view(struct digest *digest, const struct world *world,
                           const struct ranks *ranks, const struct store_view *store_view)
{
    add_page(digest, world, ranks, store_view->page, &store_view->written, false);
    add(digest, pair(name_sessions(ranks, store_view->dead) + ((uint64_t)store_view->over << 16) +
                         ((uint64_t)store_view->outdated << 24),
                     since_now(world, store_view->now_ms)));
}

/* Its position among the tickets that are in the store. */
static uint64_t ticket_rank(const struct world *world, uint64_t ticket)
{
    uint64_t rank = 0;
    for (size_t i = 0; world->page != NULL && i < world->page->brief.waiter_count; i++) {
        uint64_t other = world->page->brief.waiters[i].ticket;
        rank += other < ticket ? 2 : other == ticket ? 1 : 0;
    }
    return rank;
}

static void add_lease(struct digest *digest, const struct world *world, const struct ranks *ranks,
                      const struct lease *lease)
{
    enum { MANY = 15 };
    uint64_t attempts = lease->attempts < MANY ? lease->attempts : MANY;
    uint64_t conflicts = lease->conflicts < MANY ? lease->conflicts : MANY;
    uint64_t late = lease->late < MANY ? lease->late : MANY;
    add(digest, (uint64_t)lease->state | (uint64_t)lease->in_flight << 8 |
                    (uint64_t)lease->unsure << 9 | (uint64_t)lease->noticed << 10 |
                    (uint64_t)lease->notified_waiting << 11 | (uint64_t)(lease->serial == 0) << 12 |
                    (uint64_t)lease->reacquires << 13 | (uint64_t)lease->sent << 16 |
                    (uint64_t)lease->sent_verb << 20 | (uint64_t)lease->pending << 24 |
                    (uint64_t)lease->final << 28 | attempts << 32 | conflicts << 36 | late << 40);
    add(digest, pair((uint64_t)until(world, lease->reply_by_ms), until(world, lease->next_at_ms)));
    add(digest, pair((uint64_t)until(world, lease->give_up_at_ms),
                     since_now(world, lease->trouble_since_ms)));
    if (lease->reacquires)
        add(digest, (uint64_t)until(world, lease->wait_until_ms));
    if (lease->in_flight)
        add(digest, (uint64_t)since_now(world, lease->sent_at_ms));
    if (lease->ticket != 0)
        add(digest, ticket_rank(world, lease->ticket));
    if (lease->state == LEASE_OPERATION)
        add(digest, rank_of(ranks, lease->up_to));
    if (lease->token != 0) {
        add(digest, token_rank(ranks, lease->token));
        add(digest, pair((uint64_t)since_now(world, lease->deadline_ms),
                         since_now(world, lease->kill_at_ms)));
    }
}

/* The state of one actor, without the other actors. */
static struct digest actor_digest(const struct world *world, const struct ranks *ranks,
                                  const struct actor *actor)
{
    struct digest digest = {5, 6};
    add(&digest, (uint64_t)actor->alive | (uint64_t)actor->started << 1 |
                     (uint64_t)actor->cancelled << 2 | (uint64_t)actor->excused << 3 |
                     (uint64_t)actor->life << 8 | (uint64_t)actor->operation << 16 |
                     (uint64_t)actor->incarnation << 24);
    if (!actor->alive || !actor->started)
        return digest;
    add(&digest, (uint64_t)until(world, actor->wake_at_ms));
    add(&digest, token_rank(ranks, actor->granted));
    add(&digest, token_rank(ranks, actor->token));
    if (actor->observations.offer != 0)
        add(&digest, pair(rank_of(ranks, actor->observations.offer),
                          since_now(world, actor->observations.offer_since_ms)));
    for (size_t i = 0; playing->facts.judge == JUDGE_OBSERVED && i < actor->observations.count;
         i++) {
        const struct observation *observation = &actor->observations.observed[i];
        add(&digest, token_rank(ranks, observation->token));
        add(&digest,
            pair(rank_of(ranks, observation->revision), since_now(world, observation->since_ms)));
    }
    if (actor->lease.state != LEASE_ENDED)
        add_lease(&digest, world, ranks, &actor->lease);
    return digest;
}

static bool play_alike(const struct part *a, const struct part *b)
{
    return strcmp(a->key, b->key) == 0 && a->mode == b->mode && a->priority == b->priority &&
           a->waits == b->waits && a->wait_ms == b->wait_ms && a->cooldown_ms == b->cooldown_ms &&
           a->once == b->once;
}

/* Renames actors with the same part so that their digests are sorted. */
static void name_alike(struct ranks *ranks, const struct digest *digests)
{
    uint8_t order[ACTORS_MAX];
    for (size_t i = 0; i < ACTORS_MAX; i++)
        order[i] = (uint8_t)i;
    for (size_t i = 1; i < playing->clients; i++)
        for (size_t j = i; j > 0; j--) {
            bool alike = play_alike(&playing->parts[j], &playing->parts[j - 1]);
            if (!alike || digests[order[j]].a >= digests[order[j - 1]].a)
                break;
            uint8_t other = order[j];
            order[j] = order[j - 1];
            order[j - 1] = other;
        }
    for (size_t i = 0; i < ACTORS_MAX; i++)
        ranks->name[order[i]] = (uint8_t)i;
}

/* Adds all actors, in the order of their names, and their last replies. */
static void add_actors(struct digest *digest, const struct world *world, struct ranks *ranks)
{
    struct digest digests[ACTORS_MAX];
    for (size_t i = 0; i < ACTORS_MAX; i++)
        digests[i] = actor_digest(world, ranks, &world->actors[i]);
    name_alike(ranks, digests);
    for (size_t i = 0; i < ACTORS_MAX; i++) {
        const struct actor *actor = &world->actors[i];
        if (actor->alive && actor->started && playing->remembers && actor->has_heard)
            add_store_view(&digests[i], world, ranks, &actor->heard);
    }
    for (size_t name = 0; name < ACTORS_MAX; name++)
        for (size_t i = 0; i < ACTORS_MAX; i++)
            if (ranks->name[i] == name) {
                add(digest, digests[i].a);
                add(digest, digests[i].b);
            }
}

static struct digest message_digest(const struct world *world, const struct ranks *ranks,
                                    const struct message *message)
{
    struct digest digest = {1, 2};
    const struct actor *actor = &world->actors[message->actor];
    uint32_t behind = actor->life == message->life ? actor->lease.serial - message->serial : 0;
    add(&digest, (uint64_t)message->kind | (uint64_t)ranks->name[message->actor] << 4 |
                     (uint64_t)message->life << 8 | (uint64_t)behind << 32);
    if (message->kind == MESSAGE_REQUEST) {
        add(&digest, (uint64_t)message->verb | (uint64_t)message->store_verb << 4 |
                         (uint64_t)message->condition.kind << 8 | (uint64_t)message->bound << 12 |
                         (uint64_t)message->cools << 13 | (uint64_t)message->breaks_now << 14 |
                         name_actors(ranks, message->pokes) << 16 |
                         name_session(ranks, message->session) << 32);
        add(&digest, token_rank(ranks, message->token));
        add(&digest, token_rank(ranks, message->condition.token));
        add(&digest, rank_of(ranks, message->condition.revision));
        add_page(&digest, world, ranks, message->page, &(struct stamp){0}, false);
    } else {
        add(&digest, message->result);
        add_store_view(&digest, world, ranks, &message->store_view);
    }
    return digest;
}

struct digest world_digest(const struct world *world, bool with_bound)
{
    struct digest digest = {3, 4}, letters = {0, 0};
    struct ranks ranks = ranks_of(world);
    const struct bound *left = &world->left;
    if (with_bound)
        add(&digest, (uint64_t)left->lost | (uint64_t)left->doubled << 8 |
                         (uint64_t)left->ticks << 16 | (uint64_t)left->crashes << 24 |
                         (uint64_t)left->cancels << 32 | (uint64_t)left->operations << 40);
    add_actors(&digest, world, &ranks);
    add(&digest, name_sessions(&ranks, world->dead));
    add(&digest, token_rank(&ranks, world->first_token));
    add(&digest, token_rank(&ranks, world->last_token));
    add_page(&digest, world, &ranks, world->page, &world->written, true);
    for (size_t i = 0; i < world->message_count; i++) { /* a sum, which has no order */
        struct digest letter = message_digest(world, &ranks, &world->messages[i]);
        letters.a += letter.a * 0x9e3779b97f4a7c15U;
        letters.b += letter.b * 0xbf58476d1ce4e5b9U;
    }
    add(&digest, letters.a);
    add(&digest, letters.b);
    return digest;
}
