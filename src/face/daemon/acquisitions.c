/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LOCK.ACQUIRE and LOCK.CANCEL. Every grant is unbound in the store and detached: it lives by its
 * TTL, because it belongs to the client and not to this process (D1). The end of a connection ends
 * its waits; one with a request id keeps its place for a while, and a repeat takes it over (D4).
 */
#include "face/daemon/daemon_internal.h"

#include "base/check.h"
#include "base/text.h"
#include "process/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void acquisition_on_kept(void *owner);

/* ---- memory ---- */

static struct acquisition *acquisition_new(struct daemon_slot *slot, bool waits)
{
    struct daemon *daemon = slot->daemon;
    struct list_node *node = list_pop(&daemon->free_acquisitions);
    struct acquisition *acquisition =
        node != NULL ? LIST_ENTRY(node, struct acquisition, node) : malloc(sizeof *acquisition);
    if (acquisition == NULL)
        return NULL;
    *acquisition = (struct acquisition){
        .daemon = daemon,
        .connection = slot->connection,
        .slot = slot,
        .waits = waits,
        .keep_timer = {.at_ms = POLLER_NEVER, .due = acquisition_on_kept, .owner = acquisition}};
    slot->acquisition = acquisition;
    list_append(&slot->connection->acquisitions, &acquisition->node);
    list_append(&daemon->acquisitions, &acquisition->in_all);
    if (waits) {
        acquisition->began_ms = host_boot_ms();
        list_append(&daemon->waiting, &acquisition->in_waiting);
        daemon->waiters++;
    }
    return acquisition;
}

/* Neither a slot nor a connection refers to it any more. */
static void acquisition_leave(struct acquisition *acquisition)
{
    if (acquisition->connection != NULL)
        list_remove(&acquisition->connection->acquisitions, &acquisition->node);
    if (acquisition->slot != NULL)
        acquisition->slot->acquisition = NULL;
    acquisition->connection = NULL;
    acquisition->slot = NULL;
}

static void acquisition_free(struct acquisition *acquisition)
{
    struct daemon *daemon = acquisition->daemon;
    acquisition_leave(acquisition);
    poller_call_at(daemon->poller, &acquisition->keep_timer, POLLER_NEVER);
    lh_request_free(acquisition->started);
    if (acquisition->waits) {
        list_remove(&daemon->waiting, &acquisition->in_waiting);
        daemon->waiters--;
    }
    free(acquisition->shown_id);
    list_remove(&daemon->acquisitions, &acquisition->in_all);
    list_prepend(&daemon->free_acquisitions, &acquisition->node);
}

/* ---- the result ---- */

static void reply_keys(struct resp_reply *out, const struct lh_lease *lease)
{
    size_t count = 0;
    while (lh_key_at(lease, count) != NULL)
        count++;
    resp_reply_text(out, "tokens");
    resp_reply_map(out, count);
    for (size_t i = 0; i < count; i++)
        reply_pair_token(out, lh_key_at(lease, i), lh_token_at(lease, i));
}

/* Writes the map of the result. */
static void acquisition_write(const struct acquisition *acquisition, const struct lh_lease *lease,
                              const struct lh_report *report, struct resp_reply *out)
{
    bool several = lease != NULL && lh_key_at(lease, 1) != NULL;
    size_t more = several ? 1 : 0;
    int64_t ttl_ms = lease != NULL ? lh_ttl_ms(lease) : acquisition->ttl_ms;
    if (report->outcome == LH_OK)
        reply_granted(out, report, acquisition->holder, ttl_ms, more);
    else
        reply_report(out, report, more);
    if (several)
        reply_keys(out, lease);
}

static void acquisition_push(const struct acquisition *acquisition, const struct lh_lease *lease,
                             const struct lh_report *report)
{
    struct resp_reply reply;
    reply_begin(&reply, acquisition->daemon, acquisition->connection->protocol);
    resp_reply_push(&reply, 3);
    resp_reply_text(&reply, "lock.result");
    resp_reply_text(&reply, acquisition->shown_id != NULL ? acquisition->shown_id : "");
    acquisition_write(acquisition, lease, report, &reply);
    connection_push(acquisition->connection, &reply);
}

static void acquisition_answer(struct acquisition *acquisition, const struct lh_lease *lease,
                               const struct lh_report *report)
{
    struct resp_reply reply;
    struct daemon_slot *slot = acquisition->slot;
    if (acquisition->asynchronous && acquisition->connection != NULL) {
        acquisition_push(acquisition, lease, report);
        return;
    }
    if (slot == NULL)
        return;
    reply_begin(&reply, slot->daemon, slot_protocol(slot));
    acquisition_write(acquisition, lease, report, &reply);
    acquisition_leave(acquisition);
    if (report->outcome == LH_USAGE)
        slot_reply_report(slot, report);
    else
        slot_reply(slot, &reply);
}

