/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See workloads.h. Whoever creates the object has the lock. An object that is over, or overdue, is
 * removed under the uid and revision that were judged, by whoever meets it: so nobody needs to be
 * alive for a target to become free again, and nobody deletes its successor.
 */
#include "store/k8s/workloads_inside.h"

#include "base/check.h"
#include "io/host.h"
#include "io/yaml_json.h"
#include "wire/duration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRIES = 8,            /* of create: each finds something to remove, or a conflict */
    SILENCE_MS = 60000,   /* of the API server while we follow, before we say so */
    LOOK_MS = 30000,      /* how long to trust the watch without a step */
    PROGRESS_MS = 1000,   /* the same when somebody looks on */
    COLLECT_LAG_MS = 200, /* an object that was deleted just now may still be told of */
};

static void begin(struct workloads_answer *answer)
{
    *answer = (struct workloads_answer){.since_ms = -1, .ends_in_ms = -1};
}

static bool wrong(struct workloads_answer *answer, const char *words)
{
    answer->usage = true;
    (void)snprintf(answer->text, sizeof answer->text, "%s", words);
    return false;
}

/* ---- what a verdict is in words ---- */

static void add_length(struct text *text, const char *before, int64_t length_ms, const char *after)
{
    char words[DURATION_SHOWN];
    if (length_ms < 0)
        return;
    text_add(text, before);
    text_add(text, duration_show(length_ms, words));
    text_add(text, after);
}

static void say_busy(struct workloads_answer *answer)
{
    struct text text;
    text_init(&text, answer->text, sizeof answer->text);
    text_add(&text, "ResourceBusy (held by ");
    text_add(&text, answer->view.holder);
    text_add(&text, ")");
    add_length(&text, " for ", answer->since_ms, "");
    text_add(&text, answer->view.leaving ? ", and is being deleted" : "");
    add_length(&text, "; removed in ", answer->ends_in_ms, " at the latest");
}

static void say_cooling(struct workloads_answer *answer)
{
    struct text text;
    text_init(&text, answer->text, sizeof answer->text);
    text_add(&text, "RecentlyRemediated (by ");
    text_add(&text, answer->view.holder);
    add_length(&text, ", ", answer->since_ms, " ago");
    text_add(&text, ")");
    add_length(&text, "; free in ", answer->ends_in_ms, ", or when it is removed");
}

/* Busy or cooling, by whom and since when. */
static void tell(const struct workloads *workloads, enum workload_verdict verdict, int64_t left_ms,
                 struct workloads_answer *answer)
{
    bool cooling = verdict == WORKLOAD_COOLING;
    int64_t since_ms = cooling ? answer->view.ended_at_ms : answer->view.created_at_ms;
    int64_t age_ms = workloads_now_ms(workloads) - since_ms;
    answer->outcome = cooling ? OUTCOME_COOLING : OUTCOME_BUSY;
    answer->since_ms = since_ms >= 0 ? (age_ms > 0 ? age_ms : 0) : -1;
    answer->ends_in_ms = left_ms;
    if (cooling)
        say_cooling(answer);
    else
        say_busy(answer);
}

static void tell_collision(struct workloads_answer *answer)
{
    answer->outcome = OUTCOME_MISMATCH;
    (void)snprintf(answer->text, sizeof answer->text,
                   "the name %s is taken for another target, by %s", answer->name,
                   answer->view.holder);
}

/* ---- one object ---- */

static void object_path(const struct workloads *workloads, const char *name,
                        char out[PATH_SIZE * 2])
{
    (void)snprintf(out, (size_t)PATH_SIZE * 2, "%s/%s", workloads->path, name);
}

/* That there is none, as against no such kind, or no API server at this place. */
static bool is_absence(const struct reply *reply)
{
    return reply->status == 404 && strcmp(kube_words(reply->json, "reason"), "NotFound") == 0;
}

enum found { FOUND, FOUND_NONE, FOUND_TROUBLE };

