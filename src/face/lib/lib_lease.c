/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases of one key or several. The notifications of the local queue for each key go to multi.h;
 * its output becomes callbacks and reports: granted, refused, lost, released. Decides nothing.
 */
#include "face/lib/lib_internal.h"

#include "base/check.h"
#include "process/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_waiter_event(void *owner, struct local_waiter *waiter, const struct task_news *news);

/* ---- memory ---- */

void lease_free(struct lh_lease *lease)
{
    if (lease == NULL)
        return;
    free(lease->meta);
    free(lease->payload);
    if (lease->handle != lease)
        fast_lease_free(lease->handle);
    lease->magic = 0;
    free(lease);
}

/* ---- events and callbacks ---- */

static void lease_emit(struct lh_lease *lease, enum lh_event_kind kind, enum lh_outcome outcome,
                       int64_t after_us)
{
    client_emit(lease->client, &(struct lh_event){.kind = kind,
                                                  .outcome = outcome,
                                                  .waited = lease->waited,
                                                  .key = lease->parts[0].key,
                                                  .token = lh_token(lease),
                                                  .after_us = after_us});
}

static int64_t held_us(const struct lh_lease *lease)
{
    return host_boot_us() - lease->held_since_us;
}

/* Once; without a duration if the lease was lost before. */
static void lease_emit_released(struct lh_lease *lease, enum lh_outcome outcome)
{
    if (!lease->end_emitted)
        lease_emit(lease, LH_EVENT_RELEASED, outcome, lease->was_lost ? -1 : held_us(lease));
    lease->end_emitted = true;
}

static void part_emit(struct lease_part *part, enum lh_event_kind kind, enum lh_outcome outcome,
                      int64_t after_us)
{
    client_emit(part->lease->client, &(struct lh_event){.kind = kind,
                                                        .outcome = outcome,
                                                        .key = part->key,
                                                        .token = atomic_load(&part->token),
                                                        .after_us = after_us});
}

static void part_emit_waited(struct lease_part *part, enum lh_outcome outcome)
{
    if (part->waits_since_us == 0)
        return;
    part_emit(part, LH_EVENT_WAITED, outcome, host_boot_us() - part->waits_since_us);
    part->waits_since_us = 0;
    part->lease->waited = true;
}

/* The caller and the library share a request; a cancel in flight is a third user. */
static void request_unref(struct lh_request *request)
{
    if (atomic_fetch_sub(&request->users, 1) == 1)
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): only the last user comes here */
        free(request);
}

static void request_settle(struct lh_request *request)
{
    struct lh_client *client = request->client;
    request_unref(request);
    atomic_fetch_sub(&client->started, 1);
    client_stop_if_idle(client);
}

/* A cancel in flight settles the request later, so that the client stays until then. A borrowed
 * request is gone when its callback returns. */
void request_end(struct lh_request *request, struct lh_client *client, struct lh_lease *granted)
{
    bool settles =
        !request->borrowed && atomic_exchange(&request->state, REQUEST_OVER) != REQUEST_CANCELLING;
    if (request->done != NULL) {
        client_enter_callback(client);
        request->done(request->user, granted, &request->report);
        client_leave_callback(client);
    }
    if (settles)
        request_settle(request);
}

static void lease_finish_request(struct lh_request *request, struct lh_lease *granted)
{
    struct lh_lease *lease = request->lease;
    lease->request = NULL;
    request_end(request, lease->client, granted);
}

void lease_forget(struct lh_lease *lease)
{
    lease->multi.state = MULTI_ENDED;
    atomic_store(&lease->deadline_ms, 0);
    for (size_t i = 0; i < lease->count; i++) {
        struct lease_part *part = &lease->parts[i];
        if (part->waiter != NULL)
            local_queue_forget(part->waiter);
        part->waiter = NULL;
        fast_lease_unmark_key(lease->client, &part->mark);
    }
}

/* Leaves the grant in the store until its TTL, ends the request and frees the lease. A callback may
 * read `shown`, which is the lease or NULL, until it returns. */
static void lease_leave_to_ttl(struct lh_lease *lease, struct lh_lease *shown)
{
    lease_forget(lease);
    list_remove(&lease->client->leases, &lease->node);
    lease_finish_request(lease->request, shown);
    lease_free(lease);
}