/* A grant that was decided after the end of its connection is released. One with a request id stays
 * for its TTL: the client may have repeated the request at another daemon and hold it. */
static void acquisition_release_late(struct acquisition *acquisition, const struct lh_lease *lease)
{
    if (acquisition->id != NULL)
        return;
    for (size_t i = 0; lh_key_at(lease, i) != NULL; i++)
        daemon_release(acquisition->daemon, lh_key_at(lease, i), lh_token_at(lease, i));
}

static void acquisition_bind(const struct acquisition *acquisition, const struct lh_lease *lease)
{
    for (size_t i = 0; lh_key_at(lease, i) != NULL; i++)
        binding_add(acquisition->connection, lh_key_at(lease, i), lh_token_at(lease, i),
                    lh_ttl_ms(lease));
}

static void acquisition_count_holds(const struct acquisition *acquisition,
                                    const struct lh_lease *lease)
{
    struct daemon *daemon = acquisition->daemon;
    for (size_t i = 0; lh_key_at(lease, i) != NULL; i++)
        hold_granted(daemon,
                     hold_id(hold_key(daemon, "", lh_key_at(lease, i)), lh_token_at(lease, i)),
                     lh_ttl_ms(lease));
}

static void acquisition_on_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct acquisition *acquisition = user;
    struct request_id *id = acquisition->id;
    struct lh_report stopping;
    if (acquisition->drained && report->outcome == LH_BUSY) {
        drain_report(&stopping);
        report = &stopping;
    }
    bool granted = report->outcome == LH_OK && lease != NULL;
    if (id != NULL) {
        id->acquisition = NULL;
        request_id_expire(id, granted ? acquisition->ttl_ms : 0);
    }
    if (granted)
        acquisition_count_holds(acquisition, lease);
    if (granted && acquisition->connection == NULL)
        acquisition_release_late(acquisition, lease);
    else if (granted && acquisition->binds)
        acquisition_bind(acquisition, lease);
    acquisition_answer(acquisition, lease, report);
    acquisition_free(acquisition);
}

/* Answers the slot at once; the result is pushed. */
static void acquisition_go_async(struct acquisition *acquisition, const struct daemon_words *words)
{
    char bytes[512];
    struct resp_reply reply;
    struct daemon_slot *slot = acquisition->slot;
    acquisition->asynchronous = (words->given & WORD_ASYNC) != 0;
    if (!acquisition->asynchronous)
        return;
    free(acquisition->shown_id);
    acquisition->shown_id = strdup(words->id);
    acquisition->slot = NULL;
    slot->acquisition = NULL;
    resp_reply_init(&reply, bytes, sizeof bytes, slot_protocol(slot));
    resp_reply_map(&reply, 2);
    reply_pair(&reply, "outcome", "waiting");
    reply_pair(&reply, "text", "waiting: the result is pushed");
    slot_reply(slot, &reply);
}

/* ---- start ---- */

struct acquire_call {
    const char *keys[LH_KEYS_MAX];
    size_t key_count;
    const char *holder;
    const struct daemon_words *words;
    struct lh_acquire_options options;
    char id[65];
};

/* NULL, or what is wrong. */
static const char *acquire_prepare(const struct daemon_slot *slot, const char *holder,
                                   const char *ttl, struct acquire_call *call)
{
    const struct daemon_words *words = call->words;
    int64_t ttl_ms = 0;
    if (!words_is_number(ttl, &ttl_ms) || ttl_ms < 1)
        return "ttl_ms must be a number of milliseconds above 0";
    if ((words->given & WORD_ASYNC) != 0 && (words->given & WORD_WAIT) == 0)
        return "ASYNC needs WAIT";
    if ((words->given & WORD_ASYNC) != 0 && (words->given & WORD_ID) == 0)
        return "ASYNC needs ID, which the result is pushed with";
    if ((words->given & WORD_ASYNC) != 0 && slot->connection->protocol < 3)
        return "ASYNC needs RESP3: send HELLO 3 first";
    const char *wrong = request_id_wrong(slot->connection, words);
    if (wrong != NULL)
        return wrong;
    call->holder = holder;
    call->options = (struct lh_acquire_options)LH_ACQUIRE_OPTIONS_INIT;
    call->options.ttl_ms = ttl_ms;
    call->options.wait_ms = words->wait_ms;
    call->options.cooldown_ms = words->cooldown_ms;
    call->options.lock_delay_ms = words->lock_delay_ms;
    call->options.priority = (int32_t)words->priority;
    call->options.limit = (uint32_t)words->limit;
    call->options.shared = (words->given & WORD_SHARED) != 0;
    call->options.unbound = call->options.detach = true;
    call->options.holder = holder;
    call->options.meta = words->meta;
    call->options.meta_count = words->meta_count;
    if ((words->given & WORD_ID) != 0) {
        request_id_name(slot->connection->who, words->id, call->id);
        call->options.request_id = call->id;
    }
    return NULL;
}

