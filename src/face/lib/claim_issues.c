/* SPDX-License-Identifier: Apache-2.0 */
/* The connection of claims to the server: lists of issues and events, labels. Decides nothing. */
#include "face/lib/admin_internal.h"
#include "face/lib/claim_internal.h"

#include "process/host.h"
#include "wire/github_issue.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLAIM_PAGE = CLAIM_ITEMS / CLAIM_PAGES };

/* The calls of CLAIM_CHANGE_LABELS. */
enum { CALL_REMOVE_LABEL, CALL_REMOVE_HELD, CALL_ADD_DONE, CALLS_OF_LABELS };

static void exchange_on_reply(void *owner, const struct github_reply *reply);

/* ---- pages ---- */

const json_t *claim_page_item(const struct claim_pages *pages, size_t index)
{
    return json_array_get(pages->at[index / CLAIM_PAGE].json, index % CLAIM_PAGE);
}

static void claim_pages_done(struct claim_pages *pages, size_t from)
{
    for (size_t i = from; i < CLAIM_PAGES; i++)
        github_result_done(&pages->at[i]);
}

/* ---- one exchange ---- */

static void exchange_send(struct claim_exchange *exchange, struct github_call call)
{
    struct lh_claims *claims = exchange->claims;
    call.give_up_at_ms = host_boot_ms() + claims->client->timeout_ms;
    github_request_start(&exchange->request, claims->api, &call, exchange_on_reply, exchange);
}

static void exchange_end(struct claim_exchange *exchange, enum lh_outcome outcome)
{
    github_result_done(&exchange->reply);
    claim_pages_done(&exchange->events, 0);
    exchange->outcome = outcome;
    exchange->over = true;
    if (exchange->done != NULL)
        exchange->done(exchange->owner, outcome);
}

/* A 404 is what a token without rights gets, too. */
static void exchange_fail(struct claim_exchange *exchange)
{
    const struct github_url *url = &exchange->claims->url;
    const struct github_result *reply = &exchange->reply;
    int status = reply->status;
    bool denied = status == 401 || status == 403 || status == 404 || status == 410;
    enum lh_outcome outcome = denied ? LH_DENIED : LH_UNAVAILABLE;
    char message[LH_TEXT_SIZE];
    (void)snprintf(message, sizeof message, "%s: issues of %s/%.40s: %.120s%s",
                   lh_outcome_name(outcome), url->owner, url->repo, reply->why,
                   denied ? "; the token needs the right Issues: write" : "");
    text_clean(message, strlen(message));
    report_init(&exchange->report);
    (void)report_set(&exchange->report, outcome, message);
    exchange->report.retry_after_ms = reply->retry_in_ms > 0 ? reply->retry_in_ms : -1;
    exchange_end(exchange, outcome);
}

/* ---- reads ---- */

static struct claim_pages *exchange_pages(struct claim_exchange *exchange)
{
    return exchange->question == CLAIM_ASK_ISSUES ? &exchange->claims->issues : &exchange->events;
}

static void exchange_ask_page(struct claim_exchange *exchange, const char *path)
{
    const struct github_result *page = &exchange_pages(exchange)->at[exchange->at];
    const char *etag = page->etag[0] != '\0' ? page->etag : NULL;
    exchange_send(exchange, (struct github_call){
                                .method = "GET", .path = path, .kind = GITHUB_READ, .etag = etag});
}

static void exchange_find_label(struct claim_exchange *exchange)
{
    exchange->labelled_ms = -1;
    for (size_t i = 0; i < CLAIM_ITEMS; i++) {
        const json_t *event = claim_page_item(&exchange->events, i);
        const char *label = github_string(json_object_get(event, "label"), "name");
        int64_t at_ms = github_time_ms(github_string(event, "created_at"));
        if (strcmp(github_string(event, "event"), "labeled") == 0 &&
            at_ms > exchange->labelled_ms && github_label_equal(label, exchange->claims->label))
            exchange->labelled_ms = at_ms;
    }
}

static void exchange_take_page(struct claim_exchange *exchange)
{
    struct claim_pages *pages = exchange_pages(exchange);
    struct github_result *page = &pages->at[exchange->at], *reply = &exchange->reply;
    if (reply->status == 200) {
        github_result_done(page);
        *page = *reply;
        *reply = (struct github_result){0};
    } else if (reply->status != 304 || page->etag[0] == '\0') {
        exchange_fail(exchange);
        return;
    }
    github_result_done(reply);
    if (page->next != NULL && exchange->at + 1 < CLAIM_PAGES) {
        exchange->at++;
        exchange_ask_page(exchange, page->next);
        return;
    }
    claim_pages_done(pages, exchange->at + 1);
    if (exchange->question == CLAIM_ASK_LABELLED)
        exchange_find_label(exchange);
    exchange_end(exchange, LH_OK);
}

