/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mode without scripts (?scripts=no): does with commands what redis_script.c does. First it
 * watches and reads both names and draws a revision; then, if the condition holds, it writes
 * everything in one transaction, which fails if either name has changed since. A conflict is
 * answered by one more read, which an empty transaction validates. This takes two round trips
 * instead of one, and only one request at a time may use a connection, because WATCH applies to the
 * whole connection.
 */
#include "store/redis/redis_internal.h"

#include "process/host.h"
#include "store/condition.h"
#include "wire/redis_message.h"

#include <stdlib.h>
#include <string.h>

enum { VALUE_MAX = 200, HEAD_MAX = 64 };

/* Each stage sends its commands together and ends with the last reply. The first two begin with
 * the same five commands; the third is the transaction that writes. */
enum stage { STAGE_READ, STAGE_DRAW, STAGE_WRITE };

struct txn {
    struct conn_call call; /* first; gets every reply of a stage */
    struct node *node;
    struct redis_op *op;
    struct redis_names names;
    bool seeds;        /* the server's clock is not known yet, with which a new counter starts */
    const char *plain; /* a watermark has no plain name: the record's again */
    enum stage stage;
    unsigned replies; /* of this stage */
    bool failed, redirected;
    bool executed; /* the stage's transaction; else a name has changed since */
    bool demoted;  /* the server is now a replica */
    struct conn_error error;
    char *record;   /* the current one, a copy: revision, time, bytes */
    bool sole, own; /* the plain name has the record, or a value that we wrote with it */
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

static void txn_end(struct txn *txn)
{
    struct redis_op *op = txn->op;
    struct redis_conn *conn = &txn->node->conn;
    bool demoted = txn->demoted && conn->state == CONN_READY;
    txn->node->txn = NULL;
    if (!txn->redirected)
        redis_op_end(op, txn->failed ? NULL : &txn->snapshot, txn->failed ? &txn->error : NULL);
    txn_free(txn);
    if (demoted) /* the next connection finds the new master */
        conn_abort(conn, REPLY_TROUBLE, "it is now a replica");
}

static void txn_fail(struct txn *txn, struct conn_error error)
{
    if (!txn->failed)
        txn->error = error;
    txn->failed = true;
}

static void txn_distrust(struct txn *txn, const char *why)
{
    txn_fail(txn, (struct conn_error){.result = REPLY_TROUBLE, .why = why});
}

/* ---- reading ---- */

static void txn_keep_record(struct txn *txn, const char *bytes, size_t length)
{
    free(txn->record);
    txn->record = malloc(length + 1);
    if (txn->record == NULL) {
        txn_fail(txn, conn_no_memory);
        return;
    }
    if (length > 0)
        memcpy(txn->record, bytes, length);
    if (!snapshot_set_record(&txn->snapshot, txn->record, length) ||
        txn->snapshot.written.epoch > EPOCH_MAX || txn->snapshot.written.time_ms > TIME_MAX_MS)
        txn_fail(txn, (struct conn_error){.result = REPLY_TROUBLE,
                                          .why = "the record in Redis has no revision",
                                          .of_record = true});
}

/* A value that is not a sole grant is foreign, whatever its type, unless the record names it. */
static void txn_take_value(struct txn *txn, const struct resp_item *item)
{
    struct snapshot *snapshot = &txn->snapshot;
    size_t length = item->kind == RESP_TEXT ? item->length : 0;
    size_t sole = length > 0 ? redis_sole_read(item->text, length) : 0;
    *snapshot = (struct snapshot){.value = txn->value, .pttl_ms = -1};
    txn->own = txn->sole = sole > 0 && txn->plain == txn->names.plain;
    if (txn->sole)
        txn_keep_record(txn, item->text + sole, length - sole);
    snapshot->foreign = item->kind != RESP_NULL && !txn->sole && txn->plain == txn->names.plain;
    snapshot->value_length = length < VALUE_MAX ? length : VALUE_MAX;
    if (length > 0)
        memcpy(txn->value, item->text, snapshot->value_length);
}

static void txn_take_record(struct txn *txn, const struct resp_item *item)
{
    struct snapshot *snapshot = &txn->snapshot;
    char mark[HEAD_MAX];
    struct text text;
    if (txn->sole || item->kind == RESP_NULL)
        return;
    txn_keep_record(txn, item->text, item->kind == RESP_TEXT ? item->length : 0);
    text_init(&text, mark, sizeof mark);
    text_add(&text, "leasehold:");
    text_add_u64(&text, stamp_order(&snapshot->written));
    text_add(&text, ":");
    txn->own = snapshot->foreign && snapshot->value_length >= text.length &&
               memcmp(txn->value, mark, text.length) == 0;
    snapshot->foreign = snapshot->foreign && !txn->own;
}

/* Digits only, and at most so many. */
static bool read_digits(const struct resp_item *item, size_t most, int64_t *out)
{
    int64_t number = 0;
    if (item->kind != RESP_TEXT || item->length == 0 || item->length > most)
        return false;
    for (size_t i = 0; i < item->length; i++) {
        if (item->text[i] < '0' || item->text[i] > '9')
            return false;
        number = number * 10 + (item->text[i] - '0');
    }
    *out = number;
    return true;
}

/* Few enough digits that seconds fit in milliseconds. */
static bool read_time_part(struct resp_walk *walk, int64_t *out)
{
    enum { DIGITS_MAX = 12 };
    struct resp_item part;
    return resp_next(walk, &part) && read_digits(&part, DIGITS_MAX, out);
}

static void txn_take_time(struct txn *txn, const struct resp_item *item, struct resp_walk *walk)
{
    int64_t seconds, micros;
    if (item->kind != RESP_LIST || item->count != 2 || !read_time_part(walk, &seconds) ||
        !read_time_part(walk, &micros)) {
        txn_distrust(txn, "Redis replied to TIME with something that is not a time");
        return;
    }
    txn->snapshot.now_ms = seconds * 1000 + micros / 1000;
    txn->node->clock_offset_ms = txn->snapshot.now_ms - host_boot_ms();
}

/* A counter that does not exist starts with the clock; 0, which is no revision, if it is no number
 * that a counter can have. */
static void txn_take_counter(struct txn *txn, const struct resp_item *item)
{
    enum { DIGITS_MAX = 16 };
    int64_t count = item->kind == RESP_NULL ? txn->snapshot.now_ms : 0;
    (void)read_digits(item, DIGITS_MAX, &count);
    txn->count = count;
}

static void txn_take_count(struct txn *txn, const struct resp_item *item)
{
    if (item->kind != RESP_NUMBER || item->number <= 0 || (uint64_t)item->number > ORDER_MAX)
        txn_distrust(txn, "the revision counter in Redis is out of bounds; delete it if another "
                          "program wrote it");
    txn->count = item->number;
}

/* A transaction continues after a command fails: then it is unknown what was written. */
static void txn_take_exec(struct txn *txn, const struct resp_item *item, struct resp_walk *walk)
{
    struct resp_item part;
    txn->executed = item->kind == RESP_LIST;
    if (!txn->executed && item->kind != RESP_NULL)
        txn_distrust(txn, "Redis sent an unexpected reply to EXEC");
    while (txn->executed && !txn->failed && resp_next(walk, &part))
        if (part.kind == RESP_ERROR)
            txn_fail(txn, conn_explain(&txn->node->conn, &part));
}

/* The replies to txn_send_reads(); then the counter, if no revision is drawn. */
enum { AT_VALUE = 1, AT_RECORD, AT_PTTL, AT_TIME, AT_COUNTER };

static void txn_take(struct txn *txn, unsigned at, const struct resp_item *item,
                     struct resp_walk *walk)
{
    bool last = txn->call.pending == 0;
    if (last && txn->stage == STAGE_DRAW)
        txn_take_count(txn, item);
    else if (last)
        txn_take_exec(txn, item, walk);
    else if (txn->stage == STAGE_WRITE)
        return; /* QUEUED */
    else if (at == AT_VALUE)
        txn_take_value(txn, item);
    else if (at == AT_RECORD)
        txn_take_record(txn, item);
    else if (at == AT_PTTL && item->kind != RESP_NUMBER)
        txn_distrust(txn, "Redis replied to PTTL with something that is not a number");
    else if (at == AT_PTTL)
        txn->snapshot.pttl_ms = item->number;
    else if (at == AT_TIME)
        txn_take_time(txn, item, walk);
    else if (at == AT_COUNTER && txn->stage == STAGE_READ)
        txn_take_counter(txn, item);
}

/* ---- stages ---- */

static void txn_continue(struct txn *txn);

static void on_txn_reply(struct conn_call *call, const struct resp_item *item,
                         struct resp_walk *walk, const struct conn_error *error)
{
    struct txn *txn = (struct txn *)call;
    unsigned at = txn->replies++;
    bool bad = error == NULL && item->kind == RESP_ERROR;
    bool wrong_type = bad && txn->stage != STAGE_WRITE && at == AT_VALUE &&
                      resp_begins(item, "WRONGTYPE"); /* a foreign lock */
    if (error != NULL) {
        txn_fail(txn, *error);
    } else if (!txn->failed && !txn->redirected && bad && !wrong_type) {
        txn->redirected = node_redirects(txn->op, item); /* then nothing is executed */
        txn->demoted = resp_begins(item, "READONLY");
        if (!txn->redirected)
            txn_fail(txn, conn_explain(&txn->node->conn, item));
    } else if (!txn->failed && !txn->redirected) {
        txn_take(txn, at, item, walk);
    }
    if (call->pending == 0)
        txn_continue(txn);
}

#define TXN_SEND(txn, ...) (void)CONN_SEND(&(txn)->node->conn, &(txn)->call, __VA_ARGS__)

static void txn_send_reads(struct txn *txn, enum stage stage)
{
    char mark[EPOCH_MARK_MAX];
    txn->stage = stage;
    txn->replies = 0;
    redis_epoch_mark(txn->names.slot, mark); /* a revision drawn later is of the current epoch */
    TXN_SEND(txn, "WATCH", txn->plain, txn->names.record, mark);
    TXN_SEND(txn, "GET", txn->plain);
    TXN_SEND(txn, "GET", txn->names.record);
    TXN_SEND(txn, "PTTL", txn->plain);
    TXN_SEND(txn, "TIME");
}

static void txn_read(struct txn *txn)
{
    txn_send_reads(txn, STAGE_READ);
    TXN_SEND(txn, "GET", txn->names.counter);
    TXN_SEND(txn, "MULTI");
    TXN_SEND(txn, "EXEC");
}

/* The counter starts above all earlier revisions, even if it was lost. */
static void txn_draw(struct txn *txn)
{
    char now[HEAD_MAX];
    struct text text;
    text_init(&text, now, sizeof now);
    text_add_i64(&text, host_boot_ms() + txn->node->clock_offset_ms);
    txn_send_reads(txn, STAGE_DRAW);
    TXN_SEND(txn, "SET", txn->names.counter, now, "NX");
    TXN_SEND(txn, "INCR", txn->names.counter);
}

static void txn_unwatch(struct txn *txn)
{
    if (txn->node->conn.state == CONN_READY)
        (void)CONN_SEND(&txn->node->conn, NULL, "UNWATCH");
}

/* ---- writing ---- */

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

/* "<revision> <time> ", as in every record */
static void txn_add_stamp(const struct txn *txn, struct text *out)
{
    text_add_i64(out, txn->count);
    text_add(out, " ");
    text_add_i64(out, txn->snapshot.now_ms);
    text_add(out, " ");
}

static void txn_set(struct txn *txn, const char *name, int64_t retention_ms,
                    const struct text *value)
{
    struct redis_conn *conn = &txn->node->conn;
    conn_begin(conn, &txn->call, retention_ms > 0 ? 5 : 3);
    conn_arg(conn, "SET");
    conn_arg(conn, name);
    conn_arg_bytes(conn, value->bytes, value->length);
    if (retention_ms > 0) {
        conn_arg(conn, "PX");
        conn_arg_int(conn, retention_ms);
    }
}

static void txn_set_record(struct txn *txn, const struct draft *draft)
{
    char value[RECORD_MAX + HEAD_MAX];
    struct text text;
    int64_t until_ms = draft->until_ms - txn->snapshot.now_ms;
    int64_t held_ms = draft->fresh_ms > until_ms ? draft->fresh_ms : until_ms;
    int64_t retention_ms = draft->retention_ms;
    held_ms = held_ms > 0 ? held_ms + 1 : 0;
    text_init(&text, value, sizeof value);
    if (draft->sole)
        text_add(&text, "leasehold:");
    txn_add_stamp(txn, &text);
    text_add_bytes(&text, draft->bytes, draft->length);
    if (draft->sole) {
        txn_set(txn, txn->plain, held_ms, &text);
        if (!txn->sole)
            TXN_SEND(txn, "DEL", txn->names.record);
        return;
    }
    txn_set(txn, txn->names.record, retention_ms < 0 ? held_ms - retention_ms : retention_ms,
            &text);
    if (txn->plain == txn->names.record || txn->snapshot.foreign)
        return;
    text_clear(&text);
    text_add(&text, "leasehold:");
    text_add_i64(&text, txn->count);
    text_add(&text, ":");
    text_add(&text, draft->by);
    if (held_ms > 0)
        txn_set(txn, txn->plain, held_ms, &text);
    else if (txn->own)
        TXN_SEND(txn, "DEL", txn->plain);
}

static void txn_write(struct txn *txn, const struct draft *draft)
{
    txn->stage = STAGE_WRITE;
    TXN_SEND(txn, "MULTI");
    if (draft->length > 0) {
        txn_set_record(txn, draft);
    } else {
        txn->count = 0;
        if (!txn->sole)
            TXN_SEND(txn, "DEL", txn->names.record);
        if (txn->own)
            TXN_SEND(txn, "DEL", txn->plain);
    }
    TXN_SEND(txn, "EXEC");
}

/* After the write only; a client that misses the message polls. The named sessions get the new
 * record, unless it is long or they are many. */
static void txn_publish(struct txn *txn)
{
    struct redis *redis = txn->op->redis;
    const struct store_request *request = &txn->op->base.request;
    size_t named = request->wake_count - request->spare_count;
    char message[REDIS_RECORD_NAME_MAX + HEAD_MAX + WAKE_RECORD_MAX], name[CHANNEL_NAME_MAX];
    struct text text;
    text_init(&text, message, sizeof message);
    text_add_i64(&text, txn->count);
    text_add(&text, " ");
    text_add(&text, txn->names.record);
    (void)CONN_SEND(&txn->node->conn, NULL, "PUBLISH", redis->changes.name, message);
    text_clear(&text);
    text_add(&text, txn->names.record);
    if (txn->count > 0 && !txn->snapshot.foreign && request->length <= WAKE_RECORD_MAX &&
        named <= WAKE_SESSIONS_MAX) {
        text_add(&text, "\n");
        txn_add_stamp(txn, &text);
        text_add_bytes(&text, request->bytes, request->length);
    }
    for (size_t i = 0; i < named + (request->spare_count > 0 ? 1 : 0); i++) { /* and one spare */
        wake_channel_name(redis, request->wake[i], name);
        (void)CONN_SEND(&txn->node->conn, NULL, "PUBLISH", name, message);
    }
}

static void txn_finish(struct txn *txn)
{
    struct snapshot *snapshot = &txn->snapshot;
    bool wrote = txn->stage == STAGE_WRITE;
    if (wrote)
        txn_publish(txn);
    if (wrote || (snapshot->foreign && snapshot->length == 0))
        snapshot->written = stamp_of_order((uint64_t)txn->count, snapshot->now_ms);
    snapshot->foreign = snapshot->foreign && !wrote;
    snapshot->wrote = wrote;
    snapshot->holds = wrote || txn->op->base.request.verb == VERB_STORE_READ;
    txn_end(txn);
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
    if (!holds) {
        txn_read(txn);
        return;
    }
    txn_distrust(txn, "the revision counter in Redis went back, and without scripts it cannot be "
                      "repaired");
    txn_end(txn);
}

static void txn_continue(struct txn *txn)
{
    if (txn->failed || txn->redirected) {
        if (txn->stage != STAGE_WRITE)
            txn_unwatch(txn);
        txn_end(txn);
    } else if (txn->stage == STAGE_DRAW) {
        txn_write_or_read(txn);
    } else if (!txn->executed) {
        txn_read(txn);
    } else if (txn->seeds) {
        txn->seeds = false;
        txn_draw(txn);
    } else {
        txn_finish(txn);
    }
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
    txn->call.reply = on_txn_reply;
    txn->node = node;
    txn->op = op;
    txn->plain = txn->names.family == REDIS_WATERMARK ? txn->names.record : txn->names.plain;
    txn->seeds = op->base.request.verb != VERB_STORE_READ && node->clock_offset_ms == 0;
    node->txn = txn;
    if (op->base.request.verb == VERB_STORE_READ || txn->seeds)
        txn_read(txn);
    else
        txn_draw(txn);
    return true;
}
