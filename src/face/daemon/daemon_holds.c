/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long grants are held, how many are, and which were lost. A grant belongs to its client and
 * the store keeps it, so the library forgets it at once; this table exists for the metrics alone.
 *
 * Its memory is bounded: while more than HOLDS_MAX grants are held, it keeps every second, fourth,
 * … of them, chosen by hash, and each counts for all that it stands for. Nothing decides by it.
 */
#include "face/daemon/daemon_internal.h"

#include "base/check.h"
#include "base/hash.h"
#include "process/host.h"

#include <stdlib.h>
#include <sys/random.h>

/* Stands for 2^share grants. */
struct daemon_hold {
    uint64_t id; /* 0: none */
    int64_t since_ms, ends_ms;
    unsigned share;
};

enum { HOLDS_SHARE_MAX = 32 };
#define HOLDS_MASK ((size_t)HOLDS_SLOTS - 1)

uint64_t hold_key(struct daemon *daemon, const char *prefix, const char *key)
{
    struct daemon_holds *holds = &daemon->holds;
    if (holds->seed == 0 && getrandom(&holds->seed, sizeof holds->seed, GRND_NONBLOCK) < 0)
        holds->seed = 1;
    return hash_bytes(hash_bytes(holds->seed, prefix, strlen(prefix)), key, strlen(key));
}

uint64_t hold_id(uint64_t key, uint64_t token)
{
    uint64_t id = hash_mix(key, token);
    return id != 0 ? id : 1;
}

/* The low bits choose the sample, so the place needs others. */
static size_t hold_place(uint64_t id)
{
    return (size_t)(id >> 32) & HOLDS_MASK;
}

static bool hold_in_share(uint64_t id, unsigned share)
{
    return (id & ((UINT64_C(1) << share) - 1)) == 0;
}

/* The slot of the id, or the free one where it belongs. */
static struct daemon_hold *holds_find(const struct daemon_holds *holds, uint64_t id)
{
    size_t at = hold_place(id);
    while (holds->slots[at].id != 0 && holds->slots[at].id != id)
        at = (at + 1) & HOLDS_MASK;
    return &holds->slots[at];
}

/* NULL: it is not in the table. */
static struct daemon_hold *holds_get(const struct daemon_holds *holds, uint64_t id)
{
    struct daemon_hold *hold = holds->slots != NULL ? holds_find(holds, id) : NULL;
    return hold != NULL && hold->id != 0 ? hold : NULL;
}

/* Moves those behind it that could not be found beyond a free slot. */
static void holds_remove(struct daemon_holds *holds, const struct daemon_hold *hold)
{
    size_t hole = (size_t)(hold - holds->slots);
    for (size_t at = (hole + 1) & HOLDS_MASK; holds->slots[at].id != 0;
         at = (at + 1) & HOLDS_MASK) {
        size_t distance = (at - hold_place(holds->slots[at].id)) & HOLDS_MASK;
        if (distance < ((at - hole) & HOLDS_MASK))
            continue;
        holds->slots[hole] = holds->slots[at];
        hole = at;
    }
    holds->slots[hole] = (struct daemon_hold){0};
    holds->count--;
}

/* From the end: a removal moves only slots behind it, which were seen before. Those that wrap
 * around are seen by the next call. */
static void holds_drop(struct daemon_holds *holds, int64_t now_ms, unsigned share)
{
    for (size_t at = HOLDS_SLOTS; at-- > 0;) {
        struct daemon_hold *hold = &holds->slots[at];
        if (hold->id == 0)
            continue;
        if (hold->ends_ms <= now_ms || !hold_in_share(hold->id, share))
            holds_remove(holds, hold);
        else if (hold->share < share)
            hold->share = share;
    }
}

/* False: there is none. */
static bool holds_make_room(struct daemon_holds *holds, int64_t now_ms)
{
    if (holds->slots == NULL)
        holds->slots = calloc(HOLDS_SLOTS, sizeof *holds->slots);
    if (holds->slots == NULL)
        return false;
    if (holds->share > 0 && holds->count < HOLDS_MAX / 8)
        holds->share--;
    if (holds->count < HOLDS_MAX)
        return true;
    holds_drop(holds, now_ms, holds->share);
    while (holds->count > HOLDS_MAX / 2 && holds->share < HOLDS_SHARE_MAX)
        holds_drop(holds, now_ms, ++holds->share);
    return holds->count < HOLDS_MAX;
}

static void holds_put(struct daemon_holds *holds, uint64_t id, int64_t since_ms, int64_t ends_ms)
{
    struct daemon_hold *known = holds_get(holds, id);
    if (known != NULL) {
        known->ends_ms = ends_ms;
        return;
    }
    if (!hold_in_share(id, holds->share) || !holds_make_room(holds, host_boot_ms()) ||
        !hold_in_share(id, holds->share))
        return;
    *holds_find(holds, id) = (struct daemon_hold){
        .id = id, .since_ms = since_ms, .ends_ms = ends_ms, .share = holds->share};
    holds->count++;
}

void hold_granted(struct daemon *daemon, uint64_t id, int64_t ttl_ms)
{
    int64_t now_ms = host_boot_ms();
    holds_put(&daemon->holds, id, now_ms, now_ms + ttl_ms);
}

/* Observes its time; the number of grants that it stood for, 0 if it is not known. */
static uint64_t hold_end(struct daemon *daemon, uint64_t id)
{
    struct daemon_holds *holds = &daemon->holds;
    struct daemon_hold *hold = holds_get(holds, id);
    if (hold == NULL)
        return 0;
    uint64_t times = UINT64_C(1) << hold->share;
    int64_t us = (host_boot_ms() - hold->since_ms) * 1000;
    holds->times[metrics_bucket(SLOT_HOLD, us)] += times;
    holds->times[METRIC_SUM] += us > 0 ? (uint64_t)us * times : 0;
    holds_remove(holds, hold);
    return times;
}

void hold_renewed(struct daemon *daemon, uint64_t id, const struct lh_report *report,
                  int64_t ttl_ms)
{
    int64_t now_ms = host_boot_ms();
    if (report->outcome == LH_STALE) {
        daemon->holds.lost++;
        (void)hold_end(daemon, id);
    } else if (report->outcome == LH_OK) {
        holds_put(&daemon->holds, id, now_ms - (report->since_ms > 0 ? report->since_ms : 0),
                  now_ms + (report->ends_in_ms > 0 ? report->ends_in_ms : ttl_ms));
    }
}

void hold_released(struct daemon *daemon, uint64_t id, enum lh_outcome outcome)
{
    if (outcome == LH_OK)
        (void)hold_end(daemon, id);
    else if (outcome == LH_STALE)
        daemon->holds.lost += hold_end(daemon, id);
}

void hold_lost(struct daemon *daemon, uint64_t id)
{
    daemon->holds.lost++;
    (void)hold_end(daemon, id);
}

uint64_t holds_count(const struct daemon *daemon)
{
    const struct daemon_holds *holds = &daemon->holds;
    int64_t now_ms = host_boot_ms();
    uint64_t count = 0;
    for (size_t i = 0; i < HOLDS_SLOTS && holds->count > 0; i++)
        if (holds->slots[i].id != 0 && holds->slots[i].ends_ms > now_ms)
            count += UINT64_C(1) << holds->slots[i].share;
    return count;
}

void holds_free(struct daemon *daemon)
{
    free(daemon->holds.slots);
    daemon->holds.slots = NULL;
}