void lease_free_ended(struct lh_lease *lease, enum lh_outcome outcome)
{
    lease_emit_released(lease, outcome);
    list_remove(&lease->client->leases, &lease->node);
    lease_free(lease);
}

/* The earliest of all keys. */
static int64_t first_deadline(const struct lh_lease *lease)
{
    int64_t deadline_ms = NEVER;
    for (size_t i = 0; i < lease->count; i++) {
        if (lease->parts[i].deadline_ms < deadline_ms)
            deadline_ms = lease->parts[i].deadline_ms;
    }
    return deadline_ms;
}

static void request_granted(struct lh_lease *lease)
{
    struct lh_request *request = lease->request;
    atomic_store(&lease->deadline_ms, first_deadline(lease));
    if (request == NULL) /* adopted: its caller holds it already */
        return;
    lease->held_since_us = host_boot_us();
    (void)report_ok(&request->report, "ok: granted");
    request->report.token = lh_token(lease);
    lease_emit(lease, LH_EVENT_GRANTED, LH_OK, lease->held_since_us - request->began_us);
    if (lease->once != NULL)
        once_set_token(lease->once, request->report.token);
    lease->once = NULL; /* valid only until `done` is called */
    if (lease->left) {
        bool hidden = request->borrowed || lease->options.request.kind == KIND_ONCE;
        lease_emit(lease, LH_EVENT_LEFT, LH_OK, /* after_us= */ 0);
        lease_leave_to_ttl(lease, hidden ? NULL : lease);
    } else {
        lease_finish_request(request, lease);
    }
}

/* Time since the lease expired; negative: it has not. Positive after a stop or a suspend, when
 * another client may have held the key since. */
static int64_t over_for_ms(const struct lh_lease *lease)
{
    int64_t ttl_ms = lease->options.request.ttl_ms;
    return host_boot_ms() - (first_deadline(lease) + ttl_ms - ttl_ms * 2 / 3);
}

static void lease_lost(struct lh_lease *lease, const char *key, const struct task_news *news)
{
    struct lh_report report = LH_REPORT_INIT;
    int64_t over_ms = over_for_ms(lease);
    atomic_store(&lease->deadline_ms, 0);
    report_news(lease->client, key, news, OUTCOME_LOST, &report);
    if (over_ms >= 0)
        report_expired(&report, key, over_ms);
    lease->was_lost = true;
    lease_emit(lease, LH_EVENT_LOST, LH_LOST, held_us(lease));
    if (lease->on_lost == NULL)
        return;
    client_enter_callback(lease->client);
    lease->on_lost(lease->user, lease->handle, &report);
    client_leave_callback(lease->client);
}

static enum lh_verb request_verb(const struct lh_lease *lease)
{
    if (lease->held_since_us != 0)
        return LH_VERB_RELEASE;
    if (lease->request->cancelled || lease->client->closing)
        return LH_VERB_CANCEL;
    if (lease->options.request.kind == KIND_ONCE)
        return LH_VERB_ONCE;
    return lease->options.request.waits ? LH_VERB_WAIT : LH_VERB_ACQUIRE;
}

static void lease_ended(struct lh_lease *lease, enum outcome outcome)
{
    struct lh_client *client = lease->client;
    struct lh_request *request = lease->request;
    atomic_store(&lease->deadline_ms, 0);
    if (request == NULL) { /* released by lh_close() */
        lease_emit_released(lease, (enum lh_outcome)outcome);
    } else {
        bool names_key = request->report.outcome == LH_BUSY && request->report.key[0] != '\0';
        if (request->cancelled && !names_key && (outcome == OUTCOME_OK || outcome == OUTCOME_BUSY))
            (void)report_set(&request->report, LH_BUSY, "busy: the caller gave up");
        else if (outcome == OUTCOME_OK)
            (void)report_ok(&request->report, "ok: released");
        else if (request->report.outcome == LH_OK)
            (void)report_set(&request->report, report_outcome(lease->options.request.kind, outcome),
                             outcome_name(outcome));
        request->report.refusal = lh_refusal_word(request_verb(lease), request->report.outcome);
        if (lease->held_since_us != 0)
            lease_emit_released(lease, request->report.outcome);
        else
            lease_emit(lease, LH_EVENT_REFUSED, request->report.outcome,
                       host_boot_us() - request->began_us);
        list_remove(&lease->client->leases, &lease->node);
        lease_finish_request(request, NULL);
        lease_free(lease);
    }
    client_stop_if_idle(client);
}

