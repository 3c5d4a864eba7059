/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle's part about ids and watermarks (rules 6 and 7 of docs/guarantees.md): an id that was
 * done is not new again before its window is over, nobody is told that it did what another did, and
 * no watermark goes back or past an event that nobody handled. It keeps its own books.
 */
#include "inside.h"

#include <stdlib.h>
#include <string.h>

/* May the id be new again? Its time has passed, and the watermark that it waits for, too. */
static bool window_is_over(const struct world *world, const struct key_truth *key)
{
    bool passed = key->until < 0 || world->watermark > key->until;
    return key->keep_ms == 0 || (world->now_ms >= key->done_ms + key->keep_ms && passed);
}

static bool claims(const struct record *after, const struct change *change)
{
    for (size_t i = 0; i < after->grant_count; i++)
        if (after->grants[i].granted.revision == change->revision)
            return true;
    return false;
}

static void check_id(struct world *world, const struct change *change, struct key_truth *key)
{
    const struct record *after = &world->after;
    const struct done *done = &after->once.done;
    bool is_done =
        after->cooling.length_ms > 0 && after->cooling.since.revision == change->revision;
    if ((is_done || claims(after, change)) && !window_is_over(world, key))
        oracle_fail(world, change->writer, "rule 6", "an id that was done is new again");
    world->counts->claims += claims(after, change) ? 1 : 0;
    if (!is_done)
        return;
    world->counts->deeds++;
    world->acquisitions[oracle_number(world, done->request)].did = true;
    key->done_ms = world->now_ms;
    key->keep_ms = after->cooling.length_ms;
    key->until = done->until[0] != '\0' ? strtoll(done->until, NULL, 10) : -1;
}

static void check_watermark(struct world *world, const struct change *change)
{
    int64_t value = strtoll(world->after.watermark.value, NULL, 10);
    if (value < world->watermark && change->verb != VERB_SET)
        oracle_fail(world, change->writer, "rule 7", "a watermark went back");
    world->watermark = value;
    world->counts->advances++;
    if (world->unhandled != NULL && world->unhandled(world, value))
        oracle_fail(world, change->writer, "rule 7", "an event before the watermark is unhandled");
}

void oracle_once_changed(struct world *world, const struct change *change, struct key_truth *key)
{
    if (change->verb == VERB_CLEAR)
        key->keep_ms = 0;
    if (change->revision != 0 && world->after.kind == KIND_ONCE)
        check_id(world, change, key);
    if (change->revision != 0 && world->after.kind == KIND_WATERMARK)
        check_watermark(world, change);
}

void oracle_once_told(struct world *world, const struct actor *actor)
{
    const struct request *request = &actor->options.request;
    bool finished =
        request->verb == VERB_ASK && request->kind == KIND_ONCE && actor->options.cooldown_ms > 0;
    if ((finished || request->verb == VERB_MARK) && !world->acquisitions[actor->number].did)
        oracle_fail(world, actor, "rule 6", "told that it did what another did");
}
