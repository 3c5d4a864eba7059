/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actors of world.h: carries a lease's decisions to the store and the replies back, as the
 * runtime does, through the simulated network. Decides nothing.
 */
#include "history.h"
#include "world_internal.h"

#include "core/mutant.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int64_t awake_ms(const struct world *world, const struct actor *actor)
{
    int64_t asleep_ms = MUTANT(CLOCK_STOPS_IN_SUSPEND) ? actor->asleep_ms : 0;
    return world->now_ms - asleep_ms;
}

int64_t actor_clock(const struct world *world, const struct actor *actor)
{
    return actor->offset_ms + awake_ms(world, actor) * actor->rate / 1000;
}

int64_t actor_moment(const struct world *world, const struct actor *actor, int64_t clock_ms)
{
    int64_t away_ms = clock_ms - actor_clock(world, actor);
    if (away_ms <= 0)
        return world->now_ms;
    return world->now_ms + (away_ms * 1000 + actor->rate - 1) / actor->rate;
}

struct actor *world_add_actor(struct world *world, const char *name)
{
    struct actor *actor = &world->actors[world->actor_count];
    actor->index = world->actor_count++;
    (void)snprintf(actor->name, sizeof actor->name, "%s", name);
    actor->alive = true;
    actor->rate = 1000;
    actor->session = world->next_session++;
    return actor;
}

static const char *store_name(const struct world *world, size_t key)
{
    return world->rules.names_collide ? "one-name" : world->keys[key].key;
}

bool world_has_name(const struct world *world, size_t key, const char *name)
{
    return strcmp(store_name(world, key), name) == 0;
}

/* The sessions that had ended when the store replied, as far as it had noticed. */
static void fill_dead(const struct world *world, struct store_reply *notify)
{
    size_t count = world->dead_count;
    while (count > 0 && world->died_ms[count - 1] + world->judge.late_ms > notify->now_ms)
        count--;
    notify->dead_sessions = world->dead;
    notify->dead_count = count;
}

/* The reply as the actor receives it: with coarser times, and with the store's other facts. */
void actor_shape_answer(struct world *world, const struct actor *actor, struct store_reply *notify)
{
    int64_t tick_ms = world->rules.tick_ms;
    if (world->rules.knows_sessions)
        fill_dead(world, notify);
    if (world_by_session(world)) {
        session_judge_reply(&world->judge, notify);
        notify->alive_ms = actor->alive_ms;
        return;
    }
    notify->written.time_ms = notify->written.time_ms / tick_ms * tick_ms;
    notify->now_ms = notify->now_ms / tick_ms * tick_ms;
    if (MUTANT(EXPIRY_BY_LOCAL_CLOCK))
        notify->now_ms = actor_clock(world, actor);
}

/* Fills the scratch record and the event from a reply, or from the actor's last one. */
static void recall(struct world *world, const struct actor *actor, struct event *event,
                   const struct store_reply *reply)
{
    const char *why = NULL;
    struct store_reply notify = reply != NULL ? *reply : actor->heard;
    struct event filled = *event;
    if (reply == NULL && !actor->known)
        return;
    actor_shape_answer(world, actor, &notify);
    translate_reply(&notify, actor->options.request.key, &world->record, &filled, &why);
    event->known = filled.known;
    event->at = filled.at;
    if (event->kind == EVENT_REPLY) {
        event->reply = filled.reply;
        event->alive_ms = filled.alive_ms;
    }
}

static void remember(struct actor *actor, const struct store_reply *reply)
{
    actor->known = reply->result == REPLY_OK || reply->result == REPLY_CONFLICT;
    actor->known_key = actor->key;
    actor->heard = *reply;
    if (!actor->known || !reply->present)
        return;
    actor->bytes = realloc(actor->bytes, reply->length);
    if (actor->bytes == NULL)
        abort();
    memcpy(actor->bytes, reply->bytes, reply->length);
    actor->heard.bytes = actor->bytes;
}

