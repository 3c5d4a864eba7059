/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effects of the steps of a world. The clients are the shipped lease_step, and the store is one
 * slot under the shipped conditions. This file only carries messages between them: in any order,
 * lost, duplicated, late. It must not contain a rule a second time.
 */
#include "explore.h"

#include "base/check.h"
#include "store/condition.h"
#include "store/translate.h"

#include <string.h>

enum {
    TIMEOUT_MS = 10000,
    KILL_GRACE_MS = 5000,
};

const struct scenario *playing;
struct text *story;

static struct record scratch;
/* Of the actor that is stepping now: */
static struct lease_options options;
static struct observations observations;

static void trace_text(const char *text)
{
    text_add(story, text);
}

static void trace_number(const char *text, int64_t number)
{
    text_add(story, text);
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

static void set_operation(const struct actor *clerk, struct request *request)
{
    static const enum verb verbs[] = {[OPERATION_BREAK] = VERB_BREAK,
                                      [OPERATION_BREAK_NOW] = VERB_BREAK,
                                      [OPERATION_CLEAR] = VERB_CLEAR,
                                      [OPERATION_RELEASE] = VERB_RELEASE,
                                      [OPERATION_RENEW] = VERB_RENEW};
    request->verb = verbs[clerk->operation];
    request->now = clerk->operation == OPERATION_BREAK_NOW;
    request->reason = "stuck";
    request->token = clerk->token;
}

/* The options are the same in every step of a life, so one copy serves all worlds. */
static void set_options(const struct world *world, uint8_t who)
{
    static const char *const holders[ACTORS_MAX] = {"a", "b", "c", "op"};
    const struct part *part = &playing->parts[who == OPERATOR ? 0 : who];
    const struct actor *actor = &world->actors[who];
    bool waits = part->waits && who != OPERATOR;
    options = (struct lease_options){.facts = &playing->facts,
                                     .wait_ms = part->wait_ms,
                                     .cooldown_ms = who == OPERATOR ? 0 : part->cooldown_ms,
                                     .timeout_ms = TIMEOUT_MS,
                                     .kill_grace_ms = KILL_GRACE_MS};
    options.request = (struct request){.verb = VERB_ACQUIRE,
                                       .key = part->key,
                                       .holder = playing->same_name ? "pod" : holders[who],
                                       .request = request_name(who, actor->life),
                                       .session = session_of(world, who),
                                       .mode = part->mode,
                                       .limit = playing->limit,
                                       .priority = part->priority,
                                       .ttl_ms = playing->facts.ttl_ms,
                                       .lock_delay_ms = playing->lock_delay_ms,
                                       .bound = !playing->unbound,
                                       .waits = waits};
    if (who == OPERATOR)
        set_operation(actor, &options.request);
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
    return state == LEASE_ACQUIRING || state == LEASE_WAITING || state == LEASE_OFFERED;
}

static bool is_awaited(const struct actor *actor, const struct message *message)
{
    return actor->life == message->life && actor->lease.in_flight &&
           actor->lease.serial == message->serial;
}

/*
 * Drops messages that have no receiver, to save branches: notifications for ended actors and
 * replies that are not awaited. One such reply is kept for world_probe.
 */
static void drop_dead_letters(struct world *world)
{
    for (uint8_t i = world->message_count; i-- > 0;) {
        const struct message *message = &world->messages[i];
        struct actor *actor = &world->actors[message->actor];
        if (message->kind == MESSAGE_REQUEST)
            continue;
        bool reply = message->kind == MESSAGE_ANSWER;
        if (actor_at_work(actor) && !(reply && !is_awaited(actor, message)))
            continue;
        struct message dropped = take(world, i);
        if (reply && actor->life == dropped.life) {
            actor->old = dropped;
            actor->has_old = true;
        }
    }
}

/* The store's view of the slot at this moment. */
static struct store_view view_of_store(const struct world *world)
{
    struct store_view store_view = {.page = world->page,
                                    .written = world->written,
                                    .now_ms = has_clock() ? world->now_ms : TIME_UNKNOWN};
    if (playing->tells_dead)
        store_view.dead = world->dead;
    if (playing->facts.judge != JUDGE_SESSION || world->page == NULL)
        return store_view;
    struct brief brief = world_truth(world);
    for (size_t i = 0; i < brief.grant_count; i++)
        if (brief_expired(world, &brief.grants[i]))
            store_view.over = (uint8_t)(store_view.over | 1U << i);
    if (brief.cooling.length_ms > 0 && !brief_blocks(world, &brief.cooling))
        store_view.over |= OVER_COOLING;
    if (brief.delay.length_ms > 0 && !brief_blocks(world, &brief.delay))
        store_view.over |= OVER_DELAY;
    return store_view;
}

/* The sessions and tokens that the reply names; valid until the next call. */
static void name_dead_and_ended(const struct store_view *store_view, struct store_reply *reply)
{
    static uint64_t sessions[16], tokens[BRIEF_MAX];
    struct brief brief =
        brief_of(store_view->page, store_view->written.revision, store_view->written.time_ms);
    reply->dead_sessions = sessions;
    reply->ended_tokens = tokens;
    for (unsigned i = 0; i < sizeof sessions / sizeof sessions[0]; i++)
        if ((store_view->dead >> i & 1) != 0)
            sessions[reply->dead_count++] = i;
    for (size_t i = 0; i < brief.grant_count; i++)
        if ((store_view->over >> i & 1) != 0)
            tokens[reply->ended_count++] = brief_token(&brief.grants[i]);
    reply->cooling_over = (store_view->over & OVER_COOLING) != 0;
    reply->delay_over = (store_view->over & OVER_DELAY) != 0;
}

/* Turns the view into the core's event, through the shipped translate_reply(). */
static void event_of_view(const struct store_view *store_view, enum reply_status result,
                          struct event *event)
{
    struct store_reply reply = {.result = result,
                                .present = store_view->page != NULL,
                                .written = store_view->written,
                                .now_ms = store_view->now_ms};
    const char *why = NULL;
    if (store_view->page != NULL) {
        reply.bytes = store_view->page->bytes;
        reply.length = store_view->page->length;
        if (store_view->dead != 0 || store_view->over != 0)
            name_dead_and_ended(store_view, &reply);
    }
    translate_reply(&reply, options.request.key, &scratch, event, &why);
    check_that(why == NULL, "the store holds a record that nobody can read");
}

/* A step of an actor, and its consequences */

static void send(struct world *world, uint8_t who, const struct lease_output *out)
{
    static char bytes[RECORD_MAX + 1];
    struct actor *actor = &world->actors[who];
    struct store_request request;
    translate_request(&actor->lease, out, &scratch, bytes, sizeof bytes, &request);
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
    for (size_t i = 0; i < out->wake_count; i++) {
        uint8_t poked = (uint8_t)((out->wake[i] - 1) % ACTORS_MAX);
        if (out->wake[i] == session_of(world, poked))
            message.pokes = (uint8_t)(message.pokes | 1U << poked);
    }
    push(world, &message);
}

static void unfold_sighting(const struct brief_sighting *from)
{
    observations.offer = from->offer;
    observations.offer_since_ms = from->offer_since_ms;
    observations.count = from->count;
    memcpy(observations.observed, from->observed, sizeof from->observed);
}

static void fold_sighting(struct brief_sighting *to)
{
    ASSERT(observations.count <= BRIEF_MAX + 2);
    to->offer = observations.offer;
    to->offer_since_ms = observations.offer_since_ms;
    to->count = (uint8_t)observations.count;
    memcpy(to->observed, observations.observed, sizeof to->observed);
}

/* Jitter is the same in every step, so that worlds become equal again. */
static void step(struct world *world, uint8_t who, struct event *event,
                 const struct store_view *store_view)
{
    static struct lease_output out;
    struct actor *actor = &world->actors[who];
    struct actor before = *actor;
    event->now_ms = world->now_ms;
    actor->lease.options = &options;
    unfold_sighting(&actor->observations);
    actor->lease.observations = &observations;
    actor->lease.random.state = 17;
    trace_number("\n        ", world->now_ms - BEGIN_MS);
    trace_text(" ms ");
    trace_text(actor_name(who));
    trace_text(": ");
    lease_step(&actor->lease, event, &scratch, &out, story);
    actor->wake_at_ms = out.wake_at_ms;
    fold_sighting(&actor->observations);
    if (out.action != ACTION_NONE)
        send(world, who, &out);
    check_told(world, &before, actor, &out, store_view);
}

/* An event without a message: the actor may use its last reply. */
static void step_alone(struct world *world, uint8_t who, enum event_kind kind)
{
    struct event event = {.kind = kind};
    struct actor *actor = &world->actors[who];
    struct store_view store_view = {.page = NULL};
    set_options(world, who);
    if (playing->remembers && actor->has_heard) {
        store_view = actor->heard;
        event_of_view(&store_view, REPLY_OK, &event);
    }
    step(world, who, &event, &store_view);
}

static void start(struct world *world, uint8_t who)
{
    struct actor *actor = &world->actors[who];
    if (!actor->alive) {
        actor->incarnation++;
        actor->alive = true;
        actor->has_heard = false;
        actor->observations = (struct brief_sighting){0};
    }
    actor->life++;
    actor->started = true;
    actor->cancelled = actor->excused = false;
    actor->granted = 0;
    actor->has_old = false;
    set_options(world, who);
    lease_init(&actor->lease, &options, &observations, /* seed= */ 0);
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
                                       const struct stored_record *stored)
{
    static char bytes[RECORD_MAX + 1];
    size_t length = condition_renewal(request, stored, &scratch, bytes, sizeof bytes);
    const struct page *page = page_of(bytes, length);
    check_that(page != NULL, "the store made a record that nobody can read");
    return page;
}

/* Applies the request; true if its condition held. */
static bool carry_out(struct world *world, const struct message *message)
{
    if (message->store_verb == VERB_STORE_READ)
        return true;
    struct store_request request = {.verb = message->store_verb,
                                    .condition = message->condition,
                                    .ttl_ms = playing->facts.ttl_ms,
                                    .session = message->session,
                                    .bound = message->bound};
    struct stored_record stored = {.written = world->written,
                                   .now_ms = has_clock() ? world->now_ms : TIME_UNKNOWN};
    if (world->page != NULL) {
        stored.bytes = world->page->bytes;
        stored.length = world->page->length;
    }
    if (!playing->facts.tests_grant)
        request.condition.token = 0;
    if (session_refuses(world, request.condition.token) ||
        !condition_holds(&request, &stored, &scratch))
        return false;
    const struct page *page = message->page;
    if (request.verb == VERB_STORE_SWAP && request.condition.kind == IF_GRANT)
        page = renewed_page(&request, &stored);
    if (request.verb == VERB_STORE_DELETE)
        page = NULL;
    if (page != NULL || world->page != NULL)
        replace(world, page, message);
    return true;
}

/*
 * An abandoned attempt has taken effect after all. Earlier replies that the sender has or receives
 * later do not include it: the only case in which it may leave a grant or a waiter behind.
 */
static void note_late_arrival(struct world *world, const struct message *message)
{
    struct actor *actor = &world->actors[message->actor];
    if (message->store_verb == VERB_STORE_READ || is_awaited(actor, message))
        return;
    actor->heard.outdated = true;
    for (size_t i = 0; i < world->message_count; i++)
        if (world->messages[i].kind == MESSAGE_ANSWER && world->messages[i].actor == message->actor)
            world->messages[i].store_view.outdated = true;
}

static void serve(struct world *world, const struct message *message)
{
    bool done = carry_out(world, message);
    if (done)
        note_late_arrival(world, message);
    trace_text(done ? ": done" : ": conflict");
    trace_number(", revision ", (int64_t)world->written.revision);
    seen[SEEN_CONFLICTS] += done ? 0 : 1;
    struct message reply = {.kind = MESSAGE_ANSWER,
                            .actor = message->actor,
                            .life = message->life,
                            .serial = message->serial,
                            .result = done ? REPLY_OK : REPLY_CONFLICT,
                            .store_view = view_of_store(world)};
    push(world, &reply);
    for (size_t i = 0; done && !playing->loses_notices && i < ACTORS_MAX; i++) {
        struct message notice = {
            .kind = MESSAGE_NOTICE, .actor = (uint8_t)i, .store_view = reply.store_view};
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
        event.kind = EVENT_REPLY;
        if (message.result <= REPLY_CONFLICT) {
            actor->heard = message.store_view;
            actor->has_heard = true;
        }
        actor->old = message;
        actor->has_old = true;
        event_of_view(&message.store_view, message.result, &event);
    } else if (!playing->bare_notices) {
        event_of_view(&message.store_view, REPLY_OK, &event);
    }
    step(world, message.actor, &event, &message.store_view);
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
            .kind = EVENT_REPLY, .now_ms = lease.now_ms, .serial = before->old.serial};
        event_of_view(&before->old.store_view, before->old.result, &event);
        unfold_sighting(&before->observations);
        lease.observations = &observations;
        trace_text("    an old answer comes again for ");
        trace_text(actor_name((uint8_t)i));
        trace_text(": ");
        lease_step(&lease, &event, &scratch, &out, story);
        trace_text("\n");
        check_unmoved(before, &lease, &observations, &out);
        seen[SEEN_STALE_ANSWERS] += before->lease.in_flight ? 1 : 0;
    }
}

