/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One watch of the namespace's Leases, shared by all who want to know and by whoever of this
 * process waits for its turn. It begins at a revision that the server names, goes on behind the
 * last one that was told, and after a cut it goes on there again. When the server has forgotten
 * that one (410), watchers are told so: what happened in between is not known.
 */
#include "io/host.h"
#include "store/k8s/k8s_inside.h"
#include "wire/record_codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAUSE_FIRST_MS = 50, PAUSE_MOST_MS = 5000, WATCH_S = 120 };

/* ---- telling ---- */

static void tell_watchers(struct k8s *k8s, const struct object *object, const char *key,
                          bool deleted)
{
    struct watcher *next;
    for (struct watcher *watcher = k8s->watch.watchers; watcher != NULL; watcher = next) {
        next = watcher->next;
        if (strncmp(key, watcher->prefix, strlen(watcher->prefix)) != 0)
            continue;
        struct store_answer answer = k8s_answer(k8s, object, key);
        if (deleted)
            answer = (struct store_answer){.result = ANSWER_OK, .key = key, .now_ms = TIME_UNKNOWN};
        answer.more = true;
        watcher->done(watcher->caller, &answer);
    }
}

/* What a record says to a process that waits or holds. */
struct concern {
    bool calls; /* it has to do something about it … */
    bool holds; /* … or should know, for its next write … */
    bool named; /* … and the record says all that there is to know */
};

/* A place that we had and that is gone was sent home: what it waited for was done. */
static struct concern concern_of(struct k8s *k8s, const struct object *object, bool awaited)
{
    struct codec_error error;
    struct record *record = &k8s->scratch;
    struct concern concern = {0};
    if (record_decode(object->record, strlen(object->record), record, &error) != DECODE_OK)
        return concern;
    for (size_t i = 0; i < record->grant_count; i++) {
        bool own = record->grants[i].session == k8s->site.session;
        concern.holds = concern.holds || own;
        concern.calls = concern.calls || (own && record->grants[i].broken);
    }
    const struct place *own = record_place_by_session(record, k8s->site.session);
    bool open = record->grant_count == 0 && record_offers(record) == 0;
    concern.named = concern.holds || own != NULL;
    concern.calls = concern.calls || (own != NULL ? own->offered || open : awaited);
    return concern;
}

/*
 * Another program's renewal is told with what it left there: from then on its lease runs, by the
 * clock of whoever waits, and nobody has to ask.
 */
static void notice(struct k8s *k8s, const struct object *object, const char *key, bool deleted)
{
    const struct memo *memo = memo_of(k8s, object->name);
    bool awaited = memo != NULL && memo->awaited;
    struct concern concern = {0};
    if (k8s->site.notice == NULL)
        return;
    if (deleted || object->state == OBJECT_VACANT) {
        concern.calls = awaited;
    } else if (object->state == OBJECT_OURS) {
        concern = concern_of(k8s, object, awaited);
        concern.calls = concern.calls || (awaited && memo->state != OBJECT_OURS);
    } else {
        concern.calls = concern.named = awaited;
    }
    if (!concern.calls && !concern.holds)
        return;
    struct store_answer stands = k8s_answer(k8s, object, key);
    k8s->site.notice(k8s->site.owner, key, concern.named ? &stands : NULL);
}

/* Everybody whose place we know of looks once: what happened before the watch is not told. */
static void notice_all(struct k8s *k8s)
{
    for (size_t i = 0; i < MEMOS && k8s->site.notice != NULL; i++) {
        struct object object;
        const struct memo *memo = &k8s->memos[i];
        bool awaited = memo->awaited && object_read(memo->json, &object) == NULL;
        const char *key = awaited ? k8s_key_of(k8s, &object) : NULL;
        if (key != NULL)
            k8s->site.notice(k8s->site.owner, key, /* stands= */ NULL);
    }
}

