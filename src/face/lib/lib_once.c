/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids that are done once, and watermarks. A claim is a lease of the id's key. lh_once_claim()
 * renews it like any lease; lh_once_begin() detaches it once it is granted, and its token finishes
 * it from any process. All other calls are operations (operation.c). The core decides.
 */
#include "face/lib/lib_internal.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_CLAIM_TTL_MS ((int64_t)5 * 60 * 1000)
#define DEFAULT_KEEP_MS      ((int64_t)24 * 3600 * 1000)

/* Prefixes separate ids and watermarks from locks. False with a report if the name is invalid. */
static bool make_key(const char *prefix, const char *name, char out[KEY_MAX + 1],
                     struct lh_report *report)
{
    int length = snprintf(out, KEY_MAX + 1, "%s%s", prefix, name != NULL ? name : "");
    if (length <= KEY_MAX && name != NULL && name[0] != '\0')
        return true;
    (void)report_set(report, LH_USAGE, "usage: the name must be 1 to 500 bytes");
    return false;
}

void once_fill(const struct task_news *news, struct lh_once *out)
{
    struct lh_once once = LH_ONCE_INIT;
    const struct record *record = news->record;
    if (record == NULL || record->kind != KIND_ONCE || news->key_info.state != KEY_COOLING)
        return;
    once.status = record->once.done.status;
    (void)snprintf(once.result, sizeof once.result, "%s", record->once.done.result);
    sized_write(out, &once, sizeof once);
}

void once_set_token(struct lh_once *out, uint64_t token)
{
    struct lh_once once = LH_ONCE_INIT;
    once.token = token;
    sized_write(out, &once, sizeof once);
}

/* Clears the result. False with a report if its size is not plausible. */
static bool once_clear(struct lh_once *out, struct lh_report *report)
{
    struct lh_once empty = LH_ONCE_INIT;
    if (!sized_is_valid(out)) {
        (void)report_set(report, LH_USAGE, "usage: initialise the result with LH_ONCE_INIT");
        return false;
    }
    sized_write(out, &empty, sizeof empty);
    return true;
}

/* ---- claims ---- */

/* Turns a lease into a claim; false with a report on failure. */
static bool lease_make_claim(struct lh_lease *lease, const char *payload, struct lh_report *report)
{
    struct request request = lease->options.request;
    request.kind = KIND_ONCE;
    request.key = lease->parts[0].key;
    if (request.request == NULL)
        request.request = "-"; /* valid; the executor makes one */
    request.payload = payload;
    const char *wrong = request_broken(&request);
    if (wrong != NULL) {
        char message[LH_TEXT_SIZE];
        (void)snprintf(message, sizeof message, "usage: %s", wrong);
        (void)report_set(report, LH_USAGE, message);
        return false;
    }
    if (payload != NULL && (lease->payload = strdup(payload)) == NULL) {
        (void)report_set(report, LH_FAILED, "failed: out of memory");
        return false;
    }
    lease->options.request.kind = KIND_ONCE;
    lease->options.request.payload = lease->payload;
    return true;
}

/* NULL with a report on failure. */
static struct lh_lease *new_claim(struct lh_client *client, const char *id,
                                  const struct lh_once_options *given, bool unbound,
                                  struct lh_once *out, struct lh_report *report)
{
    struct lh_once_options options = LH_ONCE_OPTIONS_INIT;
    struct lh_acquire_options acquire = LH_ACQUIRE_OPTIONS_INIT;
    char text[KEY_MAX + 1];
    const char *key = text;
    if (given != NULL && !sized_read(&options, sizeof options, given)) {
        (void)report_set(report, LH_USAGE,
                         "usage: the options have a wrong size, or a member "
                         "that this library does not know; initialise them with "
                         "LH_ONCE_OPTIONS_INIT");
        return NULL;
    }
    if (!once_clear(out, report) || !make_key(ONCE_PREFIX, id, text, report))
        return NULL;
    acquire.ttl_ms = options.ttl_ms != 0 ? options.ttl_ms : DEFAULT_CLAIM_TTL_MS;
    acquire.unbound = unbound;
    acquire.wait_ms = options.wait_ms;
    acquire.on_lost = options.on_lost;
    acquire.user = options.user;
    acquire.holder = options.holder;
    acquire.request_id = options.request_id;
    struct lh_lease *lease = lease_new(client, &key, /* count= */ 1, &acquire, report);
    if (lease == NULL)
        return NULL;
    if (!lease_make_claim(lease, options.payload, report)) {
        lease_free(lease);
        return NULL;
    }
    lease->once = out;
    return lease;
}