/* Newer than the last reply. A last reply without a record has no revision to compare. */
static bool is_newer(const struct actor *actor, const struct store_reply *reply)
{
    const struct store_reply *heard = &actor->heard;
    return reply->present &&
           (!actor->known ||
            (heard->present && stamp_order(&heard->written) < stamp_order(&reply->written)));
}

void actor_transmit(struct world *world, struct actor *actor, const struct store_request *request,
                    uint32_t serial)
{
    struct message *message = malloc(sizeof *message + request->length);
    if (message == NULL)
        abort();
    *message = (struct message){.actor = actor->index,
                                .number = actor->number,
                                .serial = serial,
                                .counted = request->verb != VERB_STORE_READ,
                                .request = *request,
                                .verb = actor->lease.sent_verb,
                                .now = actor->options.request.now,
                                .length = request->length};
    message->request.key = store_name(world, actor->key);
    if (request->length > 0)
        memcpy(message->bytes, request->bytes, request->length);
    for (size_t i = 0; i < request->wake_count && i < ACTORS_MAX; i++)
        message->wake[message->wake_count++] = request->wake[i];
    world->acquisitions[actor->number].writes_in_flight += message->counted ? 1 : 0;
    world_transmit(world, message, WORLD_REQUEST, world->faults.lose_request,
                   &world->counts->lost_requests);
}

static void send_request(struct world *world, struct actor *actor)
{
    struct store_request request;
    translate_request(&actor->lease, &world->output, &world->record, world->encoded,
                      sizeof world->encoded, &request);
    actor_transmit(world, actor, &request, world->output.serial);
}

void actor_report(struct world *world, struct actor *actor)
{
    const struct lease_output *out = &world->output;
    actor->grant = actor->number;
    oracle_told(world, actor, out);
    if (out->notify == NOTIFY_ENDED)
        oracle_once_ended(world, actor, out->outcome);
    if (out->notify == NOTIFY_HELD) {
        oracle_once_held(world, actor);
        actor->inside = true;
        actor->lost = false;
        actor->token = actor->lease.token;
        actor->order = oracle_order(&world->acquisitions[actor->number], actor->token);
    } else if (out->notify == NOTIFY_LOST) {
        actor->lost = true;
    } else if (out->notify == NOTIFY_ENDED) {
        actor->inside = actor->busy = false;
    }
    world->notify(world, actor, out);
}

void actor_step(struct world *world, struct actor *actor, struct event *event,
                const struct store_reply *reply)
{
    char line[256];
    struct text trace = {0};
    struct text *wanted = world->trace != NULL ? &trace : NULL;
    text_init(&trace, line, sizeof line);
    event->now_ms = actor_clock(world, actor);
    recall(world, actor, event, reply);
    struct lease before = actor->lease;
    lease_step(&actor->lease, event, &world->record, &world->output, wanted);
    if (trace.length > 0)
        world_say(world, actor->name, line);
    history_step(world, actor, &before, event);
    if (actor->lease.state == LEASE_HELD && before.state != LEASE_HELD)
        oracle_deadline(world, actor);
    if (world->output.action != ACTION_NONE)
        send_request(world, actor);
    actor->timer++;
    if (world->output.wake_at_ms != NEVER)
        world_schedule(world, (struct world_event){
                                  .at_ms = actor_moment(world, actor, world->output.wake_at_ms),
                                  .kind = WORLD_TIMER,
                                  .actor = actor->index,
                                  .value = actor->timer});
    if (world->output.notify != NOTIFY_NONE)
        actor_report(world, actor);
}

