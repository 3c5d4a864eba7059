/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can happen next in a world, and what it does to it. The clients are the shipped lease_step,
 * the store is one slot under the shipped conditions; here is only what carries messages between
 * them: in any order, lost, doubled, late. No rule is written here a second time.
 */
#include "explore.h"

#include "base/check.h"
#include "store/condition.h"
#include "store/exchange.h"

#include <string.h>

enum {
    TTL_MS = 3000,
    PATIENCE_MS = 10000,
    KILL_GRACE_MS = 5000,
    LOOK_MS = 5000,
    ANSWER_MS = 250,
};

const struct scenario *playing;
struct text *story;

static struct record scratch;
/* Of the actor that is just stepping: */
static struct lease_options options;
static struct sighting sighting;

static void tell(const char *words)
{
    text_add(story, words);
}

static void tell_number(const char *words, int64_t number)
{
    text_add(story, words);
    text_add_i64(story, number);
}

uint8_t request_id(uint8_t actor, uint8_t life)
{
    return (uint8_t)(actor * 16 + life);
}

uint64_t session_of(const struct world *world, uint8_t actor)
{
    return 1U + actor + (uint64_t)world->actors[actor].incarnation * ACTORS_MAX;
}

static bool has_clock(void)
{
    return playing->facts.judge == JUDGE_STORE_TIME;
}

static const char *request_name(uint8_t actor, uint8_t life)
{
    static char names[ACTORS_MAX][LIVES_MAX + 1][4];
    char *name = names[actor][life];
    name[0] = (char)('0' + actor);
    name[1] = '.';
    name[2] = (char)('0' + life);
    return name;
}

static void set_errand(const struct actor *clerk, struct request *request)
{
    static const enum verb verbs[] = {[ERRAND_BREAK] = VERB_BREAK,
                                      [ERRAND_BREAK_NOW] = VERB_BREAK,
                                      [ERRAND_CLEAR] = VERB_CLEAR,
                                      [ERRAND_RELEASE] = VERB_RELEASE,
                                      [ERRAND_RENEW] = VERB_RENEW};
    request->verb = verbs[clerk->errand];
    request->now = clerk->errand == ERRAND_BREAK_NOW;
    request->reason = "stuck";
    request->token = clerk->token;
}

/* The options are the same in every step of a life, so that one copy serves all worlds. */
static void set_options(const struct world *world, uint8_t who)
{
    static const char *const holders[ACTORS_MAX] = {"a", "b", "c", "op"};
    const struct part *part = &playing->parts[who == OPERATOR ? 0 : who];
    const struct actor *actor = &world->actors[who];
    bool waits = part->waits && who != OPERATOR;
    options = (struct lease_options){.store = playing->facts,
                                     .wait_ms = part->wait_ms,
                                     .cooldown_ms = who == OPERATOR ? 0 : part->cooldown_ms,
                                     .patience_ms = PATIENCE_MS,
                                     .kill_grace_ms = KILL_GRACE_MS,
                                     .look_ms = LOOK_MS};
    options.request = (struct request){.verb = VERB_ASK,
                                       .key = part->key,
                                       .holder = playing->same_name ? "pod" : holders[who],
                                       .request = request_name(who, actor->life),
                                       .session = session_of(world, who),
                                       .mode = part->mode,
                                       .limit = playing->limit,
                                       .priority = part->priority,
                                       .ttl_ms = TTL_MS,
                                       .lock_delay_ms = playing->lock_delay_ms,
                                       .bound = true,
                                       .waits = waits};
    options.store.answer_ms = ANSWER_MS;
    if (who == OPERATOR)
        set_errand(actor, &options.request);
}

/* Messages */

static void push(struct world *world, const struct message *message)
{
    check_that(world->message_count < MESSAGES_MAX,
               "more messages on their way than there is room");
    if (world->message_count < MESSAGES_MAX)
        world->messages[world->message_count++] = *message;
}

static struct message take(struct world *world, uint8_t which)
{
    struct message message = world->messages[which];
    world->message_count--;
    memmove(&world->messages[which], &world->messages[which + 1],
            (size_t)(world->message_count - which) * sizeof message);
    return message;
}