/* Once granted, only its token remains. */
static struct lh_lease *new_detached_claim(struct lh_client *client, const char *id,
                                           const struct lh_once_options *options,
                                           struct lh_once *out, struct lh_report *report)
{
    if (out == NULL) {
        (void)report_set(report, LH_USAGE, "usage: give a struct lh_once for the token");
        return NULL;
    }
    struct lh_lease *lease = new_claim(client, id, options, /* unbound= */ true, out, report);
    if (lease != NULL)
        lease->left = true;
    return lease;
}

enum lh_outcome lh_once_claim(struct lh_client *client, const char *id,
                              const struct lh_once_options *options, struct lh_lease **out_claim,
                              struct lh_once *out, struct lh_report *report)
{
    struct lh_report own = LH_REPORT_INIT;
    report = report != NULL ? report : &own;
    enum lh_outcome outcome = client_admits(client, /* blocks= */ true, report);
    if (outcome == LH_OK && out_claim == NULL)
        outcome = report_set(report, LH_USAGE, "usage: give a pointer for the claim");
    if (outcome != LH_OK)
        return outcome;
    struct lh_lease *lease = new_claim(client, id, options, /* unbound= */ false, out, report);
    return lease != NULL ? lease_await(lease, out_claim, report) : report->outcome;
}

struct lh_request *lh_once_claim_start(struct lh_client *client, const char *id,
                                       const struct lh_once_options *options, struct lh_once *out,
                                       lh_done_fn *done, void *user, struct lh_report *report)
{
    if (client_admits_start(client, report) != LH_OK)
        return NULL;
    struct lh_lease *lease = new_claim(client, id, options, /* unbound= */ false, out, report);
    return lease != NULL ? lease_begin(lease, done, user, report) : NULL;
}

enum lh_outcome lh_once_begin(struct lh_client *client, const char *id,
                              const struct lh_once_options *options, struct lh_once *out,
                              struct lh_report *report)
{
    struct lh_report own = LH_REPORT_INIT;
    report = report != NULL ? report : &own;
    enum lh_outcome outcome = client_admits(client, /* blocks= */ true, report);
    if (outcome != LH_OK)
        return outcome;
    struct lh_lease *lease = new_detached_claim(client, id, options, out, report);
    return lease != NULL ? lease_await(lease, NULL, report) : report->outcome;
}

struct lh_request *lh_once_begin_start(struct lh_client *client, const char *id,
                                       const struct lh_once_options *options, struct lh_once *out,
                                       lh_done_fn *done, void *user, struct lh_report *report)
{
    if (client_admits_start(client, report) != LH_OK)
        return NULL;
    struct lh_lease *lease = new_detached_claim(client, id, options, out, report);
    return lease != NULL ? lease_begin(lease, done, user, report) : NULL;
}

/* ---- completion ---- */

static struct completion completion_of(const struct lh_completion *done)
{
    if (done == NULL)
        return (struct completion){0};
    return (struct completion){
        .status = (uint8_t)done->status, .result = done->result, .until = done->until};
}

/* Finishes or marks a key: checks the completion and translates it for the core. */
static enum lh_outcome complete_key(struct lh_client *client, struct request request,
                                    const struct lh_completion *done,
                                    const struct operation_hooks *hooks,
                                    const struct listener *listener, struct lh_report *report)
{
    char watermark[KEY_MAX + 1];
    struct lh_completion known = LH_COMPLETION_INIT;
    if (done != NULL &&
        (!sized_read(&known, sizeof known, done) || known.status < 0 || known.status > 255))
        return report_set(report, LH_USAGE,
                          "usage: initialise the completion with "
                          "LH_COMPLETION_INIT; its status is 0 to 255");
    done = done != NULL ? &known : NULL;
    struct completion completion = completion_of(done);
    if (done != NULL && done->watermark != NULL) {
        if (!make_key(WATERMARK_PREFIX, done->watermark, watermark, report))
            return LH_USAGE;
        completion.watermark = watermark;
    }
    request.completion = &completion;
    request.cooldown_ms = done != NULL && done->keep_ms != 0 ? done->keep_ms : DEFAULT_KEEP_MS;
    return operation_run(client, &request, hooks, listener, report);
}