static enum found read_object(struct workloads *workloads, const char *target,
                              struct workloads_answer *answer, json_t **out_object)
{
    char path[PATH_SIZE * 2];
    struct reply reply;
    object_path(workloads, answer->name, path);
    struct kube_ask ask = {.method = "GET", .path = path};
    workloads_ask(workloads, &ask, &reply);
    enum found found = FOUND;
    if (is_absence(&reply))
        found = FOUND_NONE;
    else if (reply.status != 200 || !workload_read(reply.json, &workloads->rules, target,
                                                   workloads->holder_label, &answer->view))
        found = FOUND_TROUBLE;
    if (found == FOUND_TROUBLE)
        workloads_refuse(&reply, answer);
    if (found == FOUND && out_object != NULL)
        *out_object = json_incref(reply.json);
    reply_done(&reply);
    return found;
}

enum removed { REMOVED, REMOVED_CHANGED, REMOVED_TROUBLE };

static enum removed removed_by(const struct reply *reply, struct workloads_answer *answer)
{
    if (reply->status == 200 || reply->status == 202 || is_absence(reply))
        return REMOVED;
    if (reply->status == 409)
        return REMOVED_CHANGED;
    workloads_refuse(reply, answer);
    return REMOVED_TROUBLE;
}

/* Our finalizer goes first: killed in between, we leave an object that anybody may delete. */
static enum removed drop_finalizer(struct workloads *workloads, const char *path,
                                   const char *target, struct workloads_answer *answer)
{
    json_t *object = NULL;
    struct reply reply;
    struct workload_view judged = answer->view;
    enum found found = read_object(workloads, target, answer, &object);
    if (found != FOUND)
        return found == FOUND_NONE ? REMOVED : REMOVED_TROUBLE;
    if (strcmp(judged.revision, answer->view.revision) != 0 ||
        strcmp(judged.uid, answer->view.uid) != 0) {
        json_decref(object);
        return REMOVED_CHANGED;
    }
    json_t *patch = workload_unfinalized(object);
    struct kube_ask ask = {.method = "PATCH", .path = path, .body = patch, .patch = true};
    workloads_ask(workloads, &ask, &reply);
    enum removed result = removed_by(&reply, answer);
    struct workload_view left;
    /* How it ended was judged before; without our finalizer it may look otherwise. */
    if (result == REMOVED && workload_read(reply.json, &workloads->rules, target, NULL, &left))
        text_copy(answer->view.revision, sizeof answer->view.revision, left.revision);
    reply_done(&reply);
    json_decref(patch);
    json_decref(object);
    return result;
}

/* Removes exactly what the view says, or nothing. */
static enum removed remove_object(struct workloads *workloads, const char *target,
                                  struct workloads_answer *answer)
{
    char path[PATH_SIZE * 2];
    struct reply reply;
    object_path(workloads, answer->name, path);
    if (answer->view.finalizer) {
        bool was_leaving = answer->view.leaving;
        enum removed dropped = drop_finalizer(workloads, path, target, answer);
        if (dropped != REMOVED || was_leaving)
            return dropped;
    }
    json_t *body = workload_deletion(&answer->view);
    struct kube_ask ask = {.method = "DELETE", .path = path, .body = body};
    workloads_ask(workloads, &ask, &reply);
    enum removed result = removed_by(&reply, answer);
    if (result == REMOVED)
        sights_forget(workloads, answer->name);
    reply_done(&reply);
    json_decref(body);
    return result;
}

/* ---- creating ---- */

enum created { CREATED, CREATED_EXISTS, CREATED_TROUBLE };

/* An admission webhook may take away what everybody judges the object by. */
static bool is_as_sent(const json_t *sent, const json_t *got)
{
    static const char *const judged[] = {"leasehold/key", "leasehold/request",
                                         "leasehold/cooldown-ms", "leasehold/time-limit-ms"};
    const json_t *metadata = json_object_get(got, "metadata");
    const json_t *notes = json_object_get(metadata, "annotations");
    const json_t *own = json_object_get(json_object_get(sent, "metadata"), "annotations");
    bool same = strcmp(kube_words(metadata, "name"),
                       kube_words(json_object_get(sent, "metadata"), "name")) == 0;
    for (size_t i = 0; i < sizeof judged / sizeof judged[0]; i++)
        same = same && strcmp(kube_words(own, judged[i]), kube_words(notes, judged[i])) == 0;
    return same;
}

