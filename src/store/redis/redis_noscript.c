/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mode without scripts (?scripts=no): does with commands what redis_script.c does. First it
 * watches and reads both names and draws a revision; then, if the condition holds, it writes
 * everything in one transaction, which fails if either name has changed since. A conflict is
 * answered by one more transaction, which reads. This takes two round trips instead of one, and
 * only one request at a time may use a connection, because WATCH applies to the whole connection.
 */
#include "store/redis/redis_internal.h"

#include "base/check.h"
#include "process/host.h"
#include "store/condition.h"
#include "wire/redis_message.h"

#include <stdlib.h>
#include <string.h>

enum { CALLS_MAX = 16, VALUE_MAX = 200 };

enum stage { STAGE_CLOCK, STAGE_WATCH, STAGE_WRITE, STAGE_READ };

/* Reads the reply to one command. */
typedef void txn_take(struct txn *txn, const struct resp_item *item, struct resp_walk *walk);

struct txn_call {
    struct conn_call call; /* first */
    struct txn *txn;
    txn_take *take; /* NULL: the reply has no meaning */
};

struct txn {
    struct node *node;
    struct redis_op *op;
    enum stage stage;
    struct redis_names names;
    struct txn_call calls[CALLS_MAX];
    size_t sent, received;
    bool redirected, refused, written;
    const char *wrong; /* the error message for a malformed reply */
    bool unreadable;   /* the record is malformed */
    bool demoted;      /* the server is now a replica */
    struct conn_error error;
    char *record; /* the current one: revision, time, bytes */
    size_t length;
    bool own;     /* the value under the plain name is ours … */
    bool foreign; /* … or foreign, and not in the written record */
    char value[VALUE_MAX];
    int64_t count;
    struct snapshot snapshot;
};

void txn_free(struct txn *txn)
{
    if (txn != NULL)
        free(txn->record);
    free(txn);
}

static void txn_end(struct txn *txn, const struct conn_error *error)
{
    struct redis_op *op = txn->op;
    struct redis_conn *conn = &txn->node->conn;
    bool demoted = txn->demoted && conn->state == CONN_READY;
    txn->node->txn = NULL;
    if (!txn->redirected)
        redis_op_end(op, error == NULL ? &txn->snapshot : NULL, error);
    txn_free(txn);
    if (demoted) /* the next connection finds the new master */
        conn_abort(conn, REPLY_TROUBLE, "it is now a replica");
}

/* ---- reading ---- */

static void txn_take_record(struct txn *txn, const struct resp_item *item, struct resp_walk *walk)
{
    struct snapshot *snapshot = &txn->snapshot;
    (void)walk;
    free(txn->record);
    txn->record = NULL;
    snapshot->bytes = NULL;
    snapshot->length = 0;
    snapshot->written = (struct stamp){0};
    if (item->kind == RESP_NULL)
        return;
    size_t begin = item->kind != RESP_TEXT ? 0
                                           : redis_record_read(item->text, item->length,
                                                               /* from= */ 0, &snapshot->written);
    bool sane = begin > 0 && snapshot->written.revision > 0 &&
                snapshot->written.epoch <= EPOCH_MAX && snapshot->written.time_ms <= TIME_MAX_MS;
    txn->record = sane ? malloc(item->length) : NULL;
    txn->unreadable = !sane;
    if (txn->record == NULL) {
        txn->wrong = sane ? "out of memory" : "the record in Redis has no revision";
        return;
    }
    memcpy(txn->record, item->text, item->length);
    snapshot->bytes = txn->record + begin;
    snapshot->length = item->length - begin;
}

/* A value that we did not write with that record is foreign, whatever its type. */
static void txn_take_value(struct txn *txn, const struct resp_item *item, struct resp_walk *walk)
{
    struct snapshot *snapshot = &txn->snapshot;
    char mark[64];
    struct text text;
    (void)walk;
    text_init(&text, mark, sizeof mark);
    text_add(&text, "leasehold:");
    text_add_u64(&text, stamp_order(&snapshot->written));
    text_add(&text, ":");
    bool is_text = item->kind == RESP_TEXT;
    txn->own = is_text && snapshot->length > 0 && item->length >= text.length &&
               memcmp(item->text, mark, text.length) == 0;
    snapshot->foreign = item->kind != RESP_NULL && !txn->own;
    snapshot->value = txn->value;
    snapshot->value_length = is_text ? item->length : 0;
    if (snapshot->value_length > sizeof txn->value)
        snapshot->value_length = sizeof txn->value;
    if (snapshot->value_length > 0)
        memcpy(txn->value, item->text, snapshot->value_length);
}

