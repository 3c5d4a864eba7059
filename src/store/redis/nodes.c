/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers and who serves what. A plain Redis is one node; of a cluster, the first is only asked
 * where the others are. A node that says MOVED or ASK did not run the command, so it may go where
 * it was sent to. A node that was lost is forgotten by the map: whoever comes next asks again.
 */
#include "store/redis/redis_inside.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 200, REDIRECTS_MAX = 5 };

/* ---- queues ---- */

void node_queue(struct node *node, struct job *job)
{
    job->node = node;
    job->link = NULL;
    job->next_queued = NULL;
    *node->last_queued = job;
    node->last_queued = &job->next_queued;
}

static struct job *take_all(struct node *node)
{
    struct job *job = node->first_queued;
    node->first_queued = NULL;
    node->last_queued = &node->first_queued;
    return job;
}

void nodes_send(struct redis *redis, bool flush)
{
    for (struct node *node = &redis->main; node != NULL; node = node->next) {
        if (node->first_queued != NULL)
            link_want(&node->link);
        struct job *job = node->link.state == LINK_READY ? take_all(node) : NULL;
        while (job != NULL) {
            struct job *next = job->next_queued;
            if (node->deal != NULL)
                node_queue(node, job);
            else
                redis_send(job);
            job = next;
        }
        if (flush && node->link.stream != NULL && node->link.state == LINK_READY)
            stream_flush(node->link.stream);
    }
}

/* ---- coming and going ---- */

static void on_ready(void *owner)
{
    struct node *node = owner;
    struct redis *redis = node->redis;
    if (node == &redis->main && ear_of(redis) == &node->link)
        ear_ready(redis);
}

/* The next try goes to the next host; in a cluster any node will do. */
static void turn_to_next_host(struct redis *redis)
{
    size_t hosts = redis->url.host_count;
    if (redis->url.sentinel[0] != '\0') {
        if (redis->guide.first != NULL) /* that one did not say */
            link_cut(&redis->guide, ANSWER_TROUBLE, "the Sentinel did not answer in time");
        return;
    }
    size_t turn = ++redis->turn % (hosts + redis->node_count);
    const struct node *node = &redis->main;
    for (size_t i = hosts; i <= turn && node->next != NULL; i++)
        node = node->next;
    redis->main.link.host = turn < hosts ? redis->url.hosts[turn] : node->link.host;
}

static void end_all(struct job *job, const struct link_error *error)
{
    while (job != NULL) {
        struct job *next = job->next_queued;
        redis_end(job, NULL, error);
        job = next;
    }
}

/* The connection was refused, and another host did not refuse yet: it is tried at once, with all
 * that waits to be sent. False: all refused, or this was no refusal. */
static bool try_next_host(struct node *node, const struct link_error *error)
{
    struct redis *redis = node->redis;
    size_t hosts = redis->url.sentinel[0] != '\0' ? 1 : redis->url.host_count + redis->node_count;
    redis->refusals = error->refused ? redis->refusals + 1 : 0;
    if (redis->refusals == 0 || redis->refusals >= hosts) {
        redis->refusals = 0;
        return false;
    }
    turn_to_next_host(redis);
    node->link.rests_until_ms = INT64_MIN;
    link_want(&node->link);
    return true;
}

/* What was on its way has been told; what waits to be sent will not be, so its askers may go. */
static void on_lost(void *owner, const struct link_error *error)
{
    struct node *node = owner;
    struct redis *redis = node->redis;
    struct link_error of_node = *error;
    bool first = node == &redis->main;
    if (first && try_next_host(node, error))
        return;
    of_node.refused = first && error->refused; /* another node may be its successor */
    for (size_t i = 0; i < REDIS_SLOTS; i++)
        redis->slots[i] = redis->slots[i] == node->index ? 0 : redis->slots[i];
    redis->mapped = false;
    node->ahead_ms = 0;
    end_all(take_all(node), &of_node);
    if (!first)
        return;
    struct job *fresh = redis->first_queued;
    redis->first_queued = NULL;
    redis->last_queued = &redis->first_queued;
    if (ear_of(redis) == &node->link)
        ear_lost(redis, error);
    turn_to_next_host(redis);
    end_all(fresh, error);
}

static bool on_pushed(void *owner, struct resp_walk *walk, size_t count)
{
    struct node *node = owner;
    return ear_pushed(node->redis, &node->link, walk, count);
}

static void init_node(struct redis *redis, struct node *node, uint64_t seed)
{
    struct link_site site = {
        .ready = on_ready, .lost = on_lost, .pushed = on_pushed, .owner = node};
    bool locates = node == &redis->main && redis->url.sentinel[0] != '\0';
    site.locate = locates ? sentinel_locate : NULL;
    node->redis = redis;
    node->last_queued = &node->first_queued;
    link_init(&node->link, redis->net, &redis->url, &redis->credentials, &site, seed);
    node->link.patience_ms = redis->patience_ms;
}

/* ---- who is where ---- */

struct node *node_for(struct redis *redis, unsigned slot)
{
    struct node *node = &redis->main;
    while (node != NULL && node->index != redis->slots[slot])
        node = node->next;
    return node != NULL ? node : &redis->main;
}

