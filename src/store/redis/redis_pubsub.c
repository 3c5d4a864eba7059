/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pub/sub: writes that name our session, and all changes, for watches. A change message has only
 * the name; the record is then queried, so that watchers get the current one. A wake message may
 * contain the record. Messages are lost with their connection: then watches end, and waiters poll.
 * RESP3 delivers them on the main connection; RESP2 needs a second one. Must not decide who is
 * woken.
 */
#include "store/redis/redis_internal.h"

#include "base/check.h"
#include "base/hash.h"
#include "wire/redis_message.h"

#include <string.h>

struct redis_conn *pubsub_conn(struct redis *redis)
{
    return redis->main.conn.protocol == 2 ? &redis->pubsub : &redis->main.conn;
}

bool pubsub_is_settled(const struct redis *redis)
{
    bool wake = !redis->wake.wanted || redis->wake.state == PUBSUB_ON;
    bool changes = !redis->changes.wanted || redis->changes.state == PUBSUB_ON;
    /* On one connection the order suffices, unless writes go to another node of a cluster. */
    const struct redis_conn *conn = &redis->main.conn;
    bool cannot = conn->protocol == 3 ? !conn->clustered : redis->pubsub.state == CONN_IDLE;
    return cannot || (wake && changes);
}

/* ---- channels ---- */

static const struct store_reply watch_begins = {.result = REPLY_OK, .now_ms = TIME_UNKNOWN};

static void pubsub_end_watches(struct redis *redis, const struct conn_error *error)
{
    struct store_reply reply = redis_error_reply(error);
    watchers_end(&redis->watchers, &reply);
}

static void on_subscribed(struct conn_call *call, const struct resp_item *item,
                          struct resp_walk *walk, const struct conn_error *error)
{
    struct pubsub_channel *channel = (struct pubsub_channel *)call;
    struct redis *redis = channel->redis;
    (void)walk;
    if (error != NULL)
        return;                     /* the loss is reported separately */
    if (item->kind == RESP_ERROR) { /* waiters still poll */
        struct conn_error refusal = conn_explain(pubsub_conn(redis), item);
        channel->state = PUBSUB_ON;
        if (channel == &redis->changes) {
            channel->state = PUBSUB_OFF;
            channel->wanted = false;
            pubsub_end_watches(redis, &refusal);
        }
    } else {
        channel->state = PUBSUB_ON;
        if (channel == &redis->changes)
            watchers_confirm(&redis->watchers, &watch_begins);
    }
    redis_flush(redis);
}

static void pubsub_channel_subscribe(struct redis *redis, struct pubsub_channel *channel)
{
    struct redis_conn *conn = pubsub_conn(redis);
    if (!channel->wanted || channel->state != PUBSUB_OFF || conn->state != CONN_READY)
        return;
    channel->state = PUBSUB_PENDING;
    conn_begin(conn, &channel->call, 2);
    conn_arg(conn, "SUBSCRIBE");
    conn_arg(conn, channel->name);
}

void pubsub_subscribe(struct redis *redis, struct pubsub_channel *channel)
{
    channel->wanted = true;
    conn_open(pubsub_conn(redis));
    pubsub_channel_subscribe(redis, channel);
}

void pubsub_ready(struct redis *redis)
{
    /* The server now speaks RESP3: a call may be in the queue of one connection only. */
    bool idle = redis->pubsub.state == CONN_IDLE && !redis->pubsub.wanted;
    if (pubsub_conn(redis) != &redis->pubsub && !idle)
        conn_abort(&redis->pubsub, REPLY_TROUBLE, "RESP3 needs no second connection");
    pubsub_channel_subscribe(redis, &redis->wake);
    pubsub_channel_subscribe(redis, &redis->changes);
}

void pubsub_lost(struct redis *redis, const struct conn_error *error)
{
    redis->wake.state = redis->changes.state = PUBSUB_OFF;
    redis->changes.wanted = false;
    /* A server that returns may have lost its last writes, and reuse revisions. */
    memset(redis->delivered, 0, sizeof redis->delivered);
    pubsub_end_watches(redis, error);
}

static void on_pubsub_ready(void *owner)
{
    pubsub_ready(owner);
}

static void on_pubsub_lost(void *owner, const struct conn_error *error)
{
    struct redis *redis = owner;
    pubsub_lost(redis, error);
    /* A waiter sends no more writes, so nothing else would open it again. */
    if (redis->wake.wanted && pubsub_conn(redis) == &redis->pubsub)
        conn_open(&redis->pubsub);
    redis_flush(redis);
}

static bool on_pubsub_pushed(void *owner, struct resp_walk *walk, size_t count)
{
    struct redis *redis = owner;
    return pubsub_pushed(redis, &redis->pubsub, walk, count);
}

/* ---- watches ---- */

void pubsub_watch(struct redis_op *op)
{
    struct redis *redis = op->redis;
    (void)pending_watch(&op->base, &redis->watchers);
    if (redis->changes.state == PUBSUB_ON)
        watchers_confirm(&redis->watchers, &watch_begins);
}

/* True if this or a newer revision was reported. A message may arrive after a newer query. */
static bool was_delivered(const struct redis *redis, const char *key, uint64_t revision)
{
    uint64_t hash = hash_string(key);
    return revision != 0 && redis->delivered[hash % DELIVERED_SLOTS].key == hash &&
           redis->delivered[hash % DELIVERED_SLOTS].revision >= revision;
}

