/* SPDX-License-Identifier: Apache-2.0 */
/* See fast_path.h. */
#include "runtime/fast_path.h"

#include "base/check.h"
#include "base/hash.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { FAST_PATH_MAGIC = 0x119470, SHARD_BITS = 6, SHARDS = 1 << SHARD_BITS, CHAINS_FIRST = 16 };
enum { CACHE_LINE = 64 };
/* For metrics a hold is timed if none was for a while, so that rare ones are all timed; otherwise
 * one of so many. Its release reads the clock once more. */
enum { TIMED_AFTER_MS = 250, TIMED_OF = 128 };

struct shard {
    alignas(CACHE_LINE) pthread_mutex_t mutex;
    bool disabled;
    uint64_t revision;
    size_t count, chain_count; /* a power of two */
    struct fast_path_node **chains;
    int64_t timed_again_ms; /* a hold acquired then is timed, … */
    uint64_t timed_again;   /* … and one with this revision */
    uint64_t skipped;       /* revisions that no hold has got */
    uint64_t promoted;      /* holds that have left the table without a release */
    size_t marks;           /* among the nodes; the others are holds */
    uint64_t hold_times[METRIC_HISTOGRAM];
};

struct fast_path {
    struct shard shards[SHARDS];
    uint32_t magic;
    uint64_t seed;
    struct fast_path_mark *idle;
};

static struct shard *shard_of(struct fast_path *fast_path, uint64_t hash)
{
    return &fast_path->shards[hash >> (64 - SHARD_BITS)];
}

/* Chains and shards use different bits of the hash. */
static struct fast_path_node **chain_of(struct fast_path_node **chains, size_t count, uint64_t hash)
{
    return &chains[(hash >> 16) & (count - 1)];
}

static struct fast_path_node **shard_find(const struct shard *shard, const char *key, uint64_t hash)
{
    struct fast_path_node **at = chain_of(shard->chains, shard->chain_count, hash);
    while (*at != NULL && ((*at)->hash != hash || strcmp((*at)->key, key) != 0))
        at = &(*at)->next;
    return at;
}

/* When out of memory, the chains get longer instead. */
static void shard_grow(struct shard *shard)
{
    size_t count = shard->chain_count * 2;
    struct fast_path_node **chains = calloc(count, sizeof(struct fast_path_node *));
    if (chains == NULL)
        return;
    for (size_t i = 0; i < shard->chain_count; i++) {
        while (shard->chains[i] != NULL) {
            struct fast_path_node *node = shard->chains[i];
            struct fast_path_node **chain = chain_of(chains, count, node->hash);
            shard->chains[i] = node->next;
            node->next = *chain;
            *chain = node;
        }
    }
    free(shard->chains);
    shard->chains = chains;
    shard->chain_count = count;
}

static void shard_put(struct shard *shard, struct fast_path_node *node)
{
    struct fast_path_node **chain = chain_of(shard->chains, shard->chain_count, node->hash);
    node->next = *chain;
    *chain = node;
    if (++shard->count > shard->chain_count)
        shard_grow(shard);
}

static void shard_remove(struct shard *shard, const struct fast_path_node *node)
{
    struct fast_path_node **at = chain_of(shard->chains, shard->chain_count, node->hash);
    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    shard->count--;
}

static struct shard *shard_lock(struct fast_path *fast_path, uint64_t hash)
{
    struct shard *shard = shard_of(fast_path, hash);
    ASSERT(fast_path->magic == FAST_PATH_MAGIC);
    (void)pthread_mutex_lock(&shard->mutex);
    return shard;
}

static void shard_unlock(struct shard *shard)
{
    (void)pthread_mutex_unlock(&shard->mutex);
}

struct fast_path *fast_path_new(uint64_t seed)
{
    struct fast_path *fast_path = aligned_alloc(CACHE_LINE, sizeof *fast_path);
    bool fine = true;
    if (fast_path == NULL)
        return NULL;
    memset(fast_path, 0, sizeof *fast_path);
    fast_path->magic = FAST_PATH_MAGIC;
    fast_path->seed = seed;
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &fast_path->shards[i];
        (void)pthread_mutex_init(&shard->mutex, NULL);
        shard->chain_count = CHAINS_FIRST;
        shard->timed_again = TIMED_OF;
        shard->chains = calloc(CHAINS_FIRST, sizeof(struct fast_path_node *));
        fine = fine && shard->chains != NULL;
    }
    if (!fine)
        fast_path_free(&fast_path);
    return fast_path;
}

static void shard_free_marks(struct shard *shard)
{
    for (size_t i = 0; i < shard->chain_count && shard->chains != NULL; i++) {
        while (shard->chains[i] != NULL) {
            struct fast_path_node *node = shard->chains[i];
            ASSERT(node->revision == 0);
            shard->chains[i] = node->next;
            free(node);
        }
    }
}

