/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our worker: one ref per process, beside the records, while its session has bound grants. Each
 * heartbeat moves it to a new commit, whose date is the server's; others judge all our bound grants
 * by it. A heartbeat costs two writes, so the number of workers of an account is limited. A worker
 * past its deadline is never revived: others may have taken over what it held.
 */
#include "base/check.h"
#include "process/host.h"
#include "store/github/github_internal.h"
#include "wire/github_issue.h"

#include <stdio.h>

enum { RETRY_FIRST_MS = 5000, RETRIES = 3, DONE_MS = 5000, HOUR_MS = 3600000, WORKER_NAME = 17 };

static void worker_on_commit(void *owner, const struct github_reply *reply);
static void worker_on_ref(void *owner, const struct github_reply *reply);
static void worker_on_examined(void *owner, const struct github_reply *reply);

/* From before a heartbeat is sent to the deadline of the worker. */
static int64_t worker_lease_ms(const struct github *github)
{
    return github->url.stale_ms * 2 / 3;
}

static int64_t worker_deadline_ms(const struct github *github)
{
    return github->worker.alive_ms + worker_lease_ms(github);
}

static void worker_send(struct github *github, struct github_call call,
                        void (*done)(void *owner, const struct github_reply *reply))
{
    bool alive = github->worker.state == WORKER_ALIVE;
    call.kind = GITHUB_HEARTBEAT;
    call.give_up_at_ms =
        alive ? worker_deadline_ms(github) : host_boot_ms() + github->callbacks.timeout_ms;
    github_request_start(&github->worker.request, github->api, &call, done, github);
}

static void worker_get(struct github *github, const char *path,
                       void (*done)(void *owner, const struct github_reply *reply))
{
    worker_send(github, (struct github_call){.method = "GET", .path = path}, done);
}

static void worker_name(const struct github *github, char out[WORKER_NAME])
{
    (void)snprintf(out, WORKER_NAME, "%llx", (unsigned long long)github->callbacks.session);
}

/* Starts, or ends with the reason, the operations that wait for the worker. */
static void worker_resume(struct github *github, const char *why)
{
    struct list waiting = list_take_all(&github->worker.waiting);
    for (struct pending *pending; (pending = pending_pop(&waiting)) != NULL;)
        github_operation_resume((struct github_operation *)pending, why);
}

static void worker_fail(struct github *github, enum github_worker_state state, const char *why)
{
    struct github_worker *worker = &github->worker;
    (void)snprintf(worker->why, sizeof worker->why, "%s", why[0] != '\0' ? why : GITHUB_MALFORMED);
    worker->state = state;
    worker->alive_ms = 0;
    poller_call_at(github->poller, &worker->timer, POLLER_NEVER);
    worker_resume(github, worker->why);
}

bool github_worker_has_ended(struct github *github)
{
    struct github_worker *worker = &github->worker;
    if (worker->state == WORKER_ALIVE && host_boot_ms() >= worker_deadline_ms(github))
        worker_fail(github, WORKER_ENDED,
                    "no heartbeat of this worker arrived in time, so others may hold its locks; "
                    "start it again");
    return worker->state == WORKER_ENDED;
}

/* ---- heartbeats ---- */

static void worker_beat(struct github *github)
{
    struct github_worker *worker = &github->worker;
    char unique[GITHUB_UNIQUE], message[512];
    struct text text;
    text_init(&text, message, sizeof message);
    github_unique(github, unique);
    github_beat_write(github->callbacks.session, github->url.stale_ms, unique, &text);
    worker->sent_ms = host_boot_ms(); /* it is sent later, if others are sent first */
    worker_send(github,
                (struct github_call){.method = "POST",
                                     .path = "git/commits",
                                     .body = github_commit_body(github, message, "")},
                worker_on_commit);
}

/* The next heartbeat, or another try: after 5, 10, 20 s, but soon enough where leases are short. */
static void worker_schedule(struct github *github, bool failed)
{
    struct github_worker *worker = &github->worker;
    int64_t wait_ms = github->url.heartbeat_ms;
    worker->failures = failed ? worker->failures + 1 : 0;
    if (failed) {
        unsigned doublings = worker->failures < RETRIES ? worker->failures - 1 : RETRIES - 1;
        int64_t retry_ms = (int64_t)RETRY_FIRST_MS << doublings;
        wait_ms = retry_ms < wait_ms / 4 ? retry_ms : wait_ms / 4;
    } else {
        wait_ms -= host_boot_ms() - worker->sent_ms;
    }
    poller_call_at(github->poller, &worker->timer, host_boot_ms() + (wait_ms > 0 ? wait_ms : 0));
}

static void worker_on_beat_trouble(struct github *github, const struct github_reply *reply,
                                   bool of_ref)
{
    struct github_worker *worker = &github->worker;
    bool gone = of_ref && (reply->status == 404 || reply->status == 422);
    if (github_worker_has_ended(github))
        return;
    if (worker->state != WORKER_ALIVE && gone && !worker->exists) {
        worker->exists = true; /* an earlier request that had no reply has created it */
        worker_beat(github);
    } else if (worker->state != WORKER_ALIVE) {
        worker->exists = worker->exists && !gone; /* the next start creates it */
        worker_fail(github, WORKER_NONE, reply->why);
    } else if (gone) {
        worker_fail(github, WORKER_ENDED,
                    "somebody deleted the ref of this worker, so others may hold its locks; "
                    "start it again");
    } else {
        worker_schedule(github, /* failed= */ true);
    }
}