static void exchange_take_issue(struct claim_exchange *exchange)
{
    if (exchange->reply.status != 200) {
        exchange_fail(exchange);
        return;
    }
    json_decref(exchange->issue);
    exchange->issue = json_incref(exchange->reply.json);
    exchange_end(exchange, LH_OK);
}

bool claim_has_label(const json_t *issue, const char *label)
{
    const json_t *labels = json_object_get(issue, "labels");
    bool found = false;
    for (size_t i = 0; i < json_array_size(labels); i++)
        found =
            found || github_label_equal(github_string(json_array_get(labels, i), "name"), label);
    return found;
}

int32_t claim_priority(const json_t *issue)
{
    const json_t *labels = json_object_get(issue, "labels");
    int32_t highest = GITHUB_NO_PRIORITY;
    for (size_t i = 0; i < json_array_size(labels); i++) {
        int32_t priority = github_label_priority(github_string(json_array_get(labels, i), "name"));
        highest = priority > highest ? priority : highest;
    }
    return highest != GITHUB_NO_PRIORITY ? highest : 0;
}

/* ---- labels ---- */

static void exchange_remove_label(struct claim_exchange *exchange, const char *label)
{
    char bytes[CLAIM_PATH];
    struct text path;
    text_init(&path, bytes, sizeof bytes);
    TEXT_JOIN(&path, "issues/", exchange->key, "/labels/");
    github_add_escaped(&path, label);
    exchange_send(exchange,
                  (struct github_call){.method = "DELETE", .path = bytes, .kind = GITHUB_RELEASE});
}

static void exchange_add_done(struct claim_exchange *exchange)
{
    char path[CLAIM_PATH];
    (void)snprintf(path, sizeof path, "issues/%s/labels", exchange->key);
    exchange_send(exchange, (struct github_call){.method = "POST",
                                                 .path = path,
                                                 .body = json_pack("{s:[s]}", "labels",
                                                                   exchange->claims->done_label),
                                                 .kind = GITHUB_RELEASE});
}

/* Sends the call, or the next one that is needed. */
static void exchange_change_label(struct claim_exchange *exchange)
{
    const struct lh_claims *claims = exchange->claims;
    if (exchange->at == CALL_REMOVE_HELD && !(exchange->heals && claims->url.show))
        exchange->at++;
    if (exchange->at == CALL_ADD_DONE && claims->done_label[0] == '\0')
        exchange->at++;
    if (exchange->at == CALLS_OF_LABELS)
        exchange_end(exchange, LH_OK);
    else if (exchange->at == CALL_ADD_DONE)
        exchange_add_done(exchange);
    else
        exchange_remove_label(exchange,
                              exchange->at == CALL_REMOVE_HELD ? GITHUB_HELD_LABEL : claims->label);
}

/* A label that is gone already was removed by another worker, or by people. */
static void exchange_take_change(struct claim_exchange *exchange)
{
    int status = exchange->reply.status;
    if (status / 100 != 2 && (status != 404 || exchange->at == CALL_ADD_DONE)) {
        exchange_fail(exchange);
        return;
    }
    github_result_done(&exchange->reply);
    exchange->at++;
    exchange_change_label(exchange);
}

/* ---- start and end ---- */

static void exchange_on_reply(void *owner, const struct github_reply *reply)
{
    struct claim_exchange *exchange = owner;
    github_result_fill(&exchange->reply, reply);
    switch (exchange->question) {
    case CLAIM_ASK_ISSUES:
    case CLAIM_ASK_LABELLED:
        exchange_take_page(exchange);
        return;
    case CLAIM_ASK_ISSUE:
        exchange_take_issue(exchange);
        return;
    case CLAIM_CHANGE_LABELS:
        exchange_take_change(exchange);
        return;
    }
}

