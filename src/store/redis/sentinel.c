/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Behind Sentinel: before every connection to the master, a Sentinel is asked who that is; after
 * every loss anew, and another one. A master that turns out to be a replica by now is left again
 * (link.c looks at its role). So whoever holds while the master changes is told trouble first, and
 * finds in the new one what had been replicated to it: no more is promised.
 */
#include "store/redis/redis_inside.h"

#include <stdlib.h>
#include <string.h>

/* This one does not help: the next one is asked, until all were. */
static void give_up(struct redis *redis, const char *why)
{
    redis->guide.host = redis->url.hosts[++redis->turn % redis->url.host_count];
    if (redis->main.link.state != LINK_OPENING || redis->main.link.stream != NULL)
        return;
    if (redis->asked++ < redis->url.host_count && redis->guide.state == LINK_RESTING) {
        redis->guide.rests_until_ms = INT64_MIN;
        link_want(&redis->guide);
    } else {
        redis->main.link.refused = redis->guide_refusals >= redis->url.host_count;
        link_cut(&redis->main.link, ANSWER_TROUBLE, why);
    }
}

static void on_told(struct link_call *call, const struct resp_item *item, struct resp_walk *walk,
                    const struct link_error *error)
{
    struct redis *redis = (struct redis *)(void *)((char *)call - offsetof(struct redis, guiding));
    struct resp_item host, port;
    char digits[8] = "";
    if (error != NULL || redis->main.link.state != LINK_OPENING || redis->main.link.stream != NULL)
        return; /* the loss is told apart; or nobody waits for it any more */
    if (item->kind != RESP_LIST || item->count != 2 || !resp_next(walk, &host) ||
        !resp_next(walk, &port) || host.kind != RESP_TEXT || host.length == 0 ||
        host.length > REDIS_HOST_MAX || !text_is_clean(host.text, host.length) ||
        port.kind != RESP_TEXT || port.length >= sizeof digits) {
        link_cut(&redis->guide, ANSWER_TROUBLE, "the Sentinel knows no master of that name");
        return;
    }
    memcpy(digits, port.text, port.length);
    unsigned long number = strtoul(digits, NULL, 10);
    if (number < 1 || number > UINT16_MAX)
        link_cut(&redis->guide, ANSWER_TROUBLE, "the Sentinel says a port that is none");
    else
        link_open_at(&redis->main.link, host.text, host.length, (uint16_t)number);
}

static void ask(struct redis *redis)
{
    link_begin(&redis->guide, &redis->guiding, 3);
    link_say(&redis->guide, "SENTINEL");
    link_say(&redis->guide, "get-master-addr-by-name");
    link_say(&redis->guide, redis->url.sentinel);
}

static void on_ready(void *owner)
{
    ask(owner);
}

static void on_lost(void *owner, const struct link_error *error)
{
    struct redis *redis = owner;
    redis->guide_refusals += error->refused ? 1 : 0;
    give_up(redis, error->why);
}

static bool on_pushed(void *owner, struct resp_walk *walk, size_t count)
{
    (void)owner, (void)walk, (void)count;
    return true;
}

void sentinel_locate(void *owner)
{
    struct node *node = owner;
    struct redis *redis = node->redis;
    redis->asked = 1;
    redis->guide_refusals = 0;
    if (redis->guide.state == LINK_READY)
        ask(redis);
    else
        link_want(&redis->guide);
}

void sentinel_init(struct redis *redis, uint64_t seed)
{
    struct link_site site = {
        .ready = on_ready, .lost = on_lost, .pushed = on_pushed, .owner = redis};
    link_init(&redis->guide, redis->net, &redis->url, NULL, &site, ~seed);
    redis->guide.patience_ms = redis->patience_ms;
    redis->guiding.reply = on_told;
}

void sentinel_done(struct redis *redis)
{
    link_done(&redis->guide);
}
