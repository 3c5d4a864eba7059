/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache of Leases, so that a write needs no read before it. A small hash table in which new
 * entries evict old ones; a miss costs one more request and nothing else.
 */
#include "base/hash.h"
#include "store/k8s/k8s_internal.h"
#include "wire/record_codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cached_lease *lease_cache_slot(struct k8s *k8s, const char *name)
{
    return &k8s->lease_cache[hash_string(name) % LEASE_CACHE_SLOTS];
}

static void lease_cache_evict(struct k8s *k8s, struct cached_lease *cached)
{
    k8s->lease_cache_bytes -= cached->size;
    json_decref(cached->json);
    free(cached->local_record);
    *cached = (struct cached_lease){0};
}

struct cached_lease *lease_cache_find(struct k8s *k8s, const char *name)
{
    struct cached_lease *cached = lease_cache_slot(k8s, name);
    return cached->json != NULL && strcmp(cached->name, name) == 0 ? cached : NULL;
}

void lease_cache_remove(struct k8s *k8s, const char *name)
{
    struct cached_lease *cached = lease_cache_find(k8s, name);
    if (cached == NULL)
        return;
    const char *uid = kube_string(json_object_get(cached->json, "metadata"), "uid");
    text_copy(k8s->last_removed.name, sizeof k8s->last_removed.name, cached->name);
    (void)snprintf(k8s->last_removed.uid, sizeof k8s->last_removed.uid, "%s", uid);
    lease_cache_evict(k8s, cached);
}

void lease_cache_invalidate(struct k8s *k8s, const char *name)
{
    struct cached_lease *cached = lease_cache_find(k8s, name);
    if (cached != NULL)
        cached->revision = 0;
}

const char *lease_cache_parse(struct k8s *k8s, const json_t *json, struct k8s_lease *out)
{
    const char *wrong = k8s_lease_parse(json, out);
    const struct cached_lease *cached = wrong == NULL ? lease_cache_find(k8s, out->name) : NULL;
    if (cached != NULL && out->write_hash != 0 && cached->write_hash == out->write_hash)
        out->written.revision = cached->written;
    return wrong;
}

void lease_cache_clear(struct k8s *k8s)
{
    for (size_t i = 0; i < LEASE_CACHE_SLOTS; i++)
        lease_cache_evict(k8s, &k8s->lease_cache[i]);
}

bool lease_cache_set_local(struct k8s *k8s, const char *name, const char *bytes, size_t length)
{
    struct cached_lease *cached = lease_cache_find(k8s, name);
    char *copy = cached != NULL ? strndup(bytes, length) : NULL;
    if (copy == NULL)
        return false;
    free(cached->local_record);
    cached->local_record = copy;
    cached->awaited = true;
    return true;
}

static bool has_own_waiter(struct k8s *k8s, const struct k8s_lease *lease)
{
    struct codec_error error;
    return lease->state == K8S_LEASE_OURS &&
           record_decode(lease->record, strlen(lease->record), &k8s->scratch, &error) ==
               DECODE_OK &&
           record_waiter_by_session(&k8s->scratch, k8s->callbacks.session) != NULL;
}

void lease_cache_put(struct k8s *k8s, json_t *json, size_t size, const struct k8s_lease *lease)
{
    struct cached_lease *cached = lease_cache_slot(k8s, lease->name);
    k8s_epoch_observe(k8s, lease->written.epoch);
    bool same = cached->json != NULL && strcmp(cached->name, lease->name) == 0;
    if (same && cached->revision >= lease->revision)
        return; /* a watch lags behind our own writes */
    char *local_record = same && lease->state == K8S_LEASE_FOREIGN ? cached->local_record : NULL;
    if (local_record != NULL)
        cached->local_record = NULL; /* moves to the new entry */
    lease_cache_evict(k8s, cached);
    /* Records are searched for own waiters only once this process has a waiter. */
    bool awaited = local_record != NULL || (k8s->watch.wanted && has_own_waiter(k8s, lease));
    while (k8s->lease_cache_bytes > 0 && k8s->lease_cache_bytes + size > LEASE_CACHE_BYTES)
        lease_cache_evict(k8s, &k8s->lease_cache[k8s->lease_cache_hand++ % LEASE_CACHE_SLOTS]);
    *cached = (struct cached_lease){.json = json_incref(json),
                                    .size = size,
                                    .revision = lease->revision,
                                    .write_hash = lease->write_hash,
                                    .written = lease->written.revision,
                                    .state = lease->state,
                                    .awaited = awaited,
                                    .local_record = local_record};
    text_copy(cached->name, sizeof cached->name, lease->name);
    k8s->lease_cache_bytes += size;
}
