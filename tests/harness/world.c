/* SPDX-License-Identifier: Apache-2.0 */
/* Time, the event heap and the network of world.h. The actors' steps are in actor.c. */
#include "inside.h"

#include "core/mutant.h"

#include <stdlib.h>
#include <string.h>

enum { HEAP_FIRST = 256, STEPS_AT_ONCE = 10000 };

struct heap {
    size_t count, size;
    uint64_t sequence;
    struct happening *items;
};

bool chance(struct world *world, unsigned in_ten_thousand)
{
    return in_ten_thousand > 0 && random_below(&world->random, 10000) < in_ten_thousand;
}

void world_say(struct world *world, const char *who, const char *what)
{
    if (world->trace != NULL)
        (void)fprintf(world->trace, "%7lld %-5s %s\n", (long long)world->now_ms, who, what);
}

static bool before(const struct happening *a, const struct happening *b)
{
    return a->at_ms < b->at_ms || (a->at_ms == b->at_ms && a->sequence < b->sequence);
}

void world_schedule(struct world *world, struct happening happening)
{
    struct heap *heap = world->heap;
    if (heap->count == heap->size) {
        heap->size *= 2;
        heap->items = realloc(heap->items, heap->size * sizeof *heap->items);
        if (heap->items == NULL)
            abort();
    }
    happening.sequence = heap->sequence++;
    size_t at = heap->count++;
    for (; at > 0 && before(&happening, &heap->items[(at - 1) / 2]); at = (at - 1) / 2)
        heap->items[at] = heap->items[(at - 1) / 2];
    heap->items[at] = happening;
}

static struct happening take_first(struct heap *heap)
{
    struct happening first = heap->items[0], last = heap->items[--heap->count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && before(&heap->items[child + 1], &heap->items[child]))
            child++;
        if (!before(&heap->items[child], &last))
            break;
        heap->items[at] = heap->items[child];
        at = child;
    }
    heap->items[at] = last;
    return first;
}

static int64_t store_now(void *owner)
{
    return ((const struct world *)owner)->now_ms;
}

void world_open_store(struct world *world, const char *url)
{
    struct store_site site = {.clock = {.now_ms = store_now, .owner = world}};
    struct text no_text = {0};
    if (!memory_driver.open(world->store, url, &site, &no_text))
        abort();
}

void world_init(struct world *world, uint64_t seed, struct counts *counts)
{
    memset(world, 0, offsetof(struct world, record));
    world->random.state = seed;
    world->counts = counts;
    world->next_number = 1;
    world->next_session = 1;
    world->heap = calloc(1, sizeof *world->heap);
    world->store = malloc(memory_driver.state_size);
    if (world->heap == NULL || world->store == NULL)
        abort();
    world->heap->size = HEAP_FIRST;
    world->heap->items = malloc(HEAP_FIRST * sizeof *world->heap->items);
    if (world->heap->items == NULL)
        abort();
    world_open_store(world, "memory:");
}

static void drop_message(struct world *world, struct message *message)
{
    if (message != NULL && message->counted)
        world->acquisitions[message->number].writes_in_flight--;
    free(message);
}

void world_done(struct world *world)
{
    while (world->heap->count > 0)
        free(world->heap->items[--world->heap->count].message);
    for (size_t i = 0; i < world->actor_count; i++) {
        runner_free(&world->actors[i]);
        free(world->actors[i].bytes);
    }
    memory_driver.close(world->store);
    free(world->store);
    free(world->heap->items);
    free(world->heap);
}

bool world_idle(const struct world *world)
{
    return world->heap->count == 0;
}

void world_plan(struct world *world, struct actor *actor, int64_t at_ms, int what, uint64_t value)
{
    world_schedule(world, (struct happening){.at_ms = at_ms,
                                             .kind = HAPPENS_SCRIPT,
                                             .actor = actor->index,
                                             .what = what,
                                             .value = value});
}

static struct message *copy_message(struct world *world, const struct message *message)
{
    struct message *copy = malloc(sizeof *copy + message->length);
    if (copy == NULL)
        abort();
    memcpy(copy, message, sizeof *copy + message->length);
    if (copy->counted)
        world->acquisitions[copy->number].writes_in_flight++;
    world->counts->doubled++;
    return copy;
}

