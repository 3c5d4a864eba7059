/* SPDX-License-Identifier: Apache-2.0 */
/* See light.h. */
#include "runtime/light.h"

#include "base/check.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { LIGHT_MAGIC = 0x119470, SHARD_BITS = 6, SHARDS = 1 << SHARD_BITS, CHAINS_FIRST = 16 };
enum { CACHE_LINE = 64 };

struct shard {
    alignas(CACHE_LINE) pthread_mutex_t mutex;
    bool shut;
    uint64_t revision;
    size_t count, chain_count; /* a power of two */
    struct light_node **chains;
};

struct light {
    struct shard shards[SHARDS];
    uint32_t magic;
    uint64_t seed;
    struct light_mark *resting;
};

/* Eight bytes at a time. The seed keeps those who choose keys from choosing the chains. */
static uint64_t hash_of(const struct light *light, const char *key, size_t length)
{
    const uint64_t odd = 0x9e3779b97f4a7c15U;
    uint64_t hash = light->seed ^ length, word;
    for (; length >= sizeof word; length -= sizeof word, key += sizeof word) {
        memcpy(&word, key, sizeof word);
        hash = (hash ^ word) * odd;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, key, length);
    hash = (hash ^ word) * odd;
    hash ^= hash >> 32;
    return hash * odd;
}

static struct shard *shard_of(struct light *light, uint64_t hash)
{
    return &light->shards[hash >> (64 - SHARD_BITS)];
}

/* The chains go by other bits than the shards. */
static struct light_node **chain_of(struct light_node **chains, size_t count, uint64_t hash)
{
    return &chains[(hash >> 16) & (count - 1)];
}

static struct light_node **find(const struct shard *shard, const char *key, uint64_t hash)
{
    struct light_node **at = chain_of(shard->chains, shard->chain_count, hash);
    while (*at != NULL && ((*at)->hash != hash || strcmp((*at)->key, key) != 0))
        at = &(*at)->next;
    return at;
}

/* When memory is short, longer chains are good enough. */
static void grow(struct shard *shard)
{
    size_t count = shard->chain_count * 2;
    struct light_node **chains = calloc(count, sizeof(struct light_node *));
    if (chains == NULL)
        return;
    for (size_t i = 0; i < shard->chain_count; i++) {
        while (shard->chains[i] != NULL) {
            struct light_node *node = shard->chains[i];
            struct light_node **chain = chain_of(chains, count, node->hash);
            shard->chains[i] = node->next;
            node->next = *chain;
            *chain = node;
        }
    }
    free(shard->chains);
    shard->chains = chains;
    shard->chain_count = count;
}

static void put(struct shard *shard, struct light_node *node)
{
    struct light_node **chain = chain_of(shard->chains, shard->chain_count, node->hash);
    node->next = *chain;
    *chain = node;
    if (++shard->count > shard->chain_count)
        grow(shard);
}

static void take_out(struct shard *shard, const struct light_node *node)
{
    struct light_node **at = chain_of(shard->chains, shard->chain_count, node->hash);
    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    shard->count--;
}

static struct shard *enter(struct light *light, uint64_t hash)
{
    struct shard *shard = shard_of(light, hash);
    ASSERT(light->magic == LIGHT_MAGIC);
    (void)pthread_mutex_lock(&shard->mutex);
    return shard;
}

static void leave(struct shard *shard)
{
    (void)pthread_mutex_unlock(&shard->mutex);
}

struct light *light_new(uint64_t seed)
{
    struct light *light = aligned_alloc(CACHE_LINE, sizeof *light);
    bool fine = true;
    if (light == NULL)
        return NULL;
    memset(light, 0, sizeof *light);
    light->magic = LIGHT_MAGIC;
    light->seed = seed;
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &light->shards[i];
        (void)pthread_mutex_init(&shard->mutex, NULL);
        shard->chain_count = CHAINS_FIRST;
        shard->chains = calloc(CHAINS_FIRST, sizeof(struct light_node *));
        fine = fine && shard->chains != NULL;
    }
    if (!fine)
        light_free(&light);
    return light;
}

static void free_marks(struct shard *shard)
{
    for (size_t i = 0; i < shard->chain_count && shard->chains != NULL; i++) {
        while (shard->chains[i] != NULL) {
            struct light_node *node = shard->chains[i];
            ASSERT(node->revision == 0);
            shard->chains[i] = node->next;
            free(node);
        }
    }
}

void light_free(struct light **light_pointer)
{
    struct light *light = *light_pointer;
    if (light == NULL)
        return;
    ASSERT(light->magic == LIGHT_MAGIC);
    for (size_t i = 0; i < SHARDS; i++) {
        free_marks(&light->shards[i]);
        free(light->shards[i].chains);
        (void)pthread_mutex_destroy(&light->shards[i].mutex);
    }
    light->magic = 0;
    free(light);
    *light_pointer = NULL;
}

enum light_answer light_take(struct light *light, struct light_hold *hold, const char *key,
                             size_t length, struct light_hold *out_holder)
{
    enum light_answer answer = LIGHT_NOT;
    uint64_t hash = hash_of(light, key, length);
    struct shard *shard = enter(light, hash);
    const struct light_node *found = *find(shard, key, hash);
    if (found != NULL && found->revision > 0) {
        *out_holder = *(const struct light_hold *)found;
        answer = LIGHT_HELD;
    } else if (found == NULL && !shard->shut) {
        hold->node = (struct light_node){.hash = hash, .key = key, .revision = ++shard->revision};
        hold->listed = true;
        put(shard, &hold->node);
        answer = LIGHT_TAKEN;
    }
    leave(shard);
    return answer;
}