static void worker_on_commit(void *owner, const struct github_reply *reply)
{
    struct github *github = owner;
    struct github_worker *worker = &github->worker;
    const char *sha = github_sha(reply->json);
    char name[WORKER_NAME], path[GITHUB_PATH];
    if (reply->status != 201 || sha[0] == '\0') {
        worker_on_beat_trouble(github, reply, /* of_ref= */ false);
        return;
    }
    if (github_worker_has_ended(github))
        return; /* the commit is recent: its ref would revive the session */
    if (reply->sent_ms > 0)
        worker->sent_ms = reply->sent_ms;
    text_copy(worker->sha, sizeof worker->sha, sha);
    worker_name(github, name);
    worker_send(
        github,
        github_ref_call(GITHUB_WORKER_REFS, name, sha, worker->exists, /* force= */ true, path),
        worker_on_ref);
}

static void worker_on_ref(void *owner, const struct github_reply *reply)
{
    struct github *github = owner;
    struct github_worker *worker = &github->worker;
    if (!github_ref_is_at(reply, worker->sha)) {
        worker_on_beat_trouble(github, reply, /* of_ref= */ true);
        return;
    }
    if (github_worker_has_ended(github))
        return; /* it arrived after the deadline of the one before */
    worker->exists = true;
    if (host_boot_ms() >= worker->sent_ms + worker_lease_ms(github)) {
        worker_fail(github, WORKER_NONE, "GitHub replied too late to a heartbeat; try again");
        return;
    }
    worker->state = WORKER_ALIVE;
    worker->alive_ms = worker->sent_ms;
    worker_schedule(github, /* failed= */ false);
    worker_resume(github, /* why= */ NULL);
}

static void worker_on_deleted(void *owner, const struct github_reply *reply)
{
    struct github *github = owner;
    if (reply->refused) { /* it was not sent, because of a limit perhaps */
        worker_schedule(github, /* failed= */ true);
        worker_resume(github, reply->why);
        return;
    }
    if (reply->status == 0 || reply->status >= 500) { /* it may be deleted later, when it is new */
        worker_fail(github, WORKER_ENDED,
                    "GitHub did not reply when this worker gave up its ref; start it again");
        return;
    }
    github->worker.state = WORKER_NONE;
    github->worker.exists = false;
    github->worker.alive_ms = 0;
    worker_resume(github, /* why= */ NULL);
}

/* The ref is absent while nothing is held. */
static void worker_retire(struct github *github)
{
    char name[WORKER_NAME], path[GITHUB_PATH];
    worker_name(github, name);
    (void)snprintf(path, sizeof path, "git/refs/" GITHUB_WORKER_REFS "%s", name);
    github->worker.state = WORKER_RETIRING;
    worker_send(github, (struct github_call){.method = "DELETE", .path = path}, worker_on_deleted);
}

static void worker_on_timer(void *owner)
{
    struct github *github = owner;
    struct github_worker *worker = &github->worker;
    bool alive = worker->state == WORKER_ALIVE, retires = worker->state == WORKER_RETIRING;
    if (!(alive || retires) || github_worker_has_ended(github) || worker->request.api != NULL)
        return;
    if (retires || (worker->held == 0 && worker->pending == 0))
        worker_retire(github);
    else
        worker_beat(github);
}

/* ---- the start ---- */

/* Heartbeats of that many workers with our interval, in writes an hour. */
static uint64_t worker_writes(const struct github *github, size_t workers)
{
    return 2 * workers * HOUR_MS / (uint64_t)github->url.heartbeat_ms;
}

static void worker_admit(struct github *github, size_t others)
{
    uint64_t writes = github->url.writes;
    json_decref(github->worker.refs);
    github->worker.refs = NULL;
    if (worker_writes(github, others + 1) > writes) {
        (void)snprintf(
            github->why, sizeof github->why,
            "%zu workers exceed %llu writes an hour; use a longer ?stale=, fewer workers "
            "or more ?writes=",
            others + 1, (unsigned long long)writes);
        worker_fail(github, WORKER_NONE, github->why);
        return;
    }
    github_api_limit_writes(github->api, (unsigned)(writes / (others + 1)));
    worker_beat(github);
}

/* The name of a ref of a worker: no other ref is ever deleted. */
static bool worker_is_ref(const char *name)
{
    static const char before[] = "refs/" GITHUB_WORKER_REFS;
    const char *session = name + sizeof before - 1;
    return strncmp(name, before, sizeof before - 1) == 0 && session[0] != '\0' &&
           strspn(session, "0123456789abcdef") == strlen(session) && strlen(session) <= 16;
}

