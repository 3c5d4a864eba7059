/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids that are done once, and watermarks, in real time through the core and the driver (rules 6 and
 * 7): one claim is new and the others get running or done; no id is done twice; all of it survives
 * a restart; and of those that expect the same watermark one moves it.
 */
#include "parties.h"

#include <stdio.h>
#include <string.h>

enum { KEEP_MS = 600000, CROWD = 12 };

static const char *prefixed(const char *prefix, const char *name)
{
    char key[KEY_MAX + 1];
    (void)snprintf(key, sizeof key, "%s%s", prefix, key_named(name));
    return suite_keep(key, strlen(key));
}

static const char *id_named(const char *name)
{
    return prefixed(ONCE_PREFIX, name);
}

static struct record *standing(unsigned client, const char *key)
{
    return record_in(ask(client, reading(key)), key);
}

static const struct completion *result(const char *text)
{
    struct completion completion = {.result = text};
    return suite_keep(&completion, sizeof completion);
}

static struct party *claimer(unsigned client, const char *key)
{
    struct party *party = party_new(client, key);
    party->options.request.kind = KIND_ONCE;
    party->options.request.completion = result(party->holder);
    party->options.cooldown_ms = KEEP_MS;
    return party;
}

static struct party *marker(unsigned client, const char *key)
{
    struct party *party = claimer(client, key);
    party->options.request.verb = VERB_MARK;
    return party;
}

/* Checks through every client that the id was done by this party. */
static void expect_done(const char *key, const struct party *by)
{
    for (unsigned client = 0; client < clients_count(); client++) {
        const struct record *record = standing(client, key);
        EXPECT(record->kind == KIND_ONCE && record->grant_count == 0);
        EXPECT(record->cooling.length_ms == KEEP_MS);
        EXPECT(strcmp(record->once.done.request, by->request) == 0);
        EXPECT(strcmp(record->once.done.result, by->holder) == 0);
    }
}

/* Runs all of them; returns the only one that succeeded. The others end with this outcome. */
static struct party *only_new(struct party **crowd, enum outcome others)
{
    struct party *found = NULL;
    for (unsigned i = 0; i < CROWD; i++) {
        parties_run(0);
        bool is_new = crowd[i]->held > 0 || (crowd[i]->ended && crowd[i]->outcome == OUTCOME_OK);
        EXPECT(!is_new || found == NULL);
        if (is_new)
            found = crowd[i];
        else
            expect_outcome(crowd[i], others);
    }
    EXPECT(found != NULL);
    return found;
}

static void of_all_claims_one_is_new(void)
{
    const char *key = id_named("k");
    struct party *crowd[CROWD];
    for (unsigned i = 0; i < CROWD; i++)
        crowd[i] = claimer(i, key);
    for (unsigned i = 0; i < CROWD; i++)
        party_start(crowd[i]);
    struct party *first = only_new(crowd, OUTCOME_BUSY);
    party_release(first);
    expect_outcome(first, OUTCOME_OK);
    expect_done(key, first);
    expect_outcome(claimer(1, key), OUTCOME_COOLING);
    expect_outcome(marker(2, key), OUTCOME_COOLING);
}

static void of_all_marks_one_is_new(void)
{
    const char *key = id_named("k");
    struct party *crowd[CROWD];
    for (unsigned i = 0; i < CROWD; i++)
        crowd[i] = marker(i, key);
    for (unsigned i = 0; i < CROWD; i++)
        party_start(crowd[i]);
    struct party *first = only_new(crowd, OUTCOME_COOLING);
    EXPECT(first->lease.serial == 1);
    expect_done(key, first);
}

static void an_abandoned_id_is_new_again(void)
{
    const char *key = id_named("k");
    struct party *a = claimer(0, key);
    a->options.cooldown_ms = 0;
    expect_held(a);
    expect_outcome(marker(1, key), OUTCOME_BUSY);
    party_release(a);
    expect_outcome(a, OUTCOME_OK);
    expect_absent(key);
    struct party *b = claimer(1, key);
    expect_held(b);
    EXPECT(b->token > a->token);
}

static void a_waiter_for_a_claim_gets_done(void)
{
    const char *key = id_named("k");
    struct party *a = claimer(0, key), *b = claimer(1, key);
    b->options.request.waits = true;
    b->options.wait_ms = WAIT_WITHOUT_LIMIT;
    expect_held(a);
    expect_state(b, LEASE_WAITING);
    party_release(a);
    expect_outcome(a, OUTCOME_OK);
    expect_outcome(b, OUTCOME_COOLING);
    expect_done(key, a);
}