/* ---- the keys, one after the other ---- */

/* As if the local queue had ended the waiter. */
static void report_no_memory(struct lh_lease *lease, size_t key)
{
    (void)report_set(&lease->request->report, LH_UNAVAILABLE,
                     "unavailable: out of memory, or too many requests in flight; try again");
    lease->parts[key].waiter = NULL;
}

static struct local_waiter *lease_ask_key(struct lh_lease *lease, struct lease_part *part)
{
    struct lh_client *client = lease->client;
    struct local_waiter_caller caller = {.notify = on_waiter_event, .owner = part};
    lease->options.request.key = part->key;
    if (!fast_lease_mark_key(client, part->key, &part->mark))
        return NULL;
    struct local_waiter *waiter =
        local_queue_acquire(client->local_queue, &lease->options, &caller);
    if (waiter == NULL)
        fast_lease_unmark_key(client, &part->mark);
    else if (lease->request->paused)
        local_queue_pause(waiter);
    return waiter;
}

/* Carries out the output of multi.h until a notification is needed. */
static void lease_apply(struct lh_lease *lease, struct multi_output wants,
                        const struct task_news *news)
{
    while (wants.act == DO_START) {
        struct lease_part *part = &lease->parts[wants.key];
        part->waiter = lease_ask_key(lease, part);
        if (part->waiter != NULL)
            return;
        report_no_memory(lease, wants.key);
        wants = multi_notify(&lease->multi, wants.key, NOTIFY_ENDED, OUTCOME_UNAVAILABLE);
    }
    if (wants.act == DO_CANCEL) {
        if (lease->held_since_us == 0) /* not all keys were granted: the work was not done */
            local_queue_drop_cooldown(lease->parts[wants.key].waiter);
        if (wants.quarterings > 0)
            local_queue_limit_release(lease->parts[wants.key].waiter,
                                      lease->client->timeout_ms >> 2 * wants.quarterings);
        local_queue_release(lease->parts[wants.key].waiter);
    } else if (wants.notify == NOTIFY_HELD)
        request_granted(lease);
    else if (wants.notify == NOTIFY_LOST)
        lease_lost(lease, lease->parts[wants.key].key, news);
    else if (wants.notify == NOTIFY_ENDED)
        lease_ended(lease, wants.outcome);
}

static void lease_renewed(struct lh_lease *lease)
{
    if (lease->multi.state != MULTI_HELD)
        return;
    atomic_store(&lease->deadline_ms, first_deadline(lease));
    lease_emit(lease, LH_EVENT_RENEWED, LH_OK, held_us(lease));
}

/* An adopted grant is not in the store any more, or memory ran out. */
static void adopted_lease_lost(struct lh_lease *lease, const char *key,
                               const struct task_news *news)
{
    lease->multi.state = MULTI_ENDED;
    lease->multi.outcome = OUTCOME_LOST;
    lease_lost(lease, key, news);
    client_stop_if_idle(lease->client);
}

