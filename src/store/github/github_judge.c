/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges a record by the server's dates: the Date of the last reply against the dates of commits.
 * A bound grant lives by the heartbeats of its worker, with the stale time that the worker's own
 * commit states. Everything else ends by its length. An end is reported late, never early: all
 * dates are whole seconds.
 */
#include "store/github/github_internal.h"

#include <stdio.h>

static github_handler peer_on_ref;

static bool has_passed(const struct github_operation *operation, const struct stamp *since,
                       int64_t length_ms)
{
    return since->time_ms != TIME_UNKNOWN && operation->now_ms != TIME_UNKNOWN &&
           since->time_ms + length_ms + GITHUB_MARGIN_MS < operation->now_ms;
}

static struct github_peer *peer_find(struct github *github, uint64_t session)
{
    for (size_t i = 0; i < GITHUB_WORKERS_MAX; i++)
        if (github->peers[i].session == session)
            return &github->peers[i];
    return NULL;
}

static struct github_peer *peer_use(struct github *github, uint64_t session)
{
    struct github_peer *peer = peer_find(github, session);
    if (peer == NULL) {
        peer = &github->peers[github->peer_hand++ % GITHUB_WORKERS_MAX];
        *peer = (struct github_peer){.session = session, .beat_ms = -1};
    }
    return peer;
}

/* By what is known of its worker: a grant is as recent as its own write, too. So a grant whose
 * worker has no ref is dead only when a read that lags behind would show the ref. */
static bool is_stale(const struct github_operation *operation, const struct github_peer *peer,
                     const struct grant *grant)
{
    int64_t seen_ms =
        peer->beat_ms > grant->renewed.time_ms ? peer->beat_ms : grant->renewed.time_ms;
    return has_passed(operation, &(struct stamp){.time_ms = seen_ms}, peer->stale_ms);
}

static void peer_read(struct github_operation *operation, uint64_t session)
{
    char path[GITHUB_PATH];
    operation->session = session;
    (void)snprintf(path, sizeof path, "git/ref/" GITHUB_WORKER_REFS "%llx",
                   (unsigned long long)session);
    github_operation_get(operation, peer_on_ref, path);
}

/* True if the session of a bound grant is dead; sets `out_reading` if that must be asked first. */
static bool holder_is_dead(struct github_operation *operation, const struct grant *grant,
                           bool *out_reading)
{
    struct github *github = operation->github;
    if (grant->session == github->callbacks.session)
        return github_worker_has_ended(github);
    const struct github_peer *peer = peer_find(github, grant->session);
    if (peer != NULL && !is_stale(operation, peer, grant))
        return false;
    if (peer != NULL && peer->read_by == operation->base.number)
        return true;
    *out_reading = true;
    peer_read(operation, grant->session);
    return false;
}

bool github_judge(struct github_operation *operation, struct store_reply *reply)
{
    struct github *github = operation->github;
    const struct record *record = github_head_record(github, operation->head);
    bool reading = false;
    reply->dead_sessions = github->dead;
    reply->ended_tokens = github->ended;
    if (record == NULL)
        return true;
    for (size_t i = 0; i < record->grant_count && !reading; i++) {
        const struct grant *grant = &record->grants[i];
        if (grant->bound) {
            if (holder_is_dead(operation, grant, &reading))
                github->dead[reply->dead_count++] = grant->session;
        } else if (has_passed(operation, &grant->renewed, grant->ttl_ms)) {
            github->ended[reply->ended_count++] = grant_token(grant);
        }
    }
    const struct span *cooling = &record->cooling, *delay = &record->delay;
    reply->cooling_over =
        cooling->length_ms > 0 && has_passed(operation, &cooling->since, cooling->length_ms);
    reply->delay_over =
        delay->length_ms > 0 && has_passed(operation, &delay->since, delay->length_ms);
    return !reading;
}

bool github_beat_parse(const json_t *commit, int64_t *out_beat_ms, int64_t *out_stale_ms)
{
    *out_beat_ms = github_commit_time_ms(commit);
    *out_stale_ms = github_beat_read(github_string(commit, "message"));
    return *out_beat_ms >= 0 && *out_stale_ms > 0;
}

static void peer_set(struct github_operation *operation, const char *sha, int64_t beat_ms,
                     int64_t stale_ms)
{
    struct github_peer *peer = peer_use(operation->github, operation->session);
    text_copy(peer->sha, sizeof peer->sha, sha);
    peer->beat_ms = beat_ms;
    peer->stale_ms = stale_ms;
    peer->read_by = operation->base.number;
    github_operation_judged(operation);
}

static void peer_on_commit(struct github_operation *operation, const struct github_reply *reply)
{
    int64_t beat_ms = 0, stale_ms = 0;
    if (reply->status != 200)
        github_operation_fail_by(operation, reply);
    else if (!github_beat_parse(reply->json, &beat_ms, &stale_ms))
        pending_fail(&operation->base, REPLY_TROUBLE, "the commit is not a heartbeat of leasehold");
    else
        peer_set(operation, operation->read_sha, beat_ms, stale_ms);
}

static void peer_on_ref(struct github_operation *operation, const struct github_reply *reply)
{
    const char *sha = github_sha(json_object_get(reply->json, "object"));
    const struct github_peer *peer = peer_find(operation->github, operation->session);
    if (reply->status == 404) {
        peer_set(operation, "", /* beat_ms= */ -1, /* stale_ms= */ 0);
    } else if (reply->status != 200 || sha[0] == '\0') {
        github_operation_fail_by(operation, reply);
    } else if (peer != NULL && strcmp(peer->sha, sha) == 0) {
        peer_set(operation, sha, peer->beat_ms, peer->stale_ms);
    } else {
        github_operation_read_commit(operation, peer_on_commit, sha);
    }
}