static struct lh_report acquisition_refusal(enum lh_outcome outcome, const char *text)
{
    struct lh_report report = LH_REPORT_INIT;
    struct text out;
    text_init(&out, report.text, sizeof report.text);
    report.outcome = outcome;
    TEXT_JOIN(&out, lh_outcome_name(outcome), ": ", text);
    report.refusal = lh_refusal_word(LH_VERB_ACQUIRE, outcome);
    return report;
}

static void acquisition_refuse(struct daemon_slot *slot, enum lh_outcome outcome, const char *text)
{
    struct lh_report report = acquisition_refusal(outcome, text);
    slot_reply_report(slot, &report);
}

/* The new slot gets the result of the acquisition that waits under the same id, within its own wait
 * if that is shorter. */
static void acquisition_take_over(struct acquisition *acquisition, struct daemon_slot *slot,
                                  const struct daemon_words *words)
{
    static const char taken[] = "another connection repeated this request id";
    struct daemon_slot *before = acquisition->slot;
    if (acquisition->asynchronous && acquisition->connection != NULL &&
        acquisition->connection != slot->connection) {
        struct lh_report report = acquisition_refusal(LH_BUSY, taken);
        acquisition_push(acquisition, NULL, &report);
    }
    acquisition_leave(acquisition);
    if (before != NULL)
        acquisition_refuse(before, LH_BUSY, taken);
    poller_call_at(acquisition->daemon->poller, &acquisition->keep_timer,
                   words->wait_ms > 0 ? host_boot_ms() + words->wait_ms : POLLER_NEVER);
    acquisition->connection = slot->connection;
    acquisition->slot = slot;
    acquisition->binds = (words->given & WORD_BIND) != 0;
    slot->acquisition = acquisition;
    list_append(&slot->connection->acquisitions, &acquisition->node);
    lh_resume(acquisition->started);
    acquisition_go_async(acquisition, words);
    daemon_turn(acquisition->daemon);
}

/* The keys of a call as one text, to compare them. */
static void acquire_join_keys(const struct acquire_call *call, struct text *out)
{
    for (size_t i = 0; i < call->key_count; i++)
        TEXT_JOIN(out, i > 0 ? "\n" : "", call->keys[i]);
}

/* True if the id answers the call: it is in use, or cannot be kept. */
static bool acquire_by_id(struct daemon_slot *slot, const struct acquire_call *call,
                          struct request_id **out_id)
{
    char joined[LH_KEYS_MAX * LH_KEY_SIZE];
    struct text keys;
    text_init(&keys, joined, sizeof joined);
    acquire_join_keys(call, &keys);
    struct request_id *id = request_id_find(slot->daemon, call->id);
    if (id == NULL) {
        *out_id = request_id_new(slot->daemon, call->id, joined, call->holder);
        if (*out_id != NULL)
            return false;
        connection_refused(slot->connection, REFUSED_LIMIT, "too many request ids");
        acquisition_refuse(slot, LH_UNAVAILABLE, "too many request ids are in use; try later");
        return true;
    }
    if (strcmp(id->key, joined) != 0 || strcmp(id->holder, call->holder) != 0) {
        acquisition_refuse(slot, LH_MISMATCH,
                           "this request id is in use for another key or holder");
        return true;
    }
    if (id->acquisition != NULL && id->acquisition->waits && call->options.wait_ms == 0) {
        acquisition_refuse(slot, LH_BUSY,
                           slot->connection->http != NULL
                               ? "this request_id waits already; repeat it with wait_ms for its "
                                 "result"
                               : "this request id waits already; repeat it with WAIT for its "
                                 "result");
        return true;
    }
    if (id->acquisition != NULL) {
        acquisition_take_over(id->acquisition, slot, call->words);
        return true;
    }
    request_id_keep(id);
    *out_id = id;
    return false;
}

