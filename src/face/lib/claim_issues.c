/* SPDX-License-Identifier: Apache-2.0 */
/* The connection of claim.c to the server: lists of issues and events, labels. Decides nothing. */
#include "face/lib/admin_internal.h"
#include "face/lib/claim_internal.h"

#include "process/host.h"
#include "wire/github_issue.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLAIM_PATH = 512, CLAIM_PAGE = CLAIM_ITEMS / CLAIM_PAGES };

/* ---- one call ---- */

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

static void claim_call(struct lh_claims *claims, struct github_call call, struct github_result *out)
{
    struct github_request request = {0};
    call.give_up_at_ms = host_boot_ms() + claims->client->timeout_ms;
    github_request_start_result(&request, claims->api, &call, out);
    poller_step(github_api_poller(claims->api));
    while (!out->over)
        claim_wait(claims, /* most_ms= */ -1);
}

/* Frees the reply. A 404 is what a token without rights gets, too. */
static enum lh_outcome claim_fail(const struct lh_claims *claims, struct github_result *reply,
                                  struct lh_report *report)
{
    int status = reply->status;
    bool denied = status == 401 || status == 403 || status == 404 || status == 410;
    enum lh_outcome outcome = denied ? LH_DENIED : LH_UNAVAILABLE;
    struct lh_report full = LH_REPORT_INIT;
    char message[LH_TEXT_SIZE];
    (void)snprintf(message, sizeof message, "%s: issues of %s/%.40s: %.120s%s",
                   lh_outcome_name(outcome), claims->url.owner, claims->url.repo, reply->why,
                   denied ? "; the token needs the right Issues: write" : "");
    text_clean(message, strlen(message));
    (void)report_set(&full, outcome, message);
    full.retry_after_ms = reply->retry_in_ms > 0 ? reply->retry_in_ms : -1;
    report_copy(report, &full);
    github_result_done(reply);
    return outcome;
}

/* ---- reads ---- */

enum lh_outcome claim_read_issue(struct lh_claims *claims, const char *key, json_t **out,
                                 struct lh_report *report)
{
    char path[CLAIM_PATH];
    struct github_result reply;
    (void)snprintf(path, sizeof path, "issues/%s", key);
    claim_call(claims, (struct github_call){.method = "GET", .path = path, .kind = GITHUB_READ},
               &reply);
    if (reply.status != 200)
        return claim_fail(claims, &reply, report);
    *out = json_incref(reply.json);
    github_result_done(&reply);
    return LH_OK;
}

static enum lh_outcome claim_read_pages(struct lh_claims *claims, const char *first,
                                        struct claim_pages *pages, struct lh_report *report)
{
    const char *path = first;
    for (struct github_result *page = pages->at; page < pages->at + CLAIM_PAGES; page++) {
        struct github_result reply;
        if (path == NULL) {
            github_result_done(page);
            continue;
        }
        const char *etag = page->etag[0] != '\0' ? page->etag : NULL;
        struct github_call call = {
            .method = "GET", .path = path, .kind = GITHUB_READ, .etag = etag};
        claim_call(claims, call, &reply);
        if (reply.status == 200) {
            github_result_done(page);
            *page = reply;
        } else if (reply.status != 304 || etag == NULL) {
            return claim_fail(claims, &reply, report);
        } else {
            github_result_done(&reply);
        }
        path = page->next;
    }
    return LH_OK;
}

const json_t *claim_page_item(const struct claim_pages *pages, size_t index)
{
    return json_array_get(pages->at[index / CLAIM_PAGE].json, index % CLAIM_PAGE);
}

void claim_pages_done(struct claim_pages *pages)
{
    for (size_t i = 0; i < CLAIM_PAGES; i++)
        github_result_done(&pages->at[i]);
}

enum lh_outcome claim_read_issues(struct lh_claims *claims, struct lh_report *report)
{
    char bytes[CLAIM_PATH];
    struct text path;
    text_init(&path, bytes, sizeof bytes);
    text_add(&path, "issues?state=open&sort=created&direction=asc&per_page=100&labels=");
    github_add_escaped(&path, claims->label);
    return claim_read_pages(claims, bytes, &claims->issues, report);
}

enum lh_outcome claim_read_labelled(struct lh_claims *claims, const char *key, int64_t *out_ms,
                                    struct lh_report *report)
{
    char path[CLAIM_PATH];
    struct claim_pages events = {0};
    (void)snprintf(path, sizeof path, "issues/%s/events?per_page=100", key);
    enum lh_outcome outcome = claim_read_pages(claims, path, &events, report);
    *out_ms = -1;
    for (size_t i = 0; i < CLAIM_ITEMS; i++) {
        const json_t *event = claim_page_item(&events, i);
        const char *label = github_string(json_object_get(event, "label"), "name");
        int64_t at_ms = github_time_ms(github_string(event, "created_at"));
        if (strcmp(github_string(event, "event"), "labeled") == 0 && at_ms > *out_ms &&
            github_label_equal(label, claims->label))
            *out_ms = at_ms;
    }
    claim_pages_done(&events);
    return outcome;
}

/* ---- labels ---- */

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

/* Frees the reply. */
static enum lh_outcome claim_send(struct lh_claims *claims, const struct github_call *call,
                                  int allowed, struct lh_report *report)
{
    struct github_result reply;
    claim_call(claims, *call, &reply);
    if (reply.status / 100 != 2 && (allowed == 0 || reply.status != allowed))
        return claim_fail(claims, &reply, report);
    github_result_done(&reply);
    return LH_OK;
}

/* One that is gone already was removed by another worker, or by people. */
static enum lh_outcome claim_remove_label(struct lh_claims *claims, const char *key,
                                          const char *label, struct lh_report *report)
{
    char bytes[CLAIM_PATH];
    struct text path;
    text_init(&path, bytes, sizeof bytes);
    TEXT_JOIN(&path, "issues/", key, "/labels/");
    github_add_escaped(&path, label);
    struct github_call call = {.method = "DELETE", .path = bytes, .kind = GITHUB_RELEASE};
    return claim_send(claims, &call, /* allowed= */ 404, report);
}

enum lh_outcome claim_change_labels(struct lh_claims *claims, const char *key, bool heals,
                                    struct lh_report *report)
{
    char path[CLAIM_PATH];
    enum lh_outcome outcome = claim_remove_label(claims, key, claims->label, report);
    if (outcome == LH_OK && heals && claims->url.show)
        outcome = claim_remove_label(claims, key, GITHUB_HELD_LABEL, report);
    if (outcome != LH_OK || claims->done_label[0] == '\0')
        return outcome;
    (void)snprintf(path, sizeof path, "issues/%s/labels", key);
    struct github_call call = {.method = "POST",
                               .path = path,
                               .body = json_pack("{s:[s]}", "labels", claims->done_label),
                               .kind = GITHUB_RELEASE};
    return claim_send(claims, &call, /* allowed= */ 0, report);
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
    if (!client_is_forked(handle->client)) /* otherwise the connection is the parent's */
        github_api_close(&handle->api);
    claim_pages_done(&handle->issues);
    handle->magic = 0;
    free(handle);
    *claims = NULL;
}
