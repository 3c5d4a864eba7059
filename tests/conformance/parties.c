/* SPDX-License-Identifier: Apache-2.0 */
/* See parties.h. */
#include "parties.h"

#include "store/translate.h"
#include "wire/record_codec.h"

#include <stdio.h>
#include <string.h>

enum { TTL_MS = 6000, POLL_MS = 200, TIMEOUT_MS = 5000, GRACE_MS = 100 };

static struct party *parties; /* of the running case */
static unsigned party_count;
static int64_t last_turn_ms = NEVER, longest_pause_ms;
static struct record record;
static struct lease_output output;
static char encoded[RECORD_MAX + 1];

void parties_forget(void)
{
    parties = NULL;
    party_count = 0;
    last_turn_ms = NEVER;
    longest_pause_ms = 0;
}

bool parties_stalled(int64_t ms)
{
    return longest_pause_ms > ms;
}

/* Parties that share a client are distinguished by sessions that only the core sees. */
static uint64_t session_of(unsigned client, unsigned number)
{
    return client_session(client) + (clients_count() == 1 ? number : 0);
}

struct party *party_new(unsigned client, const char *key)
{
    struct party *party = suite_keep(NULL, sizeof *party);
    unsigned number = ++party_count;
    (void)snprintf(party->holder, sizeof party->holder, "party %u", number);
    (void)snprintf(party->request, sizeof party->request, "request %u", number);
    party->next = parties;
    parties = party;
    party->client = client;
    party->wake_at_ms = NEVER;
    party->facts = suite_facts();
    party->facts.poll_ms = POLL_MS;
    party->options = (struct lease_options){.request = {.verb = VERB_ACQUIRE,
                                                        .key = key,
                                                        .holder = party->holder,
                                                        .request = party->request,
                                                        .session = session_of(client, number),
                                                        .ttl_ms = TTL_MS},
                                            .facts = &party->facts,
                                            .timeout_ms = TIMEOUT_MS,
                                            .kill_grace_ms = GRACE_MS};
    return party;
}

struct party *party_waiting(unsigned client, const char *key)
{
    struct party *party = party_new(client, key);
    party->options.request.waits = true;
    party->options.wait_ms = WAIT_WITHOUT_LIMIT;
    return party;
}

struct party *party_operation(unsigned client, const char *key, enum verb verb, uint64_t token)
{
    struct party *party = party_new(client, key);
    party->options.request.verb = verb;
    party->options.request.token = token;
    party->options.request.reason = "";
    return party;
}

/* The driver wakes other processes; the runtime wakes parties of its own process. */
static void wake_own(const struct party *writer, const struct store_request *request)
{
    for (struct party *party = parties; party != NULL; party = party->next)
        for (size_t i = 0; i < request->wake_count; i++)
            if (clients_count() == 1 && party != writer &&
                party->options.request.session == request->wake[i])
                party->woken = true;
}

static void recall(const struct party *party, struct event *event)
{
    struct event filled = *event;
    const char *why = NULL;
    if (party->last_reply == NULL)
        return;
    translate_reply(party->last_reply, party->options.request.key, &record, &filled, &why);
    if (why != NULL)
        suite_fail(why);
    event->reply = filled.reply;
    event->known = filled.known;
    event->at = filled.at;
}

static void on_told(struct party *party)
{
    if (output.notify == NOTIFY_HELD) {
        party->held++;
        party->token = party->lease.token;
    }
    party->lost += output.notify == NOTIFY_LOST ? 1 : 0;
    if (output.notify == NOTIFY_ENDED) {
        party->ended = true;
        party->outcome = output.outcome;
    }
}

static void step(struct party *party, enum event_kind kind)
{
    struct event event = {.kind = kind};
    if (!party->started || party->gone || party->ended)
        return;
    for (;;) {
        struct store_request request;
        event.now_ms = suite_now_ms();
        if (event.kind != EVENT_NOTICE)
            recall(party, &event);
        lease_step(&party->lease, &event, &record, &output, NULL);
        party->wake_at_ms = output.wake_at_ms;
        on_told(party);
        if (output.action == ACTION_NONE)
            return;
        event = (struct event){.kind = EVENT_REPLY, .serial = output.serial};
        translate_request(&party->lease, &output, &record, encoded, sizeof encoded, &request);
        party->last_reply = ask(party->client, request);
        if (party->last_reply->result == REPLY_OK)
            wake_own(party, &request);
    }
}