static void txn_take_pttl(struct txn *txn, const struct resp_item *item, struct resp_walk *walk)
{
    (void)walk;
    if (item->kind != RESP_NUMBER)
        txn->wrong = "Redis replied to PTTL with something that is not a number";
    txn->snapshot.pttl_ms = item->number;
}

static void txn_take_count(struct txn *txn, const struct resp_item *item, struct resp_walk *walk)
{
    bool sane =
        item->kind == RESP_NUMBER && item->number > 0 && (uint64_t)item->number <= ORDER_MAX;
    (void)walk;
    if (!sane)
        txn->wrong = "the revision counter in Redis is out of bounds; delete it if another "
                     "program wrote it";
    txn->count = item->number;
}

/* Digits only, few enough that seconds fit in milliseconds. */
static bool read_time_part(struct resp_walk *walk, int64_t *out)
{
    enum { DIGITS_MAX = 12 };
    struct resp_item part;
    int64_t number = 0;
    if (!resp_next(walk, &part) || part.kind != RESP_TEXT || part.length == 0 ||
        part.length > DIGITS_MAX)
        return false;
    for (size_t i = 0; i < part.length; i++) {
        if (part.text[i] < '0' || part.text[i] > '9')
            return false;
        number = number * 10 + (part.text[i] - '0');
    }
    *out = number;
    return true;
}

static void txn_take_time(struct txn *txn, const struct resp_item *item, struct resp_walk *walk)
{
    int64_t seconds, micros;
    if (item->kind != RESP_LIST || item->count != 2 || !read_time_part(walk, &seconds) ||
        !read_time_part(walk, &micros)) {
        txn->wrong = "Redis replied to TIME with something that is not a time";
        return;
    }
    txn->snapshot.now_ms = seconds * 1000 + micros / 1000;
    txn->node->clock_offset_ms = txn->snapshot.now_ms - host_boot_ms();
}

/* The results of a transaction that reads, in the order of txn_send_reads(): a watermark has no
 * plain name. */
static void txn_take_snapshot(struct txn *txn, const struct resp_item *item, struct resp_walk *walk)
{
    static txn_take *const takes[] = {txn_take_record, txn_take_value, txn_take_pttl,
                                      txn_take_time};
    bool plain = txn->names.family != REDIS_WATERMARK;
    struct resp_item part;
    if (item->kind != RESP_LIST || item->count != (plain ? 4 : 2)) {
        txn->wrong = "Redis sent an unexpected reply to EXEC";
        return;
    }
    for (size_t i = 0; i < 4 && resp_next(walk, &part); i += plain || i == 3 ? 1 : 3) {
        takes[i](txn, &part, walk);
        if (takes[i] != txn_take_time)
            resp_skip(walk, &part);
    }
}

/* A transaction continues after a command fails: then it is unknown what was written. */
static void txn_take_written(struct txn *txn, const struct resp_item *item, struct resp_walk *walk)
{
    struct resp_item part;
    txn->written = item->kind == RESP_LIST;
    if (!txn->written && item->kind != RESP_NULL) /* NULL: a name has changed since */
        txn->wrong = "Redis sent an unexpected reply to EXEC";
    while (txn->written && !txn->refused && resp_next(walk, &part)) {
        txn->refused = part.kind == RESP_ERROR;
        if (txn->refused)
            txn->error = conn_explain(&txn->node->conn, &part);
    }
}

/* ---- stages ---- */

static void txn_continue(struct txn *txn);