bool actor_at_work(const struct actor *actor)
{
    return actor->alive && actor->started && actor->lease.state != LEASE_ENDED;
}

bool actor_holds(const struct actor *actor)
{
    enum lease_state state = actor->lease.state;
    return state == LEASE_HELD || state == LEASE_RENEWING || state == LEASE_LOST;
}

bool actor_waits(const struct actor *actor)
{
    enum lease_state state = actor->lease.state;
    return state == LEASE_ASKING || state == LEASE_WAITING || state == LEASE_OFFERED;
}

static bool is_awaited(const struct actor *actor, const struct message *message)
{
    return actor->life == message->life && actor->lease.in_flight &&
           actor->lease.serial == message->serial;
}

/*
 * What can reach nobody any more is not worth a branch: notices for those who have ended, answers
 * that nobody waits for. Of these one is kept for world_probe.
 */
static void drop_dead_letters(struct world *world)
{
    for (uint8_t i = world->message_count; i-- > 0;) {
        const struct message *message = &world->messages[i];
        struct actor *actor = &world->actors[message->actor];
        if (message->kind == MESSAGE_REQUEST)
            continue;
        bool answer = message->kind == MESSAGE_ANSWER;
        if (actor_at_work(actor) && !(answer && !is_awaited(actor, message)))
            continue;
        struct message dropped = take(world, i);
        if (answer && actor->life == dropped.life) {
            actor->old = dropped;
            actor->has_old = true;
        }
    }
}

/* What the store tells about the slot at this moment. */
static struct glimpse glimpse_of(const struct world *world)
{
    struct glimpse glimpse = {.page = world->page,
                              .written = world->written,
                              .now_ms = has_clock() ? world->now_ms : TIME_UNKNOWN};
    if (playing->tells_dead)
        glimpse.dead = world->dead;
    if (playing->facts.judge != JUDGE_SESSION || world->page == NULL)
        return glimpse;
    struct brief brief = world_truth(world);
    for (size_t i = 0; i < brief.grant_count; i++)
        if (brief_ended(world, &brief.grants[i]))
            glimpse.over = (uint8_t)(glimpse.over | 1U << i);
    if (brief.cooling.length_ms > 0 && !brief_blocks(world, &brief.cooling))
        glimpse.over |= OVER_COOLING;
    if (brief.delay.length_ms > 0 && !brief_blocks(world, &brief.delay))
        glimpse.over |= OVER_DELAY;
    return glimpse;
}

static void mark_dead_and_over(const struct glimpse *glimpse, struct record *record)
{
    for (size_t i = 0; i < record->grant_count; i++) {
        record->grants[i].dead = (glimpse->dead >> record->grants[i].session & 1) != 0;
        record->grants[i].over = (glimpse->over >> i & 1) != 0;
    }
    for (size_t i = 0; i < record->place_count; i++)
        record->places[i].dead = (glimpse->dead >> record->places[i].session & 1) != 0;
    record->cooling.over = (glimpse->over & OVER_COOLING) != 0;
    record->delay.over = (glimpse->over & OVER_DELAY) != 0;
}

/* The glimpse as the core's event, by way of the shipped exchange. */
static void event_of_glimpse(const struct glimpse *glimpse, enum answer result, struct event *event)
{
    struct store_answer answer = {.result = result,
                                  .present = glimpse->page != NULL,
                                  .written = glimpse->written,
                                  .now_ms = glimpse->now_ms};
    const char *why = NULL;
    if (glimpse->page != NULL) {
        answer.bytes = glimpse->page->bytes;
        answer.length = glimpse->page->length;
    }
    exchange_event(&answer, options.request.key, &scratch, event, &why);
    check_that(why == NULL, "the store holds a record that nobody can read");
    if (event->known)
        mark_dead_and_over(glimpse, &scratch);
}

/* A step of an actor, and what follows from it */