static void transmit_one(struct world *world, struct message *message, enum happening_kind kind,
                         int64_t held_ms)
{
    const struct faults *faults = &world->faults;
    int64_t delay =
        faults->least_ms + (int64_t)random_below(&world->random, (uint64_t)faults->latency_ms + 1);
    if (chance(world, faults->slow)) {
        delay += (int64_t)random_below(&world->random, (uint64_t)faults->slow_ms + 1);
        world->counts->slow++;
    }
    world_schedule(world, (struct happening){.at_ms = world->now_ms + delay + held_ms,
                                             .kind = kind,
                                             .actor = message->actor,
                                             .message = message});
}

/* What a story wants to happen to this message; taken once. */
static struct mischief take_mischief(struct actor *actor, enum happening_kind kind)
{
    struct mischief *all = &actor->mischief;
    struct mischief now = {0};
    if (kind == HAPPENS_REQUEST) {
        now = (struct mischief){.lose_request = all->lose_request,
                                .double_request = all->double_request,
                                .hold_request_ms = all->hold_request_ms};
        all->lose_request = all->double_request = false;
        all->hold_request_ms = 0;
    } else if (kind == HAPPENS_ANSWER) {
        now = (struct mischief){.lose_answer = all->lose_answer,
                                .double_answer = all->double_answer,
                                .hold_answer_ms = all->hold_answer_ms};
        all->lose_answer = all->double_answer = false;
        all->hold_answer_ms = 0;
    } else {
        now.lose_notices = all->lose_notices;
        now.hold_notice_ms = all->hold_notice_ms;
        all->hold_notice_ms = 0;
    }
    return now;
}

/* Sends a message, perhaps twice, perhaps never; ownership passes on. */
void world_transmit(struct world *world, struct message *message, enum happening_kind kind,
                    unsigned lose, uint64_t *lost)
{
    struct mischief now = take_mischief(&world->actors[message->actor], kind);
    bool twice = chance(world, world->faults.doubled);
    if (now.lose_request || now.lose_answer || now.lose_notices || chance(world, lose)) {
        (*lost)++;
        drop_message(world, message);
        return;
    }
    if (twice || now.double_request || now.double_answer)
        transmit_one(world, copy_message(world, message), kind, /* held_ms= */ 0);
    transmit_one(world, message, kind,
                 now.hold_request_ms + now.hold_answer_ms + now.hold_notice_ms);
}

/* A paused process hears and does nothing; it all happens when it wakes up. */
static bool put_off(struct world *world, struct happening *happening)
{
    const struct actor *actor = &world->actors[happening->actor];
    bool to_actor = happening->kind != HAPPENS_REQUEST && happening->kind != HAPPENS_GUARDED;
    bool wakes = happening->kind == HAPPENS_SCRIPT && happening->what < 0;
    if (!actor->paused || !to_actor || wakes)
        return false;
    happening->at_ms = actor->resumes_at_ms;
    world_schedule(world, *happening);
    return true;
}

static void happen(struct world *world, struct happening *happening)
{
    struct actor *actor = &world->actors[happening->actor];
    struct message *message = happening->message;
    switch (happening->kind) {
    case HAPPENS_REQUEST:
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): each message is in the heap once */
        store_receives(world, message);
        break;
    case HAPPENS_ANSWER:
    case HAPPENS_NOTICE:
        actor_receives(world, actor, message, happening->kind);
        break;
    case HAPPENS_TIMER:
        if (happening->value == actor->timer)
            actor_wake(world, actor);
        break;
    case HAPPENS_SCRIPT:
        world->event(world, actor, happening->what, happening->value);
        break;
    case HAPPENS_GUARDED:
        guard_receives(world, actor, happening);
        break;
    }
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): each message is in the heap once */
    drop_message(world, message);
}

void world_run(struct world *world, int64_t until_ms)
{
    struct heap *heap = world->heap;
    while (heap->count > 0 && heap->items[0].at_ms <= until_ms && world->violation[0] == '\0') {
        struct happening happening = take_first(heap);
        if (happening.at_ms == world->now_ms && ++world->steps_here > STEPS_AT_ONCE)
            oracle_fail(world, &world->actors[happening.actor], "liveness",
                        "goes round in circles");
        if (happening.at_ms != world->now_ms)
            world->steps_here = 0;
        world->now_ms = happening.at_ms;
        world->counts->steps++;
        if (!put_off(world, &happening))
            happen(world, &happening);
    }
    if (world->violation[0] == '\0' && world->now_ms < until_ms && heap->count > 0)
        world->now_ms = until_ms;
}