static bool remove_hold(struct light *light, struct light_hold *hold, bool although_shut)
{
    struct shard *shard = enter(light, hold->node.hash);
    bool done = hold->listed && (although_shut || !shard->shut);
    if (done) {
        take_out(shard, &hold->node);
        hold->listed = false;
    }
    leave(shard);
    return done;
}

bool light_give(struct light *light, struct light_hold *hold)
{
    return remove_hold(light, hold, /* although_shut= */ false);
}

void light_drop(struct light *light, struct light_hold *hold)
{
    bool done = remove_hold(light, hold, /* although_shut= */ true);
    ASSERT(done);
}

static struct light_mark *new_mark(const char *key, uint64_t hash)
{
    size_t size = strlen(key) + 1;
    struct light_mark *mark = calloc(1, sizeof *mark + size);
    if (mark == NULL)
        return NULL;
    memcpy(mark->key, key, size);
    mark->node = (struct light_node){.hash = hash, .key = mark->key};
    return mark;
}

struct light_mark *light_mark(struct light *light, const char *key, struct light_hold **out_hold)
{
    uint64_t hash = hash_of(light, key, strlen(key));
    struct shard *shard = enter(light, hash);
    struct light_node *found = *find(shard, key, hash);
    bool marked = found != NULL && found->revision == 0;
    struct light_mark *mark = marked ? (struct light_mark *)found : new_mark(key, hash);
    *out_hold = NULL;
    if (mark != NULL)
        mark->users++;
    if (mark != NULL && !marked) {
        if (found != NULL) {
            *out_hold = (struct light_hold *)found;
            (*out_hold)->listed = false;
            take_out(shard, found);
        }
        mark->above = shard->revision;
        put(shard, &mark->node);
    }
    leave(shard);
    return mark;
}

void light_use(struct light_mark *mark)
{
    ASSERT(mark->users > 0);
    mark->users++;
}

void light_put_back(struct light *light, struct light_mark *mark, struct light_hold *hold)
{
    struct shard *shard = enter(light, mark->node.hash);
    ASSERT(mark->users == 1 && !mark->resting && !hold->listed);
    take_out(shard, &mark->node);
    put(shard, &hold->node);
    hold->listed = true;
    leave(shard);
    free(mark);
}

void light_return(struct light *light, struct light_mark *mark)
{
    ASSERT(mark->users > 0);
    if (--mark->users > 0 || mark->resting)
        return;
    mark->resting = true;
    mark->next_resting = light->resting;
    light->resting = mark;
}

static void forget_mark(struct light *light, struct light_mark *mark, uint64_t revision)
{
    struct shard *shard = enter(light, mark->node.hash);
    take_out(shard, &mark->node);
    if (shard->revision < revision) /* the next token is above all that the store has given */
        shard->revision = revision;
    leave(shard);
    free(mark);
}

void light_settle(struct light *light, light_judge *judge, void *owner, uint64_t revision)
{
    struct light_mark **at = &light->resting;
    while (*at != NULL) {
        struct light_mark *mark = *at;
        enum light_rest rest = mark->users > 0 ? REST_KEPT : judge(owner, mark->key);
        if (rest == REST_LATER) {
            at = &mark->next_resting;
            continue;
        }
        *at = mark->next_resting;
        mark->resting = false;
        if (rest == REST_FREE)
            forget_mark(light, mark, revision);
    }
}

void light_shut(struct light *light)
{
    for (size_t i = 0; i < SHARDS; i++) {
        (void)pthread_mutex_lock(&light->shards[i].mutex);
        light->shards[i].shut = true;
        leave(&light->shards[i]);
    }
}

static bool pick_from(const struct shard *shard, const char *prefix,
                      const struct light_visitor *visitor)
{
    size_t length = strlen(prefix);
    for (size_t i = 0; i < shard->chain_count; i++) {
        const struct light_node *node = shard->chains[i];
        for (; node != NULL; node = node->next) {
            if (node->revision > 0 && strncmp(node->key, prefix, length) == 0 &&
                !visitor->pick(visitor->owner, (const struct light_hold *)node))
                return false;
        }
    }
    return true;
}

bool light_each(struct light *light, const char *prefix, const struct light_visitor *visitor)
{
    bool on = true;
    for (size_t i = 0; i < SHARDS && on; i++) {
        (void)pthread_mutex_lock(&light->shards[i].mutex);
        on = pick_from(&light->shards[i], prefix, visitor);
        leave(&light->shards[i]);
        on = on && visitor->picked(visitor->owner);
    }
    return on;
}

void light_empty(struct light *light, void (*gone)(void *owner, struct light_hold *hold),
                 void *owner)
{
    light_shut(light);
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &light->shards[i];
        for (size_t chain = 0; chain < shard->chain_count; chain++) {
            struct light_node **at = &shard->chains[chain];
            while (*at != NULL) {
                struct light_hold *hold = (struct light_hold *)*at;
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
