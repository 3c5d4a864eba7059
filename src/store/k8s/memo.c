/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What we remember of Leases: enough to write over one without reading it first. A small table
 * where newcomers push others out; whoever is not found costs one more request, nothing else.
 */
#include "store/k8s/k8s_inside.h"
#include "wire/record_codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct memo *slot_of(struct k8s *k8s, const char *name)
{
    uint32_t hash = 2166136261U;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619U;
    return &k8s->memos[(hash ^ hash >> 15) % MEMOS];
}

static void clear(struct k8s *k8s, struct memo *memo)
{
    k8s->memo_bytes -= memo->size;
    json_decref(memo->json);
    free(memo->beside);
    *memo = (struct memo){0};
}

struct memo *memo_of(struct k8s *k8s, const char *name)
{
    struct memo *memo = slot_of(k8s, name);
    return memo->json != NULL && strcmp(memo->name, name) == 0 ? memo : NULL;
}

void memo_forget(struct k8s *k8s, const char *name)
{
    struct memo *memo = memo_of(k8s, name);
    if (memo == NULL)
        return;
    const char *uid = kube_words(json_object_get(memo->json, "metadata"), "uid");
    text_copy(k8s->forgotten.name, sizeof k8s->forgotten.name, memo->name);
    (void)snprintf(k8s->forgotten.uid, sizeof k8s->forgotten.uid, "%s", uid);
    clear(k8s, memo);
}

void memo_doubt(struct k8s *k8s, const char *name)
{
    struct memo *memo = memo_of(k8s, name);
    if (memo != NULL)
        memo->revision = 0;
}

const char *memo_read(struct k8s *k8s, const json_t *json, struct object *out)
{
    const char *wrong = object_read(json, out);
    const struct memo *memo = wrong == NULL ? memo_of(k8s, out->name) : NULL;
    if (memo != NULL && out->print != 0 && memo->print == out->print)
        out->written.revision = memo->written;
    return wrong;
}

void memo_forget_all(struct k8s *k8s)
{
    for (size_t i = 0; i < MEMOS; i++)
        clear(k8s, &k8s->memos[i]);
}

bool memo_put_beside(struct k8s *k8s, const char *name, const char *bytes, size_t length)
{
    struct memo *memo = memo_of(k8s, name);
    char *copy = memo != NULL ? strndup(bytes, length) : NULL;
    if (copy == NULL)
        return false;
    free(memo->beside);
    memo->beside = copy;
    memo->awaited = true;
    return true;
}

static bool awaits(struct k8s *k8s, const struct object *object)
{
    struct codec_error error;
    return object->state == OBJECT_OURS &&
           record_decode(object->record, strlen(object->record), &k8s->scratch, &error) ==
               DECODE_OK &&
           record_place_by_session(&k8s->scratch, k8s->site.session) != NULL;
}

void memo_keep(struct k8s *k8s, json_t *json, size_t size, const struct object *object)
{
    struct memo *memo = slot_of(k8s, object->name);
    bool same = memo->json != NULL && strcmp(memo->name, object->name) == 0;
    if (same && memo->revision >= object->revision)
        return; /* a watch lags behind our own writes */
    char *beside = same && object->state == OBJECT_FOREIGN ? memo->beside : NULL;
    if (beside != NULL)
        memo->beside = NULL; /* goes on in the new one */
    clear(k8s, memo);
    /* Who waits is looked for only once somebody of this process does. */
    bool awaited = beside != NULL || (k8s->watch.wanted && awaits(k8s, object));
    while (k8s->memo_bytes > 0 && k8s->memo_bytes + size > MEMOS_BYTES)
        clear(k8s, &k8s->memos[k8s->memo_hand++ % MEMOS]);
    *memo = (struct memo){.json = json_incref(json),
                          .size = size,
                          .revision = object->revision,
                          .print = object->print,
                          .written = object->written.revision,
                          .state = object->state,
                          .awaited = awaited,
                          .beside = beside};
    text_copy(memo->name, sizeof memo->name, object->name);
    k8s->memo_bytes += size;
}