static void on_waiter_event(void *owner, struct local_waiter *waiter, const struct task_news *news)
{
    struct lease_part *part = owner;
    struct lh_lease *lease = part->lease;
    struct lh_request *request = lease->request;
    enum outcome outcome = news->outcome;
    (void)waiter;
    ASSERT(lease->magic == LEASE_MAGIC && part->waiter != NULL);
    bool adopts = lease->handle != lease && lease->multi.state == MULTI_ACQUIRING;
    if (adopts && news->notify == NOTIFY_HELD && news->token != atomic_load(&part->token)) {
        local_queue_release(part->waiter); /* not the grant to be adopted */
        return;
    }
    if (news->notify == NOTIFY_HELD || news->notify == NOTIFY_RENEWED) {
        part->deadline_ms = news->deadline_ms;
        atomic_store(&part->token, news->token);
    }
    if (news->notify == NOTIFY_HELD || news->notify == NOTIFY_ENDED)
        part_emit_waited(part, news->notify == NOTIFY_HELD
                                   ? LH_OK
                                   : report_outcome(lease->options.request.kind, outcome));
    if (news->notify == NOTIFY_HELD && news->took_over)
        part_emit(part, LH_EVENT_TAKEOVER, LH_OK, /* after_us= */ 0);
    if (news->notify == NOTIFY_RENEWED) {
        lease_renewed(lease);
        return;
    }
    if (news->notify == NOTIFY_WAITING) {
        part->waits_since_us = host_boot_us();
        part_emit(part, LH_EVENT_WAITING, LH_OK, /* after_us= */ 0);
        return;
    }
    if (news->notify == NOTIFY_ENDED) {
        part->waiter = NULL;
        fast_lease_unmark_key(lease->client, &part->mark);
        if (lease->once != NULL)
            once_fill(news, lease->once);
        if (adopts) {
            adopted_lease_lost(lease, part->key, news);
            return;
        }
        if (lease->handle != lease && outcome == OUTCOME_BUSY)
            outcome = OUTCOME_OK; /* released while it was being adopted */
        /* The first error is reported. */
        if (request != NULL && outcome != OUTCOME_OK && request->report.outcome == LH_OK)
            report_news(lease->client, part->key, news, outcome, &request->report);
    }
    size_t key = (size_t)(part - lease->parts);
    struct multi_output wants = multi_notify(&lease->multi, key, news->notify, outcome);
    if (wants.notify == NOTIFY_LOST)
        wants.key = key;
    lease_apply(lease, wants, news);
}

/* ---- start, cancel and release, in the loop ---- */

void lease_start(struct inbox_item *task)
{
    struct lh_request *request = (struct lh_request *)task;
    struct lh_lease *lease = request->lease;
    lease->request = request;
    request->began_us = host_boot_us();
    list_prepend(&lease->client->leases, &lease->node);
    lease_emit(lease, LH_EVENT_ATTEMPT, LH_OK, /* after_us= */ 0);
    if (lease->client->closing) {
        lease->multi.state = MULTI_ENDED;
        (void)report_set(&request->report, LH_BUSY, CLOSING_TEXT);
        lease_ended(lease, OUTCOME_BUSY);
        return;
    }
    lease_apply(lease, multi_start(&lease->multi), NULL);
}

static void request_cancel(struct inbox_item *task)
{
    struct lh_request *request =
        (struct lh_request *)((char *)task - offsetof(struct lh_request, cancel_task));
    enum request_state expected = REQUEST_CANCELLING;
    if (!atomic_compare_exchange_strong(&request->state, &expected, REQUEST_CANCELLED))
        request_settle(request); /* done was called meanwhile */
    else if (!request->cancelled && request->lease->multi.state == MULTI_ACQUIRING) {
        request->cancelled = true;
        lease_apply(request->lease, multi_release(&request->lease->multi), NULL);
    }
    request_unref(request);
}

void lh_cancel(struct lh_request *request)
{
    enum request_state expected = REQUEST_ACTIVE;
    if (request == NULL ||
        !atomic_compare_exchange_strong(&request->state, &expected, REQUEST_CANCELLING))
        return;
    /* The client cannot be freed before the task below has run. */
    if (client_is_forked(request->client))
        return;
    atomic_fetch_add(&request->users, 1);
    request->cancel_task.run = request_cancel;
    executor_post(request->client->executor, &request->cancel_task);
}

/* Not by the inbox: replies come before it in a tick, and one may be the grant. */
static void request_set_paused(struct lh_request *request, bool paused)
{
    if (request == NULL || atomic_load(&request->state) == REQUEST_OVER ||
        !request->client->own_loop || client_is_forked(request->client))
        return;
    const struct lh_lease *lease = request->lease;
    request->paused = paused;
    for (size_t i = 0; i < lease->count; i++) {
        struct local_waiter *waiter = lease->parts[i].waiter;
        if (waiter != NULL && paused)
            local_queue_pause(waiter);
        else if (waiter != NULL)
            local_queue_resume(waiter);
    }
}

void lh_pause(struct lh_request *request)
{
    request_set_paused(request, true);
}

