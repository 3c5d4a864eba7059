/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes store requests for the script, and decodes its replies. While a foreign value is under
 * the plain name, the core gets a record in which that program holds the lock; that grant is
 * removed from all that the core writes, because it is not ours. Must not decide: the core judges
 * whom it blocks.
 */
#include "store/redis/redis_internal.h"

#include "base/check.h"
#include "base/hash.h"
#include "store/translate.h"
#include "wire/record_codec.h"
#include "wire/redis_message.h"

#include <string.h>

#define DAY_MS ((int64_t)24 * 3600 * 1000)

/* ---- requests ---- */

/*
 * How long the server keeps the record: as long as the core requested; without a TTL (0) if it
 * waits for a watermark or is one; for leftovers of crashed processes, a day longer than it blocks.
 */
static int64_t lifetime_of(const struct store_summary *summary, int64_t retention_ms)
{
    if (summary->permanent)
        return 0;
    return retention_ms > 0 ? retention_ms + 1 : -(DAY_MS + summary->spans_ms);
}

/* True if nothing of the record outlives the grant that this write makes or renews. */
static bool is_sole_grant(const struct store_summary *summary, int64_t retention_ms)
{
    return summary->grants == 1 && summary->waiters == 0 && summary->spans_ms == 0 &&
           summary->held_ms > 0 && summary->held_until_ms == 0 && !summary->permanent &&
           retention_ms <= summary->held_ms;
}

static bool is_first_in_queue(const struct redis *redis, struct record *record)
{
    const struct waiter *next = queue_next(record);
    return next != NULL && next->session == redis->callbacks.session;
}

/* The request id of a foreign grant; in a semaphore, one per slot. */
static void foreign_request_name(const struct redis *redis, uint32_t slot, char *out)
{
    struct text text;
    text_init(&text, out, REQUEST_MAX + 1);
    text_add(&text, FOREIGN_REQUEST);
    text_add_hex(&text, redis->foreign_session + slot);
}

/* Removes foreign grants. One with another session was renewed by its token: also a break. */
static bool remove_foreign(const struct redis *redis, struct record *record, bool *out_broken)
{
    bool found = false;
    for (size_t i = record->grant_count; i-- > 0;) {
        struct grant *grant = &record->grants[i];
        char request[REQUEST_MAX + 1];
        foreign_request_name(redis, grant->n, request);
        if (strcmp(grant->request, request) != 0)
            continue;
        *out_broken = grant->broken || *out_broken || grant->session != redis->foreign_session;
        record_remove_grant(record, grant);
        found = true;
    }
    return found;
}

/* Without the record's name, which does not exist beside a sole grant, if the slot is migrated. */
static void send_keys(struct redis_conn *conn, const struct redis_names *names, bool migrates)
{
    bool bare = migrates && names->family != REDIS_WATERMARK;
    conn_arg_raw(conn, redis_script_call);
    conn_arg(conn, names->family == REDIS_WATERMARK ? names->record : names->plain);
    conn_arg(conn, bare ? names->counter : names->record);
    conn_arg(conn, names->counter);
}

/* Removes foreign grants from the record to be written. A foreign grant is the first of its record:
 * others need no decoding. */
static void draft_remove_foreign(struct redis *redis, struct redis_op *op, struct draft *draft,
                                 struct store_summary *summary)
{
    struct codec_error error;
    struct record *record = &redis->scratch;
    if (summary->grants == 0 ||
        strncmp(summary->request, FOREIGN_REQUEST, sizeof FOREIGN_REQUEST - 1) != 0 ||
        record_decode(draft->bytes, draft->length, record, &error) != DECODE_OK ||
        !remove_foreign(redis, record, &op->breaks))
        return;
    summarize_record(record, op->base.request.session, summary);
    op->waits_behind = is_first_in_queue(redis, record);
    if (op->breaks) /* the write must fail: we cannot break a foreign lock */
        return;
    draft->knows_foreign = true;
    draft->length =
        record_needed(record) ? record_encode(record, redis->encoded, sizeof redis->encoded) : 0;
    draft->bytes = redis->encoded;
}