void actor_receives(struct world *world, struct actor *actor, const struct message *message,
                    enum world_event_kind kind)
{
    if (world->on_executor) {
        runner_receives(world, actor, message, kind);
        return;
    }
    if (!actor->alive || !actor->busy || message->number != actor->number)
        return;
    struct store_reply reply = message->reply;
    reply.bytes = message->bytes;
    reply.length = message->length;
    struct event event = {.kind = kind == WORLD_REPLY ? EVENT_REPLY : EVENT_NOTICE,
                          .serial = message->serial};
    if (kind == WORLD_REPLY) {
        actor->answered = actor->answered || reply.result != REPLY_TROUBLE;
        remember(actor, &reply);
    }
    bool wakes_with_record = world->rules.watches || world->rules.facts.wakes_with_record;
    bool has_record = kind == WORLD_REPLY || wakes_with_record;
    if (!has_record)
        actor->known = false;
    else if (kind == WORLD_NOTICE && is_newer(actor, &reply))
        remember(actor, &reply);
    actor_step(world, actor, &event, has_record ? &reply : NULL);
}

static struct message *copy_answer(const struct message *to, const struct store_reply *reply)
{
    struct message *message = malloc(sizeof *message + reply->length);
    if (message == NULL)
        abort();
    *message = (struct message){.actor = to->actor,
                                .number = to->number,
                                .serial = to->serial,
                                .reply = *reply,
                                .length = reply->length};
    if (reply->length > 0)
        memcpy(message->bytes, reply->bytes, reply->length);
    return message;
}

static void send_notice(struct world *world, const struct message *write, struct actor *actor,
                        const struct store_reply *reply)
{
    struct message *notice = copy_answer(write, reply);
    notice->actor = actor->index;
    notice->number = actor->number;
    notice->request.key = write->request.key;
    world_transmit(world, notice, WORLD_NOTICE, world->faults.lose_notice,
                   &world->counts->lost_notices);
}

/* Watchers receive every change; without watches only the processes that the write names do. */
static void notify_all(struct world *world, const struct message *write,
                       const struct store_reply *reply)
{
    for (size_t i = 0; i < world->actor_count; i++) {
        struct actor *actor = &world->actors[i];
        bool named = false;
        for (size_t j = 0; j < write->wake_count; j++)
            named = named || write->wake[j] == actor->session;
        bool listens =
            actor->has_callers || (actor->busy && actor->process == NULL &&
                                   world_has_name(world, actor->key, write->request.key));
        if (actor->alive && listens && (named || world->rules.watches))
            send_notice(world, write, actor, reply);
    }
}

struct delivery {
    struct world *world;
    const struct message *message;
    struct store_request request;
};

static void load_after(struct world *world, const struct message *message,
                       const struct store_reply *reply)
{
    struct event ignored = {0};
    const char *why = NULL;
    translate_reply(reply, message->request.key, &world->after, &ignored, &why);
    if (why == NULL && reply->present && reply->length > record_size_bound(&world->after))
        why = "the record is longer than its bound";
    if (why != NULL)
        oracle_fail(world, &world->actors[message->actor], "codec", why);
    if (world_by_session(world))
        session_judge_restore(&world->judge, &world->after);
}

static void store_answers(void *caller, const struct store_reply *reply)
{
    const struct delivery *delivery = caller;
    struct world *world = delivery->world;
    const struct message *message = delivery->message;
    world_transmit(world, copy_answer(message, reply), WORLD_REPLY, world->faults.lose_answer,
                   &world->counts->lost_answers);
    if (message->request.verb == VERB_STORE_READ || reply->result != REPLY_OK)
        return;
    session_judge_note(&world->judge, reply);
    load_after(world, message, reply);
    oracle_changed(world,
                   &(struct change){.writer = &world->actors[message->actor],
                                    .number = message->number,
                                    .verb = message->verb,
                                    .now = message->now,
                                    .revision = reply->present ? stamp_order(&reply->written) : 0});
    notify_all(world, message, reply);
}

static void load_before(void *caller, const struct store_reply *reply)
{
    struct delivery *delivery = caller;
    struct world *world = delivery->world;
    struct event ignored = {0};
    const char *why = NULL;
    translate_reply(reply, delivery->message->request.key, &world->before, &ignored, &why);
    if (!world_by_session(world))
        return;
    session_judge_restore(&world->judge, &world->before);
    session_judge_request(&world->judge, reply, &delivery->request);
}