/* Reads the heartbeats of the others one by one: the dead ones do not count. */
static void worker_examine_next(struct github *github)
{
    struct github_worker *worker = &github->worker;
    char path[GITHUB_PATH];
    const char *sha = "";
    for (; worker->index < json_array_size(worker->refs); worker->index++) {
        const json_t *ref = json_array_get(worker->refs, worker->index);
        sha = github_sha(json_object_get(ref, "object"));
        if (sha[0] != '\0' && worker_is_ref(github_string(ref, "ref")))
            break;
    }
    if (worker->index >= json_array_size(worker->refs)) {
        worker_admit(github, worker->live);
        return;
    }
    (void)snprintf(path, sizeof path, "git/commits/%s", sha);
    worker_get(github, path, worker_on_examined);
}

static void worker_on_removed(void *owner, const struct github_reply *reply)
{
    (void)reply; /* another worker may have removed it */
    worker_examine_next(owner);
}

/* A ref that is stale for an hour is removed: its worker cannot come back. */
static void worker_on_examined(void *owner, const struct github_reply *reply)
{
    struct github *github = owner;
    struct github_worker *worker = &github->worker;
    const char *name = github_string(json_array_get(worker->refs, worker->index++), "ref");
    int64_t beat_ms = 0, stale_ms = 0;
    bool known = reply->status == 200 && reply->now_ms != TIME_UNKNOWN &&
                 github_beat_parse(reply->json, &beat_ms, &stale_ms);
    int64_t dead_ms = known ? reply->now_ms - beat_ms - stale_ms - GITHUB_MARGIN_MS : -1;
    if (dead_ms < 0)
        worker->live++;
    if (dead_ms > HOUR_MS) {
        char path[GITHUB_PATH];
        (void)snprintf(path, sizeof path, "git/%s", name);
        worker_send(github, (struct github_call){.method = "DELETE", .path = path},
                    worker_on_removed);
    } else {
        worker_examine_next(github);
    }
}

static void worker_on_workers(void *owner, const struct github_reply *reply)
{
    struct github *github = owner;
    struct github_worker *worker = &github->worker;
    if (reply->status != 200) {
        worker_fail(github, WORKER_NONE, reply->why);
    } else if (worker_writes(github, json_array_size(reply->json) + 1) <= github->url.writes) {
        worker_admit(github, json_array_size(reply->json));
    } else {
        worker->refs = json_incref(reply->json);
        worker->index = worker->live = 0;
        worker_examine_next(github);
    }
}

bool github_worker_ready(struct github *github, struct github_operation *operation)
{
    struct github_worker *worker = &github->worker;
    if (github_worker_has_ended(github)) {
        pending_fail(&operation->base, REPLY_TROUBLE, worker->why);
        return false;
    }
    if (worker->state == WORKER_ALIVE) {
        worker->pending += operation->binds ? 0 : 1;
        operation->binds = true;
        return true;
    }
    operation->on_reply = NULL;
    operation->waits_for_worker = true;
    list_append(&worker->waiting, &operation->base.in_queue);
    if (worker->state == WORKER_NONE) {
        worker->state = WORKER_STARTING;
        worker_get(github, "git/matching-refs/" GITHUB_WORKER_REFS, worker_on_workers);
    }
    return false;
}

/* For people, on the issue whose number is the key. `own` NULL: the grant has ended. */
static void worker_show(struct github *github, const struct github_head *head,
                        const struct grant *own)
{
    if (!github->url.show || head->key == NULL || !github_is_issue_number(head->key))
        return;
    if (github->board == NULL)
        github->board = issue_board_new(github->api);
    if (github->board != NULL && own != NULL)
        issue_board_add(github->board, head->key, own, head->time_ms);
    else if (github->board != NULL)
        issue_board_end(github->board, head->key, github->worker.alive_ms);
}

void github_worker_count(struct github *github, struct github_head *head)
{
    const struct record *record = github_head_record(github, head);
    const struct grant *own = NULL;
    for (size_t i = 0; record != NULL && i < record->grant_count; i++)
        if (record->grants[i].bound && record->grants[i].session == github->callbacks.session)
            own = &record->grants[i];
    if ((own != NULL) != head->held) {
        head->held = own != NULL;
        github->worker.held += head->held ? 1 : (size_t)-1;
        worker_show(github, head, own);
    }
}

void github_worker_init(struct github *github)
{
    github->worker.timer.due = worker_on_timer;
    github->worker.timer.owner = github;
}

void github_worker_done(struct github *github)
{
    struct github_worker *worker = &github->worker;
    int64_t until_ms = host_boot_ms() + DONE_MS;
    worker->waiting = (struct list){0};
    github_request_cancel(&worker->request);
    json_decref(worker->refs);
    if (worker->state == WORKER_ALIVE || worker->state == WORKER_RETIRING || worker->exists)
        worker_retire(github);
    while (worker->request.api != NULL && host_boot_ms() < until_ms) {
        poller_wait(github->poller, (int)(until_ms - host_boot_ms()));
        poller_step(github->poller);
    }
    github_request_cancel(&worker->request);
    poller_call_at(github->poller, &worker->timer, POLLER_NEVER);
}