static void acquire_start(struct daemon_slot *slot, const struct acquire_call *call)
{
    struct daemon *daemon = slot->daemon;
    struct lh_report *report = &daemon->report;
    struct request_id *id = NULL;
    bool waits = call->options.wait_ms != 0;
    if (drain_refuses(slot))
        return;
    if (waits && daemon->waiters >= WAITERS_LIMIT) {
        connection_refused(slot->connection, REFUSED_LIMIT, "too many waiters");
        acquisition_refuse(slot, LH_BUSY, "queue full");
        return;
    }
    if (call->options.request_id != NULL && acquire_by_id(slot, call, &id))
        return;
    struct acquisition *acquisition = acquisition_new(slot, waits);
    if (acquisition == NULL) {
        if (id != NULL)
            request_id_expire(id, /* after_ms= */ 0);
        acquisition_refuse(slot, LH_FAILED, "out of memory");
        return;
    }
    acquisition->id = id;
    acquisition->ttl_ms = call->options.ttl_ms;
    size_t holder_length = strnlen(call->holder, sizeof acquisition->holder - 1);
    memcpy(acquisition->holder, call->holder, holder_length); /* too long: it is refused */
    acquisition->binds = (call->words->given & WORD_BIND) != 0;
    if (id != NULL)
        id->acquisition = acquisition;
    acquisition->started =
        lh_acquire_all_start(daemon->client, call->keys, call->key_count, &call->options,
                             acquisition_on_done, acquisition, report);
    if (acquisition->started == NULL) {
        acquisition_on_done(acquisition, NULL, report);
        return;
    }
    acquisition_go_async(acquisition, call->words);
    daemon_turn(daemon);
}

/* ---- CACHED ---- */

/* A call that asks the watched copy first, with its strings. */
struct cached_call {
    struct daemon_words words;
    struct acquire_call call;
    int64_t cached_ms;
    char key[LH_KEY_SIZE], holder[LH_HOLDER_SIZE], payload[REQUEST_ID_MAX + 1];
};

static void acquire_on_peek(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct daemon_slot *slot = user;
    struct cached_call *cached = slot->memory;
    (void)lease;
    if (slot->connection == NULL) {
        slot_reply_report(slot, report); /* frees it */
        return;
    }
    bool refused = report->outcome == LH_BUSY || report->outcome == LH_COOLING;
    if (cached->cached_ms < 0 || !refused) {
        acquire_start(slot, &cached->call);
        return;
    }
    struct resp_reply reply;
    reply_begin(&reply, slot->daemon, slot_protocol(slot));
    reply_report(&reply, report, /* more= */ 1);
    reply_pair_number(&reply, "cached_ms", cached->cached_ms);
    slot_reply(slot, &reply);
}

static void acquire_peek(struct daemon_slot *slot, const struct acquire_call *call)
{
    struct lh_report report = LH_REPORT_INIT;
    struct cached_call *cached = calloc(1, sizeof *cached);
    if (cached == NULL || strlen(call->holder) >= LH_HOLDER_SIZE) {
        free(cached);
        acquire_start(slot, call); /* refuses the holder */
        return;
    }
    slot->memory = cached;
    cached->words = *call->words;
    for (size_t i = 0; i < cached->words.meta_count; i++) { /* they point into the old words */
        const char *from = call->words->meta_text;
        cached->words.meta[i].name = cached->words.meta_text + (call->words->meta[i].name - from);
        cached->words.meta[i].value = cached->words.meta_text + (call->words->meta[i].value - from);
    }
    (void)snprintf(cached->key, sizeof cached->key, "%s", call->keys[0]);
    (void)snprintf(cached->holder, sizeof cached->holder, "%s", call->holder);
    (void)snprintf(cached->payload, sizeof cached->payload, "%s",
                   call->words->id != NULL ? call->words->id : "");
    cached->words.id = cached->payload;
    cached->call = *call;
    cached->call.words = &cached->words;
    cached->call.keys[0] = cached->key;
    cached->call.holder = cached->call.options.holder = cached->holder;
    cached->call.options.meta = cached->words.meta;
    if (call->options.request_id != NULL)
        cached->call.options.request_id = cached->call.id;
    slot_started(slot,
                 lh_peek_start(slot->daemon->client, cached->key, &cached->cached_ms,
                               acquire_on_peek, slot, &report),
                 &report);
}

/* ---- verbs ---- */

void verb_acquire(struct daemon_slot *slot, const struct daemon_args *args,
                  const struct daemon_words *words)
{
    struct acquire_call call = {.keys = {args->text[1]}, .key_count = 1, .words = words};
    const char *wrong = acquire_prepare(slot, args->text[2], args->text[3], &call);
    if (wrong != NULL)
        slot_reply_error(slot, "ERR", wrong);
    else if ((words->given & WORD_CACHED) != 0)
        acquire_peek(slot, &call);
    else
        acquire_start(slot, &call);
}