void draft_make(struct redis *redis, struct redis_op *op, struct draft *out)
{
    const struct store_request *request = &op->base.request;
    struct store_summary summary = request->summary;
    bool writes = request->verb == VERB_STORE_SWAP && request->length > 0;
    *out = (struct draft){.bytes = request->bytes, .length = writes ? request->length : 0};
    op->leaves_free = summary.grants == 0;
    if (writes) {
        draft_remove_foreign(redis, op, out, &summary);
        out->fresh_ms = summary.held_ms;
        out->until_ms = summary.held_until_ms;
        out->retention_ms = lifetime_of(&summary, request->retention_ms);
        out->sole = is_sole_grant(&summary, request->retention_ms) && !out->knows_foreign;
    }
    out->by = summary.holder != NULL ? summary.holder : "";
}

static void send_condition(struct redis_conn *conn, const struct store_request *request)
{
    const struct condition *condition = &request->condition;
    if (condition->kind == IF_REVISION)
        conn_arg_int(conn, (int64_t)condition->revision);
    else
        conn_arg(conn, condition->kind == IF_ABSENT ? "" : "grant");
}

void wake_channel_name(const struct redis *redis, uint64_t session, char *out)
{
    struct text text;
    text_init(&text, out, CHANNEL_NAME_MAX);
    text_add_bytes(&text, redis->wake.name,
                   (size_t)(strrchr(redis->wake.name, ':') - redis->wake.name) + 1);
    text_add_hex(&text, session);
}

/* In parts, because Lua numbers are not exact there: "epoch revision n"; empty if there is none. */
static void send_token(struct redis_conn *conn, uint64_t token)
{
    char digits[64];
    struct text text;
    text_init(&text, digits, sizeof digits);
    if (token != 0) {
        text_add_u64(&text, token >> 55);
        text_add(&text, " ");
        text_add_u64(&text, token >> 10 & REVISION_MAX);
        text_add(&text, " ");
        text_add_u64(&text, token & 1023);
    }
    conn_arg_bytes(conn, digits, text.length);
}

/* Adds 1 ms, because the server's expiry clock may be behind the clock of the script. */
static int64_t with_one_more(int64_t ms)
{
    return ms > 0 ? ms + 1 : 0;
}

/* Computes times that begin with this write here, so that the script need not. */
static void send_lifetime(const struct draft *draft, struct redis_conn *conn)
{
    int64_t retention_ms = draft->retention_ms;
    if (draft->until_ms == 0 && retention_ms < 0)
        retention_ms = with_one_more(draft->fresh_ms) - retention_ms;
    if (draft->sole)
        conn_arg(conn, "");
    else
        conn_arg_int(conn, retention_ms);
    conn_arg(conn, draft->by);
}

static void send_optional_number(struct redis_conn *conn, int64_t number)
{
    if (number != 0)
        conn_arg_int(conn, number);
    else
        conn_arg(conn, "");
}

