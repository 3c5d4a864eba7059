/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See workload_internal.h: the cache of watched objects. It reads a list, then every change. After
 * a disconnect it resumes; if the server has compacted the revision (410) it lists again. It serves
 * queries and wakes up followers. It must not decide who holds the lock: the creation does.
 */
#include "process/host.h"
#include "workload/workload_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAUSE_FIRST_MS = 50, PAUSE_MAX_MS = 5000 };

/* ---- entries ---- */

/* The index of the name, or of its insertion. */
static size_t workload_cache_index(const struct workload_cache *cache, const char *name)
{
    size_t low = 0, high = cache->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(cache->all[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool workload_cache_is_at(const struct workload_cache *cache, size_t index, const char *name)
{
    return index < cache->count && strcmp(cache->all[index]->name, name) == 0;
}

const struct cached_object *workload_cache_find(const struct workloads *workloads, const char *name)
{
    size_t index = workload_cache_index(&workloads->cache, name);
    return workload_cache_is_at(&workloads->cache, index, name) ? workloads->cache.all[index]
                                                                : NULL;
}

static struct cached_object *workload_cache_insert(struct workload_cache *cache, const char *name)
{
    size_t index = workload_cache_index(cache, name);
    if (workload_cache_is_at(cache, index, name))
        return cache->all[index];
    if (cache->count == cache->room) {
        size_t room = cache->room == 0 ? 64 : cache->room * 2;
        struct cached_object **all =
            cache->count < WORKLOAD_CACHE_MAX
                ? reallocarray(cache->all, room, sizeof(struct cached_object *))
                : NULL;
        if (all == NULL)
            return NULL;
        cache->all = all;
        cache->room = room;
    }
    struct cached_object *cached = calloc(1, sizeof *cached);
    if (cached == NULL)
        return NULL;
    memmove(cache->all + index + 1, cache->all + index,
            (cache->count - index) * sizeof(struct cached_object *));
    cache->all[index] = cached;
    cache->count++;
    return cached;
}

static void workload_cache_clear(struct workload_cache *cache)
{
    for (size_t i = 0; i < cache->count; i++)
        free(cache->all[i]);
    cache->count = 0;
    cache->complete = cache->overflowed = false;
}

static bool workload_cache_read_view(struct workloads *workloads, const json_t *object,
                                     struct workload_view *out)
{
    if (!workload_read(object, &workloads->rules, NULL, workloads->holder_label, out))
        return false;
    if (strcmp(out->uid, workloads->cache.followed.uid) == 0) {
        workloads->cache.followed = *out;
        workloads->cache.followed_seen = true;
    }
    return true;
}

void workload_cache_remove(struct workloads *workloads, const char *name)
{
    struct workload_cache *cache = &workloads->cache;
    size_t index = workload_cache_index(cache, name);
    if (!workload_cache_is_at(cache, index, name))
        return;
    free(cache->all[index]);
    cache->count--;
    memmove(cache->all + index, cache->all + index + 1,
            (cache->count - index) * sizeof(struct cached_object *));
}

/* A reply may already have added the successor under that name. */
static void workload_cache_on_deletion(struct workloads *workloads, const json_t *object,
                                       const char *name)
{
    struct workload_cache *cache = &workloads->cache;
    struct workload_view last;
    const struct cached_object *known = workload_cache_find(workloads, name);
    if (!workload_cache_read_view(workloads, object, &last))
        return;
    if (strcmp(last.uid, cache->followed.uid) == 0)
        cache->followed_gone = true;
    if (known != NULL && strcmp(last.uid, known->view.uid) == 0)
        workload_cache_remove(workloads, name);
}

void workload_cache_put(struct workloads *workloads, const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const char *name = kube_string(metadata, "name");
    const char *key = kube_string(json_object_get(metadata, "annotations"), "leasehold/key");
    struct workload_view view;
    if (strlen(name) > K8S_NAME_MAX || strlen(key) > KEY_MAX ||
        !workload_cache_read_view(workloads, object, &view))
        return;
    struct cached_object *cached = workload_cache_insert(&workloads->cache, name);
    if (cached == NULL) {
        workloads->cache.overflowed = true;
        return;
    }
    text_copy(cached->name, sizeof cached->name, name);
    text_copy(cached->key, sizeof cached->key, key);
    cached->view = view;
}

/* ---- stream ---- */

static void workload_cache_set_revision(struct workload_cache *cache, const json_t *metadata)
{
    const char *revision = kube_string(metadata, "resourceVersion");
    if (*revision != '\0' && strlen(revision) < sizeof cache->revision)
        text_copy(cache->revision, sizeof cache->revision, revision);
}

/* False if the objects must be listed again. */
static bool workload_cache_on_change(struct workloads *workloads, const json_t *change)
{
    const char *type = kube_string(change, "type");
    const json_t *object = json_object_get(change, "object");
    const json_t *metadata = json_object_get(object, "metadata");
    if (*type == '\0' || strcmp(type, "ERROR") == 0)
        return false;
    workload_cache_set_revision(&workloads->cache, metadata);
    if (strcmp(type, "DELETED") == 0)
        workload_cache_on_deletion(workloads, object, kube_string(metadata, "name"));
    else if (strcmp(type, "BOOKMARK") != 0)
        workload_cache_put(workloads, object);
    return true;
}

static bool workload_cache_on_line(void *owner, json_t *change, size_t size)
{
    struct workloads *workloads = owner;
    struct workload_cache *cache = &workloads->cache;
    bool good = workload_cache_on_change(workloads, change);
    (void)size;
    if (good) {
        backoff_reset(&cache->backoff);
        return true;
    }
    cache->revision[0] = '\0';
    cache->complete = false;
    cache->not_before_ms = host_boot_ms() + backoff_pause_ms(&cache->backoff);
    json_request_cancel(&cache->watch);
    return false;
}

/* The server ends a watch regularly (200); everything else is an error, which may last. */
static void workload_cache_on_end(void *owner, const struct json_reply *reply)
{
    struct workloads *workloads = owner;
    struct workload_cache *cache = &workloads->cache;
    int64_t now_ms = host_boot_ms();
    cache->not_before_ms = now_ms + backoff_pause_ms(&cache->backoff);
    if (reply->status == 200)
        return;
    if (reply->status == 410) {
        cache->revision[0] = '\0';
        cache->complete = false;
    }
    if (cache->down_since_ms == 0)
        cache->down_since_ms = now_ms;
}

static void workload_cache_open_watch(struct workloads *workloads)
{
    struct workload_cache *cache = &workloads->cache;
    struct json_callbacks callbacks = {
        .line = workload_cache_on_line, .done = workload_cache_on_end, .owner = workloads};
    char path[PATH_SIZE * 2 + 128];
    (void)snprintf(path, sizeof path,
                   "%s?watch=true&allowWatchBookmarks=true&timeoutSeconds=%d&resourceVersion=%s&%s",
                   workloads->path, workloads->watch_s, cache->revision, cache->selector);
    struct json_call call = {.method = "GET",
                             .path = path,
                             .most = OBJECT_REPLY_MAX,
                             .give_up_at_ms = host_boot_ms() + workloads->timeout_ms};
    json_request_start(&cache->watch, workloads->kube.json, &call, &callbacks);
    cache->watch_until_ms = call.give_up_at_ms + (int64_t)workloads->watch_s * 1000;
}

/* False on error. */
static bool workload_cache_list_page(struct workloads *workloads, struct json_pages *pages)
{
    char path[KUBE_PATH_MAX];
    struct json_result reply;
    const char *wrong;
    kube_page_path(path, workloads->path, workloads->cache.selector, pages);
    struct json_call call = {.method = "GET", .path = path};
    workloads_call(workloads, &call, &reply);
    const json_t *items = kube_page_items(pages, reply.json, /* length= */ 0, &wrong);
    bool good = reply.status == 200 && wrong == NULL;
    for (size_t i = 0; good && i < json_array_size(items); i++)
        workload_cache_put(workloads, json_array_get(items, i));
    if (good)
        workload_cache_set_revision(&workloads->cache, json_object_get(reply.json, "metadata"));
    json_result_done(&reply);
    return good;
}

static void workload_cache_list_all(struct workloads *workloads)
{
    struct workload_cache *cache = &workloads->cache;
    struct json_pages pages = {0};
    bool good;
    workload_cache_clear(cache);
    cache->followed_seen = false;
    do
        good = workload_cache_list_page(workloads, &pages);
    while (good && pages.next != NULL);
    json_pages_done(&pages);
    if (!good) {
        int64_t now_ms = host_boot_ms();
        cache->revision[0] = '\0';
        if (cache->down_since_ms == 0)
            cache->down_since_ms = now_ms;
        cache->not_before_ms = now_ms + backoff_pause_ms(&cache->backoff);
        return;
    }
    cache->complete = !cache->overflowed;
    cache->followed_gone = cache->followed_gone || !cache->followed_seen;
    cache->down_since_ms = 0;
}

/* ---- interface ---- */

void workload_cache_refresh(struct workloads *workloads)
{
    struct workload_cache *cache = &workloads->cache;
    if (cache->selector[0] == '\0')
        return;
    poller_step(workloads->kube.poller);
    if (host_boot_ms() >= cache->watch_until_ms)
        json_request_cancel(&cache->watch); /* the server has not ended it in time */
    if (cache->watch.api != NULL || host_boot_ms() < cache->not_before_ms)
        return;
    if (cache->revision[0] == '\0' || cache->down_since_ms != 0)
        workload_cache_list_all(workloads);
    if (cache->revision[0] != '\0')
        workload_cache_open_watch(workloads);
}

void workload_cache_watch(struct workloads *workloads, const char *selector)
{
    struct workload_cache *cache = &workloads->cache;
    if (strcmp(selector, cache->selector) == 0)
        return;
    workload_cache_done(workloads);
    (void)snprintf(cache->selector, sizeof cache->selector, "%s", selector);
    backoff_init(&cache->backoff, (uint64_t)host_boot_ms(), PAUSE_FIRST_MS, PAUSE_MAX_MS);
}

void workload_cache_done(struct workloads *workloads)
{
    struct workload_cache *cache = &workloads->cache;
    json_request_cancel(&cache->watch);
    workload_cache_clear(cache);
    free(cache->all);
    *cache = (struct workload_cache){0};
}
