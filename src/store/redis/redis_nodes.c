/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers, and the slots that they serve. Without a cluster there is one node; in a cluster the
 * first one is only asked for the map. A node that replies MOVED or ASK did not run the command, so
 * it may go to another node. A lost node leaves the map, and the next request loads the map again.
 */
#include "store/redis/redis_internal.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 200, REDIRECTS_MAX = 5 };

/* ---- queues ---- */

void node_queue(struct node *node, struct redis_op *op)
{
    op->node = node;
    op->conn = NULL;
    list_append(&node->queued, &op->base.in_queue);
}

void nodes_send(struct redis *redis, bool flush)
{
    for (struct node *node = &redis->main; node != NULL; node = node->next) {
        if (node->queued.first != NULL)
            conn_open(&node->conn);
        while (node->conn.state == CONN_READY && node->txn == NULL && node->queued.first != NULL)
            redis_op_send(pending_pop(&node->queued));
        if (flush && node->conn.stream != NULL && node->conn.state == CONN_READY)
            stream_flush(node->conn.stream);
    }
}

/* ---- connecting and disconnecting ---- */

static void on_node_ready(void *owner)
{
    struct node *node = owner;
    struct redis *redis = node->redis;
    if (node == &redis->main && pubsub_conn(redis) == &node->conn)
        pubsub_ready(redis);
}

/* The next attempt goes to the next host; in a cluster any node will do. */
static void turn_to_next_host(struct redis *redis)
{
    size_t hosts = redis->url.host_count;
    if (redis->url.sentinel[0] != '\0') {
        if (redis->sentinel.calls.first != NULL) /* that Sentinel sent no reply */
            conn_abort(&redis->sentinel, REPLY_TROUBLE, "the Sentinel did not reply in time");
        return;
    }
    size_t turn = ++redis->turn % (hosts + redis->node_count);
    const struct node *node = &redis->main;
    for (size_t i = hosts; i <= turn && node->next != NULL; i++)
        node = node->next;
    redis->main.conn.host = turn < hosts ? redis->url.hosts[turn] : node->conn.host;
}

static void end_ops(struct list queue, const struct conn_error *error)
{
    for (struct redis_op *op; (op = pending_pop(&queue)) != NULL;)
        redis_op_end(op, NULL, error);
}

/* The connection was refused, but not by all hosts yet: tries the next one at once, keeping queued
 * requests. False if all refused, or it failed in another way. */
static bool try_next_host(struct node *node, const struct conn_error *error)
{
    struct redis *redis = node->redis;
    size_t hosts = redis->url.sentinel[0] != '\0' ? 1 : redis->url.host_count + redis->node_count;
    redis->refusals = error->refused ? redis->refusals + 1 : 0;
    if (redis->refusals == 0 || redis->refusals >= hosts) {
        redis->refusals = 0;
        return false;
    }
    turn_to_next_host(redis);
    node->conn.retry_at_ms = INT64_MIN;
    conn_open(&node->conn);
    return true;
}

/* Requests in flight have failed already; queued requests fail here. */
static void on_node_lost(void *owner, const struct conn_error *error)
{
    struct node *node = owner;
    struct redis *redis = node->redis;
    struct conn_error of_node = *error;
    bool first = node == &redis->main;
    if (first && try_next_host(node, error))
        return;
    of_node.refused = first && error->refused; /* another node may have replaced it */
    for (size_t i = 0; i < REDIS_SLOTS; i++)
        redis->slots[i] = redis->slots[i] == node->index ? 0 : redis->slots[i];
    redis->mapped = false;
    node->clock_offset_ms = 0;
    end_ops(list_take_all(&node->queued), &of_node);
    if (!first)
        return;
    struct list fresh = list_take_all(&redis->queued);
    if (pubsub_conn(redis) == &node->conn)
        pubsub_lost(redis, error);
    turn_to_next_host(redis);
    end_ops(fresh, error);
}

static bool on_node_pushed(void *owner, struct resp_walk *walk, size_t count)
{
    struct node *node = owner;
    return pubsub_pushed(node->redis, &node->conn, walk, count);
}

static void node_init(struct redis *redis, struct node *node, uint64_t seed)
{
    struct conn_callbacks callbacks = {
        .ready = on_node_ready, .lost = on_node_lost, .pushed = on_node_pushed, .owner = node};
    bool locates = node == &redis->main && redis->url.sentinel[0] != '\0';
    callbacks.locate = locates ? sentinel_locate : NULL;
    node->redis = redis;
    conn_init(&node->conn, redis->poller, &redis->url, &redis->credentials, &callbacks, seed);
    node->conn.timeout_ms = redis->timeout_ms;
}

/* ---- slots and nodes ---- */

struct node *node_for(struct redis *redis, unsigned slot)
{
    struct node *node = &redis->main;
    while (node != NULL && node->index != redis->slots[slot])
        node = node->next;
    return node != NULL ? node : &redis->main;
}

static bool node_is_at(const struct node *node, const char *host, size_t length, uint16_t port)
{
    const struct url_host *known = &node->conn.host;
    return known->port == port && strlen(known->name) == length &&
           memcmp(known->name, host, length) == 0;
}

