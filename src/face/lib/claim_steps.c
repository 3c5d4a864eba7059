/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for an issue, step by step: which one is next, and what has to be true before it is
 * ours. Asks nobody itself: claim.c and claim_start.c do what a step says, and report its outcome.
 * Nothing that people can edit decides who holds an issue.
 *
 *   LIST ─► TAKE ─► CHECK ─► OVER           TAKE, cooling: the issue was done before
 *            │ ▲      └► ABANDON ─► TAKE     └► DATE ─► EVENTS ─► HEAL ─► TAKE (the next)
 *            └─┘ busy: the next one                       └► CLEAR ─► TAKE (the same) ─► CHECK
 *   After such a CHECK: DATE ─► EVENTS ─► OVER, or FINISH ─► UNLABEL ─► TAKE (the next)
 */
#include "face/lib/claim_internal.h"

#include "base/check.h"
#include "wire/github_issue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- candidates ---- */

struct claim_candidate {
    uint64_t number;
    int32_t priority;
};

static int candidate_compare(const void *left, const void *right)
{
    const struct claim_candidate *a = left, *b = right;
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

/* False when out of memory. */
static bool search_choose(struct claim_search *search)
{
    const struct lh_claims *claims = search->claims;
    struct claim_candidate *out = calloc(CLAIM_ITEMS, sizeof *out);
    size_t count = 0;
    if (out == NULL)
        return false;
    for (size_t i = 0; i < CLAIM_ITEMS; i++) {
        const json_t *issue = claim_page_item(&claims->issues, i);
        json_int_t number = json_integer_value(json_object_get(issue, "number"));
        if (number <= 0 || json_object_get(issue, "pull_request") != NULL ||
            claim_has_failed(claims, (uint64_t)number))
            continue;
        out[count].number = (uint64_t)number;
        out[count].priority = claims->order == LH_CLAIM_BY_PRIORITY ? claim_priority(issue) : 0;
        if ((uint64_t)number == search->first)
            out[count].priority = INT32_MAX;
        count++;
    }
    qsort(out, count, sizeof *out, candidate_compare);
    search->candidates = out;
    search->count = count;
    return true;
}

static bool search_admits(const struct claim_search *search, uint64_t number)
{
    struct lh_client *client = search->claims->client;
    if (search->admits == NULL)
        return true;
    client_enter_callback(client);
    bool admitted = search->admits(search->user, number);
    client_leave_callback(client);
    return admitted;
}

/* ---- steps ---- */

static enum claim_step search_end(struct claim_search *search, enum lh_outcome outcome)
{
    search->verdict = outcome;
    return CLAIM_OVER;
}

static enum claim_step search_next(struct claim_search *search)
{
    const struct lh_claims *claims = search->claims;
    char message[LH_TEXT_SIZE];
    while (!search->cancelled && search->next < search->count) {
        uint64_t number = search->candidates[search->next++].number;
        if (!search_admits(search, number))
            continue;
        (void)snprintf(search->exchange.key, CLAIM_KEY, "%llu", (unsigned long long)number);
        search->was_done = search->held = false;
        return CLAIM_TAKE;
    }
    (void)snprintf(message, sizeof message, "busy: no open issue of %s/%.60s with label %s is free",
                   claims->url.owner, claims->url.repo, claims->label);
    (void)report_set(&search->report, LH_BUSY,
                     search->cancelled ? "busy: the caller gave up" : message);
    return search_end(search, LH_BUSY);
}

/* LH_BUSY: this one is not for us. */
static enum claim_step search_refuse(struct claim_search *search, enum lh_outcome outcome)
{
    if (search->held) {
        search->verdict = outcome;
        return CLAIM_ABANDON;
    }
    return outcome == LH_BUSY ? search_next(search) : search_end(search, outcome);
}

static enum claim_step search_after_take(struct claim_search *search, enum lh_outcome outcome)
{
    if (outcome == LH_OK)
        return CLAIM_CHECK;
    if (outcome == LH_COOLING && !search->was_done) {
        search->was_done = true;
        return CLAIM_DATE;
    }
    bool theirs = outcome == LH_BUSY || outcome == LH_COOLING || outcome == LH_MISMATCH;
    return theirs ? search_next(search) : search_end(search, outcome);
}

/* The issue got the label after it was done; or a worker ended between the two steps of
 * lh_claim_finish(). */
static enum claim_step search_after_events(struct claim_search *search)
{
    bool again = search->exchange.labelled_ms > search->done_ms;
    if (search->held)
        return again ? search_end(search, LH_OK) : CLAIM_FINISH;
    return again ? CLAIM_CLEAR : CLAIM_HEAL;
}

static void search_fill(struct claim_search *search, const json_t *issue)
{
    struct lh_claim *out = &search->found;
    struct github_usage usage;
    struct text title, url;
    github_api_usage(search->claims->api, &usage);
    out->number = (uint64_t)json_integer_value(json_object_get(issue, "number"));
    out->requests_left = usage.left;
    text_init(&title, out->title, sizeof out->title);
    text_add(&title, github_string(issue, "title"));
    text_clean(out->title, title.length); /* it may be cut within a character */
    text_init(&url, out->url, sizeof out->url);
    text_add(&url, github_string(issue, "html_url"));
    text_clean(out->url, url.length);
}

/* The issue may have changed since it was listed, and may have been done by another worker since
 * its cooldown was cleared. */
static enum claim_step search_after_check(struct claim_search *search)
{
    const json_t *issue = search->exchange.issue;
    json_int_t number = json_integer_value(json_object_get(issue, "number"));
    if ((uint64_t)number != strtoull(search->exchange.key, NULL, 10) || /* whose key we hold */
        strcmp(github_string(issue, "state"), "open") != 0 ||
        !claim_has_label(issue, search->claims->label))
        return search_refuse(search, LH_BUSY);
    search_fill(search, issue);
    return search->was_done ? CLAIM_DATE : search_end(search, LH_OK);
}

static enum claim_step search_after(struct claim_search *search, enum lh_outcome outcome)
{
    bool gives_up = search->cancelled && !(search->held && search->keeps);
    if (gives_up && search->step < CLAIM_FINISH)
        return search_refuse(search, LH_BUSY);
    switch (search->step) {
    case CLAIM_LIST:
        if (outcome != LH_OK)
            return search_end(search, outcome);
        if (search_choose(search))
            return search_next(search);
        return search_end(search, report_set(&search->report, LH_FAILED, "failed: out of memory"));
    case CLAIM_TAKE:
        return search_after_take(search, outcome);
    case CLAIM_DATE:
        return outcome == LH_OK ? CLAIM_EVENTS : search_refuse(search, outcome);
    case CLAIM_EVENTS:
        return outcome == LH_OK ? search_after_events(search) : search_refuse(search, outcome);
    case CLAIM_CLEAR:
        return outcome == LH_OK ? CLAIM_TAKE : search_refuse(search, outcome);
    case CLAIM_CHECK:
        return outcome == LH_OK ? search_after_check(search) : search_refuse(search, outcome);
    case CLAIM_FINISH:
        return CLAIM_UNLABEL;
    case CLAIM_ABANDON:
        return search->verdict == LH_BUSY ? search_next(search) : CLAIM_OVER;
    case CLAIM_HEAL:
        return outcome == LH_DENIED ? search_end(search, outcome) : search_next(search);
    case CLAIM_UNLABEL:
    case CLAIM_OVER:
        break;
    }
    return search_next(search);
}

/* ---- interface ---- */

bool claim_find_done(void *user, const struct lh_view *view)
{
    int64_t *done_ms = user;
    bool done = view->state == LH_COOLING_DOWN;
    if (done && view->written_at_ms >= 0)
        *done_ms = view->written_at_ms;
    return !done;
}

void claim_search_begin(struct claim_search *search)
{
    claim_search_done(search);
    search->step = CLAIM_LIST;
    search->count = search->next = 0;
    search->held = search->was_done = false;
    search->exchange.claims = search->claims;
    search->found = (struct lh_claim)LH_CLAIM_INIT;
    report_init(&search->report);
}

void claim_search_done(struct claim_search *search)
{
    free(search->candidates);
    search->candidates = NULL;
    json_decref(search->exchange.issue);
    search->exchange.issue = NULL;
}

void claim_search_step(struct claim_search *search, enum lh_outcome outcome,
                       const struct lh_report *report)
{
    ASSERT(search->step != CLAIM_OVER);
    if (search->step == CLAIM_TAKE || (outcome != LH_OK && search->step < CLAIM_FINISH))
        search->report = *report;
    if (search->step == CLAIM_TAKE && outcome == LH_OK)
        search->held = true;
    search->step = search_after(search, outcome);
    search->done_ms = search->step == CLAIM_DATE ? INT64_MAX : search->done_ms;
}

bool claim_search_asks(struct claim_search *search)
{
    struct claim_exchange *exchange = &search->exchange;
    exchange->heals = search->step == CLAIM_HEAL;
    switch (search->step) {
    case CLAIM_LIST:
        exchange->question = CLAIM_ASK_ISSUES;
        return true;
    case CLAIM_EVENTS:
        exchange->question = CLAIM_ASK_LABELLED;
        return true;
    case CLAIM_CHECK:
        exchange->question = CLAIM_ASK_ISSUE;
        return true;
    case CLAIM_HEAL:
    case CLAIM_UNLABEL:
        exchange->question = CLAIM_CHANGE_LABELS;
        return true;
    case CLAIM_TAKE:
    case CLAIM_DATE:
    case CLAIM_CLEAR:
    case CLAIM_FINISH:
    case CLAIM_ABANDON:
    case CLAIM_OVER:
        break;
    }
    return false;
}
