/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See workload.h. The creator of the object holds the lock. Any client that finds an object past
 * its cooldown or time limit removes it, under the uid and revision that were judged: so a target
 * becomes free without its holder, and no client deletes a successor.
 */
#include "workload/workload_internal.h"

#include "base/check.h"
#include "process/host.h"
#include "wire/duration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRIES = 8,              /* of create: each removes an object, or meets a conflict */
    DOWN_MAX_MS = 60000,    /* outage of the API server before a follower gives up */
    WATCH_TRUST_MS = 30000, /* maximum wait for a change while following */
    PROGRESS_MS = 1000,     /* the same with a progress callback */
    COLLECT_LAG_MS = 200,   /* a deleted object may still be visible */
};

static void result_init(struct workload_result *result)
{
    *result = (struct workload_result){.since_ms = -1, .ends_in_ms = -1};
}

/* ---- result texts ---- */

static void add_period(struct text *text, const char *before, int64_t length_ms, const char *after)
{
    char message[DURATION_SHOWN];
    if (length_ms < 0)
        return;
    TEXT_JOIN(text, before, duration_show(length_ms, message), after);
}

/* Busy or cooling, with holder and times. */
static void result_held(const struct workloads *workloads, enum workload_verdict verdict,
                        int64_t left_ms, struct workload_result *result)
{
    struct text text;
    bool cooling = verdict == WORKLOAD_COOLING;
    int64_t since_ms = cooling ? result->view.ended_at_ms : result->view.created_at_ms;
    int64_t age_ms = workloads_now_ms(workloads) - since_ms;
    result->outcome = cooling ? OUTCOME_COOLING : OUTCOME_BUSY;
    result->since_ms = since_ms >= 0 ? (age_ms > 0 ? age_ms : 0) : -1;
    result->ends_in_ms = left_ms;
    text_init(&text, result->text, sizeof result->text);
    TEXT_JOIN(&text, cooling ? "RecentlyRemediated (by " : "ResourceBusy (held by ",
              result->view.holder);
    if (cooling) {
        add_period(&text, ", ", result->since_ms, " ago");
        text_add(&text, ")");
        add_period(&text, "; free in ", left_ms, ", or when it is removed");
    } else {
        text_add(&text, ")");
        add_period(&text, " for ", result->since_ms, "");
        text_add(&text, result->view.terminating ? ", and is being deleted" : "");
        add_period(&text, "; removed in ", left_ms, " at the latest");
    }
}

static bool result_collides(struct workload_result *result)
{
    if (!result->view.collides)
        return false;
    result->outcome = OUTCOME_MISMATCH;
    (void)snprintf(result->text, sizeof result->text,
                   "the name %s is taken for another target, by %s", result->name,
                   result->view.holder);
    return true;
}

/* True with a result if the object is in the way; false if it may be removed. */
static bool result_blocks(const struct workloads *workloads, int64_t cooldown_ms,
                          struct workload_result *result)
{
    int64_t left_ms;
    enum workload_verdict verdict =
        workload_judge(&result->view, cooldown_ms, workloads_now_ms(workloads), &left_ms);
    bool blocks = verdict == WORKLOAD_BUSY || verdict == WORKLOAD_COOLING;
    if (blocks)
        result_held(workloads, verdict, left_ms, result);
    return blocks;
}

/* ---- one object ---- */

static void object_path(const struct workloads *workloads, const char *name,
                        char out[PATH_SIZE * 2])
{
    (void)snprintf(out, (size_t)PATH_SIZE * 2, "%s/%s", workloads->path, name);
}

/* True if the object does not exist; false if the kind or the API server is missing. */
static bool is_object_absent(const struct json_result *reply)
{
    return reply->status == 404 && strcmp(kube_string(reply->json, "reason"), "NotFound") == 0;
}

enum found { FOUND, FOUND_NONE, FOUND_TROUBLE };

static enum found read_object(struct workloads *workloads, const char *target,
                              struct workload_result *result, json_t **out_object)
{
    char path[PATH_SIZE * 2];
    struct json_result reply;
    object_path(workloads, result->name, path);
    struct json_call call = {.method = "GET", .path = path};
    workloads_call(workloads, &call, &reply);
    enum found found = FOUND;
    if (is_object_absent(&reply))
        found = FOUND_NONE;
    else if (reply.status != 200 || !workload_read(reply.json, &workloads->rules, target,
                                                   workloads->holder_label, &result->view))
        found = FOUND_TROUBLE;
    if (found == FOUND_TROUBLE)
        workloads_fail(&reply, result);
    if (found == FOUND && out_object != NULL)
        *out_object = json_incref(reply.json);
    json_result_done(&reply);
    return found;
}