static enum lh_outcome complete_id(struct lh_client *client, const char *id, struct request request,
                                   const struct lh_completion *done,
                                   const struct listener *listener, struct lh_report *report)
{
    char key[KEY_MAX + 1];
    if (!make_key(ONCE_PREFIX, id, key, report))
        return LH_USAGE;
    request.key = key;
    return complete_key(client, request, done, NULL, listener, report);
}

enum lh_outcome lh_once_finish(struct lh_client *client, const char *id, uint64_t token,
                               const struct lh_completion *completion, struct lh_report *report)
{
    struct request request = {.verb = VERB_RELEASE, .token = token};
    return complete_id(client, id, request, completion, NULL, report);
}

enum lh_outcome lh_once_finish_start(struct lh_client *client, const char *id, uint64_t token,
                                     const struct lh_completion *completion, lh_done_fn *done,
                                     void *user, struct lh_report *report)
{
    struct request request = {.verb = VERB_RELEASE, .token = token};
    return complete_id(client, id, request, completion, &(struct listener){done, user}, report);
}

enum lh_outcome lh_mark(struct lh_client *client, const char *id,
                        const struct lh_completion *completion, struct lh_report *report)
{
    return complete_id(client, id, (struct request){.verb = VERB_MARK}, completion, NULL, report);
}

enum lh_outcome lh_mark_start(struct lh_client *client, const char *id,
                              const struct lh_completion *completion, lh_done_fn *done, void *user,
                              struct lh_report *report)
{
    return complete_id(client, id, (struct request){.verb = VERB_MARK}, completion,
                       &(struct listener){done, user}, report);
}

/* The holder of a claim gets LH_LOST instead of LH_STALE. */
static void on_finish_done(const struct lh_client *client, const struct operation_hooks *hooks,
                           const struct task_news *news, struct lh_report *report)
{
    (void)client;
    (void)hooks;
    if (news->outcome == OUTCOME_STALE)
        (void)report_set(report, LH_LOST,
                         "lost: the claim is not yours any more; it is not remembered as done");
}

static enum lh_outcome finish_claim(struct lh_lease **claim, const struct lh_completion *done,
                                    const struct listener *listener, struct lh_report *report)
{
    struct lh_report own = LH_REPORT_INIT;
    report = report != NULL ? report : &own;
    enum lh_outcome outcome = lease_admits_end(claim, listener == NULL, report);
    if (outcome != LH_OK)
        return outcome;
    struct lh_lease *lease = *claim;
    if (fast_lease_is(lease) || lease->options.request.kind != KIND_ONCE)
        return report_set(report, LH_USAGE, "usage: the lease is not a claim; release it");
    struct request request = {
        .verb = VERB_RELEASE, .key = lease->parts[0].key, .token = lh_token(lease)};
    struct operation_hooks hooks = {.on_done = on_finish_done, .ends = lease};
    outcome = complete_key(lease->client, request, done, &hooks, listener, report);
    /* Once the task is posted, the loop owns the lease. */
    if (listener != NULL ? outcome == LH_OK : outcome != LH_USAGE)
        *claim = NULL;
    return outcome;
}

enum lh_outcome lh_finish(struct lh_lease **claim, const struct lh_completion *completion,
                          struct lh_report *report)
{
    return finish_claim(claim, completion, NULL, report);
}

enum lh_outcome lh_finish_start(struct lh_lease **claim, const struct lh_completion *completion,
                                lh_done_fn *done, void *user, struct lh_report *report)
{
    return finish_claim(claim, completion, &(struct listener){done, user}, report);
}

/* ---- by token, and status ---- */

static enum lh_outcome run_verb(struct lh_client *client, const char *prefix, const char *name,
                                struct request request, const struct operation_hooks *hooks,
                                const struct listener *listener, struct lh_report *report)
{
    char key[KEY_MAX + 1];
    if (!make_key(prefix, name, key, report))
        return LH_USAGE;
    request.key = key;
    return operation_run(client, &request, hooks, listener, report);
}

