/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See workloads_inside.h: the watched copy. A list, then every change behind it; after a cut it
 * goes on where it was, and when the server has forgotten that (410) it lists again. The copy is
 * for looks and for knowing when to go on. It never decides who may: the create does.
 */
#include "io/host.h"
#include "store/k8s/workloads_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAUSE_FIRST_MS = 50, PAUSE_MOST_MS = 5000, PAGE = 50, PAGES_MAX = 2000 };

/* ---- the copy ---- */

/* Where it is, or would be. */
static size_t place_of(const struct sights *sights, const char *name)
{
    size_t low = 0, high = sights->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(sights->all[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct sights *sights, size_t place, const char *name)
{
    return place < sights->count && strcmp(sights->all[place]->name, name) == 0;
}

const struct sight *sights_find(const struct workloads *workloads, const char *name)
{
    size_t place = place_of(&workloads->sights, name);
    return is_at(&workloads->sights, place, name) ? workloads->sights.all[place] : NULL;
}

static struct sight *make_room(struct sights *sights, const char *name)
{
    size_t place = place_of(sights, name);
    if (is_at(sights, place, name))
        return sights->all[place];
    if (sights->count == sights->room) {
        size_t room = sights->room == 0 ? 64 : sights->room * 2;
        struct sight **all = sights->count < SIGHTS_MAX
                                 ? reallocarray(sights->all, room, sizeof(struct sight *))
                                 : NULL;
        if (all == NULL)
            return NULL;
        sights->all = all;
        sights->room = room;
    }
    struct sight *sight = calloc(1, sizeof *sight);
    if (sight == NULL)
        return NULL;
    memmove(sights->all + place + 1, sights->all + place,
            (sights->count - place) * sizeof(struct sight *));
    sights->all[place] = sight;
    sights->count++;
    return sight;
}

static void forget(struct sights *sights, const char *name)
{
    size_t place = place_of(sights, name);
    if (!is_at(sights, place, name))
        return;
    free(sights->all[place]);
    sights->count--;
    memmove(sights->all + place, sights->all + place + 1,
            (sights->count - place) * sizeof(struct sight *));
}

static void forget_all(struct sights *sights)
{
    for (size_t i = 0; i < sights->count; i++)
        free(sights->all[i]);
    sights->count = 0;
    sights->complete = sights->over_full = false;
}

static bool read_view(struct workloads *workloads, const json_t *object, struct workload_view *out)
{
    if (!workload_read(object, &workloads->rules, NULL, workloads->holder_label, out))
        return false;
    if (strcmp(out->uid, workloads->sights.followed.uid) == 0) {
        workloads->sights.followed = *out;
        workloads->sights.followed_seen = true;
    }
    return true;
}

void sights_forget(struct workloads *workloads, const char *name)
{
    forget(&workloads->sights, name);
}

/* An answer may have told us of the next one under that name already. */
static void note_deletion(struct workloads *workloads, const json_t *object, const char *name)
{
    struct sights *sights = &workloads->sights;
    struct workload_view last;
    const struct sight *known = sights_find(workloads, name);
    if (!read_view(workloads, object, &last))
        return;
    if (strcmp(last.uid, sights->followed.uid) == 0)
        sights->followed_gone = true;
    if (known != NULL && strcmp(last.uid, known->view.uid) == 0)
        forget(sights, name);
}

void sights_note(struct workloads *workloads, const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const char *name = kube_words(metadata, "name");
    const char *key = kube_words(json_object_get(metadata, "annotations"), "leasehold/key");
    struct workload_view view;
    if (strlen(name) > K8S_NAME_MAX || strlen(key) > KEY_MAX ||
        !read_view(workloads, object, &view))
        return;
    struct sight *sight = make_room(&workloads->sights, name);
    if (sight == NULL) {
        workloads->sights.over_full = true;
        return;
    }
    text_copy(sight->name, sizeof sight->name, name);
    text_copy(sight->key, sizeof sight->key, key);
    sight->view = view;
}

/* ---- the stream ---- */

static void note_revision(struct sights *sights, const json_t *metadata)
{
    const char *revision = kube_words(metadata, "resourceVersion");
    if (*revision != '\0' && strlen(revision) < sizeof sights->revision)
        text_copy(sights->revision, sizeof sights->revision, revision);
}

/* False when the list must be had anew. */
static bool hear(struct workloads *workloads, const json_t *change)
{
    const char *type = kube_words(change, "type");
    const json_t *object = json_object_get(change, "object");
    const json_t *metadata = json_object_get(object, "metadata");
    if (*type == '\0' || strcmp(type, "ERROR") == 0)
        return false;
    note_revision(&workloads->sights, metadata);
    if (strcmp(type, "DELETED") == 0)
        note_deletion(workloads, object, kube_words(metadata, "name"));
    else if (strcmp(type, "BOOKMARK") != 0)
        sights_note(workloads, object);
    return true;
}

static size_t on_piece(void *owner, const char *bytes, size_t length)
{
    struct workloads *workloads = owner;
    struct sights *sights = &workloads->sights;
    size_t used = 0;
    const char *end;
    while ((end = memchr(bytes + used, '\n', length - used)) != NULL) {
        json_t *change = kube_parse(bytes + used, (size_t)(end - bytes) - used);
        used = (size_t)(end - bytes) + 1;
        bool good = hear(workloads, change);
        json_decref(change);
        backoff_reset(&sights->backoff);
        if (!good) {
            sights->revision[0] = '\0';
            sights->complete = false;
            return length;
        }
    }
    return used;
}

/* A watch is ended by the server now and then; the rest is trouble, which may last. */
static void on_end(void *owner, const struct http_answer *answer)
{
    struct workloads *workloads = owner;
    struct sights *sights = &workloads->sights;
    int64_t now_ms = host_boot_ms();
    sights->watch = NULL;
    sights->not_before_ms = now_ms + backoff_pause_ms(&sights->backoff);
    if (answer->status == 200)
        return;
    if (answer->status == 410) {
        sights->revision[0] = '\0';
        sights->complete = false;
    }
    if (answer->status == 401)
        kube_login_refused(workloads->login);
    if (sights->silent_from_ms == 0)
        sights->silent_from_ms = now_ms;
}

static void listen_on(struct workloads *workloads)
{
    struct sights *sights = &workloads->sights;
    struct http_site site = {.piece = on_piece, .done = on_end, .owner = workloads};
    char path[PATH_SIZE * 2 + 128], words[WHY_SIZE];
    (void)snprintf(path, sizeof path,
                   "%s?watch=true&allowWatchBookmarks=true&timeoutSeconds=%d&resourceVersion=%s&%s",
                   workloads->path, workloads->watch_s, sights->revision, sights->selector);
    struct kube_ask ask = {
        .method = "GET", .path = path, .most = ANSWER_MAX, .patience_ms = workloads->patience_ms};
    struct text why;
    text_init(&why, words, sizeof words); /* it is tried again, so nobody asks */
    if (kube_login_ready(workloads->login))
        sights->watch = kube_ask(workloads->login, workloads->http, &ask, &site, &why);
    if (sights->watch == NULL)
        sights->not_before_ms = host_boot_ms() + backoff_pause_ms(&sights->backoff);
    sights->watch_until_ms =
        host_boot_ms() + (int64_t)workloads->watch_s * 1000 + workloads->patience_ms;
}

/* One page; the name of the next one in `more`, empty behind the last. False: trouble. */
static bool list_page(struct workloads *workloads, char *more, size_t size)
{
    char path[PATH_SIZE * 2 + 128 + 2048];
    struct reply reply;
    const char *wrong = NULL;
    (void)snprintf(path, sizeof path, "%s?limit=%d%s%s&%s", workloads->path, PAGE,
                   *more != '\0' ? "&continue=" : "", more, workloads->sights.selector);
    struct kube_ask ask = {.method = "GET", .path = path};
    workloads_ask(workloads, &ask, &reply);
    const json_t *metadata = json_object_get(reply.json, "metadata");
    const json_t *items = json_object_get(reply.json, "items");
    char *next = kube_list_next(reply.json, *more != '\0' ? more : NULL, &wrong);
    bool is_list = json_is_array(items) || json_is_null(items); /* null: an empty one of Go's */
    bool good = reply.status == 200 && is_list && wrong == NULL;
    if (good) {
        for (size_t i = 0; i < json_array_size(items); i++)
            sights_note(workloads, json_array_get(items, i));
        note_revision(&workloads->sights, metadata);
        (void)snprintf(more, size, "%s", next != NULL ? next : "");
    }
    free(next);
    reply_done(&reply);
    return good;
}

static void list_all(struct workloads *workloads)
{
    struct sights *sights = &workloads->sights;
    char more[2048] = "";
    forget_all(sights);
    sights->followed_seen = false;
    for (unsigned pages = 0; pages == 0 || *more != '\0'; pages++) {
        if (pages >= PAGES_MAX || !list_page(workloads, more, sizeof more)) {
            int64_t now_ms = host_boot_ms();
            sights->revision[0] = '\0';
            if (sights->silent_from_ms == 0)
                sights->silent_from_ms = now_ms;
            sights->not_before_ms = now_ms + backoff_pause_ms(&sights->backoff);
            return;
        }
    }
    sights->complete = !sights->over_full;
    sights->followed_gone = sights->followed_gone || !sights->followed_seen;
    sights->silent_from_ms = 0;
}

/* ---- the whole ---- */

void sights_refresh(struct workloads *workloads)
{
    struct sights *sights = &workloads->sights;
    if (sights->selector[0] == '\0')
        return;
    net_step(workloads->net);
    if (sights->watch != NULL && host_boot_ms() >= sights->watch_until_ms) {
        http_cancel(sights->watch); /* who should have ended it has forgotten us */
        sights->watch = NULL;
    }
    if (sights->watch != NULL || host_boot_ms() < sights->not_before_ms)
        return;
    if (sights->revision[0] == '\0' || sights->silent_from_ms != 0)
        list_all(workloads);
    if (sights->revision[0] != '\0')
        listen_on(workloads);
}

void sights_watch(struct workloads *workloads, const char *selector)
{
    struct sights *sights = &workloads->sights;
    if (strcmp(selector, sights->selector) == 0)
        return;
    sights_done(workloads);
    (void)snprintf(sights->selector, sizeof sights->selector, "%s", selector);
    backoff_init(&sights->backoff, (uint64_t)host_boot_ms(), PAUSE_FIRST_MS, PAUSE_MOST_MS);
}

void sights_done(struct workloads *workloads)
{
    struct sights *sights = &workloads->sights;
    if (sights->watch != NULL)
        http_cancel(sights->watch);
    forget_all(sights);
    free(sights->all);
    *sights = (struct sights){0};
}