/* Every argument costs server time, so trailing empty ones are omitted. */
static void send_write(struct redis *redis, struct redis_op *op, struct redis_conn *conn,
                       const struct redis_names *names)
{
    enum { NAMES = 6, ENDS = 3, HELD = 5, BY = 7, UNTIL = 8, FOREIGN = 10 };
    const struct store_request *request = &op->base.request;
    const struct condition *condition = &request->condition;
    struct draft draft;
    draft_make(redis, op, &draft);
    /* The caller saw when the grant ends, so it exists at that revision: no token is needed. */
    uint64_t token = condition->ends_ms == 0 ? condition->token : 0;
    bool all = request->wake_count > 0 || token != 0 || draft.knows_foreign;
    size_t written = draft.length == 0 ? ENDS : draft.sole ? HELD : BY;
    size_t last = all ? FOREIGN : draft.until_ms != 0 ? UNTIL : written;
    size_t named = request->wake_count - request->spare_count;
    conn_begin(conn, &op->call,
               NAMES + last + request->wake_count + (request->spare_count > 0 ? 1 : 0));
    send_keys(conn, names, op->migrates);
    send_condition(conn, request);
    conn_arg(conn, redis->changes.name);
    send_optional_number(conn, condition->ends_ms);
    if (last >= HELD) {
        conn_arg_bytes(conn, draft.bytes, draft.length);
        conn_arg_int(conn, with_one_more(draft.fresh_ms));
    }
    if (last >= BY)
        send_lifetime(&draft, conn);
    if (last >= UNTIL)
        send_optional_number(conn, with_one_more(draft.until_ms));
    if (last >= FOREIGN) {
        send_token(conn, token);
        conn_arg(conn, draft.knows_foreign ? "beside" : "");
    }
    for (size_t i = 0; i < request->wake_count; i++) {
        char name[CHANNEL_NAME_MAX];
        if (i == named)
            conn_arg(conn, "");
        wake_channel_name(redis, request->wake[i], name);
        conn_arg(conn, name);
    }
}

bool command_send(struct redis *redis, struct redis_op *op, struct redis_conn *conn)
{
    struct redis_names names;
    if (!redis_names_of(&redis->url.templates, op->base.request.key, &names))
        return false;
    op->conn = conn;
    if (op->asking)
        (void)CONN_SEND(conn, NULL, "ASKING");
    if (op->base.request.verb == VERB_STORE_READ) {
        conn_begin(conn, &op->call, 7);
        send_keys(conn, &names, op->migrates);
        conn_arg(conn, "read");
    } else {
        send_write(redis, op, conn, &names);
    }
    return true;
}

/* ---- replies ---- */

static bool next_number(struct resp_walk *walk, int64_t *out)
{
    struct resp_item item;
    if (!resp_next(walk, &item) || item.kind != RESP_NUMBER)
        return false;
    *out = item.number;
    return true;
}

/* The reply to a write begins like a record; after a delete the revision is 0. */
static bool read_written(const struct resp_item *item, struct snapshot *out)
{
    out->holds = out->wrote = true;
    size_t end = redis_record_read(item->text, item->length, /* from= */ 0, &out->written);
    out->now_ms = out->written.time_ms;
    return end > 0 && end == item->length;
}

/* translate.c checks the bounds of revision and time, as for every store. */
bool snapshot_set_record(struct snapshot *snapshot, const char *text, size_t length)
{
    size_t begin = redis_record_read(text, length, /* from= */ 0, &snapshot->written);
    snapshot->bytes = text + begin;
    snapshot->length = length - begin;
    return begin > 0 && begin < length && snapshot->written.revision > 0;
}

bool snapshot_parse(const struct resp_item *item, struct resp_walk *walk, struct snapshot *out)
{
    enum { STATE_ITEMS = 6 };
    int64_t holds, count;
    struct resp_item kept, value;
    *out = (struct snapshot){.pttl_ms = -1};
    if (item->kind == RESP_TEXT)
        return read_written(item, out);
    if (item->kind != RESP_LIST || item->count != STATE_ITEMS || !next_number(walk, &holds) ||
        !next_number(walk, &out->now_ms) || !resp_next(walk, &kept) || kept.kind != RESP_TEXT ||
        !resp_next(walk, &value) || !next_number(walk, &out->pttl_ms) || !next_number(walk, &count))
        return false;
    out->unreadable = kept.length > 0 && !snapshot_set_record(out, kept.text, kept.length);
    if (out->unreadable)
        return false;
    out->holds = holds != 0;
    out->foreign = value.kind == RESP_TEXT;
    out->value = value.text;
    out->value_length = value.length;
    if (out->foreign && out->written.revision == 0)
        out->written = stamp_of_order((uint64_t)count, out->now_ms);
    return true;
}

