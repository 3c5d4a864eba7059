/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redis as a store. Requests submitted since the last step are sent together, in one pipeline; each
 * is one call of one script (redis_script.c) and has one reply. A request must not be sent again,
 * unless the server reported that it did not run. A connection that misses a request's deadline is
 * closed, and all requests in flight on it end as REPLY_TROUBLE: they may have been executed.
 */
#include "store/redis/redis_internal.h"

#include "base/check.h"
#include "process/host.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { REDIS_MAGIC = 0x4ed15, TIMEOUT_MS = 10000, OPS_MAX = 1 << 16 };

static const char name_is_anothers[] =
    "the key's name in Redis belongs to another kind of key; check the templates in the URL";

/* ---- requests ---- */

static void on_script_reply(struct conn_call *call, const struct resp_item *item,
                            struct resp_walk *walk, const struct conn_error *error);

static struct redis_op *op_add(struct redis *redis, const struct store_request *request,
                               store_done *done, void *caller)
{
    struct redis_op *op = pending_add(&redis->pending, request, done, caller);
    if (op == NULL)
        return NULL;
    op->call.reply = on_script_reply;
    op->redis = redis;
    list_append(&redis->queued, &op->base.in_queue);
    return op;
}

static void op_clear(struct pending *pending)
{
    free(((struct redis_op *)pending)->key);
}

/* Delivers the only reply. */
void redis_op_end(struct redis_op *op, const struct snapshot *snapshot,
                  const struct conn_error *error)
{
    struct redis *redis = op->redis;
    if (op->listing != NULL) {
        list_fail(op, error);
        return;
    }
    if (op->slot_call != NULL) {
        op->slot_call->end(op->slot_call, /* item= */ NULL, /* walk= */ NULL, error);
        pending_drop(&op->base);
        return;
    }
    if (op->query != NULL) {
        op->query(op->base.caller, op->key, snapshot, error);
        pending_drop(&op->base);
        return;
    }
    struct store_reply reply;
    if (error != NULL)
        reply = redis_error_reply(error);
    else
        snapshot_reply(redis, op, op->base.request.key, snapshot, &reply);
    pending_reply(&op->base, &reply);
}

static void end_in_trouble(struct redis_op *op, const char *why)
{
    redis_op_end(op, NULL, &(struct conn_error){.result = REPLY_TROUBLE, .why = why});
}

/* ---- loading the script ---- */

/* The script did not run, so resending is safe. False if it was loaded before. */
static bool load_and_repeat(struct redis_op *op)
{
    struct redis_conn *conn = op->conn;
    char script[SCRIPT_MAX];
    struct text text;
    if (op->reloaded || !conn_begin_noreply(conn, 3))
        return false;
    text_init(&text, script, sizeof script);
    redis_script(&text);
    ASSERT(!text.cut);
    op->reloaded = true;
    conn_arg(conn, "SCRIPT");
    conn_arg(conn, "LOAD");
    conn_arg_bytes(conn, script, text.length);
    return command_send(op->redis, op, conn);
}

/* The error means that nothing was written. */
static bool repeat_for_sole_grant(struct redis_op *op)
{
    if (op->migrates)
        return false;
    op->migrates = true;
    return command_send(op->redis, op, op->conn);
}

static void on_script_reply(struct conn_call *call, const struct resp_item *item,
                            struct resp_walk *walk, const struct conn_error *error)
{
    struct redis_op *op = redis_op_of(call);
    struct snapshot snapshot;
    if (error != NULL) {
        redis_op_end(op, NULL, error);
    } else if (item->kind == RESP_ERROR &&
               ((resp_begins(item, "NOSCRIPT") && load_and_repeat(op)) ||
                (resp_begins(item, "TRYAGAIN") && repeat_for_sole_grant(op)) ||
                node_redirects(op, item))) {
        return;
    } else if (item->kind == RESP_ERROR) {
        struct redis_conn *conn = op->conn;
        struct conn_error refusal = conn_explain(conn, item);
        bool demoted = resp_begins(item, "READONLY") && conn->state == CONN_READY;
        redis_op_end(op, NULL, &refusal);
        if (demoted) /* the next connection finds the new master */
            conn_abort(conn, REPLY_TROUBLE, "it is now a replica");
    } else if (snapshot_parse(item, walk, &snapshot) && snapshot_fits(op, &snapshot)) {
        redis_op_end(op, &snapshot, NULL);
    } else {
        redis_op_end(op, NULL,
                     &(struct conn_error){.result = REPLY_TROUBLE,
                                          .why = "Redis sent an unexpected reply to our script",
                                          .of_record = snapshot.unreadable});
    }
}

/* ---- sending ---- */