static void send(struct world *world, uint8_t who, const struct lease_output *out)
{
    static char bytes[RECORD_MAX + 1];
    struct actor *actor = &world->actors[who];
    struct store_request request;
    exchange_request(&actor->lease, out, &scratch, bytes, sizeof bytes, &request);
    struct message message = {.kind = MESSAGE_REQUEST,
                              .actor = who,
                              .life = actor->life,
                              .serial = out->serial,
                              .verb = actor->lease.sent_verb,
                              .token = who == OPERATOR ? actor->token : actor->lease.token,
                              .store_verb = request.verb,
                              .condition = request.condition,
                              .session = request.session,
                              .bound = request.bound,
                              .cools = options.cooldown_ms > 0,
                              .breaks_now = options.request.now};
    if (request.bytes != NULL) {
        message.page = page_of(request.bytes, request.length);
        check_that(message.page != NULL, "a record was sent that nobody can read");
    }
    for (size_t i = 0; i < out->poke_count; i++) {
        uint8_t poked = (uint8_t)((out->poke[i] - 1) % ACTORS_MAX);
        if (out->poke[i] == session_of(world, poked))
            message.pokes = (uint8_t)(message.pokes | 1U << poked);
    }
    push(world, &message);
}

static void unfold_sighting(const struct brief_sighting *from)
{
    sighting.offer = from->offer;
    sighting.offer_since_ms = from->offer_since_ms;
    sighting.count = from->count;
    memcpy(sighting.sights, from->sights, sizeof from->sights);
}

static void fold_sighting(struct brief_sighting *to)
{
    ASSERT(sighting.count <= BRIEF_MAX + 2);
    to->offer = sighting.offer;
    to->offer_since_ms = sighting.offer_since_ms;
    to->count = (uint8_t)sighting.count;
    memcpy(to->sights, sighting.sights, sizeof to->sights);
}

/* Jitter is the same in every step, so that worlds meet again. */
static void step(struct world *world, uint8_t who, struct event *event,
                 const struct glimpse *glimpse)
{
    static struct lease_output out;
    struct actor *actor = &world->actors[who];
    struct actor before = *actor;
    event->now_ms = world->now_ms;
    actor->lease.options = &options;
    unfold_sighting(&actor->sighting);
    actor->lease.sighting = &sighting;
    actor->lease.random.state = 17;
    tell_number("\n        ", world->now_ms - BEGIN_MS);
    tell(" ms ");
    tell(actor_name(who));
    tell(": ");
    lease_step(&actor->lease, event, &scratch, &out, story);
    actor->wake_at_ms = out.wake_at_ms;
    fold_sighting(&actor->sighting);
    if (out.action != ACTION_NONE)
        send(world, who, &out);
    check_told(world, &before, actor, &out, glimpse);
}

/* An event that no message brings: the actor may know what it last heard. */
static void step_alone(struct world *world, uint8_t who, enum event_kind kind)
{
    struct event event = {.kind = kind};
    struct actor *actor = &world->actors[who];
    struct glimpse glimpse = {.page = NULL};
    set_options(world, who);
    if (playing->remembers && actor->has_heard) {
        glimpse = actor->heard;
        event_of_glimpse(&glimpse, ANSWER_OK, &event);
    }
    step(world, who, &event, &glimpse);
}

static void start(struct world *world, uint8_t who)
{
    struct actor *actor = &world->actors[who];
    if (!actor->alive) {
        actor->incarnation++;
        actor->alive = true;
        actor->has_heard = false;
        actor->sighting = (struct brief_sighting){0};
    }
    actor->life++;
    actor->started = true;
    actor->cancelled = actor->excused = false;
    actor->granted = 0;
    actor->has_old = false;
    set_options(world, who);
    lease_init(&actor->lease, &options, &sighting, /* seed= */ 0);
    step_alone(world, who, EVENT_START);
}

/* The store */

static void replace(struct world *world, const struct page *page, const struct message *message)
{
    struct brief before = world_truth(world);
    world->revision++;
    check_that(world->revision < REVISIONS_MAX, "more writes than there is room for");
    if (violation != NULL)
        return;
    world->written_at_ms[world->revision] = (int32_t)(world->now_ms - BEGIN_MS);
    world->page = page;
    world->written = (struct stamp){0};
    if (page != NULL)
        world->written = (struct stamp){.revision = world->revision,
                                        .time_ms = has_clock() ? world->now_ms : TIME_UNKNOWN};
    struct brief after = world_truth(world);
    check_write(world, &before, &after, message);
}