enum removed { REMOVED, REMOVED_CHANGED, REMOVED_TROUBLE };

static enum removed removed_by(const struct json_result *reply, struct workload_result *result)
{
    if (reply->status == 200 || reply->status == 202 || is_object_absent(reply))
        return REMOVED;
    if (reply->status == 409)
        return REMOVED_CHANGED;
    workloads_fail(reply, result);
    return REMOVED_TROUBLE;
}

/* The finalizer goes first: if we are killed in between, any client can delete the object. */
static enum removed remove_finalizer(struct workloads *workloads, const char *path,
                                     const char *target, struct workload_result *result)
{
    json_t *object = NULL;
    struct json_result reply;
    struct workload_view judged = result->view;
    enum found found = read_object(workloads, target, result, &object);
    if (found != FOUND)
        return found == FOUND_NONE ? REMOVED : REMOVED_TROUBLE;
    if (strcmp(judged.revision, result->view.revision) != 0 ||
        strcmp(judged.uid, result->view.uid) != 0) {
        json_decref(object);
        return REMOVED_CHANGED;
    }
    json_t *patch = workload_finalizer_patch(object);
    struct json_call call = {
        .method = "PATCH", .path = path, .body = patch, .headers = kube_merge_patch};
    workloads_call(workloads, &call, &reply);
    enum removed status = removed_by(&reply, result);
    struct workload_view left;
    /* Only the revision is updated: without our finalizer the end may be read differently. */
    if (status == REMOVED && workload_read(reply.json, &workloads->rules, target, NULL, &left))
        text_copy(result->view.revision, sizeof result->view.revision, left.revision);
    json_result_done(&reply);
    json_decref(patch);
    json_decref(object);
    return status;
}

/* Removes exactly the judged object, or nothing. */
static enum removed delete_object(struct workloads *workloads, const char *target,
                                  struct workload_result *result)
{
    char path[PATH_SIZE * 2];
    struct json_result reply;
    object_path(workloads, result->name, path);
    if (result->view.finalizer) {
        bool was_terminating = result->view.terminating;
        enum removed dropped = remove_finalizer(workloads, path, target, result);
        if (dropped != REMOVED || was_terminating)
            return dropped;
    }
    json_t *body = workload_delete_options(&result->view);
    struct json_call call = {.method = "DELETE", .path = path, .body = body};
    workloads_call(workloads, &call, &reply);
    enum removed status = removed_by(&reply, result);
    if (status == REMOVED)
        workload_cache_remove(workloads, result->name);
    json_result_done(&reply);
    json_decref(body);
    return status;
}

/* ---- creation ---- */

enum created { CREATED, CREATED_EXISTS, CREATED_TROUBLE };

/* False if an admission webhook changed a member that the lock depends on. */
static bool is_as_sent(const json_t *sent, const json_t *got)
{
    static const char *const judged[] = {"leasehold/key", "leasehold/request",
                                         "leasehold/cooldown-ms", "leasehold/time-limit-ms"};
    const json_t *metadata = json_object_get(got, "metadata");
    const json_t *notes = json_object_get(metadata, "annotations");
    const json_t *own = json_object_get(json_object_get(sent, "metadata"), "annotations");
    bool same = strcmp(kube_string(metadata, "name"),
                       kube_string(json_object_get(sent, "metadata"), "name")) == 0;
    for (size_t i = 0; i < sizeof judged / sizeof judged[0]; i++)
        same = same && strcmp(kube_string(own, judged[i]), kube_string(notes, judged[i])) == 0;
    return same;
}

/* A controller may write to the object meanwhile; the same uid is still the same object. */
static void undo_creation(struct workloads *workloads, const char *target,
                          struct workload_result *result)
{
    enum { ATTEMPTS = 3 };
    char uid[sizeof result->view.uid];
    text_copy(uid, sizeof uid, result->view.uid);
    enum removed status = delete_object(workloads, target, result);
    for (unsigned i = 1; i < ATTEMPTS && status == REMOVED_CHANGED; i++) {
        enum found found = read_object(workloads, target, result, NULL);
        if (found == FOUND && strcmp(uid, result->view.uid) == 0)
            status = delete_object(workloads, target, result);
        else if (found != FOUND_TROUBLE)
            status = REMOVED;
    }
    result->usage = false;
    result->outcome = OUTCOME_UNAVAILABLE;
    result->view = (struct workload_view){.ended_at_ms = -1};
    (void)snprintf(result->text, sizeof result->text,
                   "%s came back changed (by a webhook?); it was %s", result->name,
                   status == REMOVED ? "removed" : "left there");
}