static void on_txn_reply(struct conn_call *call, const struct resp_item *item,
                         struct resp_walk *walk, const struct conn_error *error)
{
    struct txn_call *one = (struct txn_call *)call;
    struct txn *txn = one->txn;
    bool bad = error == NULL && item->kind == RESP_ERROR;
    bool wrong_type = bad && one->take == txn_take_value && resp_begins(item, "WRONGTYPE");
    txn->received++;
    if (error != NULL && !txn->refused) {
        txn->refused = true;
        txn->error = *error;
    } else if (bad && !wrong_type && !txn->refused && !txn->redirected) {
        txn->redirected = node_redirects(txn->op, item); /* then nothing is executed */
        txn->refused = !txn->redirected;
        txn->demoted = resp_begins(item, "READONLY");
        if (txn->refused)
            txn->error = conn_explain(&txn->node->conn, item);
    } else if (error == NULL && !txn->refused && !txn->redirected && one->take != NULL) {
        one->take(txn, item, walk);
    }
    if (txn->received == txn->sent)
        txn_continue(txn);
}

static struct redis_conn *txn_command(struct txn *txn, txn_take *take, size_t args,
                                      const char *command)
{
    struct redis_conn *conn = &txn->node->conn;
    ASSERT(txn->sent < CALLS_MAX);
    struct txn_call *call = &txn->calls[txn->sent++];
    *call = (struct txn_call){.call = {.reply = on_txn_reply}, .txn = txn, .take = take};
    conn_begin(conn, &call->call, args);
    conn_arg(conn, command);
    return conn;
}

static void txn_key_command(struct txn *txn, txn_take *take, const char *command, const char *name)
{
    conn_arg(txn_command(txn, take, 2, command), name);
}

static void txn_begin_stage(struct txn *txn, enum stage stage)
{
    txn->stage = stage;
    txn->sent = txn->received = 0;
}

static void txn_send_reads(struct txn *txn, bool meant)
{
    bool plain = txn->names.family != REDIS_WATERMARK;
    txn_key_command(txn, meant ? txn_take_record : NULL, "GET", txn->names.record);
    if (plain) {
        txn_key_command(txn, meant ? txn_take_value : NULL, "GET", txn->names.plain);
        txn_key_command(txn, meant ? txn_take_pttl : NULL, "PTTL", txn->names.plain);
    }
    (void)txn_command(txn, meant ? txn_take_time : NULL, 1, "TIME");
}

/* Reads everything in one transaction, for a consistent reply. */
static void txn_read(struct txn *txn)
{
    txn_begin_stage(txn, STAGE_READ);
    (void)txn_command(txn, NULL, 1, "MULTI");
    txn_send_reads(txn, /* meant= */ false);
    (void)txn_command(txn, txn_take_snapshot, 1, "EXEC");
}

/* The counter starts above all earlier revisions, even if it was lost. */
static void txn_watch(struct txn *txn)
{
    txn_begin_stage(txn, STAGE_WATCH);
    char mark[EPOCH_MARK_MAX];
    struct redis_conn *conn = txn_command(txn, NULL, 4, "WATCH");
    conn_arg(conn, txn->names.plain);
    conn_arg(conn, txn->names.record);
    redis_epoch_mark(txn->names.slot, mark); /* the revision drawn below is of the current epoch */
    conn_arg(conn, mark);
    txn_send_reads(txn, /* meant= */ true);
    conn = txn_command(txn, NULL, 4, "SET");
    conn_arg(conn, txn->names.counter);
    conn_arg_int(conn, host_boot_ms() + txn->node->clock_offset_ms);
    conn_arg(conn, "NX");
    txn_key_command(txn, txn_take_count, "INCR", txn->names.counter);
}

/* True if the request's record is current and has the grant. */
static bool txn_record_matches(const struct txn *txn)
{
    const struct store_request *request = &txn->op->base.request;
    struct stored_record stored = {.bytes = txn->snapshot.bytes,
                                   .length = txn->snapshot.length,
                                   .written = txn->snapshot.written,
                                   .now_ms = txn->snapshot.now_ms};
    if (stored.length == 0)
        return request->condition.kind != IF_GRANT;
    return condition_holds(request, &stored, &txn->op->redis->scratch);
}

