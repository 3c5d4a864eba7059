/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold_github.h: the issues of a repository as a queue. Locks and "done" are records of the
 * client's store, made through the public calls; issues are read and labelled through a connection
 * of its own. Nothing that people can edit decides who holds an issue.
 */
#include "face/lib/claim_internal.h"

#include "process/host.h"
#include "wire/github_issue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { CLAIM_KEY = 24, CLAIM_TEXT_MAX = 1000 };

/* ---- candidates ---- */

struct candidate {
    uint64_t number;
    int32_t priority;
};

static int candidate_compare(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* An issue that failed here is left for other workers. */
static bool claim_has_failed(const struct lh_claims *claims, uint64_t number)
{
    bool found = false;
    for (size_t i = 0; i < claims->failed_count && i < CLAIM_ITEMS; i++)
        found = found || claims->failed[i] == number;
    return found;
}

static size_t claim_candidates(const struct lh_claims *claims, struct candidate *out)
{
    size_t count = 0;
    for (size_t i = 0; i < CLAIM_ITEMS; i++) {
        const json_t *issue = claim_page_item(&claims->issues, i);
        json_int_t number = json_integer_value(json_object_get(issue, "number"));
        if (number <= 0 || json_object_get(issue, "pull_request") != NULL ||
            claim_has_failed(claims, (uint64_t)number))
            continue;
        out[count].number = (uint64_t)number;
        out[count++].priority = claims->order == LH_CLAIM_BY_PRIORITY ? claim_priority(issue) : 0;
    }
    qsort(out, count, sizeof *out, candidate_compare);
    return count;
}

/* ---- one candidate ---- */

static bool claim_find_done(void *user, const struct lh_view *view)
{
    int64_t *done_ms = user;
    bool done = view->state == LH_COOLING_DOWN;
    if (done && view->written_at_ms >= 0)
        *done_ms = view->written_at_ms;
    return !done;
}

/* LH_OK if the issue got the label after it was done. Otherwise LH_BUSY: a worker ended between
 * the two steps of lh_claim_finish(). */
static enum lh_outcome claim_check_relabelled(struct lh_claims *claims, const char *key,
                                              struct lh_report *report)
{
    int64_t done_ms = INT64_MAX, labelled_ms = -1;
    enum lh_outcome outcome = lh_history(claims->client, key, claim_find_done, &done_ms, report);
    if (outcome == LH_OK)
        outcome = claim_read_labelled(claims, key, &labelled_ms, report);
    return outcome == LH_OK && labelled_ms <= done_ms ? LH_BUSY : outcome;
}

static void claim_fill(struct lh_claims *claims, const json_t *issue, struct lh_claim *out)
{
    struct github_usage usage;
    struct text title, url;
    const char *name = github_string(issue, "title"), *at = github_string(issue, "html_url");
    github_api_usage(claims->api, &usage);
    out->number = (uint64_t)json_integer_value(json_object_get(issue, "number"));
    out->requests_left = usage.left;
    text_init(&title, out->title, sizeof out->title);
    text_add(&title, name);
    text_clean(out->title, title.length); /* it may be cut within a character */
    text_init(&url, out->url, sizeof out->url);
    text_add(&url, at);
    text_clean(out->url, url.length);
}

/* The issue may have changed since it was listed, and may have been done by another worker since
 * its cooldown was cleared. LH_BUSY: it is not for us. */
static enum lh_outcome claim_check_held(struct lh_claims *claims, const char *key, bool was_done,
                                        struct lh_lease **lease, struct lh_claim *out,
                                        struct lh_report *report)
{
    json_t *issue = NULL;
    enum lh_outcome outcome = claim_read_issue(claims, key, &issue, report);
    json_int_t number = json_integer_value(json_object_get(issue, "number"));
    if (outcome == LH_OK &&
        ((uint64_t)number != strtoull(key, NULL, 10) || /* it is the issue whose lock we hold */
         strcmp(github_string(issue, "state"), "open") != 0 ||
         !claim_has_label(issue, claims->label)))
        outcome = LH_BUSY;
    if (outcome == LH_OK && was_done) {
        outcome = claim_check_relabelled(claims, key, report);
        if (outcome == LH_BUSY) { /* so it is done again */
            (void)lh_release(lease, NULL);
            (void)claim_change_labels(claims, key, /* heals= */ false, NULL);
        }
    }
    if (outcome == LH_OK)
        claim_fill(claims, issue, out);
    else if (*lease != NULL)
        (void)lh_abandon(lease, NULL);
    json_decref(issue);
    return outcome;
}

/* LH_BUSY: try the next one. */
static enum lh_outcome claim_take(struct lh_claims *claims, uint64_t number,
                                  const struct lh_acquire_options *options, struct lh_lease **lease,
                                  struct lh_claim *out, struct lh_report *report)
{
    char key[CLAIM_KEY];
    struct lh_client *client = claims->client;
    (void)snprintf(key, sizeof key, "%llu", (unsigned long long)number);
    enum lh_outcome outcome = lh_acquire(client, key, options, lease, report);
    bool was_done = outcome == LH_COOLING;
    if (was_done) {
        outcome = claim_check_relabelled(claims, key, report);
        if (outcome == LH_BUSY &&
            claim_change_labels(claims, key, /* heals= */ true, report) == LH_DENIED)
            return LH_DENIED;
        if (outcome == LH_OK)
            outcome = lh_clear(client, key, report);
        if (outcome == LH_OK)
            outcome = lh_acquire(client, key, options, lease, report);
    }
    if (outcome == LH_COOLING || outcome == LH_MISMATCH)
        return LH_BUSY;
    return outcome != LH_OK ? outcome : claim_check_held(claims, key, was_done, lease, out, report);
}

static enum lh_outcome claim_try(struct lh_claims *claims, const struct lh_acquire_options *options,
                                 struct lh_lease **lease, struct lh_claim *out,
                                 struct lh_report *report)
{
    char message[LH_TEXT_SIZE];
    enum lh_outcome outcome = claim_read_issues(claims, report);
    struct candidate *candidates = calloc(CLAIM_ITEMS, sizeof *candidates);
    if (candidates == NULL)
        return report_set(report, LH_FAILED, "failed: out of memory");
    size_t count = outcome == LH_OK ? claim_candidates(claims, candidates) : 0;
    (void)snprintf(message, sizeof message, "busy: no open issue of %s/%.60s with label %s is free",
                   claims->url.owner, claims->url.repo, claims->label);
    if (outcome == LH_OK)
        outcome = LH_BUSY;
    for (size_t i = 0; i < count && outcome == LH_BUSY; i++)
        outcome = claim_take(claims, candidates[i].number, options, lease, out, report);
    free(candidates);
    return outcome == LH_BUSY ? report_set(report, LH_BUSY, message) : outcome;
}

/* ---- calls ---- */

/* Up to an eighth earlier, so that workers do not poll together. */
static int64_t claim_pause_ms(struct lh_claims *claims)
{
    struct github_usage usage;
    uint32_t random = 0;
    (void)!getrandom(&random, sizeof random, 0);
    github_api_usage(claims->api, &usage);
    if (usage.poll_interval_ms > claims->url.poll_ms)
        return usage.poll_interval_ms;
    return claims->url.poll_ms - (int64_t)((uint64_t)claims->url.poll_ms / 8 * random >> 32);
}

static enum lh_outcome claims_admit(const struct lh_claims *claims, struct lh_report *report)
{
    if (!sized_is_valid(report))
        return LH_USAGE;
    if (claims == NULL || claims->magic != CLAIMS_MAGIC)
        return report_set(report, LH_USAGE, "usage: open the claims first");
    return client_admits(claims->client, /* blocks= */ true, report);
}

enum lh_outcome lh_claim_next(struct lh_claims *claims, const struct lh_claim_options *options,
                              struct lh_lease **out_lease, struct lh_claim *out,
                              struct lh_report *report)
{
    struct lh_claim_options known = LH_CLAIM_OPTIONS_INIT;
    struct lh_acquire_options acquire = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_claim claim = LH_CLAIM_INIT;
    struct lh_lease *lease = NULL;
    enum lh_outcome outcome = claims_admit(claims, report);
    if (outcome != LH_OK)
        return outcome;
    if (out_lease == NULL || !sized_is_valid(out) ||
        (options != NULL && !sized_read(&known, sizeof known, options)) ||
        known.wait_ms < LH_WAIT_FOREVER)
        return report_set(report, LH_USAGE,
                          "usage: give a pointer for the lease, a result that LH_CLAIM_INIT and "
                          "options that LH_CLAIM_OPTIONS_INIT initialised");
    acquire.cooldown_ms = SPAN_MAX_MS; /* a release says "done", an abandon does not */
    acquire.holder = known.holder;
    acquire.meta = known.meta;
    acquire.meta_count = known.meta_count;
    acquire.on_lost = known.on_lost;
    acquire.user = known.user;
    int64_t began_ms = host_boot_ms(), left_ms = 0;
    do {
        outcome = claim_try(claims, &acquire, &lease, &claim, report);
        claim.poll_ms = claim_pause_ms(claims);
        int64_t over_ms = host_boot_ms() + claim.poll_ms;
        left_ms = known.wait_ms < 0 ? INT64_MAX : began_ms + known.wait_ms - host_boot_ms();
        while (outcome == LH_BUSY && left_ms > claim.poll_ms && host_boot_ms() < over_ms)
            claim_wait(claims, over_ms - host_boot_ms());
    } while (outcome == LH_BUSY && left_ms > claim.poll_ms);
    sized_write(out, &claim, sizeof claim);
    if (outcome == LH_OK)
        *out_lease = lease;
    return outcome;
}

struct claim_event {
    struct inbox_item task; /* first */
    struct call call;
    const char *key, *text;
    bool success;
};

static void claim_emit(struct inbox_item *task)
{
    struct claim_event *event = (struct claim_event *)task;
    client_store_event(event->call.client, event->key, event->success ? "Succeeded" : "Failed",
                       event->text != NULL ? event->text : "", /* warns= */ false);
    call_end(&event->call);
}

enum lh_outcome lh_claim_finish(struct lh_claims *claims, struct lh_lease **lease, bool success,
                                const char *text, bool *out_done, struct lh_report *report)
{
    char key[CLAIM_KEY];
    bool done = false;
    enum lh_outcome outcome = claims_admit(claims, report);
    if (outcome != LH_OK)
        return outcome;
    if (lease == NULL || *lease == NULL || lh_key_at(*lease, 0) == NULL ||
        strlen(lh_key_at(*lease, 0)) >= sizeof key ||
        (text != NULL && (strlen(text) > CLAIM_TEXT_MAX || !text_is_clean(text, strlen(text)))))
        return report_set(report, LH_USAGE,
                          "usage: give the lease of a claim, and a text of at most 1,000 bytes "
                          "of UTF-8 without control characters");
    text_copy(key, sizeof key, lh_key_at(*lease, 0));
    struct claim_event event = {
        .task = {.run = claim_emit}, .key = key, .text = text, .success = success};
    call_begin(&event.call, claims->client);
    (void)call_make(&event.call, &event.task, NULL);
    outcome = success ? lh_release(lease, report) : lh_abandon(lease, report);
    done = success && outcome == LH_OK;
    if (!success)
        claims->failed[claims->failed_count++ % CLAIM_ITEMS] = strtoull(key, NULL, 10);
    if (done)
        outcome = claim_change_labels(claims, key, /* heals= */ false, report);
    if (out_done != NULL)
        *out_done = done;
    return outcome;
}