static enum created create_object(struct workloads *workloads, const json_t *object,
                                  const char *target, struct workload_result *result)
{
    struct json_result reply;
    char path[PATH_SIZE * 2];
    /* Unknown members are an error, as with kubectl. Old servers ignore the parameter. */
    (void)snprintf(path, sizeof path, "%s?fieldValidation=Strict", workloads->path);
    struct json_call call = {.method = "POST", .path = path, .body = object};
    workloads_call(workloads, &call, &reply);
    enum created status = CREATED_TROUBLE;
    bool created = reply.status == 201 && workload_read(reply.json, &workloads->rules, target,
                                                        workloads->holder_label, &result->view);
    if (created && is_as_sent(object, reply.json))
        status = CREATED;
    else if (created)
        undo_creation(workloads, target, result);
    else if (reply.status == 409 && strcmp(kube_string(reply.json, "reason"), "AlreadyExists") == 0)
        status = CREATED_EXISTS;
    else
        workloads_fail(&reply, result);
    if (status == CREATED)
        workload_cache_put(workloads, reply.json);
    json_result_done(&reply);
    return status;
}

/* An object exists. True: it is ours to follow; false with `again`: it was removed. */
static bool check_existing(struct workloads *workloads, const struct workload_run *run, bool *again,
                           struct workload_result *result)
{
    *again = false;
    enum found found = read_object(workloads, run->target, result, NULL);
    if (found != FOUND) {
        *again = found == FOUND_NONE;
        return false;
    }
    if (result_collides(result))
        return false;
    if (result->view.ours && strcmp(result->view.request, run->request) == 0)
        return true;
    if (!result_blocks(workloads, run->cooldown_ms, result))
        *again = delete_object(workloads, run->target, result) != REMOVED_TROUBLE;
    return false;
}

/* True: the object is ours, and the view is its state. */
static bool acquire_object(struct workloads *workloads, const struct workload_run *run,
                           const json_t *object, struct workload_result *result)
{
    for (unsigned tries = 0; tries < TRIES; tries++) {
        bool again = false;
        enum created created = create_object(workloads, object, run->target, result);
        if (created == CREATED)
            return true;
        if (created == CREATED_TROUBLE)
            return false;
        if (check_existing(workloads, run, &again, result))
            return true;
        if (!again)
            return false;
        if (result->view.terminating)
            workloads_wait(workloads, host_boot_ms() + COLLECT_LAG_MS);
    }
    result_held(workloads, WORKLOAD_BUSY, /* left_ms= */ -1, result);
    return false;
}

/* ---- following ---- */

static void result_end(const struct workloads *workloads, struct workload_result *result,
                       const char *message)
{
    int64_t age_ms = workloads_now_ms(workloads) - result->view.ended_at_ms;
    result->outcome = OUTCOME_OK;
    result->since_ms = age_ms > 0 ? age_ms : 0;
    (void)snprintf(result->text, sizeof result->text, "%s %s", result->name, message);
}

/* The object was deleted by another client. */
static void result_gone(const struct workloads *workloads, struct workload_result *result)
{
    if (result->view.state != END_RUNS) {
        result_end(workloads, result, "was removed by another client after its end");
        return;
    }
    result->outcome = OUTCOME_LOST;
    (void)snprintf(result->text, sizeof result->text, "%s was deleted before its end was seen",
                   result->name);
}

/* True if the result is final. */
static bool remove_ended(struct workloads *workloads, const struct workload_run *run, bool overdue,
                         struct workload_result *result)
{
    enum removed removed = delete_object(workloads, run->target, result);
    if (removed == REMOVED_CHANGED) {
        workloads_wait(workloads, host_boot_ms() + COLLECT_LAG_MS);
        return false; /* the watch reports its new state */
    }
    if (removed == REMOVED_TROUBLE)
        return true;
    if (overdue) {
        result->view.state = END_FAILED;
        result->view.status = 1;
        result->view.ended_at_ms = workloads_now_ms(workloads);
    }
    result_end(workloads, result,
               overdue                            ? "exceeded its time limit and was removed"
               : result->view.state == END_FAILED ? "failed, and was removed"
                                                  : "is done, and was removed");
    return true;
}

