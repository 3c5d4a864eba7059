/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request of the seam as requests to the API server: one when nobody touched the Lease since we
 * last saw it, two or three otherwise. Requests about one key go one after the other, all others at
 * the same time. What was refused (401, 409, 429) did not happen and may be tried again; what got
 * no answer may have happened, and is never sent again.
 */
#include "base/check.h"
#include "io/host.h"
#include "store/k8s/k8s_inside.h"
#include "wire/record_codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKS_MAX = 4 };

static void start(struct errand *errand);
static void on_answer(void *owner, const struct http_answer *answer);

/* ---- the queue ---- */

static uint64_t hash_of(const char *words)
{
    uint64_t hash = 0xcbf29ce484222325U;
    for (; *words != '\0'; words++)
        hash = (hash ^ (unsigned char)*words) * 0x100000001b3U;
    return hash;
}

static void wake_at(struct k8s *k8s, int64_t at_ms)
{
    if (k8s->later.net == NULL || at_ms < k8s->later.at_ms)
        net_call_at(k8s->net, &k8s->later, at_ms);
}

/*
 * Somebody before it wants the same key, or a watch that it should be told of does not stand yet.
 * Nobody waits long for a watch: a renewal must not be late because of one.
 */
static bool is_behind(const struct errand *errand, int64_t now_ms)
{
    enum { WATCH_FIRST_MS = 500 };
    struct k8s *k8s = errand->k8s;
    for (const struct errand *other = k8s->first; other != errand; other = other->next) {
        int64_t until_ms = other->give_up_at_ms - k8s->site.patience_ms + WATCH_FIRST_MS;
        if (other->hash == errand->hash)
            return true;
        if (other->request.verb == VERB_STORE_WATCH && now_ms < until_ms) {
            wake_at(k8s, until_ms);
            return true;
        }
    }
    return false;
}

void errand_add(struct k8s *k8s, const struct store_request *request, store_done *done,
                void *caller)
{
    struct errand *errand = k8s->errand_count < ERRANDS_MAX ? calloc(1, sizeof *errand) : NULL;
    int64_t now_ms = host_boot_ms();
    if (errand == NULL) {
        done(caller, &(struct store_answer){.result = ANSWER_TROUBLE,
                                            .now_ms = TIME_UNKNOWN,
                                            .why = "too many requests are on their way"});
        return;
    }
    errand->k8s = k8s;
    errand->request = *request;
    errand->done = done;
    errand->caller = caller;
    errand->hash = hash_of(request->key);
    errand->give_up_at_ms = now_ms + k8s->site.patience_ms;
    if (k8s->last != NULL)
        k8s->last->next = errand;
    else
        k8s->first = errand;
    k8s->last = errand;
    k8s->errand_count++;
    wake_at(k8s, now_ms);
}

static void take_out(struct errand *errand)
{
    struct k8s *k8s = errand->k8s;
    struct errand **at = &k8s->first, *before = NULL;
    while (*at != errand) {
        before = *at;
        at = &(*at)->next;
    }
    *at = errand->next;
    if (k8s->last == errand)
        k8s->last = before;
    k8s->errand_count--;
}

void errands_advance(struct k8s *k8s)
{
    int64_t now_ms = host_boot_ms();
    struct errand *next;
    for (struct errand *errand = k8s->first; errand != NULL; errand = next) {
        next = errand->next; /* starting one can end it, but none behind it */
        if (errand->phase != ERRAND_WAITS || is_behind(errand, now_ms))
            continue;
        int64_t at_ms = k8s->paused_until_ms > errand->not_before_ms ? k8s->paused_until_ms
                                                                     : errand->not_before_ms;
        if (at_ms > now_ms)
            wake_at(k8s, at_ms);
        else if (kube_login_ready(k8s->login))
            start(errand);
    }
}

static void drop(struct errand *errand)
{
    json_decref(errand->sent);
    free(errand->page);
    free(errand);
}

void errand_drop_all(struct k8s *k8s)
{
    for (struct errand *errand = k8s->first, *next; errand != NULL; errand = next) {
        next = errand->next;
        if (errand->http != NULL)
            http_cancel(errand->http);
        drop(errand);
    }
    k8s->first = k8s->last = NULL;
    k8s->errand_count = 0;
}