void fast_path_free(struct fast_path **fast_path_pointer)
{
    struct fast_path *fast_path = *fast_path_pointer;
    if (fast_path == NULL)
        return;
    ASSERT(fast_path->magic == FAST_PATH_MAGIC);
    for (size_t i = 0; i < SHARDS; i++) {
        shard_free_marks(&fast_path->shards[i]);
        free(fast_path->shards[i].chains);
        (void)pthread_mutex_destroy(&fast_path->shards[i].mutex);
    }
    fast_path->magic = 0;
    free(fast_path);
    *fast_path_pointer = NULL;
}

/* The new hold is timed: it counts for the holds since the last timed one. The choice does not
 * depend on how long any of them is held. Out of line, as few are. */
__attribute__((noinline)) static void shard_weigh(struct shard *shard, struct fast_path_hold *hold)
{
    uint64_t left = shard->timed_again - shard->revision;
    ASSERT(left < TIMED_OF);
    shard->timed_again = shard->revision + TIMED_OF;
    shard->timed_again_ms = hold->since_ms + TIMED_AFTER_MS;
    hold->weight = (uint8_t)(TIMED_OF - left);
}

enum fast_path_result fast_path_acquire(struct fast_path *fast_path, struct fast_path_hold *hold,
                                        const char *key, size_t length,
                                        struct fast_path_hold *out_holder)
{
    enum fast_path_result result = FAST_PATH_MISS;
    uint64_t hash = hash_bytes(fast_path->seed, key, length);
    struct shard *shard = shard_lock(fast_path, hash);
    const struct fast_path_node *found = *shard_find(shard, key, hash);
    if (found != NULL && found->revision > 0) {
        *out_holder = *(const struct fast_path_hold *)found;
        result = FAST_PATH_HELD;
    } else if (found == NULL && !shard->disabled) {
        uint64_t revision = ++shard->revision;
        hold->node.hash = hash;
        hold->node.key = key;
        hold->node.revision = revision;
        hold->listed = true;
        hold->weight = 0;
        if (FAST_PATH_TIMES &&
            (revision == shard->timed_again || hold->since_ms >= shard->timed_again_ms))
            shard_weigh(shard, hold);
        shard_put(shard, &hold->node);
        result = FAST_PATH_ACQUIRED;
    }
    shard_unlock(shard);
    return result;
}

static bool remove_hold(struct fast_path *fast_path, struct fast_path_hold *hold,
                        bool even_if_disabled)
{
    struct shard *shard = shard_lock(fast_path, hold->node.hash);
    bool done = hold->listed && (even_if_disabled || !shard->disabled);
    if (done) {
        shard_remove(shard, &hold->node);
        hold->listed = false;
    }
    shard_unlock(shard);
    return done;
}

bool fast_path_release(struct fast_path *fast_path, struct fast_path_hold *hold)
{
    return remove_hold(fast_path, hold, /* even_if_disabled= */ false);
}

void fast_path_time(struct fast_path *fast_path, const struct fast_path_hold *hold, int64_t now_ms)
{
    const int64_t us = (now_ms - hold->since_ms) * 1000;
    struct shard *shard = shard_lock(fast_path, hold->node.hash);
    shard->hold_times[metrics_bucket(SLOT_HOLD, us)] += hold->weight;
    shard->hold_times[METRIC_SUM] += us > 0 ? (uint64_t)us * hold->weight : 0;
    shard_unlock(shard);
}

void fast_path_drop(struct fast_path *fast_path, struct fast_path_hold *hold)
{
    bool done = remove_hold(fast_path, hold, /* even_if_disabled= */ true);
    ASSERT(done);
}

static struct fast_path_mark *mark_new(const char *key, uint64_t hash)
{
    size_t size = strlen(key) + 1;
    struct fast_path_mark *mark = calloc(1, sizeof *mark + size);
    if (mark == NULL)
        return NULL;
    memcpy(mark->key, key, size);
    mark->node = (struct fast_path_node){.hash = hash, .key = mark->key};
    return mark;
}

struct fast_path_mark *fast_path_mark(struct fast_path *fast_path, const char *key,
                                      struct fast_path_hold **out_hold)
{
    uint64_t hash = hash_bytes(fast_path->seed, key, strlen(key));
    struct shard *shard = shard_lock(fast_path, hash);
    struct fast_path_node *found = *shard_find(shard, key, hash);
    bool marked = found != NULL && found->revision == 0;
    struct fast_path_mark *mark = marked ? (struct fast_path_mark *)found : mark_new(key, hash);
    *out_hold = NULL;
    if (mark != NULL)
        mark->users++;
    if (mark != NULL && !marked) {
        if (found != NULL) {
            *out_hold = (struct fast_path_hold *)found;
            (*out_hold)->listed = false;
            shard->promoted++;
            shard_remove(shard, found);
        }
        shard->marks++;
        mark->revision_floor = shard->revision;
        shard_put(shard, &mark->node);
    }
    shard_unlock(shard);
    return mark;
}

