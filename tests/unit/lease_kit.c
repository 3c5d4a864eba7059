/* SPDX-License-Identifier: Apache-2.0 */
/* See lease_kit.h. */
#include "lease_kit.h"

#include "base/text.h"
#include "wire/record_codec.h"

#include <stdlib.h>
#include <string.h>

struct lease lease;
struct lease_options options;
struct store_facts facts;
struct lease_output out;
struct record record;
int64_t now_ms;

static void *store;
static struct record standing;
static char bytes[RECORD_MAX], line[1024];

/* The request in flight, as it was sent. */
static struct {
    struct store_request request;
    uint32_t serial;
    char bytes[RECORD_MAX];
} sent;

/* A reply of the store, its bytes copied. */
struct kept {
    struct store_reply reply;
    uint32_t serial;
    char bytes[RECORD_MAX];
};
static struct kept kept, looked;

static struct observations observations;

static int64_t store_now(void *owner)
{
    return *(const int64_t *)owner - CLOCK_APART_MS;
}

int open_lease(void **state)
{
    (void)state;
    struct store_callbacks site = {.clock = {.now_ms = store_now, .owner = &now_ms}};
    struct text no_text = {0};
    now_ms = START_MS;
    options = (struct lease_options){.request = {.verb = VERB_ACQUIRE,
                                                 .key = "k",
                                                 .holder = "a",
                                                 .request = "a",
                                                 .session = 'a',
                                                 .ttl_ms = 9000,
                                                 .waits = true},
                                     .wait_ms = WAIT_WITHOUT_LIMIT,
                                     .facts = &facts,
                                     .timeout_ms = 10000,
                                     .kill_grace_ms = 5000};
    facts = memory_driver.facts;
    facts.reply_timeout_ms = 250;
    memset(&observations, 0, sizeof observations);
    memset(&out, 0, sizeof out);
    memset(&lease, 0, sizeof lease);
    store = malloc(memory_driver.state_size);
    return store == NULL || !memory_driver.open(store, "memory:", &site, &no_text);
}

int close_lease(void **state)
{
    (void)state;
    memory_driver.close(store);
    free(store);
    return 0;
}

void use_verb(enum verb verb, uint64_t token)
{
    options.request.verb = verb;
    options.request.token = token;
    options.request.waits = false;
    options.request.reason = "stuck";
}

static void keep(void *caller, const struct store_reply *reply)
{
    struct kept *where = caller;
    where->reply = *reply;
    if (!reply->present)
        return;
    memcpy(where->bytes, reply->bytes, reply->length);
    where->reply.bytes = where->bytes;
}

static void look(void)
{
    struct store_request read = {.verb = VERB_STORE_READ, .key = options.request.key};
    memory_driver.submit(store, &read, keep, &looked);
}

static void step(struct event *event)
{
    struct text trace;
    text_init(&trace, line, sizeof line);
    event->now_ms = now_ms;
    lease_step(&lease, event, &record, &out, &trace);
    assert_false(trace.cut);
    if (out.action == ACTION_NONE)
        return;
    translate_request(&lease, &out, &record, bytes, sizeof bytes, &sent.request);
    sent.serial = out.serial;
    memcpy(sent.bytes, bytes, sent.request.length);
    sent.request.bytes = sent.bytes;
}

static void know(const struct kept *what, struct event *event)
{
    const char *why = NULL;
    translate_reply(&what->reply, options.request.key, &record, event, &why);
}

void happens(enum event_kind kind)
{
    struct event event = {.kind = kind};
    step(&event);
}

void happens_knowing(enum event_kind kind)
{
    struct event event = {.kind = kind};
    look();
    know(&looked, &event);
    step(&event);
}

void begin(void)
{
    lease_init(&lease, &options, &observations, /* seed= */ 7);
    happens(EVENT_START);
}

void begin_knowing(void)
{
    lease_init(&lease, &options, &observations, /* seed= */ 7);
    happens_knowing(EVENT_START);
}

void wake(void)
{
    assert_true(out.wake_at_ms != NEVER);
    if (out.wake_at_ms > now_ms)
        now_ms = out.wake_at_ms;
    happens(EVENT_TIMER);
}

