/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Started claims, in the loop of their caller: the same search as in claim.c, with calls that do
 * not block. One search per handle is active; the others wait for their turn, or for the next poll.
 * A grant is unbound and detached, and known by its token.
 */
#include "face/lib/claim_internal.h"

#include "base/check.h"
#include "process/host.h"

#include <stdlib.h>
#include <string.h>

enum { REQUEST_MAGIC = 0xc1a15, CLAIM_META_MAX = 16 };

enum claim_state {
    CLAIM_QUEUED,  /* until the active one ends */
    CLAIM_POLLING, /* until its timer is due */
    CLAIM_ACTIVE,
    CLAIM_ORPHAN, /* the handle was closed during a call of the library; done was called */
};

struct lh_claim_request {
    uint32_t magic;
    enum claim_state state;
    struct list_node node; /* of the handle's */
    struct lh_client *client;
    struct claim_search search;
    struct lh_acquire_options acquire;
    struct lh_request *taking; /* of CLAIM_TAKE */
    bool in_library;           /* a call of the library is in flight */
    uint64_t token;
    int64_t until_ms; /* of its wait */
    struct poller_timer timer;
    lh_done_fn *done;
    void *user;
    struct lh_claim *out;
    struct lh_meta meta[CLAIM_META_MAX];
    char strings[]; /* of the options */
};

/* ---- the end ---- */

static void claim_request_free(struct lh_claim_request *request)
{
    claim_search_done(&request->search);
    request->magic = 0;
    free(request);
}

/* It has left the list of the handle. */
static void claim_request_report(struct lh_claim_request *request)
{
    struct claim_search *search = &request->search;
    struct lh_client *client = request->client;
    poller_call_at(github_api_poller(search->claims->api), &request->timer, POLLER_NEVER);
    search->report.outcome = search->verdict;
    search->report.token = search->verdict == LH_OK ? request->token : 0;
    search->found.poll_ms = claim_pause_ms(search->claims);
    sized_write(request->out, &search->found, sizeof search->found);
    client_enter_callback(client);
    request->done(request->user, NULL, &search->report);
    client_leave_callback(client);
}

static void claim_request_end(struct lh_claim_request *request)
{
    struct lh_claims *claims = request->search.claims;
    list_remove(&claims->requests, &request->node);
    if (claims->active == request)
        claims->active = NULL;
    claim_request_report(request);
    claim_request_free(request);
}

static void claim_request_end_cancelled(struct lh_claim_request *request)
{
    (void)report_set(&request->search.report, LH_BUSY, "busy: the caller gave up");
    request->search.verdict = LH_BUSY;
    claim_request_end(request);
}

/* The next one runs from the poller: no done is called within that of another. */
static void claims_wake_next(struct lh_claims *claims)
{
    for (struct list_node *node = claims->requests.first; node != NULL; node = node->next) {
        struct lh_claim_request *request = LIST_ENTRY(node, struct lh_claim_request, node);
        if (request->state != CLAIM_QUEUED)
            continue;
        poller_call_at(github_api_poller(claims->api), &request->timer, host_boot_ms());
        return;
    }
}

/* The search has found nothing, or an issue, or has failed. */
static void claim_request_over(struct lh_claim_request *request)
{
    struct claim_search *search = &request->search;
    struct lh_claims *claims = search->claims;
    int64_t at_ms = host_boot_ms() + claim_pause_ms(claims);
    claim_search_done(search);
    if (search->verdict == LH_BUSY && !search->cancelled && at_ms < request->until_ms) {
        request->state = CLAIM_POLLING;
        claims->active = NULL;
        poller_call_at(github_api_poller(claims->api), &request->timer, at_ms);
    } else {
        claim_request_end(request);
    }
    claims_wake_next(claims);
}

/* ---- steps ---- */

static void claim_request_advance(struct lh_claim_request *request, enum lh_outcome outcome,
                                  const struct lh_report *report);

static void claim_on_orphan_released(void *user, struct lh_lease *lease,
                                     const struct lh_report *report)
{
    (void)lease;
    (void)report;
    claim_request_free(user);
}

/* Nobody wants the grant that has come too late. One with a request id may be known elsewhere. */
static void claim_orphan_end(struct lh_claim_request *request, enum lh_outcome outcome)
{
    struct claim_search *search = &request->search;
    if (search->step == CLAIM_TAKE && outcome == LH_OK && !search->keeps &&
        lh_release_token_start(request->client, search->exchange.key, request->token,
                               /* cooldown_ms= */ 0, claim_on_orphan_released, request,
                               NULL) == LH_OK)
        return;
    claim_request_free(request);
}