void store_receives(struct world *world, const struct message *message)
{
    struct delivery delivery = {.world = world, .message = message, .request = message->request};
    if (world->store_down) {
        world->counts->lost_requests++;
        return;
    }
    struct store_request *request = &delivery.request;
    request->bytes = message->bytes;
    if (request->verb != VERB_STORE_READ) {
        struct store_request look = {.verb = VERB_STORE_READ, .key = request->key};
        memory_driver.submit(world->store, &look, load_before, &delivery);
    }
    memory_driver.submit(world->store, request, store_answers, &delivery);
}

uint32_t actor_number(struct world *world)
{
    if (world->next_number >= NUMBERS_MAX)
        abort();
    return world->next_number++;
}

struct acquisition acquisition_of(size_t key, const struct lease_options *options)
{
    const struct request *request = &options->request;
    struct acquisition made = {.key = key,
                               .verb = request->verb,
                               .priority = request->priority,
                               .bound = request->bound,
                               .ttl_ms = request->ttl_ms,
                               .lock_delay_ms = request->lock_delay_ms,
                               .operation_token = request->token,
                               .mode = request->mode,
                               .limit = request->limit,
                               .cooldown_ms = options->cooldown_ms};
    if (request->completion != NULL && request->completion->result != NULL)
        made.word = (uint32_t)strtoul(request->completion->result, NULL, 10);
    made.expected = request->expected != NULL && request->expected[0] != '\0'
                        ? strtoll(request->expected, NULL, 10)
                        : -1;
    if (request->payload != NULL)
        (void)snprintf(made.payload, sizeof made.payload, "%s", request->payload);
    return made;
}

/* True if it repeats a request: for the oracle both are one acquisition. */
static bool name_request(struct world *world, struct actor *actor)
{
    bool named = actor->repeats[0] != '\0';
    uint32_t known = named ? oracle_number(world, actor->repeats) : 0;
    actor->number = known != 0 ? known : actor_number(world);
    if (named)
        memcpy(actor->request, actor->repeats, sizeof actor->request);
    else
        (void)snprintf(actor->request, sizeof actor->request, "r%" PRIu32, actor->number);
    if (known == 0)
        oracle_name(world, actor->request, actor->number);
    return known != 0;
}

void actor_start(struct world *world, struct actor *actor)
{
    bool known = name_request(world, actor);
    if (actor->holder[0] == '\0')
        (void)snprintf(actor->holder, sizeof actor->holder, "%s", actor->name);
    struct request *request = &actor->options.request;
    request->key = world->keys[actor->key].key;
    request->holder = actor->holder;
    request->request = actor->request;
    request->session = actor->session;
    if (!known)
        world->acquisitions[actor->number] = acquisition_of(actor->key, &actor->options);
    actor->facts = world->rules.facts;
    if (actor->poll_ms != 0)
        actor->facts.poll_ms = actor->poll_ms;
    actor->options.facts = &actor->facts;
    actor->busy = true;
    actor->answered = actor->inside = actor->lost = false;
    if (!world->rules.keeps_copies || actor->known_key != actor->key)
        actor->known = false;
    actor->began_ms = world->now_ms;
    world->counts->operations++;
    if (actor->process != NULL) {
        caller_start(world, actor);
        return;
    }
    if (world->on_executor) {
        runner_start(world, actor);
        return;
    }
    lease_init(&actor->lease, &actor->options, &actor->sightings[actor->key],
               random_next(&world->random));
    actor_step(world, actor, &(struct event){.kind = EVENT_START}, NULL);
}

void actor_let_go(struct world *world, struct actor *actor)
{
    if (!actor->alive || !actor->busy)
        return;
    world->counts->operations++;
    actor->inside = false;
    if (actor->process != NULL)
        caller_let_go(actor);
    else if (world->on_executor)
        runner_let_go(actor);
    else
        actor_step(world, actor, &(struct event){.kind = EVENT_RELEASE}, NULL);
}

