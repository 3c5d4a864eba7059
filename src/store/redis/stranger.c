/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys that another program holds and that we wait for. Such a program tells nobody when it is
 * done, so whoever is first in line looks every 50 to 200 ms, and only while that is so. When the
 * key is free of strangers, or our place is not the first any more, the core is woken and decides.
 */
#include "store/redis/redis_inside.h"

#include "io/host.h"

#include <stdlib.h>
#include <string.h>

enum { LOOK_LEAST_MS = 50, LOOK_SPREAD_MS = 150, STRANGERS_MAX = 1024 };

static void forget(struct stranger *stranger)
{
    struct stranger **at = &stranger->redis->strangers;
    while (*at != stranger)
        at = &(*at)->next;
    *at = stranger->next;
    stranger->redis->stranger_count--;
    net_call_at(stranger->redis->net, &stranger->look, NET_NEVER);
    free(stranger);
}

static void on_look(void *caller, const char *key, const struct seen *seen,
                    const struct link_error *error)
{
    struct stranger *stranger = caller;
    struct redis *redis = stranger->redis;
    forget(stranger);
    if (error == NULL && seen->strange) { /* notes it anew while our place is the first */
        struct store_answer answer;
        seen_answer(redis, NULL, key, seen, &answer);
    } else if (redis->site.notice != NULL) {
        redis->site.notice(redis->site.owner, key, /* stands= */ NULL);
    }
}

static void on_due(void *owner)
{
    struct stranger *stranger = owner;
    if (!redis_look(stranger->redis, stranger->key, on_look, stranger))
        forget(stranger); /* the core's slow look is left */
}

void stranger_note(struct redis *redis, const char *key)
{
    struct stranger *stranger = redis->strangers;
    while (stranger != NULL && strcmp(stranger->key, key) != 0)
        stranger = stranger->next;
    if (stranger != NULL || redis->stranger_count == STRANGERS_MAX)
        return;
    stranger = calloc(1, sizeof *stranger);
    if (stranger == NULL)
        return; /* the core's slow look is left */
    stranger->redis = redis;
    text_copy(stranger->key, sizeof stranger->key, key);
    stranger->look = (struct net_timer){.at_ms = NET_NEVER, .due = on_due, .owner = stranger};
    stranger->next = redis->strangers;
    redis->strangers = stranger;
    redis->stranger_count++;
    net_call_at(redis->net, &stranger->look,
                host_boot_ms() + LOOK_LEAST_MS +
                    (int64_t)random_below(&redis->random, LOOK_SPREAD_MS + 1));
}

void stranger_done(struct redis *redis)
{
    struct stranger *next;
    for (struct stranger *stranger = redis->strangers; stranger != NULL; stranger = next) {
        next = stranger->next;
        net_call_at(redis->net, &stranger->look, NET_NEVER);
        free(stranger);
    }
}