void claim_exchange_start(struct claim_exchange *exchange)
{
    char bytes[CLAIM_PATH];
    struct text path;
    exchange->over = false;
    exchange->at = 0;
    text_init(&path, bytes, sizeof bytes);
    switch (exchange->question) {
    case CLAIM_ASK_ISSUES:
        text_add(&path, "issues?state=open&sort=created&direction=asc&per_page=100&labels=");
        github_add_escaped(&path, exchange->claims->label);
        exchange_ask_page(exchange, bytes);
        return;
    case CLAIM_ASK_LABELLED:
        TEXT_JOIN(&path, "issues/", exchange->key, "/events?per_page=100");
        exchange_ask_page(exchange, bytes);
        return;
    case CLAIM_ASK_ISSUE:
        TEXT_JOIN(&path, "issues/", exchange->key);
        exchange_send(exchange,
                      (struct github_call){.method = "GET", .path = bytes, .kind = GITHUB_READ});
        return;
    case CLAIM_CHANGE_LABELS:
        exchange_change_label(exchange);
        return;
    }
}

void claim_exchange_cancel(struct claim_exchange *exchange)
{
    github_request_cancel(&exchange->request);
    github_result_done(&exchange->reply);
    claim_pages_done(&exchange->events, 0);
    exchange->over = true;
}

void claim_wait(struct lh_claims *claims, int64_t most_ms)
{
    struct poller *poller = github_api_poller(claims->api);
    struct pollfd files[] = {{.fd = poller_fd(poller), .events = POLLIN},
                             {.fd = lh_fd(claims->client), .events = POLLIN}};
    (void)poll(files, 2, most_ms < INT_MAX ? (int)most_ms : INT_MAX);
    if (files[1].revents != 0)
        (void)lh_step(claims->client);
    poller_step(poller);
}

enum lh_outcome claim_exchange_make(struct claim_exchange *exchange)
{
    claim_exchange_start(exchange);
    poller_step(github_api_poller(exchange->claims->api));
    while (!exchange->over)
        claim_wait(exchange->claims, /* most_ms= */ -1);
    return exchange->outcome;
}

/* ---- open and close ---- */

static bool is_label(const char *label)
{
    size_t length = label != NULL ? strlen(label) : 0;
    return length > 0 && length <= CLAIM_LABEL_MAX && text_is_clean(label, length) &&
           strchr(label, ',') == NULL;
}

enum lh_outcome lh_claims_open(struct lh_client *client, const struct lh_claims_options *options,
                               struct lh_claims **out, struct lh_report *report)
{
    struct lh_claims_options known = LH_CLAIMS_OPTIONS_INIT;
    char message[LH_TEXT_SIZE];
    struct text why;
    enum lh_outcome outcome = client_admits(client, /* blocks= */ true, report);
    if (outcome != LH_OK)
        return outcome;
    if (out == NULL || options == NULL || !sized_read(&known, sizeof known, options) ||
        !is_label(known.label) || (known.done_label != NULL && !is_label(known.done_label)) ||
        (int)known.order < 0 || known.order > LH_CLAIM_BY_PRIORITY)
        return report_set(report, LH_USAGE,
                          "usage: give a label of 1 to 100 bytes without commas, in options that "
                          "LH_CLAIMS_OPTIONS_INIT initialised, and a pointer for the handle");
    struct lh_claims *claims = calloc(1, sizeof *claims);
    if (claims == NULL)
        return report_set(report, LH_FAILED, "failed: out of memory");
    text_init(&why, message, sizeof message);
    bool valid = github_url_parse(client->source, github_api_is_loopback(), &claims->url, &why);
    if (!valid || !github_api_open(&claims->api, &claims->url, client->timeout_ms, &why)) {
        free(claims);
        return admin_report_url(report, valid ? LH_UNAVAILABLE : LH_USAGE, client->source, message);
    }
    claims->magic = CLAIMS_MAGIC;
    claims->client = client;
    claims->order = known.order;
    text_copy(claims->label, sizeof claims->label, known.label);
    if (known.done_label != NULL)
        text_copy(claims->done_label, sizeof claims->done_label, known.done_label);
    *out = claims;
    return report_set(report, LH_OK, "ok");
}

void lh_claims_close(struct lh_claims **claims)
{
    struct lh_claims *handle = claims != NULL ? *claims : NULL;
    if (handle == NULL || handle->magic != CLAIMS_MAGIC)
        return;
    if (!client_is_forked(handle->client)) { /* otherwise the connection is the parent's */
        claim_requests_end(handle);
        github_api_close(&handle->api);
    }
    claim_pages_done(&handle->issues, 0);
    handle->magic = 0;
    free(handle);
    *claims = NULL;
}