static void on_slot_reply(struct conn_call *call, const struct resp_item *item,
                          struct resp_walk *walk, const struct conn_error *error)
{
    struct redis_op *op = redis_op_of(call);
    struct conn_error refusal;
    bool refused = error == NULL && item->kind == RESP_ERROR;
    if (refused && node_redirects(op, item))
        return;
    if (refused)
        refusal = conn_explain(op->conn, item);
    op->slot_call->end(op->slot_call, item, walk, refused ? &refusal : error);
    pending_drop(&op->base);
}

bool redis_call_slot(struct redis *redis, struct slot_call *slot_call)
{
    static const struct store_request none = {.verb = VERB_STORE_READ, .key = ""};
    struct redis_op *op = op_add(redis, &none, /* done= */ NULL, /* caller= */ NULL);
    if (op == NULL)
        return false;
    op->call.reply = on_slot_reply;
    op->slot_call = slot_call;
    return true;
}

static void slot_call_send(struct redis_op *op)
{
    op->conn = &op->node->conn;
    if (op->asking && conn_begin_noreply(op->conn, 1))
        conn_arg(op->conn, "ASKING");
    op->slot_call->send(op->slot_call, op->conn, &op->call);
}

void redis_op_send(struct redis_op *op)
{
    struct redis *redis = op->redis;
    bool sent = true;
    if (op->listing != NULL)
        list_send(op, &op->node->conn);
    else if (op->slot_call != NULL)
        slot_call_send(op);
    else if (redis->url.no_scripts)
        sent = txn_begin(op->node, op);
    else
        sent = command_send(redis, op, &op->node->conn);
    if (!sent)
        end_in_trouble(op, name_is_anothers);
}

static struct node *node_of_key(struct redis *redis, const char *key)
{
    if (redis->main.next == NULL)
        return &redis->main;
    struct redis_names names;
    return node_for(redis, redis_names_of(&redis->url.templates, key, &names) ? names.slot : 0);
}

static void op_dispatch(struct redis *redis, struct redis_op *op)
{
    if (op->slot_call != NULL) {
        node_queue(node_for(redis, op->slot_call->slot), op);
        return;
    }
    switch (op->base.request.verb) {
    case VERB_STORE_LIST:
        list_begin(redis, op);
        return;
    case VERB_STORE_WATCH:
        pubsub_watch(op);
        return;
    case VERB_STORE_HISTORY:
        end_in_trouble(op, "redis: keeps no history");
        return;
    default:
        node_queue(node_of_key(redis, op->base.request.key), op);
    }
}

/* True while the request must wait for the connection, or for its subscription. */
static bool must_subscribe(struct redis *redis, const struct pending *pending)
{
    const struct store_request *request = &pending->request;
    bool watches = request->verb == VERB_STORE_WATCH;
    bool writes = request->verb == VERB_STORE_SWAP && request->condition.kind == IF_REVISION;
    /* A waiter must be subscribed before it waits, so that it can be woken. A holder that renews is
     * woken when the record changes: its next write then needs no read. */
    bool waits = writes && request->summary.queued, stays = writes && request->bound;
    if (!watches && !writes && request->verb != VERB_STORE_LIST)
        return false;
    conn_open(&redis->main.conn);
    if (redis->main.conn.state != CONN_READY)
        return true;
    if (watches || waits || stays)
        pubsub_subscribe(redis, watches ? &redis->changes : &redis->wake);
    return (watches || waits) && !pubsub_is_settled(redis);
}

void redis_flush(struct redis *redis)
{
    while (redis->queued.first != NULL &&
           !must_subscribe(redis, LIST_ENTRY(redis->queued.first, struct pending, in_queue))) {
        struct redis_op *op = pending_pop(&redis->queued);
        if (op != NULL) /* a lost connection may have ended it */
            op_dispatch(redis, op);
    }
    nodes_send(redis, /* flush= */ false);
}

/* A deadline has passed: later replies on that connection are too late. */
static void on_overdue(void *owner, struct pending *first)
{
    struct redis *redis = owner;
    const struct redis_op *op = (struct redis_op *)first;
    bool unsubscribed = pubsub_conn(redis) == &redis->pubsub && !pubsub_is_settled(redis);
    conn_abort(op->node != NULL ? &op->node->conn : &redis->main.conn, REPLY_TROUBLE,
               "it did not reply in time");
    if (unsubscribed) /* the request may have waited for the subscription */
        conn_abort(&redis->pubsub, REPLY_TROUBLE, "it did not reply in time");
}

bool redis_query(struct redis *redis, const char *key, redis_query_done *query, void *caller)
{
    char *copy = strdup(key);
    struct store_request request = {.verb = VERB_STORE_READ, .key = copy};
    struct redis_op *op = copy != NULL ? op_add(redis, &request, /* done= */ NULL, caller) : NULL;
    if (op == NULL) {
        free(copy);
        return false;
    }
    op->key = copy;
    op->query = query;
    return true;
}

