/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The epoch of tokens, as it is raised after a restored backup: tokens grow over a raise, a
 * condition that names an older epoch fails, and grants that exist keep their tokens. Each raise
 * concerns the whole store, so there are few.
 */
#include "parties.h"
#include "suite.h"

#include "store/admin.h"

enum { EPOCH_SHIFT = 55, LONG_MS = 60000 };

static struct epoch_state epoch_now(void)
{
    struct epoch_state state = {0};
    EXPECT(suite_epoch(/* least= */ 0, &state) == REPLY_OK);
    return state;
}

/* Raises by one. A user of the store may lack the right to, which is no defect of it. */
static uint16_t raised_epoch(void)
{
    struct epoch_state state = epoch_now();
    uint16_t least = (uint16_t)(state.epoch + 1);
    if (least > EPOCH_MAX)
        suite_skip("higher epoch");
    enum reply_status result = suite_epoch(least, &state);
    if (result == REPLY_DENIED)
        suite_skip("right to raise the epoch");
    EXPECT(result == REPLY_OK);
    EXPECT(state.epoch >= least && state.behind == 0 && state.kept[0] != '\0');
    return state.epoch;
}

static uint64_t token_granted(unsigned client, const char *key)
{
    struct party *party = party_new(client, key);
    expect_held(party);
    uint64_t token = party->token;
    party_release(party);
    expect_state(party, LEASE_ENDED);
    return token;
}

static void it_is_read_without_a_change(void)
{
    struct epoch_state first = epoch_now();
    const char *key = key_named("k");
    const struct store_reply *reply = ask(0, swapping(key, if_absent, value_of(key, "one")));
    EXPECT(reply->result == REPLY_OK && reply->written.epoch <= first.epoch);
    struct epoch_state second = epoch_now();
    EXPECT(second.epoch == first.epoch && second.revision > first.revision);
    EXPECT(second.now_ms >= first.now_ms);
}

/* Every client held the key before, so each knows records of the old epoch. */
static void tokens_grow_over_a_raise(void)
{
    const char *key = key_named("k"), *fresh = key_named("fresh");
    uint64_t highest = 0;
    for (unsigned client = 0; client < clients_count(); client++) {
        uint64_t token = token_granted(client, key);
        EXPECT(token > highest);
        highest = token;
    }
    uint16_t epoch = raised_epoch();
    EXPECT(epoch > highest >> EPOCH_SHIFT);
    for (unsigned client = 0; client < clients_count(); client++) {
        uint64_t token = token_granted(client, key);
        EXPECT(token > highest && token >> EPOCH_SHIFT == epoch);
        highest = token;
        EXPECT(token_granted(client, fresh) >> EPOCH_SHIFT == epoch);
    }
}

/* A holder from before the raise, a renewal and a release by its token, and a stale writer. */
static void a_grant_outlives_a_raise(void)
{
    const char *key = key_named("k"), *other = key_named("other");
    struct party *holder = party_new(0, key), *kept = party_new(1, other);
    holder->options.request.ttl_ms = kept->options.request.ttl_ms = LONG_MS; /* a raise may wait */
    expect_held(holder);
    expect_held(kept);
    uint64_t token = holder->token;
    struct stamp before = ask(2, reading(key))->written;
    uint16_t epoch = raised_epoch();
    expect_outcome(party_operation(1, key, VERB_RENEW, token), OUTCOME_OK);
    const struct store_reply *reply = ask(2, reading(key));
    EXPECT(reply->present && token_in(reply, key) == token);
    EXPECT(stamp_order(&reply->written) > stamp_order(&before));
    /* The number of the current revision, in the epoch in which the writer read. */
    struct stamp stale = reply->written, current = reply->written;
    struct value value = value_of(key, "stale writer");
    stale.epoch = (uint16_t)(epoch - 1);
    if (stale.epoch != current.epoch) {
        EXPECT(ask(2, swapping(key, if_write(&stale), value))->result == REPLY_CONFLICT);
        EXPECT(ask(2, deleting(key, if_write(&stale)))->result == REPLY_CONFLICT);
    }
    EXPECT(token_in(ask(0, reading(key)), key) == token);
    party_release(kept);
    expect_state(kept, LEASE_ENDED);
    EXPECT(kept->outcome == OUTCOME_OK);
    expect_outcome(party_operation(1, key, VERB_RELEASE, token), OUTCOME_OK);
    uint64_t next = token_granted(2, key);
    EXPECT(next > token && next >> EPOCH_SHIFT == epoch);
    /* It is not lowered, and not raised again. */
    struct epoch_state again = {0};
    EXPECT(suite_epoch(/* least= */ 1, &again) == REPLY_OK && again.epoch == epoch);
}

static const struct test_case test_cases[] = {
    {"epoch: it is read without a change", it_is_read_without_a_change, STORE_EPOCH, false},
    {"epoch: tokens grow over a raise", tokens_grow_over_a_raise, STORE_EPOCH, false},
    {"epoch: a grant outlives a raise, and a condition of the old epoch fails",
     a_grant_outlives_a_raise, STORE_EPOCH, false},
};

const struct test_group epoch_tests = {test_cases, sizeof test_cases / sizeof test_cases[0]};