static enum lh_outcome once_abandon(struct lh_client *client, const char *id, uint64_t token,
                                    const struct listener *listener, struct lh_report *report)
{
    struct request request = {.verb = VERB_RELEASE, .token = token};
    return run_verb(client, ONCE_PREFIX, id, request, NULL, listener, report);
}

enum lh_outcome lh_once_abandon(struct lh_client *client, const char *id, uint64_t token,
                                struct lh_report *report)
{
    return once_abandon(client, id, token, NULL, report);
}

enum lh_outcome lh_once_abandon_start(struct lh_client *client, const char *id, uint64_t token,
                                      lh_done_fn *done, void *user, struct lh_report *report)
{
    return once_abandon(client, id, token, &(struct listener){done, user}, report);
}

static enum lh_outcome once_renew(struct lh_client *client, const char *id, uint64_t token,
                                  int64_t ttl_ms, const struct listener *listener,
                                  struct lh_report *report)
{
    struct request request = {.verb = VERB_RENEW, .token = token, .ttl_ms = ttl_ms};
    return run_verb(client, ONCE_PREFIX, id, request, NULL, listener, report);
}

enum lh_outcome lh_once_renew(struct lh_client *client, const char *id, uint64_t token,
                              int64_t ttl_ms, struct lh_report *report)
{
    return once_renew(client, id, token, ttl_ms, NULL, report);
}

enum lh_outcome lh_once_renew_start(struct lh_client *client, const char *id, uint64_t token,
                                    int64_t ttl_ms, lh_done_fn *done, void *user,
                                    struct lh_report *report)
{
    return once_renew(client, id, token, ttl_ms, &(struct listener){done, user}, report);
}

/* A query returns LH_OK; here the state of the id is the outcome. */
static void on_status_done(const struct lh_client *client, const struct operation_hooks *hooks,
                           const struct task_news *news, struct lh_report *report)
{
    const struct key_info *key_info = &news->key_info;
    bool done = key_info->state == KEY_COOLING;
    char message[LH_TEXT_SIZE];
    const char *holder = key_info->holder != NULL ? key_info->holder : "";
    (void)client;
    once_fill(news, hooks->out);
    if (news->outcome != OUTCOME_OK || key_info->state == KEY_FREE)
        return;
    (void)snprintf(message, sizeof message, "%s: %s by %.128s", done ? "done" : "busy",
                   done ? "finished" : "running", holder);
    (void)report_set(report, done ? LH_DONE : LH_BUSY, message);
    (void)snprintf(report->holder, sizeof report->holder, "%s", holder);
    report->since_ms = age_of(key_info->since_ms, news->at.time_ms);
    report->ends_in_ms = key_info->ends_in_ms;
    report->takeover_in_ms = key_info->takeover_in_ms;
}

static enum lh_outcome once_query(struct lh_client *client, const char *id, struct lh_once *out,
                                  const struct listener *listener, struct lh_report *report)
{
    struct operation_hooks hooks = {.on_done = on_status_done, .out = out};
    if (!once_clear(out, report))
        return LH_USAGE;
    return run_verb(client, ONCE_PREFIX, id, (struct request){.verb = VERB_QUERY}, &hooks, listener,
                    report);
}

enum lh_outcome lh_once_status(struct lh_client *client, const char *id, struct lh_once *out,
                               struct lh_report *report)
{
    return once_query(client, id, out, NULL, report);
}

enum lh_outcome lh_once_status_start(struct lh_client *client, const char *id, struct lh_once *out,
                                     lh_done_fn *done, void *user, struct lh_report *report)
{
    return once_query(client, id, out, &(struct listener){done, user}, report);
}

enum lh_outcome lh_seen(struct lh_client *client, const char *id, struct lh_report *report)
{
    return once_query(client, id, NULL, NULL, report);
}

enum lh_outcome lh_seen_start(struct lh_client *client, const char *id, lh_done_fn *done,
                              void *user, struct lh_report *report)
{
    return once_query(client, id, NULL, &(struct listener){done, user}, report);
}

/* ---- watermarks ---- */

static void on_watermark_done(const struct lh_client *client, const struct operation_hooks *hooks,
                              const struct task_news *news, struct lh_report *report)
{
    struct lh_watermark watermark = LH_WATERMARK_INIT;
    /* The clock of a store that is not durable ends with the process. */
    bool lasting = (client->driver->capabilities & STORE_DURABLE) != 0;
    (void)report;
    if (news->record == NULL)
        return;
    struct poll poll = watermark_begin(news->record, news->at.time_ms, hooks->overlap_ms);
    (void)snprintf(watermark.value, sizeof watermark.value, "%s", poll.from);
    if (lasting && news->at.time_ms != TIME_UNKNOWN)
        watermark.start_ms = poll.start_ms;
    sized_write(hooks->out, &watermark, sizeof watermark);
}