/* ---- telling ---- */

void errand_tell(struct errand *errand, const struct store_answer *answer)
{
    struct k8s *k8s = errand->k8s;
    store_done *done = errand->done;
    void *caller = errand->caller;
    take_out(errand);
    drop(errand);
    wake_at(k8s, host_boot_ms()); /* whoever waited behind it */
    done(caller, answer);
}

void errand_tell_trouble(struct errand *errand, enum answer result, const char *why)
{
    errand_tell(errand,
                &(struct store_answer){.result = result, .now_ms = TIME_UNKNOWN, .why = why});
}

void errand_tell_absent(struct errand *errand, enum answer result, int64_t date_s)
{
    int64_t now_ms = date_s >= 0 ? date_s * 1000 : TIME_UNKNOWN;
    errand_tell(errand, &(struct store_answer){.result = result, .now_ms = now_ms});
}

/* What stands, as the answer; a stranger's key under our name is nobody's answer. */
static void tell_object(struct errand *errand, enum answer result, const struct object *object,
                        int64_t date_s)
{
    struct k8s *k8s = errand->k8s;
    const char *key = errand->request.key;
    if (object->state == OBJECT_OURS && strcmp(object->key, key) != 0) {
        (void)snprintf(k8s->why, sizeof k8s->why,
                       "the Lease %s belongs to another key, %.200s: choose ?names= or ?prefix= "
                       "so that they differ",
                       object->name, object->key);
        errand_tell_trouble(errand, ANSWER_DENIED, k8s->why);
        return;
    }
    struct store_answer answer = k8s_answer(k8s, object, key);
    answer.result = result;
    answer.key = NULL;
    answer.now_ms = date_s >= 0 ? date_s * 1000 : TIME_UNKNOWN;
    errand_tell(errand, &answer);
}

static void tell_changed(struct errand *errand, bool removed)
{
    struct k8s *k8s = errand->k8s;
    (void)snprintf(k8s->why, sizeof k8s->why,
                   "the Lease came back changed in %s (by a webhook?); it was %s", errand->changed,
                   removed ? "removed" : "left there");
    errand_tell_trouble(errand, ANSWER_TROUBLE, k8s->why);
}

/* ---- asking ---- */

void errand_ask(struct errand *errand, enum errand_phase phase, const char *method,
                const char *path, json_t *body)
{
    struct k8s *k8s = errand->k8s;
    struct http_site site = {.done = on_answer, .owner = errand};
    errand->phase = phase;
    errand->http = k8s_ask(k8s, method, path, body, phase == ERRAND_LISTS ? LIST_MAX : ANSWER_MAX,
                           errand->give_up_at_ms, &site);
    json_decref(body);
    if (errand->http != NULL)
        return;
    if (phase == ERRAND_UNDOES)
        tell_changed(errand, /* removed= */ false);
    else
        errand_tell_trouble(errand, ANSWER_TROUBLE, k8s->why);
}

static void ask_read(struct errand *errand, enum errand_phase phase)
{
    char path[K8S_NAME_MAX + 2];
    (void)snprintf(path, sizeof path, "/%s", errand->name);
    errand_ask(errand, phase, "GET", path, NULL);
}

/*
 * Another program's hold goes on in the record that shall be written: it is not ours to write
 * there. Who waits is remembered by this process alone, and the watch tells when it may try.
 */
static bool stays_beside(struct errand *errand, const struct object *object)
{
    struct k8s *k8s = errand->k8s;
    const struct store_request *request = &errand->request;
    const struct grant *grant = object != NULL && object->state == OBJECT_FOREIGN
                                    ? object_foreign_grant(object, &k8s->scratch)
                                    : NULL;
    if (grant == NULL)
        return false;
    struct store_answer answer = {.result = ANSWER_OK,
                                  .present = true,
                                  .written = object->written,
                                  .now_ms = TIME_UNKNOWN,
                                  .bytes = request->bytes,
                                  .length = request->length};
    watch_want(k8s);
    if (grant->broken)
        errand_tell_trouble(errand, ANSWER_DENIED,
                            "another program holds this Lease and cannot be told; break --now "
                            "takes it away");
    else if (!memo_put_beside(k8s, errand->name, request->bytes, request->length))
        errand_tell_trouble(errand, ANSWER_TROUBLE, "memory is short");
    else
        errand_tell(errand, &answer);
    return true;
}