static const struct page *renewed_page(const struct store_request *request,
                                       const struct standing *standing)
{
    static char bytes[RECORD_MAX + 1];
    size_t length = condition_renewal(request, standing, &scratch, bytes, sizeof bytes);
    const struct page *page = page_of(bytes, length);
    check_that(page != NULL, "the store made a record that nobody can read");
    return page;
}

/* Tries the request; true when it was carried out. */
static bool carry_out(struct world *world, const struct message *message)
{
    if (message->store_verb == VERB_STORE_READ)
        return true;
    struct store_request request = {.verb = message->store_verb,
                                    .condition = message->condition,
                                    .ttl_ms = TTL_MS,
                                    .session = message->session,
                                    .bound = message->bound};
    struct standing standing = {.written = world->written,
                                .now_ms = has_clock() ? world->now_ms : TIME_UNKNOWN};
    if (world->page != NULL) {
        standing.bytes = world->page->bytes;
        standing.length = world->page->length;
    }
    if (!playing->facts.tests_grant)
        request.condition.token = 0;
    if (!condition_holds(&request, &standing, &scratch))
        return false;
    const struct page *page = message->page;
    if (request.verb == VERB_STORE_SWAP && request.condition.kind == IF_GRANT)
        page = renewed_page(&request, &standing);
    if (request.verb == VERB_STORE_DELETE)
        page = NULL;
    if (page != NULL || world->page != NULL)
        replace(world, page, message);
    return true;
}

/*
 * An attempt that its sender gave up has been carried out after all. What the sender hears from now
 * on, but was said before, knows nothing of it: the one case where it may leave something behind.
 */
static void note_late_arrival(struct world *world, const struct message *message)
{
    struct actor *actor = &world->actors[message->actor];
    if (message->store_verb == VERB_STORE_READ || is_awaited(actor, message))
        return;
    actor->heard.outdated = true;
    for (size_t i = 0; i < world->message_count; i++)
        if (world->messages[i].kind == MESSAGE_ANSWER && world->messages[i].actor == message->actor)
            world->messages[i].glimpse.outdated = true;
}

static void serve(struct world *world, const struct message *message)
{
    bool done = carry_out(world, message);
    if (done)
        note_late_arrival(world, message);
    tell(done ? ": done" : ": conflict");
    tell_number(", revision ", (int64_t)world->written.revision);
    seen[SEEN_CONFLICTS] += done ? 0 : 1;
    struct message answer = {.kind = MESSAGE_ANSWER,
                             .actor = message->actor,
                             .life = message->life,
                             .serial = message->serial,
                             .result = done ? ANSWER_OK : ANSWER_CONFLICT,
                             .glimpse = glimpse_of(world)};
    push(world, &answer);
    for (size_t i = 0; done && !playing->mute && i < ACTORS_MAX; i++) {
        struct message notice = {
            .kind = MESSAGE_NOTICE, .actor = (uint8_t)i, .glimpse = answer.glimpse};
        if ((message->pokes >> i & 1) != 0)
            push(world, &notice);
    }
}

static void deliver(struct world *world, uint8_t which)
{
    struct message message = take(world, which);
    struct actor *actor = &world->actors[message.actor];
    if (message.kind == MESSAGE_REQUEST) {
        serve(world, &message);
        return;
    }
    set_options(world, message.actor);
    struct event event = {.kind = EVENT_NOTICE, .serial = message.serial};
    if (message.kind == MESSAGE_ANSWER) {
        event.kind = EVENT_ANSWER;
        if (message.result <= ANSWER_CONFLICT) {
            actor->heard = message.glimpse;
            actor->has_heard = true;
        }
        actor->old = message;
        actor->has_old = true;
        event_of_glimpse(&message.glimpse, message.result, &event);
    } else if (!playing->blind) {
        event_of_glimpse(&message.glimpse, ANSWER_OK, &event);
    }
    step(world, message.actor, &event, &message.glimpse);
}