/* False when the watch must begin anew. */
static bool hear_change(struct k8s *k8s, const json_t *change, size_t size)
{
    struct object object;
    const char *type = json_string_value(json_object_get(change, "type"));
    json_t *json = json_object_get(change, "object");
    const char *revision =
        json_string_value(json_object_get(json_object_get(json, "metadata"), "resourceVersion"));
    if (type == NULL || strcmp(type, "ERROR") == 0)
        return false;
    if (revision != NULL)
        k8s->watch.revision = strtoull(revision, NULL, 10);
    if (strcmp(type, "BOOKMARK") == 0 || memo_read(k8s, json, &object) != NULL)
        return true;
    const char *key = k8s_key_of(k8s, &object);
    bool deleted = strcmp(type, "DELETED") == 0;
    if (key == NULL)
        return true;
    notice(k8s, &object, key, deleted);
    if (!deleted)
        memo_keep(k8s, json, size, &object);
    else if (memo_of(k8s, object.name) != NULL &&
             memo_of(k8s, object.name)->revision <= object.revision)
        memo_forget(k8s, object.name);
    tell_watchers(k8s, &object, key, deleted);
    return true;
}

static void tell_trouble(struct k8s *k8s, const char *why)
{
    struct k8s_watch *watch = &k8s->watch;
    struct store_answer answer = {.result = ANSWER_TROUBLE, .now_ms = TIME_UNKNOWN, .why = why};
    watch->stands = false;
    while (watch->watchers != NULL) {
        struct watcher *watcher = watch->watchers;
        watch->watchers = watcher->next;
        watcher->done(watcher->caller, &answer);
        free(watcher);
    }
}

/* ---- the stream ---- */

static void pause_watch(struct k8s *k8s)
{
    struct k8s_watch *watch = &k8s->watch;
    net_call_at(k8s->net, &watch->again, host_boot_ms() + backoff_pause_ms(&watch->backoff));
}

static void drop_watch(struct k8s *k8s)
{
    if (k8s->watch.http != NULL)
        http_cancel(k8s->watch.http);
    k8s->watch.http = NULL;
}

/* Trouble that lasts is told; until then somebody may still be told everything. */
static void stumble(struct k8s *k8s, const char *why)
{
    struct k8s_watch *watch = &k8s->watch;
    int64_t now_ms = host_boot_ms();
    if (watch->trouble_since_ms == 0)
        watch->trouble_since_ms = now_ms;
    if (now_ms - watch->trouble_since_ms >= k8s->site.patience_ms)
        tell_trouble(k8s, why);
    pause_watch(k8s);
}

static size_t on_piece(void *owner, const char *bytes, size_t length)
{
    struct k8s *k8s = owner;
    size_t used = 0;
    const char *end;
    while ((end = memchr(bytes + used, '\n', length - used)) != NULL) {
        size_t line = (size_t)(end - bytes) - used;
        json_t *change = kube_parse(bytes + used, line);
        bool good =
            change != NULL && hear_change(k8s, change, kube_parsed_size(bytes + used, line));
        json_decref(change);
        used = (size_t)(end - bytes) + 1;
        k8s->watch.trouble_since_ms = 0;
        backoff_reset(&k8s->watch.backoff);
        if (!good) {
            tell_trouble(k8s, "the API server no longer knows where the watch stood");
            drop_watch(k8s);
            pause_watch(k8s);
            return length;
        }
    }
    return used;
}

static void on_end(void *owner, const struct http_answer *answer)
{
    struct k8s *k8s = owner;
    struct k8s_watch *watch = &k8s->watch;
    watch->http = NULL;
    if (answer->status == 410)
        tell_trouble(k8s, "the API server no longer knows where the watch stood");
    if (answer->status == 401)
        kube_login_refused(k8s->login);
    if (answer->status == 200)
        pause_watch(k8s); /* its time was over */
    else
        stumble(k8s, k8s_explain(k8s, answer));
}

static void follow(struct k8s *k8s)
{
    struct k8s_watch *watch = &k8s->watch;
    char path[256];
    struct http_site site = {.piece = on_piece, .done = on_end, .owner = k8s};
    int64_t patient_until_ms = host_boot_ms() + k8s->site.patience_ms;
    unsigned length_s =
        watch->length_s + (unsigned)random_below(&watch->backoff.random, watch->length_s);
    (void)snprintf(
        path, sizeof path,
        "?watch=true&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=%" PRIu64, length_s,
        watch->revision);
    watch->http = k8s_ask(k8s, "GET", path, NULL, ANSWER_MAX, patient_until_ms, &site);
    if (watch->http == NULL)
        stumble(k8s, k8s->why);
    else
        net_call_at(k8s->net, &watch->again, patient_until_ms + (int64_t)length_s * 1000);
}