static enum lh_outcome begin_poll(struct lh_client *client, const char *name, int64_t overlap_ms,
                                  struct lh_watermark *out, const struct listener *listener,
                                  struct lh_report *report)
{
    struct operation_hooks hooks = {
        .on_done = on_watermark_done, .out = out, .overlap_ms = overlap_ms};
    struct lh_watermark empty = LH_WATERMARK_INIT;
    if (out == NULL || !sized_is_valid(out) || overlap_ms <= 0)
        return report_set(report, LH_USAGE,
                          "usage: give a result that LH_WATERMARK_INIT "
                          "initialised, and an overlap above 0");
    sized_write(out, &empty, sizeof empty);
    return run_verb(client, WATERMARK_PREFIX, name, (struct request){.verb = VERB_QUERY}, &hooks,
                    listener, report);
}

enum lh_outcome lh_watermark_begin(struct lh_client *client, const char *name, int64_t overlap_ms,
                                   struct lh_watermark *out, struct lh_report *report)
{
    return begin_poll(client, name, overlap_ms, out, NULL, report);
}

enum lh_outcome lh_watermark_begin_start(struct lh_client *client, const char *name,
                                         int64_t overlap_ms, struct lh_watermark *out,
                                         lh_done_fn *done, void *user, struct lh_report *report)
{
    return begin_poll(client, name, overlap_ms, out, &(struct listener){done, user}, report);
}

/* Without an id the executor makes one, which all attempts of this call share. */
static enum lh_outcome advance_watermark(struct lh_client *client, const char *name,
                                         const char *expected, const char *value,
                                         const char *request_id, const struct listener *listener,
                                         struct lh_report *report)
{
    struct request request = {.verb = VERB_ADVANCE,
                              .value = value,
                              .expected = expected != NULL ? expected : "",
                              .request = request_id};
    return run_verb(client, WATERMARK_PREFIX, name, request, NULL, listener, report);
}

enum lh_outcome lh_watermark_advance(struct lh_client *client, const char *name,
                                     const char *expected, const char *value,
                                     struct lh_report *report)
{
    return advance_watermark(client, name, expected, value, NULL, NULL, report);
}

enum lh_outcome lh_watermark_advance_start(struct lh_client *client, const char *name,
                                           const char *expected, const char *value,
                                           lh_done_fn *done, void *user, struct lh_report *report)
{
    return advance_watermark(client, name, expected, value, NULL, &(struct listener){done, user},
                             report);
}

enum lh_outcome lh_watermark_advance_id(struct lh_client *client, const char *name,
                                        const char *expected, const char *value,
                                        const char *request_id, struct lh_report *report)
{
    return advance_watermark(client, name, expected, value, request_id, NULL, report);
}

enum lh_outcome lh_watermark_advance_id_start(struct lh_client *client, const char *name,
                                              const char *expected, const char *value,
                                              const char *request_id, lh_done_fn *done, void *user,
                                              struct lh_report *report)
{
    return advance_watermark(client, name, expected, value, request_id,
                             &(struct listener){done, user}, report);
}

static enum lh_outcome set_watermark(struct lh_client *client, const char *name, const char *value,
                                     const char *reason, const struct listener *listener,
                                     struct lh_report *report)
{
    struct request request = {
        .verb = VERB_SET, .value = value, .reason = reason != NULL ? reason : ""};
    return run_verb(client, WATERMARK_PREFIX, name, request, NULL, listener, report);
}

enum lh_outcome lh_watermark_set(struct lh_client *client, const char *name, const char *value,
                                 const char *reason, struct lh_report *report)
{
    return set_watermark(client, name, value, reason, NULL, report);
}

enum lh_outcome lh_watermark_set_start(struct lh_client *client, const char *name,
                                       const char *value, const char *reason, lh_done_fn *done,
                                       void *user, struct lh_report *report)
{
    return set_watermark(client, name, value, reason, &(struct listener){done, user}, report);
}