/* A controller may write to the object meanwhile; its uid says that it is still the one. */
static void undo_creation(struct workloads *workloads, const char *target,
                          struct workloads_answer *answer)
{
    enum { ATTEMPTS = 3 };
    char uid[sizeof answer->view.uid];
    text_copy(uid, sizeof uid, answer->view.uid);
    enum removed result = remove_object(workloads, target, answer);
    for (unsigned i = 1; i < ATTEMPTS && result == REMOVED_CHANGED; i++) {
        enum found found = read_object(workloads, target, answer, NULL);
        if (found == FOUND && strcmp(uid, answer->view.uid) == 0)
            result = remove_object(workloads, target, answer);
        else if (found != FOUND_TROUBLE)
            result = REMOVED;
    }
    answer->usage = false;
    answer->outcome = OUTCOME_UNAVAILABLE;
    answer->view = (struct workload_view){.ended_at_ms = -1};
    (void)snprintf(answer->text, sizeof answer->text,
                   "%s came back changed (by a webhook?); it was %s", answer->name,
                   result == REMOVED ? "removed" : "left there");
}

static enum created create(struct workloads *workloads, const json_t *object, const char *target,
                           struct workloads_answer *answer)
{
    struct reply reply;
    char path[PATH_SIZE * 2];
    /* A member that the kind does not have is an error, as with kubectl. Old servers do not ask. */
    (void)snprintf(path, sizeof path, "%s?fieldValidation=Strict", workloads->path);
    struct kube_ask ask = {.method = "POST", .path = path, .body = object};
    workloads_ask(workloads, &ask, &reply);
    enum created result = CREATED_TROUBLE;
    bool created = reply.status == 201 && workload_read(reply.json, &workloads->rules, target,
                                                        workloads->holder_label, &answer->view);
    if (created && is_as_sent(object, reply.json))
        result = CREATED;
    else if (created)
        undo_creation(workloads, target, answer);
    else if (reply.status == 409 && strcmp(kube_words(reply.json, "reason"), "AlreadyExists") == 0)
        result = CREATED_EXISTS;
    else
        workloads_refuse(&reply, answer);
    if (result == CREATED)
        sights_note(workloads, reply.json);
    reply_done(&reply);
    return result;
}

/* Something stands there. True: it is ours to follow; false, with `again`: it was removed. */
static bool meet(struct workloads *workloads, const struct workloads_wish *wish, bool *again,
                 struct workloads_answer *answer)
{
    int64_t left_ms;
    *again = false;
    enum found found = read_object(workloads, wish->target, answer, NULL);
    if (found != FOUND) {
        *again = found == FOUND_NONE;
        return false;
    }
    if (answer->view.collides) {
        tell_collision(answer);
        return false;
    }
    if (answer->view.ours && strcmp(answer->view.request, wish->request) == 0)
        return true;
    enum workload_verdict verdict =
        workload_judge(&answer->view, wish->cooldown_ms, workloads_now_ms(workloads), &left_ms);
    if (verdict == WORKLOAD_BUSY || verdict == WORKLOAD_COOLING)
        tell(workloads, verdict, left_ms, answer);
    else
        *again = remove_object(workloads, wish->target, answer) != REMOVED_TROUBLE;
    return false;
}

/* True: the object is ours, and the view says how it stands. */
static bool take(struct workloads *workloads, const struct workloads_wish *wish,
                 const json_t *object, struct workloads_answer *answer)
{
    for (unsigned tries = 0; tries < TRIES; tries++) {
        bool again = false;
        enum created created = create(workloads, object, wish->target, answer);
        if (created == CREATED)
            return true;
        if (created == CREATED_TROUBLE)
            return false;
        if (meet(workloads, wish, &again, answer))
            return true;
        if (!again)
            return false;
        if (answer->view.leaving)
            workloads_wait(workloads, host_boot_ms() + COLLECT_LAG_MS);
    }
    tell(workloads, WORKLOAD_BUSY, /* left_ms= */ -1, answer);
    return false;
}

