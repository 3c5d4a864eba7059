/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold_github.h: the issues of a repository as a queue, with calls that block. Locks and
 * "done" are records of the client's store, made through the public calls; issues are read and
 * labelled through a connection of its own. claim_steps.c decides.
 */
#include "face/lib/claim_internal.h"

#include "process/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { CLAIM_TEXT_MAX = 1000 };

/* ---- one search ---- */

static enum lh_outcome claim_perform(struct claim_search *search,
                                     const struct lh_acquire_options *options,
                                     struct lh_lease **lease, struct lh_report *report)
{
    struct lh_client *client = search->claims->client;
    const char *key = search->exchange.key;
    if (claim_search_asks(search)) {
        enum lh_outcome outcome = claim_exchange_make(&search->exchange);
        *report = search->exchange.report;
        return outcome;
    }
    switch (search->step) {
    case CLAIM_TAKE:
        return lh_acquire(client, key, options, lease, report);
    case CLAIM_DATE:
        return lh_history(client, key, claim_find_done, &search->done_ms, report);
    case CLAIM_CLEAR:
        return lh_clear(client, key, report);
    case CLAIM_FINISH:
        return lh_release(lease, report);
    default:
        return lh_abandon(lease, report);
    }
}

static enum lh_outcome claim_search_block(struct claim_search *search,
                                          const struct lh_acquire_options *options,
                                          struct lh_lease **lease)
{
    claim_search_begin(search);
    while (search->step != CLAIM_OVER) {
        struct lh_report report = LH_REPORT_INIT;
        enum lh_outcome outcome = claim_perform(search, options, lease, &report);
        claim_search_step(search, outcome, &report);
    }
    claim_search_done(search);
    return search->verdict;
}

/* ---- calls ---- */

int64_t claim_pause_ms(struct lh_claims *claims)
{
    struct github_usage usage;
    uint32_t random = 0;
    (void)!getrandom(&random, sizeof random, 0);
    github_api_usage(claims->api, &usage);
    if (usage.poll_interval_ms > claims->url.poll_ms)
        return usage.poll_interval_ms;
    return claims->url.poll_ms - (int64_t)((uint64_t)claims->url.poll_ms / 8 * random >> 32);
}

enum lh_outcome claims_admit(const struct lh_claims *claims, struct lh_report *report)
{
    if (!sized_is_valid(report))
        return LH_USAGE;
    if (claims == NULL || claims->magic != CLAIMS_MAGIC)
        return report_set(report, LH_USAGE, "usage: open the claims first");
    return LH_OK;
}

/* For a blocking call. */
static enum lh_outcome claims_admit_block(const struct lh_claims *claims, struct lh_report *report)
{
    enum lh_outcome outcome = claims_admit(claims, report);
    if (outcome == LH_OK)
        outcome = client_admits(claims->client, /* blocks= */ true, report);
    if (outcome == LH_OK && claims->requests.first != NULL)
        outcome =
            report_set(report, LH_USAGE, "usage: a started claim of this handle is in flight");
    return outcome;
}

bool claim_read_options(const struct lh_claim_options *options, const struct lh_claim *out,
                        struct lh_claim_options *known, struct lh_report *report)
{
    *known = (struct lh_claim_options)LH_CLAIM_OPTIONS_INIT;
    if (sized_is_valid(out) && (options == NULL || sized_read(known, sizeof *known, options)) &&
        known->wait_ms >= LH_WAIT_FOREVER)
        return true;
    (void)report_set(report, LH_USAGE,
                     "usage: give a pointer for the lease, a result that LH_CLAIM_INIT and "
                     "options that LH_CLAIM_OPTIONS_INIT initialised");
    return false;
}

enum lh_outcome lh_claim_next(struct lh_claims *claims, const struct lh_claim_options *options,
                              struct lh_lease **out_lease, struct lh_claim *out,
                              struct lh_report *report)
{
    struct lh_claim_options known;
    struct lh_acquire_options acquire = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_lease *lease = NULL;
    enum lh_outcome outcome = claims_admit_block(claims, report);
    if (outcome != LH_OK)
        return outcome;
    if (!claim_read_options(options, out, &known, report))
        return LH_USAGE;
    if (out_lease == NULL)
        return report_set(report, LH_USAGE, "usage: give a pointer for the lease");
    acquire.cooldown_ms = SPAN_MAX_MS; /* a release says "done", an abandon does not */
    acquire.holder = known.holder;
    acquire.meta = known.meta;
    acquire.meta_count = known.meta_count;
    acquire.on_lost = known.on_lost;
    acquire.user = known.user;
    struct claim_search search = {
        .claims = claims, .admits = known.admits, .user = known.user, .first = known.first};
    int64_t began_ms = host_boot_ms(), left_ms = 0;
    do {
        outcome = claim_search_block(&search, &acquire, &lease);
        search.found.poll_ms = claim_pause_ms(claims);
        int64_t over_ms = host_boot_ms() + search.found.poll_ms;
        left_ms = known.wait_ms < 0 ? INT64_MAX : began_ms + known.wait_ms - host_boot_ms();
        while (outcome == LH_BUSY && left_ms > search.found.poll_ms && host_boot_ms() < over_ms)
            claim_wait(claims, over_ms - host_boot_ms());
    } while (outcome == LH_BUSY && left_ms > search.found.poll_ms);
    report_copy(report, &search.report);
    sized_write(out, &search.found, sizeof search.found);
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

static enum lh_outcome claim_unlabel(struct lh_claims *claims, const char *key,
                                     struct lh_report *report)
{
    struct claim_exchange exchange = {.claims = claims, .question = CLAIM_CHANGE_LABELS};
    text_copy(exchange.key, sizeof exchange.key, key);
    if (claim_exchange_make(&exchange) != LH_OK)
        report_copy(report, &exchange.report);
    return exchange.outcome;
}

enum lh_outcome lh_claim_finish(struct lh_claims *claims, struct lh_lease **lease, bool success,
                                const char *text, bool *out_done, struct lh_report *report)
{
    char key[CLAIM_KEY];
    bool done = false;
    enum lh_outcome outcome = claims_admit_block(claims, report);
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
        outcome = claim_unlabel(claims, key, report);
    if (out_done != NULL)
        *out_done = done;
    return outcome;
}