/* Applying a choice */

static void run_operation(struct world *world, uint8_t which)
{
    struct actor *clerk = &world->actors[OPERATOR];
    struct brief truth = world_truth(world);
    world->left.operations--;
    clerk->operation = (uint8_t)playing->operations[which];
    clerk->token = 0;
    if (clerk->operation >= OPERATION_RELEASE) {
        clerk->token = world->first_token;
        for (size_t i = 0; i < truth.grant_count; i++)
            if (brief_token(&truth.grants[i]) == clerk->token)
                clerk->token++; /* current: take one that was never granted */
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
    message.result = REPLY_TROUBLE;
    message.store_view = (struct store_view){.now_ms = TIME_UNKNOWN};
    push(world, &message);
}

static void let_go(struct world *world, uint8_t who)
{
    struct actor *actor = &world->actors[who];
    if (actor_waits(actor)) {
        world->left.cancels--;
        actor->cancelled = true;
    }
    step_alone(world, who, EVENT_RELEASE);
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
    case CHOICE_OPERATION:
        run_operation(world, choice->which);
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
    trace_text("\n");
}

void world_begin(struct world *world, const struct bound *bound)
{
    memset(world, 0, sizeof *world);
    world->now_ms = BEGIN_MS;
    world->left = *bound;
    for (size_t i = 0; i < ACTORS_MAX; i++)
        world->actors[i].alive = true;
}