static void claim_on_library(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct lh_claim_request *request = user;
    ASSERT(request->magic == REQUEST_MAGIC && request->in_library);
    request->in_library = false;
    lh_request_free(request->taking);
    request->taking = NULL;
    if (lease != NULL)
        request->token = lh_token_at(lease, 0);
    if (request->state == CLAIM_ORPHAN)
        claim_orphan_end(request, report->outcome);
    else
        claim_request_advance(request, report->outcome, report);
}

static void claim_on_exchanged(void *owner, enum lh_outcome outcome)
{
    struct lh_claim_request *request = owner;
    claim_request_advance(request, outcome, &request->search.exchange.report);
}

static bool claim_on_change(void *user, const struct lh_view *view)
{
    struct lh_claim_request *request = user;
    return claim_find_done(&request->search.done_ms, view);
}

/* Starts the current step. LH_OK: it calls back. */
static enum lh_outcome claim_request_start(struct lh_claim_request *request,
                                           struct lh_report *report)
{
    struct claim_search *search = &request->search;
    struct lh_client *client = request->client;
    const char *key = search->exchange.key;
    switch (search->step) {
    case CLAIM_TAKE:
        request->taking =
            lh_acquire_start(client, key, &request->acquire, claim_on_library, request, report);
        return request->taking != NULL ? LH_OK : report->outcome;
    case CLAIM_DATE:
        return lh_history_start(client, key, claim_on_change, claim_on_library, request, report);
    case CLAIM_CLEAR:
        return lh_clear_start(client, key, claim_on_library, request, report);
    default:
        return lh_release_token_start(client, key, request->token,
                                      search->step == CLAIM_FINISH ? SPAN_MAX_MS : 0,
                                      claim_on_library, request, report);
    }
}

/* From its current step on, until it waits for a reply or is over. */
static void claim_request_run(struct lh_claim_request *request)
{
    struct claim_search *search = &request->search;
    while (search->step != CLAIM_OVER) {
        struct lh_report report = LH_REPORT_INIT;
        if (claim_search_asks(search)) {
            claim_exchange_start(&search->exchange);
            return;
        }
        request->in_library = true; /* before it calls back */
        enum lh_outcome outcome = claim_request_start(request, &report);
        if (outcome == LH_OK)
            return;
        request->in_library = false;
        claim_search_step(search, outcome, &report);
    }
    claim_request_over(request);
}

static void claim_request_advance(struct lh_claim_request *request, enum lh_outcome outcome,
                                  const struct lh_report *report)
{
    claim_search_step(&request->search, outcome, report);
    claim_request_run(request);
}

/* ---- turns ---- */

static void claims_run_next(struct lh_claims *claims)
{
    struct list_node *node = claims->requests.first;
    while (claims->active == NULL && node != NULL) {
        struct lh_claim_request *request = LIST_ENTRY(node, struct lh_claim_request, node);
        node = node->next;
        if (request->state != CLAIM_QUEUED)
            continue;
        request->state = CLAIM_ACTIVE;
        claims->active = request;
        claim_search_begin(&request->search);
        request->search.exchange.done = claim_on_exchanged;
        request->search.exchange.owner = request;
        claim_request_run(request);
        return;
    }
}

/* Its turn after a pause; its start; or it was cancelled, and no library call is in flight. */
static void claim_on_due(void *owner)
{
    struct lh_claim_request *request = owner;
    struct lh_claims *claims = request->search.claims;
    if (request->state == CLAIM_ACTIVE) {
        claim_request_advance(request, LH_BUSY, &request->search.report);
        return;
    }
    if (request->search.cancelled) {
        claim_request_end_cancelled(request);
        return;
    }
    request->state = CLAIM_QUEUED;
    claims_run_next(claims);
}

void lh_claim_cancel(struct lh_claim_request *request)
{
    if (request == NULL || request->magic != REQUEST_MAGIC || request->search.cancelled)
        return;
    struct claim_search *search = &request->search;
    search->cancelled = true;
    if (request->in_library || (search->held && search->keeps))
        return;
    if (request->state == CLAIM_ACTIVE)
        claim_exchange_cancel(&search->exchange);
    poller_call_at(github_api_poller(search->claims->api), &request->timer, host_boot_ms());
}

void claim_requests_end(struct lh_claims *claims)
{
    for (struct list_node *node; (node = list_pop(&claims->requests)) != NULL;) {
        struct lh_claim_request *request = LIST_ENTRY(node, struct lh_claim_request, node);
        struct claim_search *search = &request->search;
        if (!request->in_library && request->state == CLAIM_ACTIVE)
            claim_exchange_cancel(&search->exchange);
        search->verdict = LH_BUSY;
        (void)report_set(&search->report, LH_BUSY, "busy: the claims are being closed");
        claim_request_report(request);
        if (request->in_library)
            request->state = CLAIM_ORPHAN;
        else
            claim_request_free(request);
    }
    claims->active = NULL;
}

