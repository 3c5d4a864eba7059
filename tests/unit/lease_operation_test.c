/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations: a single verb with a token and no lease of its own. Renew, release, break, clear,
 * read, by the cached record, by the token alone, or after a query; and their result when late.
 */
#include "lease_kit.h"

/* Carries out requests until the operation sends no more. */
static void carry_on(void)
{
    while (lease.in_flight)
        carry_out();
}

static void an_errand_renews_by_token(void **state)
{
    (void)state;
    (void)neighbour(VERB_ACQUIRE, "b");
    use_verb(VERB_RENEW, token_in_store("b"));
    begin();
    assert_line("idle + start -> operation; read");
    carry_out();
    assert_line("operation + answer ok -> operation; verdict done; swap if revision 1");
    assert_int_equal(out.condition.token, 1024);
    carry_out();
    assert_line("operation + answer ok -> ended; told ok");
}

static void an_errand_goes_blind_where_the_store_tests(void **state)
{
    (void)state;
    facts.tests_grant = true;
    (void)neighbour(VERB_ACQUIRE, "b");
    use_verb(VERB_RENEW, token_in_store("b"));
    begin();
    assert_line("idle + start -> operation; swap if token stands 1024");
    reply(REPLY_TROUBLE);
    wake();
    assert_line("operation + timer -> operation; read"); /* the second time it queries */
    carry_on();
    assert_ended(OUTCOME_OK, NULL);
    close_lease(NULL);
    open_lease(NULL);
    facts.tests_grant = true;
    (void)neighbour(VERB_ACQUIRE, "b");
    use_verb(VERB_RELEASE, token_in_store("b"));
    begin();
    assert_line("idle + start -> operation; delete if token stands 1024");
    carry_on();
    assert_ended(OUTCOME_OK, NULL);
}

/* As on Redis: a token is enough for a release, but a renewal needs the revision. */
static void a_renewal_reads_where_the_store_only_tests(void **state)
{
    (void)state;
    facts.tests_grant = facts.renews_by_revision = true;
    (void)neighbour(VERB_ACQUIRE, "b");
    use_verb(VERB_RENEW, token_in_store("b"));
    begin();
    assert_line("idle + start -> operation; read");
    carry_out();
    assert_line("operation + answer ok -> operation; verdict done; swap if revision 1");
    carry_out();
    assert_ended(OUTCOME_OK, NULL);
    close_lease(NULL);
    open_lease(NULL);
    facts.tests_grant = facts.renews_by_revision = true;
    (void)neighbour(VERB_ACQUIRE, "b");
    use_verb(VERB_RELEASE, token_in_store("b"));
    begin();
    assert_line("idle + start -> operation; delete if token stands 1024");
}

/* Only a holder renews by its session; an operation never does, whatever its request says. */
static void an_operation_does_not_renew_by_session(void **state)
{
    (void)state;
    facts.tests_grant = facts.renews_by_session = true;
    (void)neighbour(VERB_ACQUIRE, "b");
    use_verb(VERB_RELEASE, token_in_store("b"));
    options.request.bound = true;
    begin();
    assert_line("idle + start -> operation; delete if token stands 1024");
}

static void an_errand_that_breaks_never_goes_blind(void **state)
{
    (void)state;
    facts.tests_grant = true;
    (void)neighbour(VERB_ACQUIRE, "b");
    use_verb(VERB_BREAK, 0);
    begin();
    assert_line("idle + start -> operation; read");
}

/* A copy may be older than the call: without a reply, all that came after it would be spared. */
static void an_operators_verb_reads_first(void **state)
{
    static const enum verb verbs[] = {VERB_BREAK, VERB_CLEAR, VERB_SET};
    (void)state;
    (void)neighbour(VERB_ACQUIRE, "b");
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        use_verb(verbs[i], 0);
        begin_knowing();
        assert_line("idle + start -> operation; read");
    }
}

static void an_errand_uses_what_is_known(void **state)
{
    (void)state;
    (void)neighbour(VERB_ACQUIRE, "b");
    use_verb(VERB_RELEASE, token_in_store("b"));
    begin_knowing();
    assert_line("idle + start -> operation; verdict done; delete if revision 1");
    carry_out();
    assert_ended(OUTCOME_OK, NULL);
}