/* True if the API server has been unreachable for too long. */
static bool is_server_down(const struct workloads *workloads, struct workload_result *result)
{
    const struct workload_cache *cache = &workloads->cache;
    int64_t most_ms = workloads->timeout_ms > DOWN_MAX_MS ? workloads->timeout_ms : DOWN_MAX_MS;
    if (cache->down_since_ms == 0 || host_boot_ms() - cache->down_since_ms < most_ms)
        return false;
    result->outcome = OUTCOME_UNAVAILABLE;
    (void)snprintf(result->text, sizeof result->text,
                   "the API server is unreachable; %s is still in the cluster: call again with the "
                   "same request id",
                   result->name);
    return true;
}

static void run_wait_change(struct workloads *workloads, int64_t left_ms, int64_t most_ms)
{
    int64_t now_ms = host_boot_ms(), until_ms = now_ms + most_ms;
    if (left_ms >= 0 && now_ms + left_ms < until_ms)
        until_ms = now_ms + left_ms + 1;
    const struct workload_cache *cache = &workloads->cache;
    int64_t next_ms = cache->watch.api == NULL ? cache->not_before_ms : cache->watch_until_ms;
    if (next_ms < until_ms)
        until_ms = next_ms;
    workloads_wait(workloads, until_ms);
}

static void run_report_progress(const struct workloads *workloads, const struct workload_run *run,
                                int64_t left_ms, const struct workload_result *result)
{
    struct workload_result shown = *result;
    bool runs = shown.view.state == END_RUNS;
    int64_t since_ms = runs ? shown.view.created_at_ms : shown.view.ended_at_ms;
    int64_t age_ms = workloads_now_ms(workloads) - since_ms;
    shown.since_ms = since_ms >= 0 && age_ms >= 0 ? age_ms : -1;
    shown.ends_in_ms = left_ms;
    run->progress(run->user, &shown);
}

static void follow_object(struct workloads *workloads, const struct workload_run *run,
                          struct workload_result *result)
{
    char selector[PATH_SIZE];
    (void)snprintf(selector, sizeof selector, "fieldSelector=metadata.name%%3D%s", result->name);
    if (!workloads->watch)
        workload_cache_watch(workloads, selector);
    workloads->cache.followed = result->view;
    workloads->cache.followed_gone = false;
    for (;;) {
        int64_t left_ms = -1;
        workload_cache_refresh(workloads);
        result->view = workloads->cache.followed;
        if (workloads->cache.followed_gone) {
            result_gone(workloads, result);
            return;
        }
        enum workload_verdict verdict =
            workload_judge(&result->view, run->cooldown_ms, workloads_now_ms(workloads), &left_ms);
        if (verdict == WORKLOAD_OVERDUE ||
            (verdict == WORKLOAD_OVER && run->until != UNTIL_ENDED)) {
            if (remove_ended(workloads, run, verdict == WORKLOAD_OVERDUE, result))
                return;
        } else if (verdict != WORKLOAD_BUSY && run->until == UNTIL_ENDED) {
            result_end(workloads, result, result->view.state == END_FAILED ? "failed" : "is done");
            return;
        }
        if (is_server_down(workloads, result))
            return;
        if (run->progress != NULL)
            run_report_progress(workloads, run, left_ms, result);
        run_wait_change(workloads, left_ms, run->progress != NULL ? PROGRESS_MS : WATCH_TRUST_MS);
    }
}

/* ---- interface ---- */

static bool name_target(const struct workloads *workloads, const char *target,
                        struct workload_result *result)
{
    return k8s_name_of(&workloads->url, target, result->name) ||
           workloads_usage(
               result, "the target is not a valid object name; ?names=auto or ?names=hash hashes "
                       "it");
}

/* Answers from the cache, after all received changes. False: not possible. */
static bool run_query_cache(struct workloads *workloads, const char *target, const char *request,
                            int64_t cooldown_ms, struct workload_result *result)
{
    workload_cache_refresh(workloads);
    if (!workloads->watch || !workloads->cache.complete)
        return false;
    const struct cached_object *cached = workload_cache_find(workloads, result->name);
    result->cached = true;
    if (cached == NULL)
        return true; /* free, as far as the cache shows */
    result->view = cached->view;
    result->view.collides = cached->key[0] != '\0' && strcmp(cached->key, target) != 0;
    if (result_collides(result))
        return true;
    if (request != NULL && strcmp(request, cached->view.request) == 0)
        return false; /* our own object is resumed */
    (void)result_blocks(workloads, cooldown_ms, result);
    return true;
}