void world_probe(const struct world *world)
{
    static struct lease_output out;
    for (size_t i = 0; i < ACTORS_MAX; i++) {
        const struct actor *before = &world->actors[i];
        struct lease lease = before->lease;
        if (!actor_at_work(before) || !before->has_old || is_awaited(before, &before->old))
            continue;
        set_options(world, (uint8_t)i);
        struct event event = {
            .kind = EVENT_ANSWER, .now_ms = lease.now_ms, .serial = before->old.serial};
        event_of_glimpse(&before->old.glimpse, before->old.result, &event);
        unfold_sighting(&before->sighting);
        lease.sighting = &sighting;
        tell("    an old answer comes again for ");
        tell(actor_name((uint8_t)i));
        tell(": ");
        lease_step(&lease, &event, &scratch, &out, story);
        tell("\n");
        check_unmoved(before, &lease, &sighting, &out);
        seen[SEEN_STALE_ANSWERS] += before->lease.in_flight ? 1 : 0;
    }
}

/* Doing it */

static void run_errand(struct world *world, uint8_t which)
{
    struct actor *clerk = &world->actors[OPERATOR];
    struct brief truth = world_truth(world);
    world->left.errands--;
    clerk->errand = (uint8_t)playing->errands[which];
    clerk->token = 0;
    if (clerk->errand >= ERRAND_RELEASE) {
        clerk->token = world->first_token;
        for (size_t i = 0; i < truth.grant_count; i++)
            if (brief_token(&truth.grants[i]) == clerk->token)
                clerk->token++; /* stands: take one that nobody ever had */
    }
    start(world, OPERATOR);
}

static void crash(struct world *world, uint8_t who)
{
    world->left.crashes--;
    world->actors[who].alive = false;
    world->dead = (uint16_t)(world->dead | 1U << session_of(world, who));
}

static void fail(struct world *world, uint8_t which)
{
    struct message message = take(world, which);
    world->left.lost--;
    message.kind = MESSAGE_ANSWER;
    message.result = ANSWER_TROUBLE;
    message.glimpse = (struct glimpse){.now_ms = TIME_UNKNOWN};
    push(world, &message);
}

static void let_go(struct world *world, uint8_t who)
{
    struct actor *actor = &world->actors[who];
    if (actor_waits(actor)) {
        world->left.cancels--;
        actor->cancelled = true;
    }
    step_alone(world, who, EVENT_LET_GO);
}

static void act(struct world *world, const struct choice *choice)
{
    switch (choice->kind) {
    case CHOICE_START:
        start(world, choice->which);
        return;
    case CHOICE_DELIVER:
        deliver(world, choice->which);
        return;
    case CHOICE_LOSE:
        world->left.lost--;
        (void)take(world, choice->which);
        return;
    case CHOICE_FAIL:
        fail(world, choice->which);
        return;
    case CHOICE_DOUBLE:
        world->left.doubled--;
        push(world, &world->messages[choice->which]);
        return;
    case CHOICE_TIMER:
        step_alone(world, choice->which, EVENT_TIMER);
        return;
    case CHOICE_TICK:
        world->left.ticks = (uint8_t)(world->left.ticks - (world->left.ticks > 0 ? 1 : 0));
        world->now_ms = choice->at_ms;
        return;
    case CHOICE_LET_GO:
        let_go(world, choice->which);
        return;
    case CHOICE_CRASH:
        crash(world, choice->which);
        return;
    case CHOICE_ERRAND:
        run_errand(world, choice->which);
        return;
    }
    UNREACHABLE("every choice is listed");
}

void world_apply(struct world *world, const struct choice *choice)
{
    choice_describe(world, choice, story);
    act(world, choice);
    drop_dead_letters(world);
    check_state(world);
    tell("\n");
}

void world_begin(struct world *world, const struct bound *bound)
{
    memset(world, 0, sizeof *world);
    world->now_ms = BEGIN_MS;
    world->left = *bound;
    for (size_t i = 0; i < ACTORS_MAX; i++)
        world->actors[i].alive = true;
}