/* Created if it is new; NULL if there are too many. */
static struct node *node_at(struct redis *redis, const char *host, size_t length, uint16_t port)
{
    struct node **at = &redis->main.next;
    if (node_is_at(&redis->main, host, length, port))
        return &redis->main;
    for (; *at != NULL; at = &(*at)->next)
        if (node_is_at(*at, host, length, port))
            return *at;
    bool is_host = length > 0 && length <= URL_HOST_MAX && text_is_clean(host, length);
    struct node *node = redis->node_count < NODES_MAX && is_host ? calloc(1, sizeof *node) : NULL;
    if (node == NULL)
        return NULL;
    node_init(redis, node, random_next(&redis->random));
    memcpy(node->conn.host.name, host, length);
    node->conn.host.name[length] = '\0';
    node->conn.host.port = port;
    node->index = (uint8_t)++redis->node_count;
    *at = node;
    return node;
}

static bool read_redirect_number(const char **at, const char *end, unsigned most, unsigned *out)
{
    unsigned number = 0;
    const char *from = *at;
    for (; *at < end && **at >= '0' && **at <= '9' && number <= most; (*at)++)
        number = number * 10 + (unsigned)(**at - '0');
    *out = number;
    return *at > from && number <= most;
}

/* "MOVED 3999 127.0.0.1:6381", or ASK; without a host, the node that replied. */
bool node_redirects(struct redis_op *op, const struct resp_item *item)
{
    struct redis *redis = op->redis;
    const char *at = item->text, *end = item->text + item->length;
    bool moved = resp_begins(item, "MOVED "), ask = resp_begins(item, "ASK ");
    unsigned slot = 0, port = 0;
    if (!moved && !ask)
        return false;
    at += moved ? 6 : 4;
    if (!read_redirect_number(&at, end, REDIS_SLOTS - 1, &slot) || at == end || *at++ != ' ')
        return false;
    const char *colon = memrchr(at, ':', (size_t)(end - at));
    const char *digits = colon != NULL ? colon + 1 : end;
    if (!read_redirect_number(&digits, end, UINT16_MAX, &port) || op->redirects++ == REDIRECTS_MAX)
        return false;
    const char *same = op->conn->host.name;
    struct node *node = colon > at ? node_at(redis, at, (size_t)(colon - at), (uint16_t)port)
                                   : node_at(redis, same, strlen(same), (uint16_t)port);
    if (node == NULL)
        return false;
    op->asking = ask;
    if (moved) {
        redis->slots[slot] = node->index;
        redis->mapped = false;
        nodes_map(redis);
    }
    node_queue(node, op);
    return true;
}

/* ---- the map ---- */

/* Reads one range: its slots, its master, its replicas. False if it is malformed. */
static bool read_range(struct redis *redis, struct resp_walk *walk)
{
    struct resp_item range, from, to, master, host, port;
    if (!resp_next(walk, &range) || range.kind != RESP_LIST || range.count < 3 ||
        !resp_next(walk, &from) || !resp_next(walk, &to) || !resp_next(walk, &master) ||
        master.kind != RESP_LIST || master.count < 2 || !resp_next(walk, &host) ||
        !resp_next(walk, &port) || port.number < 1 || port.number > UINT16_MAX || from.number < 0 ||
        to.number >= REDIS_SLOTS)
        return false;
    const char *same = redis->main.conn.host.name;
    bool has_host = host.kind == RESP_TEXT && host.length > 0;
    struct node *node = node_at(redis, has_host ? host.text : same,
                                has_host ? host.length : strlen(same), (uint16_t)port.number);
    if (node == NULL)
        return false;
    node->serves = true;
    for (int64_t slot = from.number; slot <= to.number; slot++)
        redis->slots[slot] = node->index;
    struct resp_item rest = {.kind = RESP_LIST, .count = master.count - 2};
    resp_skip(walk, &rest);
    rest.count = range.count - 3;
    resp_skip(walk, &rest);
    return true;
}

static void on_map_reply(struct conn_call *call, const struct resp_item *item,
                         struct resp_walk *walk, const struct conn_error *error)
{
    struct redis *redis = (struct redis *)(void *)((char *)call - offsetof(struct redis, map_call));
    struct redis_conn *conn = &redis->main.conn;
    struct conn_error unknown = {.result = REPLY_TROUBLE, .why = "the cluster map is malformed"};
    bool fine = !conn->clustered; /* a server without cluster mode replies with an error */
    redis->mapping = false;
    if (error == NULL && item->kind == RESP_LIST) {
        for (struct node *node = &redis->main; node != NULL; node = node->next)
            node->serves = false;
        fine = true;
        for (size_t i = 0; i < item->count && fine; i++)
            fine = read_range(redis, walk);
    } else if (error == NULL && item->kind == RESP_ERROR && !fine) {
        unknown = conn_explain(conn, item);
    }
    redis->mapped = error == NULL && fine;
    list_on_map(redis, error != NULL ? error : fine ? NULL : &unknown);
}

void nodes_map(struct redis *redis)
{
    struct redis_conn *conn = &redis->main.conn;
    if (redis->mapping || redis->mapped || conn->state != CONN_READY)
        return;
    redis->mapping = true;
    redis->map_call.reply = on_map_reply;
    (void)CONN_SEND(conn, &redis->map_call, "CLUSTER", "SLOTS");
}

void nodes_init(struct redis *redis, uint64_t seed)
{
    node_init(redis, &redis->main, seed);
}

void nodes_done(struct redis *redis)
{
    conn_done(&redis->main.conn);
    txn_free(redis->main.txn);
    while (redis->main.next != NULL) {
        struct node *node = redis->main.next;
        redis->main.next = node->next;
        conn_done(&node->conn);
        txn_free(node->txn);
        free(node);
    }
}