bool snapshot_fits(const struct redis_op *op, const struct snapshot *snapshot)
{
    return op->base.request.verb == VERB_STORE_READ ? snapshot->holds && !snapshot->wrote
                                                    : !snapshot->holds || snapshot->wrote;
}

/* The value as the holder's name, if printable, and truncated. */
static void foreign_name(const struct snapshot *snapshot, char *out, size_t size)
{
    size_t length = 0;
    struct text text;
    text_init(&text, out, size);
    while (length < snapshot->value_length && length < FOREIGN_NAME_SHOWN) {
        size_t sequence =
            text_utf8_length(snapshot->value + length, snapshot->value_length - length);
        if (sequence == 0)
            break;
        length += sequence;
    }
    if (length > 0 && text_is_clean(snapshot->value, length))
        text_add_bytes(&text, snapshot->value, length);
    else
        text_add(&text, "a foreign lock");
}

/* Adds a holder of the whole lock: in a semaphore, of every slot. Its tokens are below all of ours,
 * so that no earlier holder takes the grant for its own. */
static void add_foreign(const struct redis *redis, const struct snapshot *snapshot,
                        struct record *record)
{
    uint32_t slots = record->limit > 0 ? record->limit : 1;
    bool endless = snapshot->pttl_ms < 0 || snapshot->pttl_ms > TTL_MAX_MS;
    for (uint32_t i = 0; i < slots && i < GRANTS_MAX; i++) {
        struct grant *grant = record_add_grant(record);
        foreign_name(snapshot, grant->holder, sizeof grant->holder);
        foreign_request_name(redis, i, grant->request);
        grant->session = redis->foreign_session;
        grant->mode = record->limit > 0 ? MODE_SLOT : MODE_EXCLUSIVE;
        grant->n = (uint16_t)i;
        grant->granted = (struct stamp){.revision = 1, .time_ms = snapshot->now_ms};
        grant->renewed = snapshot->written;
        grant->renewed.time_ms = snapshot->now_ms;
        grant->ttl_ms = endless ? TTL_MAX_MS : snapshot->pttl_ms > 0 ? snapshot->pttl_ms : 1;
    }
}

/* Our record with the foreign lock as its holder; false if ours cannot be read. */
static bool insert_foreign(struct redis *redis, const char *key, const struct snapshot *snapshot)
{
    struct codec_error error;
    struct record *record = &redis->scratch;
    if (snapshot->length == 0) {
        record_init(record, key);
        if (strncmp(key, ONCE_PREFIX, sizeof ONCE_PREFIX - 1) == 0)
            record_set_kind(record, KIND_ONCE);
    } else if (record_decode(snapshot->bytes, snapshot->length, record, &error) != DECODE_OK) {
        return false;
    }
    record_resolve(record, &snapshot->written);
    record->grant_count = 0;
    if (record->kind == KIND_ONCE)
        record_end_cooling(record);
    for (size_t i = 0; i < record->waiter_count; i++)
        record->waiters[i].offered = false; /* no waiter may enter now */
    add_foreign(redis, snapshot, record);
    return record_broken(record) == NULL;
}

/* The stamps of foreign grants are derived from these. */
static bool stamp_is_sane(const struct snapshot *snapshot)
{
    const struct stamp *written = &snapshot->written;
    return written->revision > 0 && written->revision <= REVISION_MAX && written->time_ms >= 0 &&
           written->time_ms <= TIME_MAX_MS && written->epoch <= EPOCH_MAX &&
           snapshot->now_ms >= 0 && snapshot->now_ms <= TIME_MAX_MS;
}

