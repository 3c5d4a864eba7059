/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that tests a grant at the write must do so as condition.c does, which calls the rules:
 * the same verdict on random records, and the same bytes after a renewal. The texts are chosen to
 * mislead a search for fields in text. The random numbers are the same in every run.
 */
#include "suite.h"

#include "base/random.h"
#include "core/rules.h"
#include "store/condition.h"
#include "wire/record_codec.h"

#include <stdio.h>
#include <string.h>

#define HOUR_MS ((int64_t)3600 * 1000)

enum { TEXT_COUNT = 14 };

static struct random dice;
static struct record made, scratch;
static int64_t now_ms;

static bool one_in(uint64_t count)
{
    return random_below(&dice, count) == 0;
}

static void any_text(char *out, size_t size, unsigned number)
{
    static const char *const texts[TEXT_COUNT] = {
        "this",   "\"granted\":\"this\"", "meta",        "{",        "}]",     "[0,1,2]", "\\",
        "\\\\\"", "\"renewed\":[",        ",\"meta\":{", "%1%0%b{}", "grün €", "session", "\"",
    };
    (void)snprintf(out, size, "%s%s%s", texts[random_below(&dice, TEXT_COUNT)],
                   texts[random_below(&dice, TEXT_COUNT)], one_in(2) ? " " : "");
    if (number > 0)
        (void)snprintf(out + strlen(out), size - strlen(out), "%u", number);
}

/* Whole hours before or after now, this write, or unknown. No store's clock was ever below 0, and
 * one that counts from boot may have started today. */
static struct stamp any_stamp(void)
{
    struct stamp stamp = {.epoch = (uint16_t)(one_in(2) ? 0 : random_below(&dice, EPOCH_MAX + 1)),
                          .revision = 1 + random_below(&dice, one_in(2) ? 1000 : REVISION_MAX - 1)};
    int64_t hours = (int64_t)random_below(&dice, 12) - 9;
    if (-hours > now_ms / HOUR_MS)
        hours = -(now_ms / HOUR_MS);
    stamp.time_ms = now_ms + hours * HOUR_MS;
    if (one_in(8))
        stamp.time_ms = TIME_UNKNOWN;
    if (one_in(3))
        stamp.revision = THIS_WRITE;
    return stamp;
}

/* Half hours, so that no stamp of whole hours ends about now. */
static int64_t any_length_ms(void)
{
    return HOUR_MS / 2 + (int64_t)random_below(&dice, 8) * HOUR_MS;
}

static void add_grant(unsigned number, enum mode mode)
{
    static const char *const names[] = {"this", "granted", "renewed", "since", "grants", "meta"};
    char value[128];
    struct grant *grant = record_add_grant(&made);
    any_text(grant->holder, sizeof grant->holder, 0);
    any_text(grant->request, sizeof grant->request, number + 1);
    grant->session = one_in(2) ? client_session(number % 2) : random_next(&dice);
    grant->mode = mode;
    grant->bound = one_in(2);
    grant->broken = one_in(6);
    grant->n = (uint16_t)((uint64_t)number * 16 + random_below(&dice, 16));
    grant->granted = any_stamp();
    grant->renewed = one_in(2) ? grant->granted : any_stamp();
    grant->ttl_ms = any_length_ms();
    grant->lock_delay_ms = one_in(2) ? 0 : any_length_ms();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!one_in(3))
            continue;
        any_text(value, sizeof value, 0);
        (void)meta_add(&grant->meta, names[i], one_in(3) ? "this" : value);
    }
}

static void add_waiter(unsigned number, enum mode mode)
{
    struct waiter *waiter = record_add_waiter(&made);
    any_text(waiter->holder, sizeof waiter->holder, 0);
    any_text(waiter->request, sizeof waiter->request, number + 100);
    waiter->session = random_next(&dice);
    waiter->mode = mode;
    waiter->ttl_ms = any_length_ms();
    waiter->offer = any_stamp();
    waiter->offered = true;
    if (record_broken(&made) != NULL)
        waiter->offered = false;
}

static void any_span(struct span *out)
{
    out->since = any_stamp();
    out->length_ms = any_length_ms();
    any_text(out->by, sizeof out->by, 0);
}

