/* SPDX-License-Identifier: Apache-2.0 */
/* See watch_cache.h. */
#include "runtime/watch_cache.h"

#include <stdlib.h>
#include <string.h>

bool watch_cache_init(struct watch_cache *watch_cache)
{
    *watch_cache = (struct watch_cache){0};
    return table_init(&watch_cache->table);
}

static void watch_entry_set(struct watch_cache *watch_cache, struct watch_cache_entry *copy,
                            struct saved_reply *saved_reply)
{
    if (copy->saved_reply != NULL)
        watch_cache->bytes -= copy->saved_reply->size;
    free(copy->saved_reply);
    copy->saved_reply = saved_reply;
    if (saved_reply != NULL)
        watch_cache->bytes += saved_reply->size;
}

static void watch_entry_free(struct watch_cache *watch_cache, struct watch_cache_entry *copy)
{
    watch_entry_set(watch_cache, copy, NULL);
    list_remove(&watch_cache->lru, &copy->in_lru);
    table_remove(&watch_cache->table, &copy->node);
    free(copy);
}

static struct watch_cache_entry *oldest_of(const struct watch_cache *watch_cache)
{
    return LIST_ENTRY(watch_cache->lru.last, struct watch_cache_entry, in_lru);
}

static void watch_cache_evict(struct watch_cache *watch_cache)
{
    while (watch_cache->table.count > WATCH_CACHE_KEYS_MAX ||
           watch_cache->bytes > WATCH_CACHE_BYTES_MAX)
        watch_entry_free(watch_cache, oldest_of(watch_cache));
}

void watch_cache_clear(struct watch_cache *watch_cache)
{
    while (watch_cache->lru.last != NULL)
        watch_entry_free(watch_cache, oldest_of(watch_cache));
}

void watch_cache_done(struct watch_cache *watch_cache)
{
    watch_cache_clear(watch_cache);
    table_done(&watch_cache->table);
}

static struct watch_cache_entry *watch_entry_find(const struct watch_cache *watch_cache,
                                                  const char *key)
{
    return (struct watch_cache_entry *)table_find(&watch_cache->table, key);
}

const struct watch_cache_entry *watch_cache_find(struct watch_cache *watch_cache, const char *key,
                                                 int64_t now_ms)
{
    struct watch_cache_entry *copy = watch_entry_find(watch_cache, key);
    if (copy == NULL || copy->saved_reply == NULL ||
        now_ms - copy->received_at_ms >= WATCH_CACHE_MAX_AGE_MS)
        return NULL;
    list_remove(&watch_cache->lru, &copy->in_lru);
    list_prepend(&watch_cache->lru, &copy->in_lru);
    return copy;
}

uint64_t watch_cache_begin_read(struct watch_cache *watch_cache, const char *key)
{
    size_t size = strlen(key) + 1;
    struct watch_cache_entry *copy = watch_entry_find(watch_cache, key);
    if (copy != NULL)
        return copy->touched;
    copy = calloc(1, sizeof *copy + size);
    if (copy == NULL)
        return 0;
    memcpy(copy->key, key, size);
    copy->touched = ++watch_cache->count;
    table_put(&watch_cache->table, &copy->node, copy->key);
    list_prepend(&watch_cache->lru, &copy->in_lru);
    uint64_t begun = copy->touched;
    watch_cache_evict(watch_cache);
    return begun;
}

/* When out of memory the copy is dropped rather than stale. */
static void watch_entry_update(struct watch_cache *watch_cache, struct watch_cache_entry *copy,
                               const struct store_reply *reply, int64_t now_ms)
{
    copy->touched = ++watch_cache->count;
    copy->received_at_ms = now_ms;
    watch_entry_set(watch_cache, copy, saved_reply_new(reply));
    watch_cache_evict(watch_cache);
}

void watch_cache_end_read(struct watch_cache *watch_cache, const char *key, uint64_t begun,
                          const struct store_reply *reply, int64_t now_ms)
{
    struct watch_cache_entry *copy = watch_entry_find(watch_cache, key);
    if (copy != NULL && copy->touched == begun)
        watch_entry_update(watch_cache, copy, reply, now_ms);
}

void watch_cache_on_change(struct watch_cache *watch_cache, const struct store_reply *reply,
                           int64_t now_ms)
{
    struct watch_cache_entry *copy = watch_entry_find(watch_cache, reply->key);
    if (copy != NULL && copy->saved_reply != NULL)
        watch_entry_update(watch_cache, copy, reply, now_ms);
    else if (copy != NULL)
        copy->touched = ++watch_cache->count;
}