/* False, with the reason in the reply, if the record cannot be reported. */
static bool show_foreign(struct redis *redis, const char *key, const struct snapshot *snapshot,
                         struct store_reply *out)
{
    struct redis_names names;
    struct text why;
    out->result = REPLY_TROUBLE;
    if (!stamp_is_sane(snapshot)) {
        text_init(&why, redis->why, sizeof redis->why);
        text_add(&why, "the server's time or its revision counter is out of bounds");
        if (redis_names_of(&redis->url.templates, key, &names)) {
            text_add(&why, "; delete ");
            text_add(&why, names.counter);
            text_add(&why, " in Redis if another program wrote it");
        }
        out->why = redis->why;
        return false;
    }
    if (!insert_foreign(redis, key, snapshot)) {
        out->why = "another program holds the key, and our record of it cannot be read";
        return false;
    }
    out->result = snapshot->holds ? REPLY_OK : REPLY_CONFLICT;
    return true;
}

/* True if the core had seen the foreign lock and wrote as if it could break it. */
static bool is_break(const struct redis *redis, const struct redis_op *op)
{
    uint64_t hash = hash_string(op->base.request.key), slot = hash % SHOWN_SLOTS;
    bool knew = redis->shown[slot].key == hash &&
                redis->shown[slot].revision == op->base.request.condition.revision;
    return op->base.request.condition.kind == IF_REVISION && knew &&
           (op->leaves_free || op->breaks);
}

void snapshot_reply(struct redis *redis, const struct redis_op *op, const char *key,
                    const struct snapshot *snapshot, struct store_reply *out)
{
    *out = (struct store_reply){.result = snapshot->holds ? REPLY_OK : REPLY_CONFLICT,
                                .now_ms = snapshot->now_ms,
                                .present = snapshot->length > 0 || snapshot->foreign,
                                .written = snapshot->written,
                                .bytes = snapshot->bytes,
                                .length = snapshot->length};
    if (snapshot->wrote && op != NULL) { /* a query writes nothing */
        out->present = op->base.request.verb == VERB_STORE_SWAP;
        if (out->written.revision == 0) /* only the foreign lock remains of the write */
            out->written =
                stamp_of_order(op->base.request.condition.revision, out->written.time_ms);
        out->bytes = op->base.request.bytes;
        out->length = op->base.request.length;
        if (op->waits_behind)
            foreign_poll(redis, key);
    }
    if (snapshot->foreign && !show_foreign(redis, key, snapshot, out))
        return;
    if (snapshot->foreign && op != NULL && !snapshot->holds && is_break(redis, op)) {
        *out = (struct store_reply){.result = REPLY_DENIED,
                                    .now_ms = snapshot->now_ms,
                                    .why = "a program other than leasehold holds the key; stop "
                                           "it, or delete its value in Redis"};
        return;
    }
    uint64_t hash = hash_string(key);
    if (!snapshot->foreign && redis->shown[hash % SHOWN_SLOTS].key == hash)
        redis->shown[hash % SHOWN_SLOTS].key = 0; /* the core learns that it is gone */
    if (snapshot->foreign) {
        redis->shown[hash % SHOWN_SLOTS].key = hash;
        redis->shown[hash % SHOWN_SLOTS].revision = stamp_order(&snapshot->written);
        out->bytes = redis->encoded;
        out->length = record_encode(&redis->scratch, redis->encoded, sizeof redis->encoded);
        if (is_first_in_queue(redis, &redis->scratch))
            foreign_poll(redis, key);
    }
    if (!out->present)
        out->written = (struct stamp){0};
}

struct store_reply redis_error_reply(const struct conn_error *error)
{
    return (struct store_reply){.result = error->result,
                                .now_ms = TIME_UNKNOWN,
                                .refused = error->refused,
                                .why = error->why};
}

void redis_query_reply(struct redis *redis, const char *key, const struct snapshot *snapshot,
                       const struct conn_error *error, struct store_reply *out)
{
    if (error == NULL)
        snapshot_reply(redis, NULL, key, snapshot, out);
    else
        *out = redis_error_reply(error);
}