static void a_stale_errand_says_so(void **state)
{
    (void)state;
    static const enum verb verbs[] = {VERB_RENEW, VERB_RELEASE};
    for (size_t i = 0; i < 2; i++) {
        use_verb(verbs[i], 77);
        begin();
        carry_out();
        assert_ended(OUTCOME_STALE, NULL);
    }
}

static void an_errand_hears_of_the_break(void **state)
{
    (void)state;
    (void)neighbour(VERB_ACQUIRE, "b");
    (void)neighbour(VERB_BREAK, "op");
    use_verb(VERB_RENEW, token_in_store("b"));
    begin();
    carry_out();
    assert_ended(OUTCOME_STALE, "broken by an operator");
}

static void an_errand_on_another_key_of_that_name_is_a_mismatch(void **state)
{
    (void)state;
    struct event event = {.kind = EVENT_REPLY, .known = true, .at = {.revision = 5}};
    use_verb(VERB_BREAK, 0);
    begin();
    record_init(&record, "K");
    event.serial = out.serial;
    event.now_ms = now_ms;
    lease_step(&lease, &event, &record, &out, NULL);
    assert_ended(OUTCOME_MISMATCH, "another key has the same name in the store");
}

static void an_unheard_errand_released_what_is_gone(void **state)
{
    (void)state;
    (void)neighbour(VERB_ACQUIRE, "b");
    use_verb(VERB_RELEASE, token_in_store("b"));
    begin_knowing();
    carry_out_unanswered();
    reply(REPLY_TROUBLE);
    wake();
    carry_out();
    assert_line("operation + answer ok -> ended; verdict stale; told ok");
}

static void an_unheard_errand_renewed_nothing_that_is_gone(void **state)
{
    (void)state;
    (void)neighbour(VERB_ACQUIRE, "b");
    use_verb(VERB_RENEW, token_in_store("b"));
    begin_knowing();
    carry_out_unanswered();
    reply(REPLY_TROUBLE);
    (void)neighbour(VERB_RELEASE, "b");
    wake();
    carry_out();
    assert_ended(OUTCOME_STALE, NULL);
}

static void an_errand_on_a_dead_store_is_unavailable(void **state)
{
    (void)state;
    use_verb(VERB_QUERY, 0);
    begin();
    while (lease.state != LEASE_ENDED)
        wake();
    assert_ended(OUTCOME_UNAVAILABLE, "the store does not answer");
    assert_int_equal(now_ms, START_MS + 10000);
}

static void a_denied_errand_says_so(void **state)
{
    (void)state;
    use_verb(VERB_CLEAR, 0);
    begin();
    reply(REPLY_DENIED);
    assert_ended(OUTCOME_DENIED, "the store does not permit it");
}

static void a_look_leaves_the_record_with_the_caller(void **state)
{
    (void)state;
    (void)neighbour(VERB_ACQUIRE, "b");
    use_verb(VERB_QUERY, 0);
    begin();
    carry_out();
    assert_ended(OUTCOME_OK, NULL);
    assert_int_equal(record.grant_count, 1);
    assert_string_equal(record.grants[0].holder, "b");
}

static void a_break_wakes_whom_it_breaks(void **state)
{
    (void)state;
    (void)neighbour(VERB_ACQUIRE, "b");
    (void)neighbour(VERB_ACQUIRE, "c");
    use_verb(VERB_BREAK, 0);
    begin();
    carry_out();
    assert_wakes("b");
    carry_out();
    assert_ended(OUTCOME_OK, NULL);
    options.request.now = true;
    begin();
    carry_out();
    assert_wakes("cb"); /* the waiter named instead, and the broken holder */
    assert_int_equal(out.given_count, 1);
    carry_out();
    assert_ended(OUTCOME_OK, NULL);
}

static void a_break_of_a_free_key_says_so(void **state)
{
    (void)state;
    use_verb(VERB_BREAK, 0);
    begin_knowing();
    assert_line("idle + start -> operation; read");
    carry_out();
    assert_ended(OUTCOME_OK, "nobody holds it");
    assert_int_equal(out.wake_count, 0);
}