void lh_resume(struct lh_request *request)
{
    request_set_paused(request, false);
}

void lh_request_free(struct lh_request *request)
{
    if (request == NULL)
        return;
    lh_cancel(request);
    request_unref(request);
}

void lease_release(struct inbox_item *task)
{
    struct lh_request *request = (struct lh_request *)task;
    struct lh_lease *lease = request->lease;
    lease->request = request;
    if (lease->multi.state == MULTI_LOST)
        (void)report_set(&request->report, LH_LOST, "lost: the lease was lost before");
    atomic_store(&lease->deadline_ms, 0);
    /* lh_close() may have released it, or be releasing it. */
    if (lease->multi.state == MULTI_ENDED)
        lease_ended(lease, lease->multi.outcome);
    else if (lease->multi.state != MULTI_RELEASING)
        lease_apply(lease, multi_release(&lease->multi), NULL);
}

void lease_drop_cooldown(struct lh_lease *lease)
{
    lease->options.cooldown_ms = lease->options.request.cooldown_ms = 0;
    for (size_t i = 0; i < lease->count; i++)
        if (lease->parts[i].waiter != NULL)
            local_queue_drop_cooldown(lease->parts[i].waiter);
}

void lease_detach(struct inbox_item *task)
{
    struct lh_request *request = (struct lh_request *)task;
    struct lh_lease *lease = request->lease;
    bool held = lease->multi.state == MULTI_HELD;
    lease->request = request;
    request->report.token = lh_token(lease);
    request->report.outcome = held ? LH_OK : LH_LOST;
    (void)snprintf(request->report.text, sizeof request->report.text, "%s",
                   held ? "ok: left to its TTL" : "lost: the lease was lost before");
    if (held)
        lease_emit(lease, LH_EVENT_LEFT, LH_OK, held_us(lease));
    lease_leave_to_ttl(lease, /* shown= */ NULL);
}

void lease_abandon_all(struct lh_client *client)
{
    for (struct list_node *node = client->leases.first, *next; node != NULL; node = next) {
        struct lh_lease *lease = LIST_ENTRY(node, struct lh_lease, node);
        enum multi_state state = lease->multi.state;
        next = node->next;
        if (state == MULTI_RELEASING || state == MULTI_ENDED)
            continue;
        if (state != MULTI_ACQUIRING && !lease->options.request.bound) {
            if (state == MULTI_HELD)
                lease_emit(lease, LH_EVENT_LEFT, LH_OK, held_us(lease));
            lease_forget(lease);
            continue;
        }
        if (lease->request != NULL)
            lease->request->cancelled = true;
        lease_apply(lease, multi_release(&lease->multi), NULL);
    }
}

void lease_orphan_all(struct lh_client *client)
{
    for (struct list_node *node = client->leases.first; node != NULL; node = node->next) {
        struct lh_lease *lease = LIST_ENTRY(node, struct lh_lease, node);
        lease->client = NULL;
        atomic_store(&lease->deadline_ms, 0);
    }
}

/* ---- adopted grants ---- */

struct lh_lease *lease_adopt(struct lh_client *client, const char *key,
                             const struct lh_acquire_options *options, uint64_t token,
                             int64_t since_ms, struct lh_lease *handle)
{
    struct lh_lease *lease = lease_new(client, &key, /* count= */ 1, options, NULL);
    if (lease == NULL)
        return NULL;
    struct lease_part *part = &lease->parts[0];
    (void)multi_start(&lease->multi);
    lease->held_since_us = since_ms * 1000;
    lease->options.request.key = part->key;
    lease->options.request.repeatable = false; /* the request id is not the caller's */
    part->deadline_ms = host_boot_ms() + lease->options.request.ttl_ms * 2 / 3;
    atomic_store(&part->token, token);
    atomic_store(&lease->deadline_ms, part->deadline_ms);
    part->waiter =
        local_queue_adopt(client->local_queue, &lease->options,
                          &(struct local_waiter_caller){.notify = on_waiter_event, .owner = part});
    if (part->waiter == NULL) {
        lease_free(lease);
        return NULL;
    }
    lease->handle = handle;
    list_prepend(&lease->client->leases, &lease->node);
    return lease;
}
