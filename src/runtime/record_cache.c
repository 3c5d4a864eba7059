/* SPDX-License-Identifier: Apache-2.0 */
/* See record_cache.h. Entries are in LRU order; entries in use lose only their copy. */
#include "runtime/record_cache.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

enum { NAMED_MAX = GRANTS_MAX + WAITERS_MAX /* the maximum that a record can name */ };

static size_t words_for(size_t bytes)
{
    return (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
}

static size_t at_most(size_t count, size_t most)
{
    return count < most ? count : most;
}

static const uint64_t *copy_numbers(uint64_t **at, const uint64_t *numbers, size_t count)
{
    uint64_t *kept = *at;
    if (count > 0)
        memcpy(kept, numbers, count * sizeof *numbers);
    *at += count;
    return kept;
}

struct saved_reply *saved_reply_new(const struct store_reply *reply)
{
    size_t dead = at_most(reply->dead_count, NAMED_MAX);
    size_t ended = at_most(reply->ended_count, NAMED_MAX);
    size_t length = reply->present ? reply->length : 0;
    size_t size =
        sizeof(struct saved_reply) + (dead + ended + words_for(length)) * sizeof(uint64_t);
    struct saved_reply *saved_reply = malloc(size);
    if (saved_reply == NULL)
        return NULL;
    uint64_t *at = saved_reply->storage;
    saved_reply->size = size;
    saved_reply->saved_at_ms = 0;
    saved_reply->reply = *reply;
    saved_reply->reply.key = saved_reply->reply.why = NULL;
    saved_reply->reply.dead_sessions = copy_numbers(&at, reply->dead_sessions, dead);
    saved_reply->reply.dead_count = dead;
    saved_reply->reply.ended_tokens = copy_numbers(&at, reply->ended_tokens, ended);
    saved_reply->reply.ended_count = ended;
    saved_reply->reply.bytes = (const char *)at;
    saved_reply->reply.length = length;
    if (length > 0)
        memcpy(at, reply->bytes, length);
    return saved_reply;
}

bool record_cache_init(struct record_cache *record_cache, size_t bytes_max)
{
    *record_cache = (struct record_cache){.bytes_max = bytes_max};
    return table_init(&record_cache->table);
}

static size_t entry_weight(const struct record_cache_entry *entry)
{
    size_t saved_reply = entry->saved_reply != NULL ? entry->saved_reply->size : 0;
    size_t seen = entry->observed != NULL ? entry->observed->count * sizeof(struct observation) : 0;
    return sizeof *entry + strlen(entry->key) + 1 + saved_reply + seen;
}

static void record_lru_remove(struct record_cache *record_cache, struct record_cache_entry *entry)
{
    if (!entry->listed)
        return;
    list_remove(&record_cache->lru, &entry->in_lru);
    entry->listed = false;
    record_cache->bytes -= entry->weight;
}

static void record_lru_push(struct record_cache *record_cache, struct record_cache_entry *entry)
{
    record_lru_remove(record_cache, entry);
    list_prepend(&record_cache->lru, &entry->in_lru);
    entry->listed = true;
    entry->weight = entry_weight(entry);
    record_cache->bytes += entry->weight;
}

static void entry_drop_reply(struct record_cache *record_cache, struct record_cache_entry *entry)
{
    record_cache->copies -= entry->saved_reply != NULL ? 1 : 0;
    free(entry->saved_reply);
    entry->saved_reply = NULL;
}

static void entry_free(struct record_cache *record_cache, struct record_cache_entry *entry)
{
    record_lru_remove(record_cache, entry);
    entry_drop_reply(record_cache, entry);
    table_remove(&record_cache->table, &entry->node);
    free(entry->observed);
    free(entry);
}

static void record_cache_evict(struct record_cache *record_cache)
{
    while (record_cache->bytes > record_cache->bytes_max && record_cache->lru.last != NULL) {
        struct record_cache_entry *entry =
            LIST_ENTRY(record_cache->lru.last, struct record_cache_entry, in_lru);
        if (entry->users == 0) {
            entry_free(record_cache, entry);
        } else { /* its observations may be all that ends a wait: they stay */
            record_lru_remove(record_cache, entry);
            entry_drop_reply(record_cache, entry);
        }
    }
}

struct record_cache_entry *record_cache_find(const struct record_cache *record_cache,
                                             const char *key)
{
    return (struct record_cache_entry *)table_find(&record_cache->table, key);
}

struct record_cache_entry *record_cache_ref(struct record_cache *record_cache, const char *key)
{
    struct record_cache_entry *entry = record_cache_find(record_cache, key);
    size_t size = strlen(key) + 1;
    if (entry == NULL) {
        entry = malloc(sizeof *entry + size);
        if (entry == NULL)
            return NULL;
        memset(entry, 0, sizeof *entry);
        memcpy(entry->key, key, size);
        table_put(&record_cache->table, &entry->node, entry->key);
    }
    entry->users++;
    return entry;
}

void record_cache_unref(struct record_cache *record_cache, struct record_cache_entry *entry)
{
    ASSERT(entry->users > 0);
    entry->users--;
    bool worth_keeping = entry->saved_reply != NULL || entry->observed != NULL;
    if (entry->users == 0 && !worth_keeping) {
        entry_free(record_cache, entry);
        return;
    }
    record_lru_push(record_cache, entry);
    record_cache_evict(record_cache);
}

void record_cache_set(struct record_cache *record_cache, struct record_cache_entry *entry,
                      struct saved_reply *saved_reply)
{
    record_lru_remove(record_cache, entry);
    entry_drop_reply(record_cache, entry);
    entry->saved_reply = saved_reply;
    if (saved_reply != NULL) {
        record_cache->copies++;
        record_lru_push(record_cache, entry);
    }
    record_cache_evict(record_cache);
}

void record_cache_load_observations(const struct record_cache_entry *entry,
                                    struct observations *out)
{
    const struct saved_observations *kept = entry->observed;
    out->offer = kept != NULL ? kept->offer : 0;
    out->offer_since_ms = kept != NULL ? kept->offer_since_ms : 0;
    out->count = kept != NULL ? kept->count : 0;
    if (out->count > 0)
        memcpy(out->observed, kept->observed, out->count * sizeof kept->observed[0]);
}

/* An absent span needs no slot. */
static bool is_observed(const struct observation *observation)
{
    return observation->revision != 0;
}

void record_cache_save_observations(struct record_cache_entry *entry,
                                    const struct observations *observations)
{
    size_t count = 0;
    struct saved_observations *kept = entry->observed;
    for (size_t i = 0; i < observations->count; i++)
        count += is_observed(&observations->observed[i]) ? 1 : 0;
    if (kept == NULL || kept->count != count) {
        free(kept);
        kept = NULL;
        if (count > 0 || observations->offer != 0)
            kept = malloc(sizeof *kept + count * sizeof kept->observed[0]);
        entry->observed = kept;
    }
    if (kept == NULL) /* empty, or out of memory: observed again */
        return;
    kept->offer = observations->offer;
    kept->offer_since_ms = observations->offer_since_ms;
    kept->count = 0;
    for (size_t i = 0; i < observations->count; i++)
        if (is_observed(&observations->observed[i]))
            kept->observed[kept->count++] = observations->observed[i];
}

void record_cache_done(struct record_cache *record_cache)
{
    table_settle(&record_cache->table);
    for (size_t i = 0; i < record_cache->table.chain_count; i++)
        while (record_cache->table.chains[i] != NULL)
            entry_free(record_cache, (struct record_cache_entry *)record_cache->table.chains[i]);
    table_done(&record_cache->table);
}
