/* SPDX-License-Identifier: Apache-2.0 */
/* Time, the event heap and the network of world.h. The actors' steps are in actor.c. */
#include "world_internal.h"

#include "core/mutant.h"

#include <stdlib.h>
#include <string.h>

enum { HEAP_FIRST = 256, STEPS_AT_ONCE = 10000 };

struct heap {
    size_t count, size;
    uint64_t sequence;
    struct world_event *items;
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

static bool before(const struct world_event *a, const struct world_event *b)
{
    return a->at_ms < b->at_ms || (a->at_ms == b->at_ms && a->sequence < b->sequence);
}

void world_schedule(struct world *world, struct world_event world_event)
{
    struct heap *heap = world->heap;
    if (heap->count == heap->size) {
        heap->size *= 2;
        heap->items = realloc(heap->items, heap->size * sizeof *heap->items);
        if (heap->items == NULL)
            abort();
    }
    world_event.sequence = heap->sequence++;
    size_t at = heap->count++;
    for (; at > 0 && before(&world_event, &heap->items[(at - 1) / 2]); at = (at - 1) / 2)
        heap->items[at] = heap->items[(at - 1) / 2];
    heap->items[at] = world_event;
}

static struct world_event take_first(struct heap *heap)
{
    struct world_event first = heap->items[0], last = heap->items[--heap->count];
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
    struct store_callbacks site = {.clock = {.now_ms = store_now, .owner = world}};
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
    world->rules.facts = memory_driver.facts;
    world->judge.late_ms = 0;
    world->judge.sessions = NULL;
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

bool world_by_session(const struct world *world)
{
    return world->rules.facts.judge == JUDGE_SESSION;
}

bool world_idle(const struct world *world)
{
    return world->heap->count == 0;
}

void world_plan(struct world *world, struct actor *actor, int64_t at_ms, int what, uint64_t value)
{
    world_schedule(world, (struct world_event){.at_ms = at_ms,
                                               .kind = WORLD_SCRIPT,
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

static void transmit_one(struct world *world, struct message *message, enum world_event_kind kind,
                         int64_t held_ms)
{
    const struct faults *faults = &world->faults;
    int64_t delay =
        faults->least_ms + (int64_t)random_below(&world->random, (uint64_t)faults->latency_ms + 1);
    if (chance(world, faults->slow)) {
        delay += (int64_t)random_below(&world->random, (uint64_t)faults->slow_ms + 1);
        world->counts->slow++;
    }
    world_schedule(world, (struct world_event){.at_ms = world->now_ms + delay + held_ms,
                                               .kind = kind,
                                               .actor = message->actor,
                                               .message = message});
}

/* The faults that a story requested for this message; used once. */
static struct next_faults take_next_faults(struct actor *actor, enum world_event_kind kind)
{
    struct next_faults *all = &actor->next_faults;
    struct next_faults now = {0};
    if (kind == WORLD_REQUEST) {
        now = (struct next_faults){.lose_request = all->lose_request,
                                   .double_request = all->double_request,
                                   .hold_request_ms = all->hold_request_ms};
        all->lose_request = all->double_request = false;
        all->hold_request_ms = 0;
    } else if (kind == WORLD_REPLY) {
        now = (struct next_faults){.lose_answer = all->lose_answer,
                                   .double_answer = all->double_answer,
                                   .hold_answer_ms = all->hold_answer_ms};
        all->lose_answer = all->double_answer = false;
        all->hold_answer_ms = 0;
    } else if (kind == WORLD_NOTICE) {
        now.lose_notices = all->lose_notices;
        now.hold_notice_ms = all->hold_notice_ms;
        all->hold_notice_ms = 0;
    }
    return now;
}

/* Sends a message, possibly twice or never; takes ownership. */
void world_transmit(struct world *world, struct message *message, enum world_event_kind kind,
                    unsigned lose, uint64_t *lost)
{
    struct next_faults now = take_next_faults(&world->actors[message->actor], kind);
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

/* A paused process receives nothing; its events happen when it resumes. */
static bool put_off(struct world *world, struct world_event *world_event)
{
    const struct actor *actor = &world->actors[world_event->actor];
    bool to_actor = world_event->kind != WORLD_REQUEST && world_event->kind != WORLD_BEAT &&
                    world_event->kind != WORLD_GUARDED;
    bool wakes = world_event->kind == WORLD_SCRIPT && world_event->what < 0;
    if (!actor->paused || !to_actor || wakes)
        return false;
    world_event->at_ms = actor->resumes_at_ms;
    world_schedule(world, *world_event);
    return true;
}

static void dispatch(struct world *world, struct world_event *world_event)
{
    struct actor *actor = &world->actors[world_event->actor];
    struct message *message = world_event->message;
    switch (world_event->kind) {
    case WORLD_REQUEST:
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): each message is in the heap once */
        store_receives(world, message);
        break;
    case WORLD_REPLY:
    case WORLD_NOTICE:
        actor_receives(world, actor, message, world_event->kind);
        break;
    case WORLD_BEAT:
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): each message is in the heap once */
        store_receives_beat(world, message);
        break;
    case WORLD_BEAT_REPLY:
        actor_receives_beat(actor, message);
        break;
    case WORLD_TIMER:
        if (world_event->value == actor->timer)
            actor_wake(world, actor);
        break;
    case WORLD_SCRIPT:
        world->event(world, actor, world_event->what, world_event->value);
        break;
    case WORLD_GUARDED:
        guard_receives(world, actor, world_event);
        break;
    }
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): each message is in the heap once */
    drop_message(world, message);
}

void world_run(struct world *world, int64_t until_ms)
{
    struct heap *heap = world->heap;
    while (heap->count > 0 && heap->items[0].at_ms <= until_ms && world->violation[0] == '\0') {
        struct world_event world_event = take_first(heap);
        if (world_event.at_ms == world->now_ms && ++world->steps_here > STEPS_AT_ONCE)
            oracle_fail(world, &world->actors[world_event.actor], "liveness",
                        "goes round in circles");
        if (world_event.at_ms != world->now_ms)
            world->steps_here = 0;
        world->now_ms = world_event.at_ms;
        world->counts->steps++;
        if (!put_off(world, &world_event))
            dispatch(world, &world_event);
    }
    if (world->violation[0] == '\0' && world->now_ms < until_ms && heap->count > 0)
        world->now_ms = until_ms;
}