static void any_record(const char *key)
{
    record_init(&made, key);
    enum mode mode = (enum mode)random_below(&dice, 3);
    unsigned grants = mode == MODE_EXCLUSIVE ? 1 : 1 + (unsigned)random_below(&dice, 4);
    made.limit = mode == MODE_SLOT ? 64 : 0;
    if (mode == MODE_EXCLUSIVE && one_in(3)) {
        record_set_kind(&made, KIND_ONCE);
        any_text(made.once.payload, sizeof made.once.payload, 0);
    }
    if (one_in(4))
        any_span(&made.cooling);
    if (one_in(4))
        any_span(&made.delay);
    if (one_in(2))
        any_text(made.reason, sizeof made.reason, 0);
    for (unsigned i = 0; i < grants; i++)
        add_grant(i, mode);
    for (unsigned i = one_in(2) ? 0 : (unsigned)random_below(&dice, 6); i > 0; i--)
        add_waiter(i, mode);
    EXPECT(record_broken(&made) == NULL);
}

/* Mostly a token that exists. */
static uint64_t any_token(const struct stamp *written)
{
    record_resolve(&made, written);
    uint64_t token = grant_token(&made.grants[random_below(&dice, made.grant_count)]);
    switch (random_below(&dice, 12)) {
    case 0:
        return token + 1;
    case 1:
        return token ^ ((uint64_t)1 << 10);
    case 2:
        return token ^ ((uint64_t)1 << 55);
    default:
        return token;
    }
}

static struct store_request any_request(const char *key, const struct store_reply *first)
{
    uint64_t token = any_token(&first->written);
    if ((suite_bits() & STORE_RENEWS_GRANT) != 0 && !one_in(3)) {
        struct store_request request = renewing(key, token, any_length_ms());
        request.session = one_in(2) ? client_session(0) : random_next(&dice);
        request.bound = one_in(2);
        return request;
    }
    struct condition condition = one_in(2) ? if_grant(token) : if_revision(first->written.revision);
    condition.token = token;
    return deleting(key, condition);
}

/* A store may refuse more deletes than the rules: all of records with more than this grant. */
static bool says_no_more(void)
{
    return made.grant_count == 1 && made.waiter_count == 0 && made.cooling.length_ms == 0 &&
           made.delay.length_ms == 0;
}

static bool expect_as_the_rules(const char *key)
{
    static char bytes[RECORD_MAX + 1];
    now_ms = ask(0, reading(key))->now_ms;
    any_record(key);
    const struct store_reply *first = ask(0, swapping(key, if_absent, value_encode(&made)));
    EXPECT(first->result == REPLY_OK);
    struct store_request request = any_request(key, first);
    const struct store_reply *reply = ask((unsigned)random_below(&dice, clients_count()), request);
    struct stored_record stored = {.bytes = first->bytes,
                                   .length = first->length,
                                   .written = first->written,
                                   .now_ms = reply->now_ms};
    bool holds = condition_holds(&request, &stored, &scratch), done = reply->result == REPLY_OK;
    bool renews = request.verb == VERB_STORE_SWAP;
    bool strict = renews || request.condition.kind == IF_REVISION || says_no_more();
    EXPECT(done ? holds : reply->result == REPLY_CONFLICT && !(holds && strict));
    struct value value = {.bytes = first->bytes, .length = first->length};
    if (done && renews) {
        value.bytes = bytes;
        value.length = condition_renewal(&request, &stored, &scratch, bytes, sizeof bytes);
        EXPECT(reply->written.revision > first->written.revision);
    }
    EXPECT(done && !renews ? !reply->present : has_value(reply, value));
    if (reply->present)
        expect_stands(key, value, reply->written.revision);
    return done;
}

static void a_grant_is_tested_as_the_rules_say(void)
{
    enum { ROUNDS = 200 };
    unsigned done = 0;
    dice.state = 4;
    for (unsigned i = 0; i < ROUNDS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "k%u", i);
        done += expect_as_the_rules(key_named(name)) ? 1 : 0;
    }
    EXPECT(done > ROUNDS / 5 && done < ROUNDS - ROUNDS / 5); /* both verdicts occurred */
}

static const struct test_case test_cases[] = {
    {"renew: at random, byte for byte as the rules say", a_grant_is_tested_as_the_rules_say,
     STORE_TESTS_GRANT | STORE_TIME | STORE_DELETES, false},
};

const struct test_group rules_tests = {test_cases, sizeof test_cases / sizeof test_cases[0]};
