/* SPDX-License-Identifier: Apache-2.0 */
/* See rules_kit.h. */
#include "rules_kit.h"

#include "base/text.h"

#include <string.h>

struct record record;
struct view view;
struct store_facts facts;

static struct record before;
static uint64_t revision, top_token;

int fresh(void **state)
{
    (void)state;
    memset(&record, 0xa5, sizeof record);
    record_init(&record, "k");
    facts = (struct store_facts){
        .judge = JUDGE_STORE_TIME, .waiters_max = WAITERS_MAX, .offer_grace_ms = OFFER_GRACE_MS};
    view = (struct view){.facts = &facts, .at = {.time_ms = 1000000}};
    revision = 40;
    top_token = 0;
    return 0;
}

void seen_for(int64_t ms)
{
    for (size_t i = 0; i < record.grant_count; i++)
        record.grants[i].observed_ms = ms;
    record.cooling.observed_ms = record.delay.observed_ms = ms;
}

void pass(int64_t ms)
{
    view.at.time_ms += ms;
    view.offer_observed_ms += ms;
}

struct request doing(enum verb verb, const char *who)
{
    return (struct request){.verb = verb,
                            .key = "k",
                            .holder = who,
                            .request = who,
                            .session = (unsigned char)who[0],
                            .token = token_of_holder(who),
                            .ttl_ms = TTL_MS};
}

struct request asking(const char *who)
{
    struct request request = doing(VERB_ACQUIRE, who);
    request.waits = true;
    return request;
}

struct request asking_shared(const char *who)
{
    struct request request = asking(who);
    request.mode = MODE_SHARED;
    return request;
}

struct request asking_slot(const char *who, uint32_t limit)
{
    struct request request = asking(who);
    request.mode = MODE_SLOT;
    request.limit = limit;
    return request;
}

/* Grants of this write have tokens above all earlier ones of the key (rule 2). */
static void check_tokens(void)
{
    uint64_t top = top_token;
    for (size_t i = 0; i < record.grant_count; i++) {
        uint64_t token = grant_token(&record.grants[i]);
        if (record.grants[i].granted.revision != revision)
            continue;
        assert_true(token > top_token);
        top = token > top ? token : top;
    }
    top_token = top;
}

struct verdict act(struct request request)
{
    record_copy(&before, &record);
    struct verdict verdict = rules_decide(&record, &request, &view);
    if (!verdict.write) { /* must not be written, so the store keeps its record */
        record_copy(&record, &before);
        return verdict;
    }
    view.at.revision = ++revision;
    record_resolve(&record, &view.at);
    assert_null(record_broken(&record));
    assert_true(record_size_bound(&record) <= RECORD_MAX && record.next_ticket <= TICKET_MAX);
    check_tokens();
    if (!record_needed(&record)) {
        record_init(&record, "k");
        view.at.revision = 0;
    }
    return verdict;
}

struct verdict ask(const char *who)
{
    return act(asking(who));
}

struct verdict release(const char *who)
{
    return act(doing(VERB_RELEASE, who));
}

void assert_kind(struct verdict verdict, enum verdict_kind kind, bool write)
{
    assert_int_equal(verdict.kind, kind);
    assert_int_equal(verdict.write, write);
}

void assert_granted(struct verdict verdict)
{
    assert_kind(verdict, VERDICT_GRANTED, /* write= */ true);
}

const char *standing(void)
{
    static char line[RECORD_MAX];
    struct text text;
    text_init(&text, line, sizeof line);
    for (size_t i = 0; i < record.grant_count; i++) {
        text_add(&text, i > 0 ? "+" : "");
        text_add(&text, record.grants[i].request);
        text_add(&text, record.grants[i].broken ? "~" : "");
    }
    text_add(&text, record.grant_count == 0 ? "- |" : " |");
    for (size_t i = 0; i < record.waiter_count; i++) {
        text_add(&text, " ");
        text_add(&text, record.waiters[i].request);
        text_add(&text, record.waiters[i].offered ? "!" : "");
    }
    text_add(&text, record.waiter_count == 0 ? " -" : "");
    text_add(&text, record.cooling.length_ms > 0 ? " cooling" : "");
    text_add(&text, record.delay.length_ms > 0 ? " delayed" : "");
    return line;
}

void assert_standing(const char *line)
{
    assert_string_equal(standing(), line);
}

struct grant *grant_of(const char *who)
{
    struct grant *grant = record_grant_by_request(&record, who);
    assert_non_null(grant);
    return grant;
}

struct waiter *waiter_of(const char *who)
{
    struct waiter *waiter = record_waiter_by_request(&record, who);
    assert_non_null(waiter);
    return waiter;
}

uint64_t token_of_holder(const char *who)
{
    const struct grant *grant = record_grant_by_request(&record, who);
    return grant != NULL ? grant_token(grant) : UINT64_MAX;
}
