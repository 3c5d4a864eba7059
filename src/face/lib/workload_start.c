/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls about workloads that do not block: each is made in a thread of its own, with a connection
 * of its own, and ends when the object does or the handle is closed. Decides nothing about objects.
 */
#include "face/lib/workload_inside.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct started {
    struct started *next;
    struct lh_workloads *handle;
    struct workloads *inside;
    pthread_t thread;
    struct workload_call call; /* its words are ours */
    struct lh_workload *out;
    lh_done_fn *done;
    void *user;
    char target[KEY_MAX + 1], request[REQUEST_SIZE];
    char manifest[]; /* empty: none */
};

/* ---- a thread ---- */

/* The last one to leave wakes who closes; nothing of the handle may be touched after that. */
static void leave(struct started *started)
{
    struct lh_workloads *handle = started->handle;
    struct started **at = &handle->first;
    (void)pthread_mutex_lock(&handle->lock);
    while (*at != started)
        at = &(*at)->next;
    *at = started->next;
    handle->count--;
    (void)pthread_cond_broadcast(&handle->ended);
    (void)pthread_mutex_unlock(&handle->lock);
    free(started);
}

static void *work(void *argument)
{
    struct started *started = argument;
    struct lh_workloads *handle = started->handle;
    struct workloads_answer answer;
    struct lh_report report;
    workload_do(started->inside, &started->call, &answer);
    workloads_conclude(started->inside, &answer);
    (void)pthread_mutex_lock(&handle->lock);
    workloads_kind(started->inside, &handle->kind);
    (void)pthread_mutex_unlock(&handle->lock);
    workloads_close(&started->inside);
    (void)pthread_mutex_lock(&handle->calling);
    (void)workload_tell(&answer, started->target, started->out, &report);
    started->done(started->user, /* lease= */ NULL, &report);
    (void)pthread_mutex_unlock(&handle->calling);
    leave(started);
    return NULL;
}

static bool begin_thread(struct started *started)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool begun = pthread_create(&started->thread, &attributes, work, started) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return begun;
}

/* ---- starting ---- */

/* With the words, which are the caller's only until it returns. NULL: memory is short. */
static struct started *keep(struct lh_workloads *handle, const struct workload_call *call)
{
    const char *manifest = call->wish.manifest;
    size_t size = manifest != NULL ? strlen(manifest) + 1 : 1;
    struct started *started = calloc(1, sizeof *started + size);
    if (started == NULL)
        return NULL;
    started->handle = handle;
    started->call = *call;
    text_copy(started->target, sizeof started->target, call->wish.target);
    started->call.wish.target = started->target;
    if (call->wish.request != NULL) {
        text_copy(started->request, sizeof started->request, call->wish.request);
        started->call.wish.request = started->request;
    }
    if (manifest != NULL) {
        memcpy(started->manifest, manifest, size);
        started->call.wish.manifest = started->manifest;
    }
    return started;
}

/* Under the lock. */
static enum lh_outcome enter(struct started *started, struct lh_report *report)
{
    struct lh_workloads *handle = started->handle;
    struct workloads_answer answer;
    if (handle->closing)
        return report_say(report, LH_BUSY, "busy: the workloads are being closed");
    if (handle->count >= STARTED_MOST)
        return report_say(report, LH_FAILED, "failed: 64 of these are on their way already");
    if (handle->stop < 0)
        handle->stop = eventfd(0, EFD_CLOEXEC);
    if (handle->stop < 0)
        return report_say(report, LH_FAILED, "failed: descriptors are short");
    if (!workloads_clone(handle->inside, &handle->kind, handle->stop, &started->inside, &answer))
        return workload_tell(&answer, NULL, NULL, report);
    if (!begin_thread(started)) {
        workloads_close(&started->inside);
        return report_say(report, LH_FAILED, "failed: threads are short");
    }
    started->next = handle->first;
    handle->first = started;
    handle->count++;
    return report_say(report, LH_OK, "ok: on its way");
}

static enum lh_outcome start(struct lh_workloads *handle, const struct workload_call *call,
                             struct lh_workload *out, lh_done_fn *done, void *user,
                             struct lh_report *report)
{
    if (done == NULL)
        return report_say(report, LH_USAGE, "usage: no function to call");
    struct started *started = keep(handle, call);
    if (started == NULL)
        return report_say(report, LH_FAILED, "failed: memory is short");
    started->out = out;
    started->done = done;
    started->user = user;
    (void)pthread_mutex_lock(&handle->lock);
    enum lh_outcome outcome = enter(started, report);
    (void)pthread_mutex_unlock(&handle->lock);
    if (outcome != LH_OK)
        free(started);
    return outcome;
}

enum lh_outcome lh_workload_run_start(struct lh_workloads *workloads, const char *target,
                                      const struct lh_workload_options *options,
                                      struct lh_workload *out, lh_done_fn *done, void *user,
                                      struct lh_report *report)
{
    struct workload_call call;
    enum lh_outcome outcome =
        workload_prepare(workloads, WORKLOAD_RUN, target, NULL, options, &call, report);
    return outcome == LH_OK ? start(workloads, &call, out, done, user, report) : outcome;
}

enum lh_outcome lh_workload_look_start(struct lh_workloads *workloads, const char *target,
                                       struct lh_workload *out, lh_done_fn *done, void *user,
                                       struct lh_report *report)
{
    struct workload_call call;
    enum lh_outcome outcome =
        workload_prepare(workloads, WORKLOAD_LOOK, target, NULL, NULL, &call, report);
    return outcome == LH_OK ? start(workloads, &call, out, done, user, report) : outcome;
}

enum lh_outcome lh_workload_remove_start(struct lh_workloads *workloads, const char *target,
                                         const char *request_id, struct lh_workload *out,
                                         lh_done_fn *done, void *user, struct lh_report *report)
{
    struct workload_call call;
    enum lh_outcome outcome =
        workload_prepare(workloads, WORKLOAD_REMOVE, target, request_id, NULL, &call, report);
    return outcome == LH_OK ? start(workloads, &call, out, done, user, report) : outcome;
}

/* ---- ending ---- */

bool started_is_within(struct lh_workloads *handle)
{
    bool within = false;
    (void)pthread_mutex_lock(&handle->lock);
    for (const struct started *one = handle->first; one != NULL; one = one->next)
        within = within || pthread_equal(one->thread, pthread_self());
    (void)pthread_mutex_unlock(&handle->lock);
    return within;
}

bool started_end(struct lh_workloads *handle)
{
    const uint64_t one = 1;
    if (started_is_within(handle))
        return false;
    (void)pthread_mutex_lock(&handle->lock);
    handle->closing = true;
    if (handle->stop >= 0)
        (void)!write(handle->stop, &one, sizeof one);
    while (handle->count > 0)
        (void)pthread_cond_wait(&handle->ended, &handle->lock);
    (void)pthread_mutex_unlock(&handle->lock);
    if (handle->stop >= 0)
        (void)close(handle->stop);
    handle->stop = -1;
    return true;
}
