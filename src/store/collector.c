/* SPDX-License-Identifier: Apache-2.0 */
/* See collector.h. */
#include "store/collector.h"

#include "base/text.h"
#include "process/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MINUTE_MS = 60000,
    FIRST_STEPS = 60,  /* a step is the pause between two removals; the first round begins after 60
                          to 180 of them: programs that end sooner make no request for it */
    ROUND_STEPS = 600, /* between two rounds */
    DOUBLED_MAX = 3,   /* a round without removals doubles the next pause, at most this often */
    MARK_FRESH_MS = 10000,
};

/* ---- pace ---- */

static void collector_schedule(struct collector *collector, int64_t pause_ms)
{
    poller_call_at(collector->poller, &collector->due, host_boot_ms() + pause_ms);
}

/* Never below the step, so that no minute exceeds the rate. */
static void collector_schedule_step(struct collector *collector)
{
    uint64_t half_ms = (uint64_t)collector->step_ms / 2;
    collector_schedule(collector,
                       collector->step_ms + (int64_t)random_below(&collector->random, half_ms + 1));
}

/* `why`: "" if the round is complete, or met another collector. */
static void collector_end_round(struct collector *collector, const char *why)
{
    int64_t pause_ms = ROUND_STEPS * collector->step_ms;
    struct collection tally = collector->tally;
    (void)snprintf(tally.why, sizeof tally.why, "%s", why);
    if (tally.removed > 0)
        collector->doubled = 0;
    else if (collector->doubled < DOUBLED_MAX)
        collector->doubled++;
    pause_ms <<= collector->doubled;
    collector->has_page = collector->begun = false;
    collector->tally = (struct collection){0};
    if (collector->ended != NULL)
        collector->ended(collector->user, &tally); /* no other round follows */
    else
        collector_schedule(collector, pause_ms / 2 + (int64_t)random_below(&collector->random,
                                                                           (uint64_t)pause_ms));
}

/* ---- one page ---- */

/* The watermark that a record depends on, if it was read recently; otherwise sets `wanted`. */
static struct stored_record collector_find_watermark(void *owner, const char *key)
{
    struct collector *collector = owner;
    bool known = strcmp(key, collector->mark_key) == 0 &&
                 collector->mark_space == collector->space &&
                 host_boot_ms() - collector->mark_at_ms <= MARK_FRESH_MS;
    if (!known)
        text_copy(collector->wanted, sizeof collector->wanted, key);
    return known && collector->mark != NULL
               ? (struct stored_record){.bytes = collector->mark, .length = strlen(collector->mark)}
               : (struct stored_record){0};
}

static bool collector_is_leftover(struct collector *collector)
{
    struct collector_entry entry = {0};
    collector->wanted[0] = '\0';
    if (!collector->driver->entry(collector->owner, collector->index, &entry))
        return false;
    collector->space = entry.space;
    return expiry_is_leftover(&entry.record, entry.margin_ms, collector_find_watermark, collector,
                              collector->scratch);
}

/* Up to the next entry that needs the driver. */
static void collector_walk_page(struct collector *collector)
{
    for (; collector->index < collector->count; collector->index++) {
        bool leftover = collector_is_leftover(collector);
        if (collector->wanted[0] != '\0') {
            collector->working = true;
            collector->driver->read(collector->owner, collector->wanted);
            return;
        }
        collector->tally.left += leftover ? 1 : 0;
        if (leftover && !collector->count_only) {
            collector->working = true;
            collector->driver->remove(collector->owner, collector->index);
            return;
        }
    }
    collector->has_page = false;
    if (collector->more)
        collector_schedule_step(collector);
    else
        collector_end_round(collector, /* why= */ "");
}

static void collector_on_due(void *owner)
{
    struct collector *collector = owner;
    if (collector->working)
        return;
    if (collector->has_page) {
        collector_walk_page(collector);
        return;
    }
    bool first = !collector->begun;
    collector->working = collector->begun = true;
    collector->driver->list(collector->owner, first);
}

/* ---- replies of the driver ---- */

void collector_on_page(struct collector *collector, size_t count, bool more)
{
    collector->working = false;
    collector->has_page = true;
    collector->more = more;
    collector->index = 0;
    collector->count = count;
    collector_schedule(collector, /* pause_ms= */ 0);
}

void collector_on_removal(struct collector *collector, enum collector_removal removal)
{
    collector->working = false;
    collector->index++;
    collector->tally.removed += removal == COLLECTOR_REMOVED ? 1 : 0;
    collector->tally.taken += removal == COLLECTOR_IN_USE ? 1 : 0;
    if (removal == COLLECTOR_GONE && collector->ended == NULL)
        collector_end_round(collector, /* why= */ ""); /* another collector runs */
    else
        collector_schedule_step(collector);
}

void collector_on_watermark(struct collector *collector, const char *bytes, size_t length)
{
    collector->working = false;
    free(collector->mark);
    collector->mark = bytes != NULL ? strndup(bytes, length) : NULL;
    collector->mark_at_ms = host_boot_ms();
    collector->mark_space = collector->space;
    text_copy(collector->mark_key, sizeof collector->mark_key, collector->wanted);
    collector_schedule(collector, /* pause_ms= */ 0);
}

void collector_on_error(struct collector *collector, const char *why)
{
    collector->working = false;
    collector_end_round(collector, why);
}

/* ---- start and end ---- */

static int64_t step_ms_of(unsigned rate)
{
    return rate > 0 ? (MINUTE_MS + (int64_t)rate - 1) / (int64_t)rate : 0;
}

void collector_init(struct collector *collector, const struct collector_driver *driver, void *owner,
                    struct poller *poller, struct record *scratch, uint64_t seed, unsigned rate)
{
    *collector = (struct collector){.driver = driver,
                                    .owner = owner,
                                    .poller = poller,
                                    .scratch = scratch,
                                    .random = {seed},
                                    .step_ms = step_ms_of(rate)};
    collector->due =
        (struct poller_timer){.at_ms = POLLER_NEVER, .due = collector_on_due, .owner = collector};
    if (rate == 0)
        return;
    uint64_t chance = random_below(&collector->random, 2 * FIRST_STEPS + 1);
    collector_schedule(collector, (FIRST_STEPS + (int64_t)chance) * collector->step_ms);
}

void collector_begin(struct collector *collector, unsigned rate, collector_ended *ended, void *user)
{
    collector->step_ms = step_ms_of(rate);
    collector->count_only = rate == 0;
    collector->ended = ended;
    collector->user = user;
    collector_schedule(collector, /* pause_ms= */ 0);
}

struct collector_blocking {
    struct collection *out;
    bool over;
};

static void collector_on_end(void *user, const struct collection *tally)
{
    struct collector_blocking *blocking = user;
    *blocking->out = *tally;
    blocking->over = true;
}

void collector_run(struct collector *collector, unsigned rate, struct collection *out)
{
    struct collector_blocking blocking = {.out = out};
    collector_begin(collector, rate, collector_on_end, &blocking);
    while (!blocking.over) {
        poller_wait(collector->poller, /* most_ms= */ -1);
        poller_step(collector->poller);
    }
}

void collector_done(struct collector *collector)
{
    poller_call_at(collector->poller, &collector->due, POLLER_NEVER);
    free(collector->mark);
    collector->mark = NULL;
}
