/* SPDX-License-Identifier: Apache-2.0 */
/* The checks at the end of a simulated seed; see script.h. */
#include "script.h"

#include "oracle.h"

#include <string.h>

static void final_read(void *caller, const struct store_reply *reply)
{
    *(bool *)caller = reply->present;
}

/* Acquires the key and releases it; false if it was not granted. */
static bool take_once(struct world *world, struct actor *actor, size_t key, int64_t pace,
                      int64_t ttl_ms, uint32_t limit)
{
    uint64_t grants = world->counts->grants;
    actor->key = key;
    memset(&actor->options.request, 0, sizeof actor->options.request);
    actor->options.request.ttl_ms = ttl_ms;
    actor->options.request.waits = true;
    actor->options.request.limit = limit;
    actor->options.request.mode = limit > 0 ? MODE_SLOT : MODE_EXCLUSIVE;
    actor->options.wait_ms = WAIT_WITHOUT_LIMIT;
    actor->options.cooldown_ms = 0;
    actor_start(world, actor);
    world_run(world, world->now_ms + 100000 * pace);
    return !actor->busy && world->counts->grants > grants;
}

/*
 * At the end every actor has finished, a newcomer is granted every key, and after a few newcomers
 * no record is left: each removes some dead waiters.
 */
void script_check_end(struct world *world, int64_t pace, int64_t ttl_ms,
                      const uint32_t limit[KEYS_MAX])
{
    enum { TRIES = 20, PAUSE_MS = 2000 };
    struct actor *last = &world->actors[world->actor_count - 1];
    for (size_t i = 0; i < world->actor_count; i++)
        if (world->actors[i].busy)
            oracle_fail(world, &world->actors[i], "liveness", "still at it long after the faults");
    if (world->rules.names_collide) /* one key excludes the other as long as its record exists */
        return;
    if (!last->alive)
        actor_revive(world, last);
    for (size_t key = 0; key < world->key_count && world->violation[0] == '\0'; key++) {
        bool granted = false, present = true;
        for (int i = 0; i < TRIES && present && world->violation[0] == '\0'; i++) {
            world->now_ms += PAUSE_MS * pace;
            granted = take_once(world, last, key, pace, ttl_ms, limit[key]) || granted;
            struct store_request look = {.verb = VERB_STORE_READ, .key = world->keys[key].key};
            memory_driver.submit(world->store, &look, final_read, &present);
        }
        if (!granted)
            oracle_fail(world, last, "liveness", "a free key is not granted");
        if (present)
            oracle_fail(world, last, "free keys", "a record nobody needs is left");
    }
}