/* ---- the driver interface ---- */

static void redis_submit(void *state, const struct store_request *request, store_done *done,
                         void *caller)
{
    struct redis *redis = state;
    bool renews = request->verb == VERB_STORE_SWAP && request->condition.kind == IF_GRANT;
    ASSERT(redis->magic == REDIS_MAGIC && !renews); /* by revision only: see the capabilities */
    if (op_add(redis, request, done, caller) == NULL)
        pending_refuse(done, caller);
    redis->submitted = true;
}

static void redis_step(void *state)
{
    struct redis *redis = state;
    ASSERT(redis->magic == REDIS_MAGIC);
    bool sends = redis->submitted;
    redis->submitted = false;
    redis_flush(redis);
    if (sends) { /* input that arrived meanwhile is read in the next step */
        poller_run_deferred(redis->poller);
        return;
    }
    poller_step(redis->poller);
    redis_flush(redis); /* requests from callbacks */
    nodes_send(redis, /* flush= */ true);
    redis->submitted = false;
}

static int redis_fd(void *state)
{
    const struct redis *redis = state;
    return poller_fd(redis->poller);
}

static void redis_close(void *state)
{
    struct redis *redis = state;
    ASSERT(redis->magic == REDIS_MAGIC);
    conn_done(&redis->pubsub);
    nodes_done(redis);
    conn_done(&redis->sentinel);
    watchers_done(&redis->watchers);
    foreign_done(redis);
    list_done(redis);
    pending_done(&redis->pending);
    credentials_done(&redis->credentials);
    poller_free(&redis->poller);
    redis->magic = 0;
}

static bool redis_open(void *state, const char *url, const struct store_callbacks *callbacks,
                       struct text *why)
{
    struct redis *redis = state;
    uint64_t seeds[2];
    memset(redis, 0, offsetof(struct redis, scratch));
    text_add(why, "usage: ");
    if (!redis_url_read(url, &redis->url, why))
        return false;
    text_clear(why);
    /* The session of foreign grants must not be predictable. */
    bool random = getrandom(seeds, sizeof seeds, /* flags= */ 0) == sizeof seeds;
    redis->poller = random ? poller_new() : NULL;
    if (redis->poller == NULL) {
        text_add(why, "out of memory, descriptors or random numbers");
        return false;
    }
    if (!credentials_init(&redis->credentials, &redis->url, redis->poller, why)) {
        poller_free(&redis->poller);
        return false;
    }
    redis->random.state = seeds[0];
    redis->foreign_session = seeds[1];
    redis->callbacks = *callbacks;
    redis->timeout_ms = callbacks->timeout_ms > 0 ? callbacks->timeout_ms : TIMEOUT_MS;
    redis->pending = (struct pending_set){.size = sizeof(struct redis_op),
                                          .most = OPS_MAX,
                                          .timeout_ms = redis->timeout_ms,
                                          .poller = redis->poller,
                                          .overdue = on_overdue,
                                          .owner = redis,
                                          .clear = op_clear};
    nodes_init(redis, seeds[0]);
    sentinel_init(redis, seeds[0]);
    pubsub_init(redis);
    redis->magic = REDIS_MAGIC;
    return true;
}

/* The name that other programs use. */
static bool redis_key_name(const char *url, const char *key, struct text *out, struct text *why)
{
    struct redis_names names;
    struct redis_url *read = malloc(sizeof *read);
    bool known = read != NULL && redis_url_read(url, read, why);
    bool named = known && redis_names_of(&read->templates, key, &names);
    if (read == NULL)
        text_add(why, "out of memory");
    else if (known && !named)
        text_add(why, name_is_anothers);
    if (named)
        text_add(out, names.family == REDIS_WATERMARK ? names.record : names.plain);
    free(read);
    return named;
}

#define REDIS_DRIVER(word)                                                                        \
    {                                                                                             \
        .scheme = (word),                                                                         \
        .capabilities = STORE_DURABLE | STORE_WATCHES | STORE_TIME | STORE_TESTS_GRANT |          \
                        STORE_DELETES | STORE_TOKENS_RESTART | STORE_TELLS | STORE_EPOCH,         \
        .state_size = sizeof(struct redis), .descriptors = 3,                                     \
        .facts = {STORE_USUAL_FACTS(WAITERS_MAX - OFFERS_MAX), .answer_ms = 25,                   \
                  .takeover_ms = 150, .ttl_least_ms = 500},                                       \
        .open = redis_open, .close = redis_close, .submit = redis_submit, .step = redis_step,     \
        .fd = redis_fd, .name = redis_key_name, .diagnose = redis_diagnose, .epoch = redis_epoch, \
    }

const struct store_driver redis_driver = REDIS_DRIVER("redis");
const struct store_driver rediss_driver = REDIS_DRIVER("rediss");