/* Over `before`, which stands there by all we know; NULL: nothing does. */
static void ask_write(struct errand *errand, const json_t *before, const struct object *object)
{
    struct k8s *k8s = errand->k8s;
    struct codec_error error;
    char path[2 * K8S_NAME_MAX];
    const struct store_request *request = &errand->request;
    /* What is no record is carried like one; others then see a Lease that nobody holds. */
    bool decoded =
        record_decode(request->bytes, request->length, &k8s->scratch, &error) == DECODE_OK;
    if (stays_beside(errand, object))
        return;
    if (object != NULL && object->leaving && object_is_grant(&k8s->scratch)) {
        errand_tell_trouble(errand, ANSWER_TROUBLE,
                            "the Lease was deleted and goes once its finalizers are through: no "
                            "lock can be had on it");
        return;
    }
    json_decref(errand->sent); /* of a try that met a conflict */
    errand->sent = NULL;
    struct object_write write = {.name = errand->name,
                                 .key = request->key,
                                 .bytes = request->bytes,
                                 .length = request->length,
                                 .record = &k8s->scratch,
                                 .wall_ms = host_wall_ms(),
                                 .session = k8s->site.session,
                                 .number = ++k8s->writes};
    bool gives_way = decoded && object != NULL && object_gives_way(object, &k8s->scratch);
    if (gives_way) {
        write.bytes = k8s->encoded;
        write.length = record_encode(&k8s->scratch, k8s->encoded, sizeof k8s->encoded);
    }
    if (object != NULL)
        write.row = object_row(object, &k8s->scratch, gives_way);
    json_t *body = object_make(before, &write);
    const char *manager =
        object_is_renewal(&k8s->scratch) ? OBJECT_HOLDER_WRITE : OBJECT_WAITER_WRITE;
    if (record_place_by_session(&k8s->scratch, k8s->site.session) != NULL)
        watch_want(k8s);
    if (body == NULL) {
        errand_tell_trouble(errand, ANSWER_TROUBLE, "memory is short");
        return;
    }
    errand->sent = json_incref(body);
    errand->replaced = before != NULL ? object->revision : 0;
    errand->shared = before != NULL && object->shared;
    errand->undoable = before == NULL || (decoded && object_is_only_grant(&k8s->scratch));
    (void)snprintf(path, sizeof path, "%s%s?fieldManager=%s", before != NULL ? "/" : "",
                   before != NULL ? errand->name : "", manager);
    errand_ask(errand, ERRAND_WRITES, before != NULL ? "PUT" : "POST", path, body);
}

/* A Lease that others made is emptied, not deleted: they count on it. */
static void ask_removal(struct errand *errand, enum errand_phase phase, const json_t *before,
                        const struct object *object, bool shared)
{
    char path[2 * K8S_NAME_MAX];
    if (shared) {
        (void)snprintf(path, sizeof path, "/%s?fieldManager=%s", errand->name, OBJECT_WAITER_WRITE);
        errand_ask(errand, phase, "PUT", path, object_vacate(before));
        return;
    }
    (void)snprintf(path, sizeof path, "/%s", errand->name);
    errand_ask(errand, phase, "DELETE", path, object_deletion(object));
}

/* ---- deciding ---- */

static bool holds(const struct store_request *request, const struct object *object)
{
    return request->condition.kind == IF_ABSENT
               ? object->state == OBJECT_VACANT
               : object->state != OBJECT_VACANT &&
                     object->written.revision == request->condition.revision;
}

static void carry_out(struct errand *errand, const json_t *json, const struct object *object)
{
    if (object->state == OBJECT_FOREIGN && errand->request.condition.token != 0)
        errand_tell_trouble(errand, ANSWER_DENIED,
                            "another program holds this Lease: only it can renew or release it");
    else if (errand->request.verb == VERB_STORE_DELETE)
        ask_removal(errand, ERRAND_DELETES, json, object, object->shared);
    else
        ask_write(errand, json, object);
}

