/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See several.h.
 *
 *   TAKING ──── all held ───► HELD ──── release ────► RETURNING ── all back ──► ENDED
 *     │                          │                         ▲
 *     │                          └─ any lost ─► LOST ──────┤ stopped
 *     └── one refused or lost, or the caller gives up ─────┘
 */
#include "core/several.h"

#include "base/check.h"

#include <string.h>

bool several_sort(const char **keys, size_t count)
{
    if (count == 0 || count > SEVERAL_MAX)
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

void several_init(struct several *several, size_t count)
{
    ASSERT(count > 0 && count <= SEVERAL_MAX);
    *several = (struct several){.state = SEVERAL_TAKING, .count = count};
}

struct several_output several_start(struct several *several)
{
    ASSERT(several->state == SEVERAL_TAKING && several->at == 0);
    return (struct several_output){.act = DO_START, .key = 0};
}

/* Gives back the keys below `end`, the last first. */
static struct several_output give_back(struct several *several, size_t end)
{
    several->state = end == 0 ? SEVERAL_ENDED : SEVERAL_RETURNING;
    if (end == 0)
        return (struct several_output){.told = TOLD_ENDED, .outcome = several->outcome};
    several->at = end - 1;
    return (struct several_output){.act = DO_CANCEL, .key = end - 1};
}

static struct several_output took(struct several *several)
{
    several->at++;
    if (several->at < several->count)
        return (struct several_output){.act = DO_START, .key = several->at};
    several->state = SEVERAL_HELD;
    return (struct several_output){.told = TOLD_HELD};
}

/* One key lost is all lost: the work was for all of them. */
static struct several_output lost(struct several *several)
{
    several->outcome = OUTCOME_LOST;
    if (several->state == SEVERAL_TAKING)
        return give_back(several, several->at + 1);
    several->state = SEVERAL_LOST;
    return (struct several_output){.told = TOLD_LOST};
}

struct several_output several_told(struct several *several, size_t key, enum told told,
                                   enum outcome outcome)
{
    ASSERT(key < several->count);
    bool current = key == several->at;
    if (told == TOLD_HELD && several->state == SEVERAL_TAKING && current)
        return took(several);
    if (told == TOLD_LOST && (several->state == SEVERAL_TAKING || several->state == SEVERAL_HELD))
        return lost(several);
    bool ends = several->state == SEVERAL_TAKING || several->state == SEVERAL_RETURNING;
    if (told == TOLD_ENDED && ends && current) {
        if (several->outcome == OUTCOME_OK)
            several->outcome = outcome;
        return give_back(several, key);
    }
    return (struct several_output){.act = DO_NOTHING};
}

struct several_output several_release(struct several *several)
{
    ASSERT(several->state != SEVERAL_RETURNING && several->state != SEVERAL_ENDED);
    bool taking = several->state == SEVERAL_TAKING;
    return give_back(several, taking ? several->at + 1 : several->count);
}