void wake_between(int64_t least_ms, int64_t most_ms)
{
    assert_in_range(out.wake_at_ms, least_ms, most_ms);
    wake();
}

void carry_out_unanswered(void)
{
    assert_true(lease.in_flight);
    kept.serial = sent.serial;
    memory_driver.submit(store, &sent.request, keep, &kept);
}

void deliver_kept(void)
{
    struct event event = {.kind = EVENT_REPLY, .serial = kept.serial};
    know(&kept, &event);
    step(&event);
}

void carry_out(void)
{
    carry_out_unanswered();
    deliver_kept();
}

void reply(enum reply_status result)
{
    struct event event = {.kind = EVENT_REPLY, .serial = sent.serial, .reply = result};
    assert_true(lease.in_flight);
    step(&event);
}

void answer_refused(int64_t retry_at_ms)
{
    struct event event = {.kind = EVENT_REPLY,
                          .serial = sent.serial,
                          .reply = REPLY_TROUBLE,
                          .refused = true,
                          .retry_at_ms = retry_at_ms};
    assert_true(lease.in_flight);
    step(&event);
}

uint64_t token_in_store(const char *who)
{
    struct event event;
    const char *why = NULL;
    look();
    translate_reply(&looked.reply, options.request.key, &standing, &event, &why);
    assert_true(event.known);
    const struct grant *grant = record_grant_by_request(&standing, who);
    return grant != NULL ? grant_token(grant) : 0;
}

struct request neighbours_request(enum verb verb, const char *who)
{
    return (struct request){.verb = verb,
                            .key = options.request.key,
                            .holder = who,
                            .request = who,
                            .session = (unsigned char)who[0],
                            .token = token_in_store(who),
                            .ttl_ms = 9000,
                            .waits = true,
                            .reason = "stuck"};
}

/* False when the store removed the ended record meanwhile: then the lease queries again. */
static bool try_as_neighbour(const struct request *request, struct verdict *out_verdict)
{
    struct event event;
    const char *why = NULL;
    look();
    translate_reply(&looked.reply, options.request.key, &standing, &event, &why);
    struct store_facts neighbours = memory_driver.facts;
    neighbours.one_clock = facts.one_clock;
    struct view view = {.at = event.at, .facts = &neighbours};
    *out_verdict = rules_decide(&standing, request, &view);
    if (!out_verdict->write)
        return true;
    struct store_request write = {.verb = VERB_STORE_DELETE, .key = options.request.key};
    write.condition.kind = event.at.revision == 0 ? IF_ABSENT : IF_REVISION;
    write.condition.revision = event.at.revision;
    if (record_needed(&standing)) {
        write.verb = VERB_STORE_SWAP;
        write.bytes = bytes;
        write.length = record_encode(&standing, bytes, sizeof bytes);
    }
    memory_driver.submit(store, &write, keep, &looked);
    return looked.reply.result != REPLY_CONFLICT || looked.reply.present;
}

struct verdict neighbour_does(struct request request)
{
    struct verdict verdict;
    while (!try_as_neighbour(&request, &verdict)) {
    }
    if (verdict.write)
        assert_int_equal(looked.reply.result, REPLY_OK);
    return verdict;
}

struct verdict neighbour(enum verb verb, const char *who)
{
    return neighbour_does(neighbours_request(verb, who));
}

void assert_line(const char *expected)
{
    assert_string_equal(line, expected);
}

void assert_ended(enum outcome outcome, const char *why)
{
    assert_int_equal(lease.state, LEASE_ENDED);
    assert_int_equal(out.notify, NOTIFY_ENDED);
    assert_int_equal(out.outcome, outcome);
    if (why == NULL || out.why == NULL)
        assert_ptr_equal(out.why, why);
    else
        assert_string_equal(out.why, why);
    assert_true(out.wake_at_ms == NEVER);
}

void assert_wakes(const char *letters)
{
    assert_int_equal(out.wake_count, strlen(letters));
    for (size_t i = 0; i < out.wake_count; i++)
        assert_int_equal(out.wake[i], letters[i]);
}