/* With what we remember of the Lease, if that is what the condition is about. */
static bool carry_out_from_memory(struct errand *errand)
{
    struct k8s *k8s = errand->k8s;
    struct object object;
    const struct memo *memo = memo_of(k8s, errand->name);
    json_t *json = memo != NULL ? json_incref(memo->json) : NULL;
    bool known = json != NULL && memo_read(k8s, json, &object) == NULL &&
                 holds(&errand->request, &object) &&
                 (object.state != OBJECT_OURS || strcmp(object.key, errand->request.key) == 0);
    if (known)
        carry_out(errand, json, &object);
    json_decref(json);
    return known;
}

static void start(struct errand *errand)
{
    struct k8s *k8s = errand->k8s;
    const struct store_request *request = &errand->request;
    bool named = k8s_name_of(&k8s->url, request->key, errand->name);
    switch (request->verb) {
    case VERB_STORE_LIST:
        lease_pages_begin(errand);
        return;
    case VERB_STORE_WATCH:
        errand->phase = ERRAND_OPENS;
        watch_add(errand);
        return;
    case VERB_STORE_HISTORY:
        errand_tell_trouble(errand, ANSWER_TROUBLE, "k8s: keeps no history");
        return;
    case VERB_STORE_READ:
    case VERB_STORE_SWAP:
    case VERB_STORE_DELETE:
        break;
    }
    if (!named)
        errand_tell_trouble(errand, ANSWER_DENIED,
                            "the key is no name of a Lease; names=auto would hash it");
    else if (request->verb == VERB_STORE_READ)
        ask_read(errand, ERRAND_READS);
    else if (request->condition.kind == IF_GRANT)
        errand_tell_trouble(errand, ANSWER_TROUBLE, "k8s: cannot test a grant at the write");
    else if (carry_out_from_memory(errand))
        return;
    else if (request->verb == VERB_STORE_SWAP && request->condition.kind == IF_ABSENT)
        ask_write(errand, NULL, NULL);
    else
        ask_read(errand, ERRAND_LOOKS);
}

/* ---- answers ---- */

/* The Lease as it stands now decides whether to go on; after a conflict it usually does not. */
static void look(struct errand *errand, const json_t *json, const struct object *object,
                 int64_t date_s)
{
    if (holds(&errand->request, object) && ++errand->looks < LOOKS_MAX)
        carry_out(errand, json, object);
    else if (holds(&errand->request, object))
        errand_tell_trouble(errand, ANSWER_TROUBLE, "the API server refuses without a reason");
    else
        tell_object(errand, ANSWER_CONFLICT, object, date_s);
}

/*
 * The Lease that stands there now is not the one that was sent, and what the caller asked for did
 * not happen. It goes again, unless somebody else depends on it or has changed it since.
 */
static void undo(struct errand *errand, const json_t *json, const struct object *object,
                 const char *changed)
{
    memo_forget(errand->k8s, errand->name);
    errand->changed = changed;
    if (errand->undoable)
        ask_removal(errand, ERRAND_UNDOES, json, object, errand->shared);
    else
        tell_changed(errand, /* removed= */ false);
}

static const char *read_lease(const struct errand *errand, const json_t *json, struct object *out)
{
    const char *wrong =
        json != NULL ? memo_read(errand->k8s, json, out) : "the answer is no JSON that we read";
    if (wrong == NULL && strcmp(out->name, errand->name) != 0)
        wrong = "the API server's answer is about another Lease";
    return wrong;
}