static bool is_at(const struct node *node, const char *host, size_t length, uint16_t port)
{
    const struct redis_host *known = &node->link.host;
    return known->port == port && strlen(known->name) == length &&
           memcmp(known->name, host, length) == 0;
}

/* Made when it is new; NULL when there are too many. */
static struct node *node_at(struct redis *redis, const char *host, size_t length, uint16_t port)
{
    struct node **at = &redis->main.next;
    if (is_at(&redis->main, host, length, port))
        return &redis->main;
    for (; *at != NULL; at = &(*at)->next)
        if (is_at(*at, host, length, port))
            return *at;
    bool is_host = length > 0 && length <= REDIS_HOST_MAX && text_is_clean(host, length);
    struct node *node = redis->node_count < NODES_MAX && is_host ? calloc(1, sizeof *node) : NULL;
    if (node == NULL)
        return NULL;
    init_node(redis, node, random_next(&redis->random));
    memcpy(node->link.host.name, host, length);
    node->link.host.name[length] = '\0';
    node->link.host.port = port;
    node->index = (uint8_t)++redis->node_count;
    *at = node;
    return node;
}

static bool read_number(const char **at, const char *end, unsigned most, unsigned *out)
{
    unsigned number = 0;
    const char *from = *at;
    for (; *at < end && **at >= '0' && **at <= '9' && number <= most; (*at)++)
        number = number * 10 + (unsigned)(**at - '0');
    *out = number;
    return *at > from && number <= most;
}

/* "MOVED 3999 127.0.0.1:6381", and ASK; without a host it is the one that said so. */
bool node_redirects(struct job *job, const struct resp_item *item)
{
    struct redis *redis = job->redis;
    const char *at = item->text, *end = item->text + item->length;
    bool moved = resp_begins(item, "MOVED "), ask = resp_begins(item, "ASK ");
    unsigned slot = 0, port = 0;
    if (!moved && !ask)
        return false;
    at += moved ? 6 : 4;
    if (!read_number(&at, end, REDIS_SLOTS - 1, &slot) || at == end || *at++ != ' ')
        return false;
    const char *colon = memrchr(at, ':', (size_t)(end - at));
    const char *digits = colon != NULL ? colon + 1 : end;
    if (!read_number(&digits, end, UINT16_MAX, &port) || job->redirects++ == REDIRECTS_MAX)
        return false;
    const char *same = job->link->host.name;
    struct node *node = colon > at ? node_at(redis, at, (size_t)(colon - at), (uint16_t)port)
                                   : node_at(redis, same, strlen(same), (uint16_t)port);
    if (node == NULL)
        return false;
    job->asking = ask;
    if (moved) {
        redis->slots[slot] = node->index;
        redis->mapped = false;
        nodes_map(redis);
    }
    node_queue(node, job);
    return true;
}

/* ---- the map ---- */

/* One range: its slots, then its master, then replicas. False when it makes no sense. */
static bool read_range(struct redis *redis, struct resp_walk *walk)
{
    struct resp_item range, from, to, master, host, port;
    if (!resp_next(walk, &range) || range.kind != RESP_LIST || range.count < 3 ||
        !resp_next(walk, &from) || !resp_next(walk, &to) || !resp_next(walk, &master) ||
        master.kind != RESP_LIST || master.count < 2 || !resp_next(walk, &host) ||
        !resp_next(walk, &port) || port.number < 1 || port.number > UINT16_MAX || from.number < 0 ||
        to.number >= REDIS_SLOTS)
        return false;
    const char *same = redis->main.link.host.name;
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

static void on_map(struct link_call *call, const struct resp_item *item, struct resp_walk *walk,
                   const struct link_error *error)
{
    struct redis *redis = (struct redis *)(void *)((char *)call - offsetof(struct redis, map_call));
    struct link *link = &redis->main.link;
    struct link_error unknown = {.result = ANSWER_TROUBLE, .why = "the map makes no sense"};
    bool fine = !link->clustered; /* who is no cluster says so */
    redis->mapping = false;
    if (error == NULL && item->kind == RESP_LIST) {
        for (struct node *node = &redis->main; node != NULL; node = node->next)
            node->serves = false;
        fine = true;
        for (size_t i = 0; i < item->count && fine; i++)
            fine = read_range(redis, walk);
    } else if (error == NULL && item->kind == RESP_ERROR && !fine) {
        unknown = link_explain(link, item);
    }
    redis->mapped = error == NULL && fine;
    list_mapped(redis, error != NULL ? error : fine ? NULL : &unknown);
}

void nodes_map(struct redis *redis)
{
    struct link *link = &redis->main.link;
    if (redis->mapping || redis->mapped || link->state != LINK_READY)
        return;
    redis->mapping = true;
    redis->map_call.reply = on_map;
    link_begin(link, &redis->map_call, 2);
    link_say(link, "CLUSTER");
    link_say(link, "SLOTS");
}

void nodes_init(struct redis *redis, uint64_t seed)
{
    init_node(redis, &redis->main, seed);
}

void nodes_done(struct redis *redis)
{
    link_done(&redis->main.link);
    deal_free(redis->main.deal);
    while (redis->main.next != NULL) {
        struct node *node = redis->main.next;
        redis->main.next = node->next;
        link_done(&node->link);
        deal_free(node->deal);
        free(node);
    }
}
