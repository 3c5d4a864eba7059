/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sentinel: before every connection to the master, a Sentinel is asked for its address; after every
 * loss again, and another Sentinel. A master that has become a replica is disconnected
 * (redis_connection.c checks its role). A holder gets REPLY_TROUBLE during a failover, and then
 * reads what had been replicated to the new master. Must not promise more than that.
 */
#include "store/redis/redis_internal.h"

#include <stdlib.h>
#include <string.h>

/* This Sentinel does not help: asks the next, until all were asked. */
static void sentinel_try_next(struct redis *redis, const char *why)
{
    redis->sentinel.host = redis->url.hosts[++redis->turn % redis->url.host_count];
    if (redis->main.conn.state != CONN_OPENING || redis->main.conn.stream != NULL)
        return;
    if (redis->sentinels_asked++ < redis->url.host_count && redis->sentinel.state == CONN_IDLE) {
        redis->sentinel.retry_at_ms = INT64_MIN;
        conn_open(&redis->sentinel);
    } else {
        redis->main.conn.refused = redis->sentinel_refusals >= redis->url.host_count;
        conn_abort(&redis->main.conn, REPLY_TROUBLE, why);
    }
}

static void on_sentinel_reply(struct conn_call *call, const struct resp_item *item,
                              struct resp_walk *walk, const struct conn_error *error)
{
    struct redis *redis =
        (struct redis *)(void *)((char *)call - offsetof(struct redis, sentinel_call));
    struct resp_item host, port;
    char digits[8] = "";
    if (error != NULL || redis->main.conn.state != CONN_OPENING || redis->main.conn.stream != NULL)
        return; /* the loss is reported separately; or no connection waits for it */
    if (item->kind != RESP_LIST || item->count != 2 || !resp_next(walk, &host) ||
        !resp_next(walk, &port) || host.kind != RESP_TEXT || host.length == 0 ||
        host.length > URL_HOST_MAX || !text_is_clean(host.text, host.length) ||
        port.kind != RESP_TEXT || port.length >= sizeof digits) {
        conn_abort(&redis->sentinel, REPLY_TROUBLE, "the Sentinel has no master of that name");
        return;
    }
    memcpy(digits, port.text, port.length);
    unsigned long number = strtoul(digits, NULL, 10);
    if (number < 1 || number > UINT16_MAX)
        conn_abort(&redis->sentinel, REPLY_TROUBLE, "the Sentinel returned an invalid port");
    else
        conn_open_at(&redis->main.conn, host.text, host.length, (uint16_t)number);
}

static void sentinel_query(void *owner)
{
    struct redis *redis = owner;
    (void)CONN_SEND(&redis->sentinel, &redis->sentinel_call, "SENTINEL", "get-master-addr-by-name",
                    redis->url.sentinel);
}

static void on_sentinel_lost(void *owner, const struct conn_error *error)
{
    struct redis *redis = owner;
    redis->sentinel_refusals += error->refused ? 1 : 0;
    sentinel_try_next(redis, error->why);
}

void sentinel_locate(void *owner)
{
    struct node *node = owner;
    struct redis *redis = node->redis;
    redis->sentinels_asked = 1;
    redis->sentinel_refusals = 0;
    if (redis->sentinel.state == CONN_READY)
        sentinel_query(redis);
    else
        conn_open(&redis->sentinel);
}

void sentinel_init(struct redis *redis, uint64_t seed)
{
    struct conn_callbacks callbacks = {
        .ready = sentinel_query, .lost = on_sentinel_lost, .owner = redis};
    conn_init(&redis->sentinel, redis->poller, &redis->url, NULL, &callbacks, ~seed);
    redis->sentinel.timeout_ms = redis->timeout_ms;
    redis->sentinel_call.reply = on_sentinel_reply;
}