/* ---- start ---- */

/* Copies the string to `at`, and moves that behind it. */
static const char *claim_copy_string(char **at, const char *string)
{
    if (string == NULL)
        return NULL;
    size_t size = strlen(string) + 1;
    char *copy = memcpy(*at, string, size);
    *at += size;
    return copy;
}

static size_t claim_strings_size(const struct lh_claim_options *options)
{
    size_t size = 0;
    size += options->holder != NULL ? strlen(options->holder) + 1 : 0;
    size += options->request_id != NULL ? strlen(options->request_id) + 1 : 0;
    for (size_t i = 0; i < options->meta_count; i++)
        size += strlen(options->meta[i].name) + strlen(options->meta[i].value) + 2;
    return size;
}

static void claim_copy_options(struct lh_claim_request *request,
                               const struct lh_claim_options *options)
{
    struct lh_acquire_options *acquire = &request->acquire;
    char *at = request->strings;
    *acquire = (struct lh_acquire_options)LH_ACQUIRE_OPTIONS_INIT;
    acquire->unbound = acquire->detach = true;
    acquire->ttl_ms = options->ttl_ms;
    acquire->holder = claim_copy_string(&at, options->holder);
    acquire->request_id = claim_copy_string(&at, options->request_id);
    acquire->meta = request->meta;
    acquire->meta_count = options->meta_count;
    for (size_t i = 0; i < options->meta_count; i++) {
        request->meta[i].name = claim_copy_string(&at, options->meta[i].name);
        request->meta[i].value = claim_copy_string(&at, options->meta[i].value);
    }
}

/* The strings of meta are checked by the acquisition. */
static bool claim_meta_is_complete(const struct lh_claim_options *options)
{
    bool complete = options->meta_count == 0 ||
                    (options->meta != NULL && options->meta_count <= CLAIM_META_MAX);
    for (size_t i = 0; complete && i < options->meta_count; i++)
        complete = options->meta[i].name != NULL && options->meta[i].value != NULL;
    return complete;
}

struct lh_claim_request *lh_claim_begin_start(struct lh_claims *claims,
                                              const struct lh_claim_options *options,
                                              struct lh_claim *out, lh_done_fn *done, void *user,
                                              struct lh_report *report)
{
    struct lh_claim_options known;
    if (claims_admit(claims, report) != LH_OK ||
        client_admits_start(claims->client, report) != LH_OK ||
        !claim_read_options(options, out, &known, report))
        return NULL;
    if (done == NULL || !claims->client->own_loop || !claim_meta_is_complete(&known)) {
        (void)report_set(report, LH_USAGE,
                         "usage: a started claim needs a client with own_loop, a callback, and at "
                         "most 16 complete pairs of meta");
        return NULL;
    }
    struct lh_claim_request *request = calloc(1, sizeof *request + claim_strings_size(&known));
    if (request == NULL) {
        (void)report_set(report, LH_FAILED, "failed: out of memory");
        return NULL;
    }
    int64_t now_ms = host_boot_ms();
    request->magic = REQUEST_MAGIC;
    request->state = CLAIM_POLLING;
    request->client = claims->client;
    request->search.claims = claims;
    request->search.admits = known.admits;
    request->search.user = known.user;
    request->search.first = known.first;
    request->search.keeps = known.request_id != NULL;
    request->until_ms = known.wait_ms < 0 ? INT64_MAX : now_ms + known.wait_ms;
    request->timer = (struct poller_timer){.due = claim_on_due, .owner = request};
    request->done = done;
    request->user = user;
    request->out = out;
    report_init(&request->search.report);
    request->search.found = (struct lh_claim)LH_CLAIM_INIT;
    claim_copy_options(request, &known);
    list_append(&claims->requests, &request->node);
    poller_call_at(github_api_poller(claims->api), &request->timer, now_ms);
    (void)report_ok(report, "ok: started");
    return request;
}

int lh_claims_fd(const struct lh_claims *claims)
{
    bool usable = claims != NULL && claims->magic == CLAIMS_MAGIC && claims->client->own_loop &&
                  !client_is_forked(claims->client);
    return usable ? poller_fd(github_api_poller(claims->api)) : -1;
}

enum lh_outcome lh_claims_step(struct lh_claims *claims)
{
    if (lh_claims_fd(claims) < 0)
        return LH_USAGE;
    enum lh_outcome outcome = client_admits(claims->client, /* blocks= */ true, NULL);
    if (outcome == LH_OK)
        poller_step(github_api_poller(claims->api));
    return outcome;
}