/* ---- its beginning ---- */

/* It stands: whoever asked for it is told from now on. */
static void open_for(struct errand *errand)
{
    struct k8s *k8s = errand->k8s;
    struct k8s_watch *watch = &k8s->watch;
    struct watcher *watcher = calloc(1, sizeof *watcher);
    if (watcher == NULL) {
        errand_tell_trouble(errand, ANSWER_TROUBLE, "memory is short");
        return;
    }
    text_copy(watcher->prefix, sizeof watcher->prefix, errand->request.key);
    watcher->done = errand->done;
    watcher->caller = errand->caller;
    watcher->next = watch->watchers;
    watch->watchers = watcher;
    errand_tell(errand,
                &(struct store_answer){.result = ANSWER_OK, .more = true, .now_ms = TIME_UNKNOWN});
}

/* Those who came first hear first; whoever is told may ask for more. */
static void open_all(struct k8s *k8s, const char *trouble)
{
    struct errand *errand = k8s->first;
    while (errand != NULL) {
        struct errand *opens = errand;
        errand = errand->next;
        if (opens->phase != ERRAND_OPENS)
            continue;
        if (trouble != NULL)
            errand_tell_trouble(opens, ANSWER_TROUBLE, trouble);
        else
            open_for(opens);
        errand = k8s->first;
    }
}

static void on_beginning(void *owner, const struct http_answer *answer)
{
    struct k8s *k8s = owner;
    struct k8s_watch *watch = &k8s->watch;
    json_t *json = answer->status == 200 ? kube_parse(answer->body, answer->body_length) : NULL;
    const char *revision =
        json_string_value(json_object_get(json_object_get(json, "metadata"), "resourceVersion"));
    watch->http = NULL;
    watch->stands = revision != NULL;
    if (watch->stands) {
        watch->revision = strtoull(revision, NULL, 10);
        follow(k8s);
        open_all(k8s, NULL);
        notice_all(k8s);
    } else {
        if (answer->status == 401)
            kube_login_refused(k8s->login);
        const char *why = k8s_explain(k8s, answer);
        stumble(k8s, why);
        open_all(k8s, why);
    }
    json_decref(json);
}

static void find_beginning(struct k8s *k8s)
{
    struct k8s_watch *watch = &k8s->watch;
    struct http_site site = {.done = on_beginning, .owner = k8s};
    watch->http = k8s_ask(k8s, "GET", "?limit=1", NULL, ANSWER_MAX,
                          host_boot_ms() + k8s->site.patience_ms, &site);
    if (watch->http != NULL)
        return;
    stumble(k8s, k8s->why);
    open_all(k8s, k8s->why);
}

static void on_again(void *owner)
{
    struct k8s *k8s = owner;
    drop_watch(k8s); /* who should have ended it has forgotten us */
    if (!kube_login_ready(k8s->login))
        pause_watch(k8s);
    else if (k8s->watch.stands)
        follow(k8s);
    else
        find_beginning(k8s);
}

void watch_want(struct k8s *k8s)
{
    if (k8s->watch.wanted)
        return; /* it is there, on its way, or tried again before long */
    k8s->watch.wanted = true;
    net_call_at(k8s->net, &k8s->watch.again, host_boot_ms());
}

void watch_add(struct errand *errand)
{
    if (errand->k8s->watch.stands)
        open_for(errand);
    else
        watch_want(errand->k8s); /* it is told once it stands */
}

void watch_init(struct k8s *k8s, uint64_t seed)
{
    k8s->watch.again.due = on_again;
    k8s->watch.again.owner = k8s;
    k8s->watch.again.at_ms = NET_NEVER;
    k8s->watch.length_s = WATCH_S;
    backoff_init(&k8s->watch.backoff, seed, PAUSE_FIRST_MS, PAUSE_MOST_MS);
}

void watch_done(struct k8s *k8s)
{
    struct k8s_watch *watch = &k8s->watch;
    drop_watch(k8s);
    net_call_at(k8s->net, &watch->again, NET_NEVER);
    while (watch->watchers != NULL) {
        struct watcher *watcher = watch->watchers;
        watch->watchers = watcher->next;
        free(watcher);
    }
}