static json_t *manifest_of(const struct workloads *workloads, const char *manifest,
                           struct workload_result *result)
{
    if (manifest == NULL)
        return json_incref(workloads->manifest);
    json_t *json = workloads_parse_manifest(manifest, result);
    if (json != NULL &&
        (strcmp(kube_string(json, "kind"), kube_string(workloads->manifest, "kind")) != 0 ||
         strcmp(kube_string(json, "apiVersion"), kube_string(workloads->manifest, "apiVersion")) !=
             0)) {
        (void)workloads_usage(result,
                              "the manifest: it is of another kind than the one that was opened");
        json_decref(json);
        json = NULL;
    }
    return json;
}

static json_t *make_object(const struct workloads *workloads, const struct workload_run *run,
                           struct workload_result *result)
{
    struct text why;
    json_t *manifest = manifest_of(workloads, run->manifest, result);
    struct workload_spec made = {
        .name = result->name,
        .namespace = workloads->namespaced ? workloads->kube.config.namespace : NULL,
        .target = run->target,
        .holder = workloads->holder,
        .request = run->request,
        .holder_label = workloads->holder_label,
        .cooldown_ms = run->cooldown_ms,
        .limit_ms = run->limit_ms,
        .finalizer = run->finalizer,
    };
    if (manifest == NULL)
        return NULL;
    text_init(&why, result->text, sizeof result->text);
    json_t *object = workload_make(manifest, &made, &why);
    result->usage = object == NULL;
    json_decref(manifest);
    return object;
}

void workloads_run(struct workloads *workloads, const struct workload_run *run,
                   struct workload_result *result)
{
    ASSERT(workloads->magic == WORKLOADS_MAGIC);
    result_init(result);
    if (!name_target(workloads, run->target, result) || !workloads_discover(workloads, result))
        return;
    json_t *object = make_object(workloads, run, result);
    if (object == NULL)
        return;
    bool taken = run_query_cache(workloads, run->target, run->request, run->cooldown_ms, result) &&
                 result->outcome != OUTCOME_OK;
    result->cached = taken;
    if (!taken && acquire_object(workloads, run, object, result)) {
        result->acquired_us = host_boot_us();
        if (run->until == UNTIL_CREATED)
            (void)snprintf(result->text, sizeof result->text, "%s was created", result->name);
        else
            follow_object(workloads, run, result);
    }
    json_decref(object);
}

void workloads_query(struct workloads *workloads, const char *target, int64_t cooldown_ms,
                     struct workload_result *result)
{
    ASSERT(workloads->magic == WORKLOADS_MAGIC);
    result_init(result);
    if (!name_target(workloads, target, result) || !workloads_discover(workloads, result) ||
        run_query_cache(workloads, target, NULL, cooldown_ms, result) ||
        read_object(workloads, target, result, NULL) != FOUND)
        return;
    if (!result_collides(result))
        (void)result_blocks(workloads, cooldown_ms, result);
}

void workloads_remove(struct workloads *workloads, const char *target, const char *request,
                      struct workload_result *result)
{
    ASSERT(workloads->magic == WORKLOADS_MAGIC);
    result_init(result);
    if (!name_target(workloads, target, result) || !workloads_discover(workloads, result))
        return;
    for (unsigned tries = 0; tries < TRIES; tries++) {
        enum found found = read_object(workloads, target, result, NULL);
        if (found == FOUND_NONE)
            (void)snprintf(result->text, sizeof result->text, "there is no %s; nothing was removed",
                           result->name);
        if (found != FOUND)
            return;
        if (result_collides(result))
            return;
        if (!result->view.ours) {
            result_held(workloads, WORKLOAD_BUSY, /* left_ms= */ -1, result);
            return; /* made by another program, which must delete it */
        }
        if (request != NULL && strcmp(request, result->view.request) != 0) {
            result->outcome = OUTCOME_STALE;
            (void)snprintf(result->text, sizeof result->text,
                           "%s is %s's by now; nothing was changed", result->name,
                           result->view.holder);
            return;
        }
        enum removed removed = delete_object(workloads, target, result);
        if (removed == REMOVED)
            (void)snprintf(result->text, sizeof result->text, "%s was removed", result->name);
        if (removed != REMOVED_CHANGED)
            return;
    }
    result->outcome = OUTCOME_UNAVAILABLE;
    (void)snprintf(result->text, sizeof result->text, "%s changes all the time", result->name);
}
