/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GitHub store: a key is a ref, a record is the message of a commit, and the history is the
 * chain of commits. A ref is moved only from the commit that was read, which is GitHub's only
 * compare-and-swap. Refs cannot be deleted conditionally, so a free key keeps a vacant commit.
 * Nothing here decides, nothing blocks but close(). This file has the driver interface;
 * github_request.c executes requests, github_judge.c and github_worker.c have the liveness.
 */
#include "base/check.h"
#include "process/host.h"
#include "store/github/github_internal.h"

enum { TIMEOUT_DEFAULT_MS = 30000 };

static bool github_open(void *state, const char *url, const struct store_callbacks *callbacks,
                        struct text *why)
{
    struct github *github = state;
    memset(github, 0, offsetof(struct github, scratch));
    github->callbacks = *callbacks;
    if (github->callbacks.timeout_ms <= 0)
        github->callbacks.timeout_ms = TIMEOUT_DEFAULT_MS;
    text_add(why, "usage: ");
    if (!github_url_parse(url, github_api_is_loopback(), &github->url, why))
        return false;
    text_clear(why);
    if (!github_api_open(&github->api, &github->url, github->callbacks.timeout_ms, why))
        return false;
    github->magic = GITHUB_STORE_MAGIC;
    github->poller = github_api_poller(github->api);
    github_operations_init(github);
    github_worker_init(github);
    github_watch_init(github);
    return true;
}

/* The worker's ref goes first: then its grants are free, and the rest is for people. */
static void github_close(void *state)
{
    struct github *github = state;
    ASSERT(github->magic == GITHUB_STORE_MAGIC);
    pending_done(&github->pending);
    github_watch_done(github);
    poller_call_at(github->poller, &github->wake_timer, POLLER_NEVER);
    github_worker_done(github);
    issue_board_free(&github->board);
    github_heads_done(github);
    github_api_close(&github->api);
    github->magic = 0;
}

static void github_step(void *state)
{
    struct github *github = state;
    ASSERT(github->magic == GITHUB_STORE_MAGIC);
    github_operations_start(github);
    poller_step(github->poller);
}

static int github_fd(void *state)
{
    const struct github *github = state;
    return poller_fd(github->poller);
}

/* A poll of a minute comes with an answer time of 5 s and a grace of 150 s. */
static void github_facts_at(const char *url, struct store_facts *facts)
{
    struct github_url parsed;
    bool loopback = github_api_is_loopback();
    if (!github_url_parse(url, loopback, &parsed, NULL))
        return;
    facts->ttl_ms = parsed.stale_ms;
    facts->poll_ms = parsed.poll_ms;
    facts->answer_ms = parsed.poll_ms / 12;
    facts->offer_grace_ms = parsed.poll_ms * 5 / 2;
    if (loopback)
        facts->ttl_least_ms = 1000;
}

static bool github_name(const char *url, const char *key, struct text *out, struct text *why)
{
    struct github_url parsed;
    char name[GITHUB_NAME_MAX + 1];
    if (!github_url_parse(url, github_api_is_loopback(), &parsed, why))
        return false;
    github_ref_name(key, name);
    TEXT_JOIN(out, "refs/" GITHUB_KEY_REFS, name);
    return true;
}

static void github_event(void *state, const struct store_event *event)
{
    const struct github *github = state;
    if (github->board != NULL)
        issue_board_on_event(github->board, event);
}

const struct store_driver github_driver = {
    .scheme = "github",
    .capabilities = STORE_DURABLE | STORE_SESSIONS | STORE_RENEWS_SESSION | STORE_HISTORY |
                    STORE_TOKENS_RESTART,
    .state_size = sizeof(struct github),
    .descriptors = 5,
    .facts = {.waiters_max = GITHUB_QUEUE_MAX,
              .reply_timeout_ms = 30000,
              .offer_grace_ms = 150000,
              .poll_ms = 60000,
              .answer_ms = 5000,
              .ttl_ms = 300000,
              .ttl_least_ms = 10000,
              .renewal_window_ms = 1000,
              .margin_ms = GITHUB_MARGIN_MS},
    .facts_at = github_facts_at,
    .open = github_open,
    .close = github_close,
    .submit = github_operation_add,
    .step = github_step,
    .fd = github_fd,
    .name = github_name,
    .event = github_event,
    .diagnose = github_diagnose,
};