void verb_acquire_all(struct daemon_slot *slot, const struct daemon_args *args,
                      const struct daemon_words *words)
{
    struct acquire_call call = {.words = words};
    int64_t count = 0;
    (void)words_is_number(args->text[1], &count); /* checked by the dispatch */
    for (int64_t i = 0; i < count; i++)
        call.keys[call.key_count++] = args->text[2 + i];
    const char *wrong = acquire_prepare(slot, args->text[2 + count], args->text[3 + count], &call);
    if (wrong != NULL)
        slot_reply_error(slot, "ERR", wrong);
    else
        acquire_start(slot, &call);
}

/* ---- the end ---- */

/* The library still calls back. */
static void acquisition_cancel(struct acquisition *acquisition)
{
    lh_cancel(acquisition->started);
    daemon_turn(acquisition->daemon);
}

static void acquisition_on_kept(void *owner)
{
    acquisition_cancel(owner);
}

void acquisitions_stop_waiting(struct daemon_connection *connection)
{
    claims_cancel(connection, /* waiting_only= */ true);
    for (struct list_node *node = connection->acquisitions.first; node != NULL; node = node->next) {
        struct acquisition *acquisition = LIST_ENTRY(node, struct acquisition, node);
        if (acquisition->waits)
            acquisition_cancel(acquisition);
    }
}

void acquisitions_orphan(struct daemon_connection *connection)
{
    claims_cancel(connection, /* waiting_only= */ false);
    for (struct list_node *node; (node = connection->acquisitions.first) != NULL;) {
        struct acquisition *acquisition = LIST_ENTRY(node, struct acquisition, node);
        if (acquisition->slot != NULL)
            acquisition->slot->unused = true;
        acquisition_leave(acquisition);
        if (!acquisition->waits)
            continue; /* it ends by itself */
        if (acquisition->id == NULL) {
            acquisition_cancel(acquisition);
            continue;
        }
        lh_pause(acquisition->started);
        poller_call_at(acquisition->daemon->poller, &acquisition->keep_timer,
                       host_boot_ms() + KEEP_PLACE_MS);
        daemon_turn(acquisition->daemon);
    }
}

/* A waiter gets its reply at once. One with a request id gets it when the library withdrew it: its
 * client repeats it at another daemon, where it must not find a grant that is released here. */
void acquisitions_drain(struct daemon *daemon)
{
    struct lh_report report;
    drain_report(&report);
    claims_drain(daemon);
    for (struct list_node *node = daemon->acquisitions.first; node != NULL; node = node->next) {
        struct acquisition *acquisition = LIST_ENTRY(node, struct acquisition, in_all);
        if (!acquisition->waits)
            continue; /* it ends by itself */
        acquisition->drained = true;
        if (acquisition->connection != NULL)
            connection_refused(acquisition->connection, REFUSED_DRAINING, report.text);
        if (acquisition->id == NULL)
            acquisition_answer(acquisition, NULL, &report);
        acquisition_cancel(acquisition);
    }
}

void acquisitions_cancel_all(struct daemon *daemon)
{
    for (struct list_node *node = daemon->acquisitions.first; node != NULL; node = node->next)
        acquisition_cancel(LIST_ENTRY(node, struct acquisition, in_all));
}

void acquisitions_free(struct daemon *daemon)
{
    ASSERT(daemon->acquisitions.first == NULL);
    for (struct list_node *node; (node = list_pop(&daemon->free_acquisitions)) != NULL;)
        free(LIST_ENTRY(node, struct acquisition, node));
}

void verb_cancel(struct daemon_slot *slot, const struct daemon_args *args,
                 const struct daemon_words *words)
{
    struct lh_report report = LH_REPORT_INIT;
    struct text text;
    (void)words;
    text_init(&text, report.text, sizeof report.text);
    struct request_id *id = NULL;
    if (strlen(args->text[1]) <= REQUEST_ID_MAX) {
        char name[65];
        request_id_name(slot->connection->who, args->text[1], name);
        id = request_id_find(slot->daemon, name);
    }
    bool waits = id != NULL && (id->acquisition != NULL || id->claim != NULL);
    if (waits && id->claim != NULL)
        claim_cancel(id->claim);
    else if (waits)
        acquisition_cancel(id->acquisition);
    report.outcome = waits ? LH_OK : LH_STALE;
    text_add(&text, waits ? "ok: cancelled" : "stale: nothing waits under this request id");
    slot_reply_report(slot, &report);
}