/* ---- following ---- */

static void tell_end(const struct workloads *workloads, struct workloads_answer *answer,
                     const char *words)
{
    int64_t age_ms = workloads_now_ms(workloads) - answer->view.ended_at_ms;
    answer->outcome = OUTCOME_OK;
    answer->since_ms = age_ms > 0 ? age_ms : 0;
    (void)snprintf(answer->text, sizeof answer->text, "%s %s", answer->name, words);
}

/* It is gone although we did not remove it. */
static void tell_gone(const struct workloads *workloads, struct workloads_answer *answer)
{
    if (answer->view.state != END_RUNS) {
        tell_end(workloads, answer, "was removed by somebody else after its end");
        return;
    }
    answer->outcome = OUTCOME_LOST;
    (void)snprintf(answer->text, sizeof answer->text, "%s was deleted before its end was seen",
                   answer->name);
}

/* True: that was the last of it. */
static bool finish(struct workloads *workloads, const struct workloads_wish *wish, bool overdue,
                   struct workloads_answer *answer)
{
    enum removed removed = remove_object(workloads, wish->target, answer);
    if (removed == REMOVED_CHANGED) {
        workloads_wait(workloads, host_boot_ms() + COLLECT_LAG_MS);
        return false; /* the watch tells what it is now */
    }
    if (removed == REMOVED_TROUBLE)
        return true;
    if (overdue) {
        answer->view.state = END_FAILED;
        answer->view.status = 1;
        answer->view.ended_at_ms = workloads_now_ms(workloads);
    }
    tell_end(workloads, answer,
             overdue                            ? "ran longer than it may, and was removed"
             : answer->view.state == END_FAILED ? "failed, and was removed"
                                                : "is done, and was removed");
    return true;
}

/* True: nobody has heard of the API server for too long. */
static bool is_silent(const struct workloads *workloads, struct workloads_answer *answer)
{
    const struct sights *sights = &workloads->sights;
    int64_t most_ms = workloads->patience_ms > SILENCE_MS ? workloads->patience_ms : SILENCE_MS;
    if (sights->silent_from_ms == 0 || host_boot_ms() - sights->silent_from_ms < most_ms)
        return false;
    answer->outcome = OUTCOME_UNAVAILABLE;
    (void)snprintf(answer->text, sizeof answer->text,
                   "the API server is away; %s lives on in the cluster: call again with the same "
                   "request id",
                   answer->name);
    return true;
}

static void sleep_until_news(struct workloads *workloads, int64_t left_ms, int64_t most_ms)
{
    int64_t now_ms = host_boot_ms(), until_ms = now_ms + most_ms;
    if (left_ms >= 0 && now_ms + left_ms < until_ms)
        until_ms = now_ms + left_ms + 1;
    const struct sights *sights = &workloads->sights;
    int64_t next_ms = sights->watch == NULL ? sights->not_before_ms : sights->watch_until_ms;
    if (next_ms < until_ms)
        until_ms = next_ms;
    workloads_wait(workloads, until_ms);
}

static void tell_progress(const struct workloads *workloads, const struct workloads_wish *wish,
                          int64_t left_ms, const struct workloads_answer *answer)
{
    struct workloads_answer shown = *answer;
    bool runs = shown.view.state == END_RUNS;
    int64_t since_ms = runs ? shown.view.created_at_ms : shown.view.ended_at_ms;
    int64_t age_ms = workloads_now_ms(workloads) - since_ms;
    shown.since_ms = since_ms >= 0 && age_ms >= 0 ? age_ms : -1;
    shown.ends_in_ms = left_ms;
    wish->progress(wish->user, &shown);
}