/* Its reply was lost; meanwhile the holder confirmed, and another client holds. */
static void a_break_that_is_repeated_spares_the_next_holder(void **state)
{
    (void)state;
    (void)neighbour(VERB_ACQUIRE, "b");
    use_verb(VERB_BREAK, 0);
    begin();
    carry_out();
    carry_out_unanswered();
    reply(REPLY_TROUBLE);
    (void)neighbour(VERB_RELEASE, "b");
    (void)neighbour(VERB_ACQUIRE, "c");
    wake();
    carry_out();
    assert_line("operation + answer ok -> ended; verdict done; told ok (nobody holds it)");
    assert_false(record.grants[0].broken);
}

/* The time that the key was observed free does not apply to a new grant. */
static void an_observer_begins_anew_with_a_cooldown(void **state)
{
    (void)state;
    facts.judge = JUDGE_OBSERVED;
    use_verb(VERB_QUERY, 0);
    begin();
    carry_out();
    now_ms += 60000;
    (void)neighbour(VERB_ACQUIRE, "b");
    struct request request = neighbours_request(VERB_RELEASE, "b");
    request.cooldown_ms = 5000;
    (void)neighbour_does(request);
    options.request.verb = VERB_ACQUIRE;
    begin();
    carry_out();
    assert_ended(OUTCOME_COOLING, NULL);
    now_ms += 5000;
    begin();
    carry_out();
    assert_line("acquiring + answer conflict -> acquiring; verdict granted; swap if revision 2");
}

/* It has no request id of its own, and on one clock it grants to others. */
static void an_errand_wakes_whom_it_grants(void **state)
{
    (void)state;
    facts.one_clock = true;
    (void)neighbour(VERB_ACQUIRE, "b");
    (void)neighbour(VERB_ACQUIRE, "c");
    use_verb(VERB_RELEASE, token_in_store("b"));
    options.request.request = NULL;
    begin_knowing();
    assert_line("idle + start -> operation; verdict done, named 1; swap if revision 2, wakes 1");
    assert_wakes("c");
}

/* It finds no live holder to break; its write all the same does not change its result. */
static void a_break_that_found_only_the_dead_says_so(void **state)
{
    (void)state;
    (void)neighbour(VERB_ACQUIRE, "b");
    (void)neighbour(VERB_ACQUIRE, "c");
    now_ms += 9000;
    use_verb(VERB_BREAK, 0);
    begin();
    carry_out();
    assert_line(
        "operation + answer ok -> operation; verdict done, expired 1, named 1; swap if revision "
        "2, wakes 2");
    carry_out();
    assert_ended(OUTCOME_OK, "nobody holds it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEASE_TEST(an_errand_renews_by_token),
        LEASE_TEST(an_errand_goes_blind_where_the_store_tests),
        LEASE_TEST(a_renewal_reads_where_the_store_only_tests),
        LEASE_TEST(an_operation_does_not_renew_by_session),
        LEASE_TEST(an_errand_that_breaks_never_goes_blind),
        LEASE_TEST(an_operators_verb_reads_first),
        LEASE_TEST(an_errand_uses_what_is_known),
        LEASE_TEST(a_stale_errand_says_so),
        LEASE_TEST(an_errand_hears_of_the_break),
        LEASE_TEST(an_errand_on_another_key_of_that_name_is_a_mismatch),
        LEASE_TEST(an_unheard_errand_released_what_is_gone),
        LEASE_TEST(an_unheard_errand_renewed_nothing_that_is_gone),
        LEASE_TEST(an_errand_on_a_dead_store_is_unavailable),
        LEASE_TEST(a_denied_errand_says_so),
        LEASE_TEST(a_look_leaves_the_record_with_the_caller),
        LEASE_TEST(a_break_wakes_whom_it_breaks),
        LEASE_TEST(a_break_of_a_free_key_says_so),
        LEASE_TEST(a_break_that_is_repeated_spares_the_next_holder),
        LEASE_TEST(an_observer_begins_anew_with_a_cooldown),
        LEASE_TEST(an_errand_wakes_whom_it_grants),
        LEASE_TEST(a_break_that_found_only_the_dead_says_so),
    };
    return cmocka_run_group_tests_name("lease_errand", tests, NULL, NULL);
}