static bool txn_condition_holds(const struct txn *txn, const struct draft *draft)
{
    const struct condition *condition = &txn->op->base.request.condition;
    const struct snapshot *snapshot = &txn->snapshot;
    if (condition->kind == IF_ABSENT)
        return snapshot->length == 0 && !snapshot->foreign;
    if (condition->ends_ms != 0 && snapshot->now_ms >= condition->ends_ms)
        return false;
    if (snapshot->length == 0)
        return snapshot->foreign && draft->knows_foreign;
    return snapshot->foreign == draft->knows_foreign;
}

static void txn_set(struct txn *txn, const char *name, int64_t retention_ms, const char *head,
                    const char *bytes, size_t length)
{
    char value[RECORD_MAX + 64];
    struct text text;
    struct redis_conn *conn = txn_command(txn, NULL, retention_ms > 0 ? 5 : 3, "SET");
    text_init(&text, value, sizeof value);
    text_add(&text, head);
    text_add_bytes(&text, bytes, length);
    conn_arg(conn, name);
    conn_arg_bytes(conn, value, text.length);
    if (retention_ms > 0) {
        conn_arg(conn, "PX");
        conn_arg_int(conn, retention_ms);
    }
}

static void txn_set_record(struct txn *txn, const struct draft *draft)
{
    char head[64];
    struct text text;
    int64_t now_ms = txn->snapshot.now_ms, until_ms = draft->until_ms - now_ms;
    int64_t held_ms = draft->fresh_ms > until_ms ? draft->fresh_ms : until_ms;
    int64_t retention_ms = draft->retention_ms;
    if (retention_ms < 0)
        retention_ms = (held_ms > 0 ? held_ms : 0) - retention_ms;
    text_init(&text, head, sizeof head);
    text_add_i64(&text, txn->count);
    text_add(&text, " ");
    text_add_i64(&text, now_ms);
    text_add(&text, " ");
    txn_set(txn, txn->names.record, retention_ms, head, draft->bytes, draft->length);
    if (txn->names.family == REDIS_WATERMARK || txn->snapshot.foreign)
        return;
    text_init(&text, head, sizeof head);
    text_add(&text, "leasehold:");
    text_add_i64(&text, txn->count);
    text_add(&text, ":");
    if (held_ms > 0)
        txn_set(txn, txn->names.plain, held_ms + 1, head, draft->by, strlen(draft->by));
    else if (txn->own)
        txn_key_command(txn, NULL, "DEL", txn->names.plain);
}

static void publish(struct redis_conn *conn, const char *channel, const struct text *message)
{
    if (!conn_begin_noreply(conn, 3))
        return;
    conn_arg(conn, "PUBLISH");
    conn_arg(conn, channel);
    conn_arg_bytes(conn, message->bytes, message->length);
}

static void txn_write(struct txn *txn, const struct draft *draft)
{
    txn_begin_stage(txn, STAGE_WRITE);
    (void)txn_command(txn, NULL, 1, "MULTI");
    if (draft->length > 0) {
        txn_set_record(txn, draft);
    } else {
        txn->count = 0;
        txn_key_command(txn, NULL, "DEL", txn->names.record);
        if (txn->own)
            txn_key_command(txn, NULL, "DEL", txn->names.plain);
    }
    (void)txn_command(txn, txn_take_written, 1, "EXEC");
}

/* Sends the new record to the named sessions, unless it is long or they are many. */
static void txn_wake_named(struct txn *txn)
{
    struct redis *redis = txn->op->redis;
    const struct store_request *request = &txn->op->base.request;
    size_t named = request->wake_count - request->spare_count;
    char message[REDIS_RECORD_NAME_MAX + 64 + WAKE_RECORD_MAX], name[CHANNEL_NAME_MAX];
    struct text text;
    text_init(&text, message, sizeof message);
    text_add(&text, txn->names.record);
    if (txn->count > 0 && !txn->foreign && request->length <= WAKE_RECORD_MAX &&
        named <= WAKE_SESSIONS_MAX) {
        text_add(&text, "\n");
        text_add_i64(&text, txn->count);
        text_add(&text, " ");
        text_add_i64(&text, txn->snapshot.now_ms);
        text_add(&text, " ");
        text_add_bytes(&text, request->bytes, request->length);
    }
    for (size_t i = 0; i < named + (request->spare_count > 0 ? 1 : 0); i++) { /* and one spare */
        wake_channel_name(redis, request->wake[i], name);
        publish(&txn->node->conn, name, &text);
    }
}