static void another_payload_is_a_mismatch(void)
{
    const char *key = id_named("k");
    struct party *a = claimer(0, key);
    a->options.request.payload = "9f86d081";
    expect_held(a);
    for (unsigned i = 0; i < 2; i++) {
        struct party *other = claimer(1, key);
        other->options.request.payload = "1c";
        expect_outcome(other, OUTCOME_MISMATCH);
        expect_outcome(claimer(2, key), i == 0 ? OUTCOME_BUSY : OUTCOME_COOLING);
        if (i == 0) {
            party_release(a);
            expect_outcome(a, OUTCOME_OK);
        }
    }
    expect_outcome(party_new(3, key), OUTCOME_MISMATCH);
    expect_done(key, a);
}

/* A claim whose holder has vanished; returns its token. */
static uint64_t claim_of_the_lost(unsigned client, const char *key, int64_t ttl_ms)
{
    struct request request = request_by(client, key, "lost", VERB_ACQUIRE);
    request.kind = KIND_ONCE;
    request.ttl_ms = ttl_ms;
    EXPECT(act(client, request).kind == VERDICT_GRANTED);
    return grant_token(&standing(client, key)->grants[0]);
}

static struct party *finisher(unsigned client, const char *key, uint64_t token)
{
    struct party *party = party_operation(client, key, VERB_RELEASE, token);
    party->options.request.completion = result(party->holder);
    party->options.cooldown_ms = KEEP_MS;
    return party;
}

static void a_lost_claim_is_taken_again_and_done_once(void)
{
    const char *key = id_named("k");
    uint64_t token = claim_of_the_lost(0, key, suite_short_ms());
    suite_outlive(suite_short_ms());
    struct party *b = claimer(1, key);
    expect_held(b);
    EXPECT(b->token > token);
    expect_outcome(finisher(0, key, token), OUTCOME_STALE);
    party_release(b);
    expect_outcome(b, OUTCOME_OK);
    expect_outcome(finisher(2, key, token), OUTCOME_STALE);
    expect_done(key, b);
}

static void a_claim_is_finished_by_its_token_from_elsewhere(void)
{
    const char *key = id_named("k");
    uint64_t token = claim_of_the_lost(0, key, /* ttl_ms= */ 60000);
    expect_outcome(finisher(1, key, token + 1), OUTCOME_STALE);
    expect_outcome(finisher(1, key, token), OUTCOME_OK);
    expect_outcome(finisher(2, key, token), OUTCOME_OK); /* the same one, its reply lost */
    EXPECT(standing(3, key)->once.done.token == token);
    expect_outcome(party_operation(2, key, VERB_RELEASE, token), OUTCOME_STALE);
    expect_outcome(claimer(3, key), OUTCOME_COOLING);
}

static void a_retention_ends(void)
{
    const char *key = id_named("k");
    struct party *a = marker(0, key);
    a->options.cooldown_ms = 4 * suite_short_ms();
    expect_outcome(a, OUTCOME_OK);
    suite_outlive(4 * suite_short_ms());
    struct party *b = claimer(1, key);
    expect_held(b);
    EXPECT(standing(2, key)->once.done.request[0] == '\0');
}

static void an_id_awaiting_a_watermark_outlives_its_time(void)
{
    const char *key = id_named("k"), *mark = prefixed(WATERMARK_PREFIX, "w");
    struct completion completion = {.watermark = mark, .until = "100"};
    struct party *a = marker(0, key);
    a->options.cooldown_ms = suite_short_ms();
    a->options.request.completion = &completion;
    expect_outcome(a, OUTCOME_OK);
    suite_outlive(suite_short_ms());
    for (unsigned i = 0; i < 6; i++) /* other writes; the store may compact meanwhile */
        expect_outcome(marker(i, id_named("beside")), i == 0 ? OUTCOME_OK : OUTCOME_COOLING);
    expect_outcome(marker(1, key), OUTCOME_COOLING);
}

static struct party *mover(unsigned client, const char *key, const char *expected,
                           const char *value)
{
    struct party *party = party_operation(client, key, VERB_ADVANCE, 0);
    party->options.request.expected = expected;
    party->options.request.value = value;
    return party;
}

