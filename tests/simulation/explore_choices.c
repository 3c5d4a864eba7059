/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The possible next steps of a world: all that the bound still allows and, for the fair run, the
 * one that happens without faults. Changes nothing.
 */
#include "explore.h"

#include "base/check.h"

static uint8_t lives_of(const struct world *world, uint8_t who)
{
    return playing->parts[who].once ? 1 : world->left.lives;
}

static struct choice *choose(struct choice *at, enum choice_kind kind, uint8_t which)
{
    *at = (struct choice){.kind = kind, .which = which};
    return at + 1;
}

/*
 * Any message may arrive next. A reply that never arrives equals a late one, and a lost read equals
 * a lost reply, so only writes and notifications need an explicit loss.
 */
static struct choice *message_choices(const struct world *world, struct choice *at)
{
    for (uint8_t i = 0; i < world->message_count; i++) {
        const struct message *message = &world->messages[i];
        bool writes = message->kind == MESSAGE_REQUEST && message->store_verb != VERB_STORE_READ;
        bool notice = message->kind == MESSAGE_NOTICE;
        at = choose(at, CHOICE_DELIVER, i);
        if (world->left.lost > 0 && (writes || notice))
            at = choose(at, CHOICE_LOSE, i);
        if (world->left.lost > 0 && playing->troubles && !notice)
            at = choose(at, CHOICE_FAIL, i);
        if (world->left.doubled > 0 && writes)
            at = choose(at, CHOICE_DOUBLE, i);
    }
    return at;
}

static struct choice *actor_choices(const struct world *world, uint8_t who, struct choice *at)
{
    const struct actor *actor = &world->actors[who];
    if (!actor_at_work(actor)) {
        bool again = who != OPERATOR && actor->life < lives_of(world, who);
        return again ? choose(at, CHOICE_START, who) : at;
    }
    if (actor->wake_at_ms <= world->now_ms)
        at = choose(at, CHOICE_TIMER, who);
    if (actor_holds(actor))
        at = choose(at, CHOICE_LET_GO, who);
    if (actor_waits(actor) && world->left.cancels > 0)
        at = choose(at, CHOICE_LET_GO, who);
    if (who != OPERATOR && world->left.crashes > 0)
        at = choose(at, CHOICE_CRASH, who);
    return at;
}

static struct choice *operation_choices(const struct world *world, struct choice *at)
{
    if (world->left.operations == 0 || actor_at_work(&world->actors[OPERATOR]))
        return at;
    for (uint8_t i = 0; i < playing->operation_count; i++) {
        bool by_token = playing->operations[i] >= OPERATION_RELEASE;
        if (!by_token || world->first_token != 0)
            at = choose(at, CHOICE_OPERATION, i);
    }
    return at;
}

static struct choice *add_tick(const struct world *world, int64_t at_ms, struct choice *first,
                               struct choice *at)
{
    if (at_ms <= world->now_ms || at_ms == NEVER)
        return at;
    for (const struct choice *other = first; other < at; other++)
        if (other->at_ms == at_ms)
            return at;
    *at = (struct choice){.kind = CHOICE_TICK, .at_ms = at_ms};
    return at + 1;
}

/* The clock advances to the next timer; with pauses to any timer, so that the others are late. */
static struct choice *tick_choices(const struct world *world, struct choice *at)
{
    struct choice *first = at;
    int64_t next_ms = NEVER;
    if (world->left.ticks == 0)
        return at;
    for (size_t i = 0; i < ACTORS_MAX; i++) {
        const struct actor *actor = &world->actors[i];
        if (!actor_at_work(actor))
            continue;
        next_ms = actor->wake_at_ms < next_ms ? actor->wake_at_ms : next_ms;
        if (playing->pauses)
            at = add_tick(world, actor->wake_at_ms, first, at);
    }
    if (!playing->pauses)
        return next_ms <= world->now_ms ? at : add_tick(world, next_ms, first, at);
    struct brief truth = world_truth(world);
    for (size_t i = 0; i < truth.grant_count; i++) {
        const struct brief_grant *grant = &truth.grants[i];
        int64_t ends_ms = world->written_at_ms[grant->renewed.revision] + grant->ttl_ms + BEGIN_MS;
        at = add_tick(world, ends_ms, first, at);
    }
    return at;
}

size_t world_choices(const struct world *world, struct choice *out)
{
    struct choice *at = message_choices(world, out);
    for (uint8_t i = 0; i < playing->clients; i++)
        at = actor_choices(world, i, at);
    at = actor_choices(world, OPERATOR, at);
    at = operation_choices(world, at);
    at = tick_choices(world, at);
    ASSERT(at - out <= CHOICES_MAX);
    return (size_t)(at - out);
}

bool world_fair_choice(const struct world *world, struct choice *out)
{
    int64_t next_ms = NEVER;
    *out = (struct choice){.kind = CHOICE_DELIVER};
    if (world->message_count > 0)
        return true;
    for (size_t i = 0; i < ACTORS_MAX; i++) {
        const struct actor *actor = &world->actors[i];
        out->which = (uint8_t)i;
        if (!actor_at_work(actor))
            continue;
        out->kind = actor_holds(actor) ? CHOICE_LET_GO : CHOICE_TIMER;
        if (out->kind == CHOICE_LET_GO || actor->wake_at_ms <= world->now_ms)
            return true;
        next_ms = actor->wake_at_ms < next_ms ? actor->wake_at_ms : next_ms;
    }
    *out = (struct choice){.kind = CHOICE_TICK, .at_ms = next_ms};
    return next_ms != NEVER;
}

const char *actor_name(uint8_t actor)
{
    static const char *const names[ACTORS_MAX] = {"client 0", "client 1", "client 2", "operator"};
    return names[actor];
}

void choice_describe(const struct world *world, const struct choice *choice, struct text *out)
{
    static const char *const names[] = {
        [CHOICE_START] = "start of ",  [CHOICE_DELIVER] = "arrival of ",
        [CHOICE_LOSE] = "loss of ",    [CHOICE_FAIL] = "failure of ",
        [CHOICE_DOUBLE] = "doubled: ", [CHOICE_TIMER] = "timer of ",
        [CHOICE_TICK] = "clock at ",   [CHOICE_LET_GO] = "let go by ",
        [CHOICE_CRASH] = "crash of ",  [CHOICE_OPERATION] = "operation of ",
    };
    static const char *const kinds[] = {"a request", "an answer", "a notice"};
    static const char *const verbs[] = {" to read", " to swap", " to delete"};
    text_add(out, "    ");
    text_add(out, names[choice->kind]);
    if (choice->kind == CHOICE_TICK) {
        text_add_i64(out, choice->at_ms - BEGIN_MS);
        text_add(out, " ms");
    } else if (choice->kind >= CHOICE_DELIVER && choice->kind <= CHOICE_DOUBLE) {
        const struct message *message = &world->messages[choice->which];
        text_add(out, kinds[message->kind]);
        text_add(out, message->kind == MESSAGE_REQUEST ? verbs[message->store_verb] : "");
        text_add(out, message->kind == MESSAGE_REQUEST ? " from " : " for ");
        text_add(out, actor_name(message->actor));
    } else {
        text_add(out, actor_name(choice->kind == CHOICE_OPERATION ? OPERATOR : choice->which));
    }
}