static struct redis_op *find_change(const struct redis *redis, const char *key);
static void query_change(struct redis *redis, const char *key);

static void on_change_query(void *caller, const char *key, const struct snapshot *snapshot,
                            const struct conn_error *error)
{
    struct redis *redis = caller;
    if (error != NULL && !error->of_record) {
        pubsub_end_watches(redis, error);
        return;
    }
    if (snapshot != NULL && snapshot->length > 0) {
        uint64_t hash = hash_string(key);
        redis->delivered[hash % DELIVERED_SLOTS].key = hash;
        redis->delivered[hash % DELIVERED_SLOTS].revision = stamp_order(&snapshot->written);
    }
    for (struct watchers_walk walk = watchers_walk(&redis->watchers, key); watchers_next(&walk);) {
        struct store_reply reply;
        redis_query_reply(redis, key, snapshot, error, &reply);
        watchers_deliver(&walk, &reply);
    }
    const struct redis_op *change = find_change(redis, key); /* it ends after this call */
    if (change->again && !was_delivered(redis, key, change->newest))
        query_change(redis, key);
}

/* The query of a changed key in flight; NULL if there is none. */
static struct redis_op *find_change(const struct redis *redis, const char *key)
{
    for (struct list_node *node = redis->pending.all.first; node != NULL; node = node->next) {
        struct redis_op *op = (void *)LIST_ENTRY(node, struct pending, in_all);
        if (op->query == on_change_query && strcmp(op->key, key) == 0)
            return op;
    }
    return NULL;
}

static void query_change(struct redis *redis, const char *key)
{
    if (!redis_query(redis, key, on_change_query, redis))
        pubsub_end_watches(redis, &(struct conn_error){.result = REPLY_TROUBLE,
                                                       .why = "too many changes at once"});
}

static void key_changed(struct redis *redis, const char *key, uint64_t revision)
{
    struct watchers_walk walk = watchers_walk(&redis->watchers, key);
    if (!watchers_next(&walk) || was_delivered(redis, key, revision))
        return;
    struct redis_op *change = find_change(redis, key);
    if (change == NULL) {
        query_change(redis, key);
        return;
    }
    /* Deletes have no revision, so a change after one is queried. */
    bool known = revision != 0 && (!change->again || change->newest != 0);
    change->again = true;
    change->newest = known ? revision : 0;
}

/* ---- messages ---- */

/* Ignores names that are not ours. */
static void on_change_message(struct redis *redis, const struct resp_item *message)
{
    char key[KEY_MAX + 1];
    uint64_t revision;
    size_t at;
    if (redis_change_read(message->text, message->length, &revision, &at) &&
        redis_key_of_record(&redis->url.templates, message->text + at, message->length - at, key))
        key_changed(redis, key, revision);
}

static void on_wake_message(struct redis *redis, const struct resp_item *message)
{
    char key[KEY_MAX + 1];
    struct redis_notice delivered = redis_notice_read(message->text, message->length);
    struct store_reply current = {
        .result = REPLY_OK,
        .present = true,
        .written = delivered.written,
        .now_ms = delivered.written.time_ms,
        .bytes = delivered.bytes,
        .length = delivered.length,
    };
    if (redis->callbacks.notice != NULL &&
        redis_key_of_record(&redis->url.templates, message->text, delivered.name_length, key))
        redis->callbacks.notice(redis->callbacks.owner, key,
                                delivered.has_record ? &current : NULL);
}

static void on_message(struct redis *redis, const struct resp_item *channel,
                       const struct resp_item *message)
{
    if (resp_is(channel, redis->changes.name))
        on_change_message(redis, message);
    else if (resp_is(channel, redis->wake.name))
        on_wake_message(redis, message);
}

bool pubsub_pushed(struct redis *redis, struct redis_conn *conn, struct resp_walk *walk,
                   size_t count)
{
    struct resp_item kind, channel, message;
    if (count < 1 || !resp_next(walk, &kind))
        return false;
    if (resp_is(&kind, "subscribe"))
        return conn_confirm(conn);
    if (!resp_is(&kind, "message"))
        return true; /* not used here */
    if (count != 3 || !resp_next(walk, &channel) || !resp_next(walk, &message) ||
        message.kind != RESP_TEXT)
        return false;
    on_message(redis, &channel, &message);
    return true;
}

/* ---- init and done ---- */

static void pubsub_channel_init(struct redis *redis, struct pubsub_channel *channel, bool own)
{
    struct text text;
    *channel = (struct pubsub_channel){.call = {.reply = on_subscribed, .subscribes = true},
                                       .redis = redis};
    text_init(&text, channel->name, sizeof channel->name);
    text_add(&text, "leasehold:"); /* channels span all databases, so names have the number */
    text_add_u64(&text, redis->url.db);
    text_add(&text, own ? ":wake:" : ":changed");
    if (own)
        text_add_hex(&text, redis->callbacks.session);
}

void pubsub_init(struct redis *redis)
{
    struct conn_callbacks callbacks = {.ready = on_pubsub_ready,
                                       .lost = on_pubsub_lost,
                                       .pushed = on_pubsub_pushed,
                                       .owner = redis};
    conn_init(&redis->pubsub, redis->poller, &redis->url, &redis->credentials, &callbacks,
              random_next(&redis->random));
    redis->pubsub.timeout_ms = redis->timeout_ms;
    redis->pubsub.listens = true;
    pubsub_channel_init(redis, &redis->wake, /* own= */ true);
    pubsub_channel_init(redis, &redis->changes, /* own= */ false);
}