static void a_watermark_moves_for_one_of_many(void)
{
    /* Of requests for one position only one moves the watermark; the others are stale. */
    static const char *const values[CROWD] = {"21", "21", "21", "22", "22", "22",
                                              "23", "23", "23", "24", "24", "24"};
    const char *key = prefixed(WATERMARK_PREFIX, "w");
    struct party *crowd[CROWD];
    expect_outcome(mover(0, key, "", "9"), OUTCOME_OK);
    for (unsigned i = 0; i < CROWD; i++)
        crowd[i] = mover(i, key, "9", values[i]);
    for (unsigned i = 0; i < CROWD; i++)
        party_start(crowd[i]);
    const struct party *first = only_new(crowd, OUTCOME_STALE);
    for (unsigned client = 0; client < clients_count(); client++)
        EXPECT(strcmp(standing(client, key)->watermark.value, first->options.request.value) == 0);
}

static void a_watermark_only_moves_forward_unless_set(void)
{
    const char *key = prefixed(WATERMARK_PREFIX, "w");
    expect_outcome(mover(0, key, "", "9"), OUTCOME_OK);
    expect_outcome(mover(1, key, "9", "8"), OUTCOME_STALE);
    expect_outcome(mover(1, key, "8", "10"), OUTCOME_STALE);
    expect_outcome(mover(1, key, "9", "abc"), OUTCOME_MISMATCH);
    expect_outcome(mover(1, key, "9", "10"), OUTCOME_OK);
    expect_outcome(mover(2, key, "9", "10"), OUTCOME_STALE); /* another client made that move */
    struct party *setter = party_operation(3, key, VERB_SET, 0);
    setter->options.request.value = "3";
    setter->options.request.reason = "read again";
    expect_outcome(setter, OUTCOME_OK);
    const struct record *record = standing(0, key);
    EXPECT(strcmp(record->watermark.value, "3") == 0 && strcmp(record->reason, "read again") == 0);
    expect_outcome(party_new(1, key), OUTCOME_MISMATCH);
}

static void reopen_all(void)
{
    for (unsigned client = 0; client < clients_count(); client++)
        client_close(client);
    for (unsigned client = 0; client < clients_count(); client++)
        client_open(client);
}

static void all_states_survive_a_restart(void)
{
    const char *running = id_named("running"), *done = id_named("done"), *over = id_named("over");
    const char *mark = prefixed(WATERMARK_PREFIX, "w");
    uint64_t token = claim_of_the_lost(0, running, /* ttl_ms= */ 60000);
    struct party *a = marker(0, done), *short_lived = marker(1, over);
    short_lived->options.cooldown_ms = suite_short_ms();
    expect_outcome(a, OUTCOME_OK);
    expect_outcome(short_lived, OUTCOME_OK);
    expect_outcome(mover(1, mark, "", "9"), OUTCOME_OK);
    reopen_all();
    expect_outcome(claimer(1, running), OUTCOME_BUSY);
    expect_done(done, a);
    expect_outcome(claimer(2, done), OUTCOME_COOLING);
    expect_outcome(mover(2, mark, "8", "10"), OUTCOME_STALE);
    expect_outcome(mover(2, mark, "9", "10"), OUTCOME_OK);
    suite_outlive(suite_short_ms());
    expect_held(claimer(2, over));
    struct party *late = finisher(3, running, token);
    expect_outcome(late, OUTCOME_OK);
    EXPECT(strcmp(standing(0, running)->once.done.result, late->holder) == 0);
}

static const struct test_case test_cases[] = {
    {"once: of all claims one is new", of_all_claims_one_is_new, 0, false},
    {"once: of all marks one is new, and takes one write", of_all_marks_one_is_new, 0, false},
    {"once: an abandoned id is new again", an_abandoned_id_is_new_again, STORE_DELETES, false},
    {"once: a waiter for a claim gets done", a_waiter_for_a_claim_gets_done, 0, false},
    {"once: another payload is a mismatch", another_payload_is_a_mismatch, 0, false},
    {"once: a lost claim is taken again, and done once", a_lost_claim_is_taken_again_and_done_once,
     0, false},
    {"once: a claim is finished by its token from elsewhere",
     a_claim_is_finished_by_its_token_from_elsewhere, 0, false},
    {"once: a retention ends", a_retention_ends, 0, false},
    {"once: an id that awaits a watermark outlives its time",
     an_id_awaiting_a_watermark_outlives_its_time, 0, false},
    {"watermark: it moves for one of many", a_watermark_moves_for_one_of_many, 0, false},
    {"watermark: it only moves forward unless set", a_watermark_only_moves_forward_unless_set, 0,
     false},
    {"once: all states survive a restart", all_states_survive_a_restart, STORE_DURABLE, false},
};

const struct test_group once_tests = {test_cases, sizeof test_cases / sizeof test_cases[0]};