/* After the write only; a client that misses the message polls. */
static void txn_publish(struct txn *txn)
{
    char message[REDIS_RECORD_NAME_MAX + 32];
    struct text text;
    text_init(&text, message, sizeof message);
    text_add_i64(&text, txn->count);
    text_add(&text, " ");
    text_add(&text, txn->names.record);
    publish(&txn->node->conn, txn->op->redis->changes.name, &text);
    txn_wake_named(txn);
}

static void txn_finish(struct txn *txn, bool wrote)
{
    struct snapshot *snapshot = &txn->snapshot;
    snapshot->wrote = wrote;
    snapshot->holds = wrote || txn->op->base.request.verb == VERB_STORE_READ;
    if (wrote) {
        txn->foreign = snapshot->foreign;
        snapshot->foreign = false;
        snapshot->written = stamp_of_order((uint64_t)txn->count, snapshot->now_ms);
        txn_publish(txn);
    } else if (snapshot->foreign && snapshot->length == 0) {
        /* No record of ours has a revision above the clock that its counter started with. */
        snapshot->written = stamp_of_order(
            (uint64_t)(txn->count > 0 ? txn->count : snapshot->now_ms), snapshot->now_ms);
    }
    txn_end(txn, NULL);
}

static void txn_unwatch(struct txn *txn)
{
    struct redis_conn *conn = &txn->node->conn;
    if (conn->state == CONN_READY && conn_begin_noreply(conn, 1))
        conn_arg(conn, "UNWATCH");
}

static void txn_write_or_read(struct txn *txn)
{
    struct draft draft;
    bool current = txn_record_matches(txn);
    draft_make(txn->op->redis, txn->op, &draft);
    bool holds = current && txn_condition_holds(txn, &draft);
    if (holds && (uint64_t)txn->count > stamp_order(&txn->snapshot.written)) {
        txn_write(txn, &draft);
        return;
    }
    txn_unwatch(txn);
    if (holds) /* the counter was lost, and the clock went back */
        txn_end(txn,
                &(struct conn_error){.result = REPLY_TROUBLE,
                                     .why = "the revision counter in Redis went back, and without "
                                            "scripts it cannot be repaired"});
    else
        txn_read(txn);
}

static void txn_continue(struct txn *txn)
{
    if (txn->wrong != NULL && !txn->refused) {
        txn->error = (struct conn_error){
            .result = REPLY_TROUBLE, .why = txn->wrong, .of_record = txn->unreadable};
        txn->refused = true;
    }
    if (txn->refused || txn->redirected) {
        if (txn->stage == STAGE_WATCH)
            txn_unwatch(txn);
        txn_end(txn, &txn->error);
        return;
    }
    switch (txn->stage) {
    case STAGE_CLOCK:
        txn_watch(txn);
        return;
    case STAGE_WATCH:
        txn_write_or_read(txn);
        return;
    case STAGE_WRITE:
        if (txn->written)
            txn_finish(txn, /* wrote= */ true);
        else
            txn_read(txn);
        return;
    case STAGE_READ:
        txn_finish(txn, /* wrote= */ false);
        return;
    }
    UNREACHABLE("every stage is listed");
}

bool txn_begin(struct node *node, struct redis_op *op)
{
    struct txn *txn = calloc(1, sizeof *txn);
    if (txn == NULL ||
        !redis_names_of(&op->redis->url.templates, op->base.request.key, &txn->names)) {
        free(txn);
        return false;
    }
    op->conn = &node->conn;
    txn->node = node;
    txn->op = op;
    txn->snapshot.pttl_ms = -1;
    node->txn = txn;
    if (op->base.request.verb == VERB_STORE_READ) {
        txn_read(txn);
    } else if (node->clock_offset_ms == 0) {
        txn_begin_stage(txn, STAGE_CLOCK);
        (void)txn_command(txn, txn_take_time, 1, "TIME");
    } else {
        txn_watch(txn);
    }
    return true;
}
