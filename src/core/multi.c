/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See multi.h.
 *
 *   ACQUIRING ─ all held ───► HELD ──── release ────► RELEASING ── all done ──► ENDED
 *     │                          │                         ▲
 *     │                          └─ any lost ─► LOST ──────┤ stopped
 *     └── one refused or lost, or the caller gives up ─────┘
 */
#include "core/multi.h"

#include "base/check.h"

#include <string.h>

bool multi_sort(const char **keys, size_t count)
{
    if (count == 0 || count > MULTI_MAX)
        return false;
    for (size_t i = 1; i < count; i++) {
        const char *key = keys[i];
        size_t at = i;
        for (; at > 0 && strcmp(keys[at - 1], key) > 0; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
    for (size_t i = 1; i < count; i++)
        if (strcmp(keys[i - 1], keys[i]) == 0)
            return false;
    return true;
}

void multi_init(struct multi *multi, size_t count)
{
    ASSERT(count > 0 && count <= MULTI_MAX);
    *multi = (struct multi){.state = MULTI_ACQUIRING, .count = count};
}

struct multi_output multi_start(struct multi *multi)
{
    ASSERT(multi->state == MULTI_ACQUIRING && multi->at == 0);
    return (struct multi_output){.act = DO_START, .key = 0};
}

/* Releases the keys below `end`, the last one first. */
static struct multi_output multi_give_back(struct multi *multi, size_t end)
{
    multi->state = end == 0 ? MULTI_ENDED : MULTI_RELEASING;
    if (end == 0)
        return (struct multi_output){.notify = NOTIFY_ENDED, .outcome = multi->outcome};
    multi->at = end - 1;
    return (struct multi_output){.act = DO_CANCEL, .key = end - 1, .quarterings = multi->failures};
}

static struct multi_output multi_acquired(struct multi *multi)
{
    multi->at++;
    if (multi->at < multi->count)
        return (struct multi_output){.act = DO_START, .key = multi->at};
    multi->state = MULTI_HELD;
    return (struct multi_output){.notify = NOTIFY_HELD};
}

/* The loss of one key loses all: the work needs all of them. */
static struct multi_output multi_lost(struct multi *multi)
{
    multi->outcome = OUTCOME_LOST;
    if (multi->state == MULTI_ACQUIRING)
        return multi_give_back(multi, multi->at + 1);
    multi->state = MULTI_LOST;
    return (struct multi_output){.notify = NOTIFY_LOST};
}

struct multi_output multi_notify(struct multi *multi, size_t key, enum lease_notify notify,
                                 enum outcome outcome)
{
    ASSERT(key < multi->count);
    bool current = key == multi->at;
    if (notify == NOTIFY_HELD && multi->state == MULTI_ACQUIRING && current)
        return multi_acquired(multi);
    if (notify == NOTIFY_LOST && (multi->state == MULTI_ACQUIRING || multi->state == MULTI_HELD))
        return multi_lost(multi);
    bool ends = multi->state == MULTI_ACQUIRING || multi->state == MULTI_RELEASING;
    if (notify == NOTIFY_ENDED && ends && current) {
        bool failed = outcome == OUTCOME_UNAVAILABLE || outcome == OUTCOME_LOST;
        if (multi->outcome == OUTCOME_OK)
            multi->outcome = outcome;
        multi->failures = failed ? multi->failures + 1 : 0;
        return multi_give_back(multi, key);
    }
    return (struct multi_output){.act = DO_NOTHING};
}

struct multi_output multi_release(struct multi *multi)
{
    ASSERT(multi->state != MULTI_RELEASING && multi->state != MULTI_ENDED);
    bool taking = multi->state == MULTI_ACQUIRING;
    return multi_give_back(multi, taking ? multi->at + 1 : multi->count);
}