void party_start(struct party *party)
{
    const char *broken = request_broken(&party->options.request);
    if (broken != NULL)
        suite_fail(broken);
    lease_init(&party->lease, &party->options, &party->observations, client_session(party->client));
    party->started = true;
    step(party, EVENT_START);
}

void party_release(struct party *party)
{
    step(party, EVENT_RELEASE);
}

void party_vanish(struct party *party)
{
    party->gone = true;
}

static void deliver_notices(void)
{
    for (unsigned client = 0; client < clients_count(); client++) {
        struct client_replies client_replies =
            client_notices(client, /* wanted= */ 0, /* wait_ms= */ 0);
        for (size_t i = 0; i < client_replies.count; i++)
            for (struct party *party = parties; party != NULL; party = party->next)
                if (party->client % clients_count() == client &&
                    strcmp(party->options.request.key, client_replies.list[i].reply.key) == 0)
                    party->woken = true;
    }
}

static void live(void)
{
    int64_t now_ms = suite_now_ms();
    if (last_turn_ms != NEVER && now_ms - last_turn_ms > longest_pause_ms)
        longest_pause_ms = now_ms - last_turn_ms;
    last_turn_ms = now_ms;
    deliver_notices();
    for (struct party *party = parties; party != NULL; party = party->next) {
        bool woken = party->woken;
        party->woken = false;
        if (woken)
            step(party, EVENT_NOTICE);
        if (suite_now_ms() >= party->wake_at_ms)
            step(party, EVENT_TIMER);
    }
    suite_sleep(1);
}

void parties_run(int64_t ms)
{
    int64_t until_ms = suite_now_ms() + ms;
    while (suite_now_ms() < until_ms)
        live();
}

void expect_state(struct party *party, enum lease_state state)
{
    int64_t until_ms = suite_now_ms() + suite_soon_ms();
    if (!party->started)
        party_start(party);
    while (party->lease.state != state && suite_now_ms() < until_ms)
        live();
    if (party->lease.state == state)
        return;
    char text[128];
    (void)snprintf(text, sizeof text, "%s is %s and not %s", party->holder,
                   lease_state_name(party->lease.state), lease_state_name(state));
    suite_fail(text);
}

void expect_outcome(struct party *party, enum outcome outcome)
{
    expect_state(party, LEASE_ENDED);
    if (party->outcome == outcome)
        return;
    char text[128];
    (void)snprintf(text, sizeof text, "%s receives %s and not %s", party->holder,
                   outcome_name(party->outcome), outcome_name(outcome));
    suite_fail(text);
}

void expect_held(struct party *party)
{
    expect_state(party, LEASE_HELD);
    EXPECT(lease_held(&party->lease, suite_now_ms()));
    EXPECT(party->token != 0);
}

struct request request_by(unsigned client, const char *key, const char *who, enum verb verb)
{
    return (struct request){.verb = verb,
                            .key = key,
                            .holder = who,
                            .request = who,
                            .session = session_of(client, client + 1),
                            .ttl_ms = TTL_MS,
                            .waits = true};
}

struct verdict act(unsigned client, struct request request)
{
    struct store_facts facts = suite_facts();
    const struct store_reply *reply = ask(client, reading(request.key));
    struct event event = {0};
    const char *why = NULL;
    translate_reply(reply, request.key, &record, &event, &why);
    EXPECT(why == NULL && event.known);
    struct view view = {.at = event.at, .facts = &facts};
    struct verdict verdict = rules_decide(&record, &request, &view);
    struct condition condition = reply->present ? if_revision(event.at.revision) : if_absent;
    if (!verdict.write)
        return verdict;
    reply = record_needed(&record)
                ? ask(client, swapping(request.key, condition, value_encode(&record)))
                : ask(client, deleting(request.key, condition));
    EXPECT(reply->result == REPLY_OK);
    return verdict;
}