void fast_path_mark_ref(struct fast_path_mark *mark)
{
    ASSERT(mark->users > 0);
    mark->users++;
}

void fast_path_restore(struct fast_path *fast_path, struct fast_path_mark *mark,
                       struct fast_path_hold *hold)
{
    struct shard *shard = shard_lock(fast_path, mark->node.hash);
    ASSERT(mark->users == 1 && !mark->idle && !hold->listed);
    shard_remove(shard, &mark->node);
    shard_put(shard, &hold->node);
    shard->marks--;
    shard->promoted--;
    hold->listed = true;
    shard_unlock(shard);
    free(mark);
}

void fast_path_mark_unref(struct fast_path *fast_path, struct fast_path_mark *mark)
{
    ASSERT(mark->users > 0);
    if (--mark->users > 0 || mark->idle)
        return;
    mark->idle = true;
    mark->next_idle = fast_path->idle;
    fast_path->idle = mark;
}

static void mark_free(struct fast_path *fast_path, struct fast_path_mark *mark, uint64_t revision)
{
    struct shard *shard = shard_lock(fast_path, mark->node.hash);
    shard_remove(shard, &mark->node);
    shard->marks--;
    if (shard->revision < revision) { /* the next token must exceed all of the store's */
        shard->skipped += revision - shard->revision;
        shard->timed_again += revision - shard->revision;
        shard->revision = revision;
    }
    shard_unlock(shard);
    free(mark);
}

void fast_path_settle(struct fast_path *fast_path, fast_path_judge *judge, void *owner,
                      uint64_t revision)
{
    struct fast_path_mark **at = &fast_path->idle;
    while (*at != NULL) {
        struct fast_path_mark *mark = *at;
        enum mark_state state = mark->users > 0 ? MARK_KEPT : judge(owner, mark->key);
        if (state == MARK_BUSY) {
            at = &mark->next_idle;
            continue;
        }
        *at = mark->next_idle;
        mark->idle = false;
        if (state == MARK_UNUSED)
            mark_free(fast_path, mark, revision);
    }
}

void fast_path_disable(struct fast_path *fast_path)
{
    for (size_t i = 0; i < SHARDS; i++) {
        (void)pthread_mutex_lock(&fast_path->shards[i].mutex);
        fast_path->shards[i].disabled = true;
        shard_unlock(&fast_path->shards[i]);
    }
}

static bool pick_from(const struct shard *shard, const char *prefix,
                      const struct fast_path_visitor *visitor)
{
    size_t length = strlen(prefix);
    for (size_t i = 0; i < shard->chain_count; i++) {
        const struct fast_path_node *node = shard->chains[i];
        for (; node != NULL; node = node->next) {
            if (node->revision > 0 && strncmp(node->key, prefix, length) == 0 &&
                !visitor->pick(visitor->owner, (const struct fast_path_hold *)node))
                return false;
        }
    }
    return true;
}

bool fast_path_each(struct fast_path *fast_path, const char *prefix,
                    const struct fast_path_visitor *visitor)
{
    bool on = true;
    for (size_t i = 0; i < SHARDS && on; i++) {
        (void)pthread_mutex_lock(&fast_path->shards[i].mutex);
        on = pick_from(&fast_path->shards[i], prefix, visitor);
        shard_unlock(&fast_path->shards[i]);
        on = on && visitor->picked(visitor->owner);
    }
    return on;
}

void fast_path_clear(struct fast_path *fast_path,
                     void (*gone)(void *owner, struct fast_path_hold *hold), void *owner)
{
    fast_path_disable(fast_path);
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &fast_path->shards[i];
        for (size_t chain = 0; chain < shard->chain_count; chain++) {
            struct fast_path_node **at = &shard->chains[chain];
            while (*at != NULL) {
                struct fast_path_hold *hold = (struct fast_path_hold *)*at;
                if (hold->node.revision == 0) { /* a mark */
                    at = &(*at)->next;
                    continue;
                }
                *at = hold->node.next;
                shard->count--;
                hold->listed = false;
                gone(owner, hold);
            }
        }
    }
}

static void shard_count(const struct shard *shard, struct fast_path_counts *out)
{
    uint64_t acquired = shard->revision - shard->skipped;
    out->acquired += acquired;
    out->promoted += shard->promoted;
    out->released += acquired - shard->promoted - (shard->count - shard->marks);
    for (size_t i = 0; i < METRIC_HISTOGRAM; i++)
        out->hold_times[i] += shard->hold_times[i];
}

void fast_path_count(struct fast_path *fast_path, struct fast_path_counts *out)
{
    *out = (struct fast_path_counts){0};
    for (size_t i = 0; i < SHARDS; i++) {
        (void)pthread_mutex_lock(&fast_path->shards[i].mutex);
        shard_count(&fast_path->shards[i], out);
        shard_unlock(&fast_path->shards[i]);
    }
}