static void follow(struct workloads *workloads, const struct workloads_wish *wish,
                   struct workloads_answer *answer)
{
    char selector[PATH_SIZE];
    (void)snprintf(selector, sizeof selector, "fieldSelector=metadata.name%%3D%s", answer->name);
    if (!workloads->watch)
        sights_watch(workloads, selector);
    workloads->sights.followed = answer->view;
    workloads->sights.followed_gone = false;
    for (;;) {
        int64_t left_ms = -1;
        sights_refresh(workloads);
        answer->view = workloads->sights.followed;
        if (workloads->sights.followed_gone) {
            tell_gone(workloads, answer);
            return;
        }
        enum workload_verdict verdict =
            workload_judge(&answer->view, wish->cooldown_ms, workloads_now_ms(workloads), &left_ms);
        if (verdict == WORKLOAD_OVERDUE ||
            (verdict == WORKLOAD_OVER && wish->until != UNTIL_ENDED)) {
            if (finish(workloads, wish, verdict == WORKLOAD_OVERDUE, answer))
                return;
        } else if (verdict != WORKLOAD_BUSY && wish->until == UNTIL_ENDED) {
            tell_end(workloads, answer, answer->view.state == END_FAILED ? "failed" : "is done");
            return;
        }
        if (is_silent(workloads, answer))
            return;
        if (wish->progress != NULL)
            tell_progress(workloads, wish, left_ms, answer);
        sleep_until_news(workloads, left_ms, wish->progress != NULL ? PROGRESS_MS : LOOK_MS);
    }
}

/* ---- the calls ---- */

static bool name_target(const struct workloads *workloads, const char *target,
                        struct workloads_answer *answer)
{
    return k8s_name_of(&workloads->url, target, answer->name) ||
           wrong(answer, "the target is no name of an object; names=auto or names=hash would hash "
                         "it");
}

/* The watched copy, as fresh as what has arrived. */
static bool look_at_copy(struct workloads *workloads, const char *target, const char *request,
                         int64_t cooldown_ms, struct workloads_answer *answer)
{
    int64_t left_ms;
    sights_refresh(workloads);
    if (!workloads->watch || !workloads->sights.complete)
        return false;
    const struct sight *sight = sights_find(workloads, answer->name);
    answer->cached = true;
    if (sight == NULL)
        return true; /* free, as far as we have heard */
    answer->view = sight->view;
    answer->view.collides = sight->key[0] != '\0' && strcmp(sight->key, target) != 0;
    if (answer->view.collides) {
        tell_collision(answer);
        return true;
    }
    if (request != NULL && strcmp(request, sight->view.request) == 0)
        return false; /* one's own is gone on with */
    enum workload_verdict verdict =
        workload_judge(&answer->view, cooldown_ms, workloads_now_ms(workloads), &left_ms);
    if (verdict == WORKLOAD_BUSY || verdict == WORKLOAD_COOLING)
        tell(workloads, verdict, left_ms, answer);
    return true;
}

static json_t *manifest_of(const struct workloads *workloads, const char *manifest,
                           struct workloads_answer *answer)
{
    struct text why;
    if (manifest == NULL)
        return json_incref(workloads->manifest);
    text_init(&why, answer->text, sizeof answer->text);
    text_add(&why, "the manifest: ");
    json_t *json = yaml_to_json(manifest, strlen(manifest), YAML_TYPED, &why);
    if (json != NULL &&
        (strcmp(kube_words(json, "kind"), kube_words(workloads->manifest, "kind")) != 0 ||
         strcmp(kube_words(json, "apiVersion"), kube_words(workloads->manifest, "apiVersion")) !=
             0)) {
        text_add(&why, "it is of another kind than the one that was opened");
        json_decref(json);
        json = NULL;
    }
    answer->usage = json == NULL;
    return json;
}