void actor_forget(struct world *world, struct actor *actor)
{
    world_say(world, actor->name, "leaves it behind");
    if (actor->process != NULL) {
        caller_forget(world, actor);
        return;
    }
    actor->busy = actor->inside = false;
    if (world->on_executor)
        runner_forget(actor);
}

/* Iterates over the actors of a process; NULL after the last. */
static struct actor *next_in_process(struct world *world, const struct actor *actor,
                                     const struct actor *after)
{
    for (size_t i = after != NULL ? after->index + 1 : 0; i < world->actor_count; i++)
        if (actor_same_process(&world->actors[i], actor))
            return &world->actors[i];
    return NULL;
}

void actor_crash(struct world *world, struct actor *actor)
{
    world_say(world, actor->name, "dies");
    history_crash(world, actor);
    world->dead_session[actor->session] = true;
    world->died_ms[world->dead_count] = world->now_ms;
    world->dead[world->dead_count++] = actor->session;
    for (struct actor *mate = NULL; (mate = next_in_process(world, actor, mate)) != NULL;) {
        runner_free(mate);
        mate->alive = mate->busy = mate->inside = mate->paused = mate->known = false;
        mate->caller = (struct caller){0};
        memset(mate->heard_of, 0, sizeof mate->heard_of);
    }
    world->counts->crashes++;
}

void actor_revive(struct world *world, struct actor *actor)
{
    uint64_t session = world->next_session++;
    world_say(world, actor->name, "starts anew");
    if (session >= NUMBERS_MAX)
        abort();
    for (struct actor *mate = NULL; (mate = next_in_process(world, actor, mate)) != NULL;) {
        mate->alive = true;
        mate->session = session;
        mate->alive_ms = 0;
        memset(mate->sightings, 0, sizeof mate->sightings);
    }
}

void actor_pause(struct world *world, struct actor *actor, int64_t until_ms)
{
    world_say(world, actor->name, "stands still");
    for (struct actor *mate = NULL; (mate = next_in_process(world, actor, mate)) != NULL;) {
        mate->paused = true;
        mate->resumes_at_ms = until_ms;
        mate->asleep_ms -= world->now_ms;
    }
    world->counts->pauses++;
}

void actor_wake(struct world *world, struct actor *actor)
{
    if (!actor->alive || !(actor->busy || actor->has_callers))
        return;
    if (world->on_executor)
        runner_tick(actor);
    else
        actor_step(world, actor, &(struct event){.kind = EVENT_TIMER}, NULL);
}

/* The deadline is checked first after every wake-up; the work may have been faster. */
void actor_resume(struct world *world, struct actor *actor)
{
    if (!actor->paused)
        return;
    world_say(world, actor->name, "goes on");
    for (struct actor *mate = NULL; (mate = next_in_process(world, actor, mate)) != NULL;) {
        mate->paused = false;
        mate->asleep_ms += world->now_ms;
        if (mate->alive && mate->inside)
            actor_write(world, mate, /* delay_ms= */ 0);
    }
    actor_wake(world, actor->process != NULL ? actor->process : actor);
    for (struct actor *mate = NULL; (mate = next_in_process(world, actor, mate)) != NULL;)
        if (mate->inside && !mate->lost)
            oracle_alone(world, mate);
}

void actor_write(struct world *world, struct actor *actor, int64_t delay_ms)
{
    world_schedule(world,
                   (struct world_event){.at_ms = world->now_ms + delay_ms,
                                        .kind = WORLD_GUARDED,
                                        .actor = actor->index,
                                        .what = (int)((size_t)actor->order * KEYS_MAX + actor->key),
                                        .value = actor->token});
}

void guard_receives(struct world *world, const struct actor *actor,
                    const struct world_event *world_event)
{
    (void)actor;
    uint32_t what = (uint32_t)world_event->what;
    oracle_guarded_write(world, &world->keys[what % KEYS_MAX], world_event->value, what / KEYS_MAX);
}
