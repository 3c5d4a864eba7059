/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Polls keys that another program holds and that we wait for. Such a program sends no notification,
 * so our waiter polls every 50 to 200 ms while it is the first. When the foreign lock is gone, or
 * our waiter is no longer the first, the core is notified. Must not decide anything itself.
 */
#include "store/redis/redis_internal.h"

#include "process/host.h"

#include <stdlib.h>
#include <string.h>

enum { POLL_MIN_MS = 50, POLL_JITTER_MS = 150, FOREIGN_LOCKS_MAX = 1024 };

static void foreign_free(struct foreign_lock *foreign_lock)
{
    poller_call_at(foreign_lock->redis->poller, &foreign_lock->poll, POLLER_NEVER);
    free(foreign_lock);
}

static void foreign_remove(struct foreign_lock *foreign_lock)
{
    list_remove(&foreign_lock->redis->foreign_locks, &foreign_lock->node);
    foreign_lock->redis->foreign_count--;
    foreign_free(foreign_lock);
}

static void on_foreign_query(void *caller, const char *key, const struct snapshot *snapshot,
                             const struct conn_error *error)
{
    struct foreign_lock *foreign_lock = caller;
    struct redis *redis = foreign_lock->redis;
    foreign_remove(foreign_lock);
    if (error == NULL && snapshot->foreign) { /* registers it again while our waiter is the first */
        struct store_reply reply;
        snapshot_reply(redis, NULL, key, snapshot, &reply);
    } else if (redis->callbacks.notice != NULL) {
        redis->callbacks.notice(redis->callbacks.owner, key, /* current= */ NULL);
    }
}

static void on_foreign_due(void *owner)
{
    struct foreign_lock *foreign_lock = owner;
    if (!redis_query(foreign_lock->redis, foreign_lock->key, on_foreign_query, foreign_lock))
        foreign_remove(foreign_lock); /* the core's slow poll remains */
}

void foreign_poll(struct redis *redis, const char *key)
{
    for (struct list_node *node = redis->foreign_locks.first; node != NULL; node = node->next)
        if (strcmp(LIST_ENTRY(node, struct foreign_lock, node)->key, key) == 0)
            return;
    struct foreign_lock *foreign_lock =
        redis->foreign_count < FOREIGN_LOCKS_MAX ? calloc(1, sizeof *foreign_lock) : NULL;
    if (foreign_lock == NULL)
        return; /* the core's slow poll remains */
    foreign_lock->redis = redis;
    text_copy(foreign_lock->key, sizeof foreign_lock->key, key);
    foreign_lock->poll =
        (struct poller_timer){.at_ms = POLLER_NEVER, .due = on_foreign_due, .owner = foreign_lock};
    list_prepend(&redis->foreign_locks, &foreign_lock->node);
    redis->foreign_count++;
    poller_call_at(redis->poller, &foreign_lock->poll,
                   host_boot_ms() + POLL_MIN_MS +
                       (int64_t)random_below(&redis->random, POLL_JITTER_MS + 1));
}

void foreign_done(struct redis *redis)
{
    for (struct list_node *node; (node = list_pop(&redis->foreign_locks)) != NULL;)
        foreign_free(LIST_ENTRY(node, struct foreign_lock, node));
}