static json_t *make_object(const struct workloads *workloads, const struct workloads_wish *wish,
                           struct workloads_answer *answer)
{
    struct text why;
    json_t *manifest = manifest_of(workloads, wish->manifest, answer);
    struct workload_wish made = {
        .name = answer->name,
        .namespace = workloads->namespaced ? workloads->config.namespace : NULL,
        .target = wish->target,
        .holder = workloads->holder,
        .request = wish->request,
        .holder_label = workloads->holder_label,
        .cooldown_ms = wish->cooldown_ms,
        .limit_ms = wish->limit_ms,
        .finalizer = wish->finalizer,
    };
    if (manifest == NULL)
        return NULL;
    text_init(&why, answer->text, sizeof answer->text);
    json_t *object = workload_make(manifest, &made, &why);
    answer->usage = object == NULL;
    json_decref(manifest);
    return object;
}

void workloads_run(struct workloads *workloads, const struct workloads_wish *wish,
                   struct workloads_answer *answer)
{
    ASSERT(workloads->magic == WORKLOADS_MAGIC);
    begin(answer);
    if (!name_target(workloads, wish->target, answer) || !workloads_discover(workloads, answer))
        return;
    json_t *object = make_object(workloads, wish, answer);
    if (object == NULL)
        return;
    bool known = look_at_copy(workloads, wish->target, wish->request, wish->cooldown_ms, answer);
    if (known && answer->outcome != OUTCOME_OK)
        goto out;
    answer->cached = false;
    if (!take(workloads, wish, object, answer))
        goto out;
    if (wish->until == UNTIL_CREATED)
        (void)snprintf(answer->text, sizeof answer->text, "%s was created", answer->name);
    else
        follow(workloads, wish, answer);
out:
    json_decref(object);
}

void workloads_look(struct workloads *workloads, const char *target, int64_t cooldown_ms,
                    struct workloads_answer *answer)
{
    int64_t left_ms;
    ASSERT(workloads->magic == WORKLOADS_MAGIC);
    begin(answer);
    if (!name_target(workloads, target, answer) || !workloads_discover(workloads, answer) ||
        look_at_copy(workloads, target, NULL, cooldown_ms, answer) ||
        read_object(workloads, target, answer, NULL) != FOUND)
        return;
    if (answer->view.collides) {
        tell_collision(answer);
        return;
    }
    enum workload_verdict verdict =
        workload_judge(&answer->view, cooldown_ms, workloads_now_ms(workloads), &left_ms);
    if (verdict == WORKLOAD_BUSY || verdict == WORKLOAD_COOLING)
        tell(workloads, verdict, left_ms, answer);
}

void workloads_remove(struct workloads *workloads, const char *target, const char *request,
                      struct workloads_answer *answer)
{
    ASSERT(workloads->magic == WORKLOADS_MAGIC);
    begin(answer);
    if (!name_target(workloads, target, answer) || !workloads_discover(workloads, answer))
        return;
    for (unsigned tries = 0; tries < TRIES; tries++) {
        enum found found = read_object(workloads, target, answer, NULL);
        if (found == FOUND_NONE)
            (void)snprintf(answer->text, sizeof answer->text, "there is no %s; nothing was removed",
                           answer->name);
        if (found != FOUND)
            return;
        if (answer->view.collides) {
            tell_collision(answer);
            return;
        }
        if (!answer->view.ours) {
            tell(workloads, WORKLOAD_BUSY, /* left_ms= */ -1, answer);
            return; /* somebody else made it, and deletes it */
        }
        if (request != NULL && strcmp(request, answer->view.request) != 0) {
            answer->outcome = OUTCOME_STALE;
            (void)snprintf(answer->text, sizeof answer->text,
                           "%s is %s's by now; nothing was changed", answer->name,
                           answer->view.holder);
            return;
        }
        enum removed removed = remove_object(workloads, target, answer);
        if (removed == REMOVED)
            (void)snprintf(answer->text, sizeof answer->text, "%s was removed", answer->name);
        if (removed != REMOVED_CHANGED)
            return;
    }
    answer->outcome = OUTCOME_UNAVAILABLE;
    (void)snprintf(answer->text, sizeof answer->text, "%s changes all the time", answer->name);
}