static void hear_lease(struct errand *errand, const struct http_answer *answer)
{
    struct k8s *k8s = errand->k8s;
    struct object object;
    json_t *json = kube_parse(answer->body, answer->body_length);
    const char *changed = NULL, *wrong = read_lease(errand, json, &object);
    if (wrong == NULL && errand->phase == ERRAND_WRITES) {
        changed = object_changed(errand->sent, json);
        if (changed == NULL && object.revision <= errand->replaced)
            changed = "resourceVersion";
    }
    if (wrong != NULL) {
        errand_tell_trouble(errand, ANSWER_TROUBLE, wrong);
    } else if (changed != NULL) {
        undo(errand, json, &object, changed);
    } else {
        memo_keep(k8s, json, kube_parsed_size(answer->body, answer->body_length), &object);
        if (errand->phase == ERRAND_LOOKS)
            look(errand, json, &object, answer->date_s);
        else
            tell_object(errand, ANSWER_OK, &object, answer->date_s);
    }
    json_decref(json);
}

/*
 * What did not happen, and may happen later. False: it is over. A server that has just started
 * forbids everything until it has read its own rules: who was permitted before asks again.
 */
static bool try_again(struct errand *errand, const struct http_answer *answer)
{
    enum { SOME_TIME_MS = 500 };
    struct k8s *k8s = errand->k8s;
    int64_t now_ms = host_boot_ms(), pause_ms = 0;
    if (answer->status == 429)
        pause_ms = answer->retry_after_ms >= 0 ? answer->retry_after_ms : SOME_TIME_MS;
    else if (answer->status == 403 && k8s->permitted)
        pause_ms = SOME_TIME_MS;
    else if (answer->status != 401 || errand->refusals++ > 0)
        return false;
    if (now_ms + pause_ms >= errand->give_up_at_ms)
        return false;
    if (answer->status == 401)
        kube_login_refused(k8s->login);
    if (answer->status == 429 && k8s->paused_until_ms < now_ms + pause_ms)
        k8s->paused_until_ms = now_ms + pause_ms; /* for all */
    errand->not_before_ms = now_ms + pause_ms;
    errand->phase = ERRAND_WAITS; /* from its beginning: what we remember may be old */
    wake_at(k8s, now_ms + pause_ms);
    return true;
}

/* That there is no such Lease, as against no such namespace, or no API server at this place. */
static bool is_absence(const struct http_answer *answer)
{
    json_t *json = answer->status == 404 ? kube_parse(answer->body, answer->body_length) : NULL;
    const char *kind = json_string_value(json_object_get(json_object_get(json, "details"), "kind"));
    bool absent = kind != NULL && strcmp(kind, "leases") == 0;
    json_decref(json);
    return absent;
}

static void hear_refusal(struct errand *errand, const struct http_answer *answer)
{
    struct k8s *k8s = errand->k8s;
    bool denied = answer->status == 401 || answer->status == 403;
    bool changes = errand->phase == ERRAND_WRITES || errand->phase == ERRAND_DELETES;
    if (try_again(errand, answer))
        return;
    if (answer->status == 409 && changes) {
        memo_doubt(k8s, errand->name);
        ask_read(errand, ERRAND_LOOKS);
    } else if (is_absence(answer) && errand->phase != ERRAND_LISTS) {
        memo_forget(k8s, errand->name);
        errand_tell_absent(errand, errand->phase == ERRAND_READS ? ANSWER_OK : ANSWER_CONFLICT,
                           answer->date_s);
    } else {
        errand_tell(errand,
                    &(struct store_answer){.result = denied ? ANSWER_DENIED : ANSWER_TROUBLE,
                                           .now_ms = TIME_UNKNOWN,
                                           .refused = answer->refused,
                                           .why = k8s_explain(k8s, answer)});
    }
}

static void on_answer(void *owner, const struct http_answer *answer)
{
    struct errand *errand = owner;
    struct k8s *k8s = errand->k8s;
    errand->http = NULL;
    k8s->permitted = k8s->permitted || answer->status == 200 || answer->status == 201;
    if (errand->phase == ERRAND_UNDOES) {
        tell_changed(errand, answer->status == 200);
    } else if (answer->status != 200 && answer->status != 201) {
        hear_refusal(errand, answer);
    } else if (errand->phase == ERRAND_LISTS) {
        lease_pages_hear(errand, answer);
    } else if (errand->phase == ERRAND_DELETES) {
        memo_forget(k8s, errand->name);
        errand_tell_absent(errand, ANSWER_OK, answer->date_s);
    } else {
        hear_lease(errand, answer);
    }
}
