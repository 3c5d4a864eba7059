/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renew, release, break: only with the token (rule 2), a stale one changes nothing; re-homing never
 * shortens (rule 11); an operator's break with and without `now`. And the status of a key.
 */
#include "rules_kit.h"

#include "base/text.h"

#include <string.h>

static struct request with_token(enum verb verb, uint64_t token)
{
    struct request request = doing(verb, "a");
    request.token = token;
    return request;
}

static void a_renewal_moves_the_end_and_not_the_token(void **state)
{
    (void)state;
    (void)ask("a");
    uint64_t token = token_of_holder("a");
    pass(3000);
    struct verdict verdict = act(doing(VERB_RENEW, "a"));
    assert_kind(verdict, VERDICT_DONE, /* write= */ true);
    assert_int_equal(verdict.n, 0);
    assert_true(token_of_holder("a") == token);
    assert_int_equal(grant_of("a")->granted.time_ms, 1000000);
    assert_int_equal(grant_of("a")->renewed.time_ms, 1003000);
}

static void a_stale_token_changes_nothing(void **state)
{
    (void)state;
    (void)ask("a");
    uint64_t stale = token_of_holder("a");
    (void)release("a");
    (void)ask("b");
    (void)ask("c");
    static const enum verb verbs[] = {VERB_RENEW, VERB_RELEASE};
    for (size_t i = 0; i < 2; i++) {
        assert_kind(act(with_token(verbs[i], stale)), VERDICT_STALE, /* write= */ false);
        assert_kind(act(with_token(verbs[i], 0)), VERDICT_STALE, /* write= */ false);
        assert_kind(act(with_token(verbs[i], token_of_holder("b") + 1)), VERDICT_STALE,
                    /* write= */ false);
    }
    assert_standing("b | c");
}

static void a_token_ends_with_its_lease(void **state)
{
    (void)state;
    (void)ask("a");
    pass(TTL_MS);
    assert_kind(act(doing(VERB_RENEW, "a")), VERDICT_STALE, /* write= */ false);
    assert_kind(release("a"), VERDICT_STALE, /* write= */ false);
    assert_standing("a | -");
}

/* Not even its own home: the reply of an earlier renewal may still be in use. */
static void a_renewal_never_shortens(void **state)
{
    (void)state;
    (void)ask("a");
    struct request request = doing(VERB_RENEW, "a");
    request.ttl_ms = 500;
    (void)act(request);
    assert_int_equal(grant_of("a")->ttl_ms, TTL_MS);
    request.ttl_ms = TTL_MS + 1;
    (void)act(request);
    assert_int_equal(grant_of("a")->ttl_ms, TTL_MS + 1);
}

static void re_homing_never_shortens(void **state)
{
    (void)state;
    (void)ask("a");
    struct request request = doing(VERB_RENEW, "a");
    request.session = 99;
    request.ttl_ms = 500;
    assert_kind(act(request), VERDICT_DONE, /* write= */ true);
    assert_int_equal(grant_of("a")->ttl_ms, TTL_MS);
    assert_int_equal(grant_of("a")->session, 99);
    request.session = 98;
    request.ttl_ms = TTL_MS + 1;
    (void)act(request);
    assert_int_equal(grant_of("a")->ttl_ms, TTL_MS + 1);
}

static void re_homing_binds_or_frees(void **state)
{
    (void)state;
    (void)ask("a");
    struct request request = doing(VERB_RENEW, "a");
    request.bound = true;
    (void)act(request);
    assert_false(grant_of("a")->bound); /* its own home does not change its kind */
    request.session = 99;
    (void)act(request);
    assert_true(grant_of("a")->bound);
    request.session = 98;
    request.bound = false;
    (void)act(request);
    assert_false(grant_of("a")->bound);
}

static void a_release_frees_the_key(void **state)
{
    (void)state;
    (void)ask("a");
    assert_kind(release("a"), VERDICT_DONE, /* write= */ true);
    assert_false(record_needed(&record));
}

static void a_release_takes_only_its_own_grant(void **state)
{
    (void)state;
    (void)act(asking_shared("a"));
    struct request second = asking_shared("b");
    second.holder = "a";
    (void)act(second);
    (void)release("a");
    assert_standing("b | -");
}

static void a_second_release_changes_nothing(void **state)
{
    (void)state;
    (void)ask("a");
    struct request request = doing(VERB_RELEASE, "a");
    (void)act(request);
    (void)ask("b");
    assert_kind(act(request), VERDICT_STALE, /* write= */ false);
    assert_standing("b | -");
}

static void a_release_clears_the_dead_away(void **state)
{
    (void)state;
    (void)act(asking_slot("a", 3));
    pass(9000);
    (void)act(asking_slot("b", 3));
    pass(1000);
    struct verdict verdict = release("b");
    assert_kind(verdict, VERDICT_DONE, /* write= */ true);
    assert_int_equal(verdict.expired, 1);
    assert_false(record_needed(&record));
}

static struct request breaking(bool now)
{
    struct request request = doing(VERB_BREAK, "op");
    request.reason = "stuck since noon";
    request.now = now;
    return request;
}

static void a_break_is_told_at_the_next_renewal(void **state)
{
    (void)state;
    (void)ask("a");
    (void)ask("b");
    assert_kind(act(breaking(/* now= */ false)), VERDICT_DONE, /* write= */ true);
    assert_standing("a~ | b");
    assert_string_equal(record.reason, "stuck since noon");
    struct verdict verdict = act(doing(VERB_RENEW, "a"));
    assert_kind(verdict, VERDICT_BROKEN, /* write= */ false);
    assert_string_equal(verdict.why, "stuck since noon");
    (void)release("a");
    assert_standing("- | b!");
}

static void a_broken_grant_still_keeps_others_out(void **state)
{
    (void)state;
    (void)ask("a");
    (void)act(breaking(/* now= */ false));
    pass(TTL_MS - 1);
    assert_kind(ask("b"), VERDICT_WAITING, /* write= */ true);
    pass(1);
    assert_granted(ask("b"));
}

static void a_break_now_frees_at_once(void **state)
{
    (void)state;
    (void)act(asking_shared("a"));
    (void)act(asking_shared("b"));
    (void)ask("c");
    struct verdict verdict = act(breaking(/* now= */ true));
    assert_kind(verdict, VERDICT_DONE, /* write= */ true);
    assert_int_equal(verdict.offered, 1);
    assert_standing("- | c!");
}

static void a_break_now_lifts_the_delay(void **state)
{
    (void)state;
    struct request request = asking("a");
    request.lock_delay_ms = 3000;
    (void)act(request);
    (void)ask("b");
    pass(TTL_MS);
    (void)ask("b");
    assert_standing("- | b delayed");
    struct verdict verdict = act(breaking(/* now= */ false));
    assert_kind(verdict, VERDICT_DONE, /* write= */ false);
    assert_standing("- | b delayed");
    verdict = act(breaking(/* now= */ true));
    assert_kind(verdict, VERDICT_DONE, /* write= */ true);
    assert_string_equal(verdict.why, "nobody holds it");
    assert_standing("- | b!");
}

static void a_break_now_lifts_a_delay_that_nobody_waits_for(void **state)
{
    (void)state;
    struct request request = asking("a");
    request.lock_delay_ms = 3000;
    (void)act(request);
    pass(TTL_MS);
    request = asking("b");
    request.waits = false;
    (void)act(request);
    assert_standing("- | - delayed");
    assert_kind(act(breaking(/* now= */ true)), VERDICT_DONE, /* write= */ true);
    assert_false(record_needed(&record));
}

static void a_break_of_a_free_key_changes_nothing(void **state)
{
    (void)state;
    struct verdict verdict = act(breaking(/* now= */ true));
    assert_kind(verdict, VERDICT_DONE, /* write= */ false);
    assert_string_equal(verdict.why, "nobody holds it");
    assert_string_equal(record.reason, "");
}

static void a_break_that_finds_the_dead_names_the_next(void **state)
{
    (void)state;
    (void)ask("a");
    (void)ask("b");
    pass(TTL_MS);
    struct verdict verdict = act(breaking(/* now= */ false));
    assert_kind(verdict, VERDICT_DONE, /* write= */ true);
    assert_string_equal(verdict.why, "nobody holds it");
    assert_standing("- | b!");
}

static void a_break_after_a_delay_names_the_next(void **state)
{
    (void)state;
    struct request request = asking("a");
    request.lock_delay_ms = 3000;
    (void)act(request);
    (void)ask("b");
    pass(TTL_MS);
    (void)ask("b");
    pass(3000);
    assert_kind(act(breaking(/* now= */ false)), VERDICT_DONE, /* write= */ true);
    assert_standing("- | b!");
}

/* Its reply was lost, and another client holds since: the operator did not mean that one. */
static void a_repeated_break_spares_the_next_holder(void **state)
{
    (void)state;
    for (int now = 0; now < 2; now++) {
        fresh(NULL);
        (void)act(asking_shared("a"));
        struct request request = breaking(now != 0);
        request.up_to = view.at.revision;
        (void)act(asking_shared("b"));
        assert_kind(act(request), VERDICT_DONE, /* write= */ true);
        assert_standing(now != 0 ? "b | -" : "a~+b | -");
    }
}

static void a_break_names_whom_it_is_about(void **state)
{
    (void)state;
    struct broken broken = {.count = 9};
    struct request request = breaking(/* now= */ true);
    request.broken = &broken;
    (void)act(request);
    assert_int_equal(broken.count, 0);
    (void)act(asking_shared("a"));
    (void)act(asking_shared("b"));
    uint64_t token = grant_token(grant_of("a")), revision = view.at.revision;
    (void)act(request);
    assert_int_equal(broken.count, 2);
    assert_string_equal(broken.holder, "a");
    assert_true(broken.token == token);
    request.up_to = revision; /* it is repeated: the first one may have freed the key */
    (void)act(request);
    assert_int_equal(broken.count, 2);
    request.up_to = 0;
    (void)act(request);
    assert_int_equal(broken.count, 0);
    assert_string_equal(broken.holder, "");
}

static void a_repeated_break_spares_a_later_delay(void **state)
{
    (void)state;
    struct request delayed = asking("a");
    delayed.lock_delay_ms = 3000;
    delayed.bound = true;
    (void)act(delayed);
    struct request request = breaking(/* now= */ true);
    request.up_to = view.at.revision;
    grant_of("a")->dead = true;
    (void)ask("b");
    assert_standing("- | b delayed");
    assert_kind(act(request), VERDICT_DONE, /* write= */ false);
    assert_standing("- | b delayed");
}

/* Status output. */

static void assert_look(enum key_state key_state, const char *holder, int64_t since_ms,
                        int64_t ends_in_ms)
{
    struct key_info key_info = record_key_info(&record, &view);
    assert_int_equal(key_info.state, key_state);
    if (holder == NULL)
        assert_null(key_info.holder);
    else
        assert_string_equal(key_info.holder, holder);
    assert_int_equal(key_info.since_ms, since_ms);
    assert_int_equal(key_info.ends_in_ms, ends_in_ms);
}

static void a_free_key_looks_free(void **state)
{
    (void)state;
    assert_look(KEY_FREE, NULL, 0, 0);
}

static void a_held_key_shows_holder_token_and_rest(void **state)
{
    (void)state;
    (void)ask("a");
    pass(1000);
    (void)act(doing(VERB_RENEW, "a"));
    pass(2000);
    facts.margin_ms = 50;
    assert_look(KEY_HELD, "a", 1000000, TTL_MS - 2000);
    assert_int_equal(record_key_info(&record, &view).takeover_in_ms, TTL_MS - 2000 + 50);
    pass(TTL_MS - 2000 + 20); /* the lease is over, but no client may take it yet */
    assert_look(KEY_HELD, "a", 1000000, 0);
    assert_int_equal(record_key_info(&record, &view).takeover_in_ms, 30);
    assert_true(record_key_info(&record, &view).token == token_of_holder("a"));
}

static void an_ended_grant_is_not_shown(void **state)
{
    (void)state;
    (void)act(asking_shared("a"));
    pass(9000);
    (void)act(asking_shared("b"));
    pass(1000);
    assert_look(KEY_HELD, "b", 1009000, 9000);
    pass(9000);
    assert_look(KEY_FREE, NULL, 0, 0);
}

static void an_offered_key_shows_to_whom(void **state)
{
    (void)state;
    (void)act(asking_slot("a", 2));
    (void)act(asking_slot("b", 2));
    (void)act(asking_slot("c", 2));
    (void)act(asking_slot("d", 2));
    (void)release("b");
    assert_look(KEY_HELD, "a", 1000000, TTL_MS);
    (void)release("a");
    (void)act(doing(VERB_LEAVE, "c"));
    pass(400);
    assert_look(KEY_OFFERED, "d", 1000000, OFFER_GRACE_MS - 400);
}

static void a_waiter_does_not_hold(void **state)
{
    (void)state;
    (void)ask("a");
    (void)ask("b");
    pass(TTL_MS);
    assert_look(KEY_FREE, NULL, 0, 0);
}

static void a_cooling_key_shows_by_whom_and_how_long(void **state)
{
    (void)state;
    (void)ask("a");
    struct request request = doing(VERB_RELEASE, "a");
    request.cooldown_ms = 5000;
    (void)act(request);
    pass(2000);
    assert_look(KEY_COOLING, "a", 1000000, 3000);
    pass(3000);
    assert_look(KEY_FREE, NULL, 0, 0);
}

static void a_delayed_key_shows_after_whom(void **state)
{
    (void)state;
    struct request request = asking("a");
    request.lock_delay_ms = 3000;
    (void)act(request);
    pass(TTL_MS);
    (void)ask("b");
    assert_look(KEY_DELAYED, "a", 1000000 + TTL_MS, 3000);
}

static void without_a_clock_no_end_is_shown(void **state)
{
    (void)state;
    (void)ask("a");
    facts.judge = JUDGE_SESSION;
    assert_look(KEY_HELD, "a", 1000000, -1);
    facts.judge = JUDGE_OBSERVED;
    assert_look(KEY_HELD, "a", 1000000, -1);
}

/* A record from a store without a clock, or a store that lost its own for a moment. */
static void an_unknown_time_has_no_end(void **state)
{
    (void)state;
    (void)ask("a");
    grant_of("a")->granted.time_ms = grant_of("a")->renewed.time_ms = TIME_UNKNOWN;
    assert_look(KEY_HELD, "a", TIME_UNKNOWN, -1);
    fresh(NULL);
    (void)ask("a");
    view.at.time_ms = TIME_UNKNOWN;
    assert_look(KEY_HELD, "a", 1000000, -1);
}

/* Where the session keeps its bound grants alive, a renewal writes only to lengthen the TTL. */
static void a_renewal_by_session_writes_only_a_longer_ttl(void **state)
{
    (void)state;
    facts.renews_by_session = true;
    struct request request = asking("a");
    request.bound = true;
    assert_granted(act(request));
    struct request renewal = doing(VERB_RENEW, "a");
    renewal.ttl_ms = TTL_MS;
    assert_kind(act(renewal), VERDICT_DONE, /* write= */ false);
    renewal.ttl_ms = 2 * TTL_MS;
    assert_kind(act(renewal), VERDICT_DONE, /* write= */ true);
    assert_int_equal(grant_of("a")->ttl_ms, 2 * TTL_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_renewal_moves_the_end_and_not_the_token, fresh),
        cmocka_unit_test_setup(a_stale_token_changes_nothing, fresh),
        cmocka_unit_test_setup(a_token_ends_with_its_lease, fresh),
        cmocka_unit_test_setup(a_renewal_never_shortens, fresh),
        cmocka_unit_test_setup(re_homing_never_shortens, fresh),
        cmocka_unit_test_setup(re_homing_binds_or_frees, fresh),
        cmocka_unit_test_setup(a_release_frees_the_key, fresh),
        cmocka_unit_test_setup(a_release_takes_only_its_own_grant, fresh),
        cmocka_unit_test_setup(a_second_release_changes_nothing, fresh),
        cmocka_unit_test_setup(a_release_clears_the_dead_away, fresh),
        cmocka_unit_test_setup(a_break_is_told_at_the_next_renewal, fresh),
        cmocka_unit_test_setup(a_broken_grant_still_keeps_others_out, fresh),
        cmocka_unit_test_setup(a_break_now_frees_at_once, fresh),
        cmocka_unit_test_setup(a_break_now_lifts_the_delay, fresh),
        cmocka_unit_test_setup(a_break_now_lifts_a_delay_that_nobody_waits_for, fresh),
        cmocka_unit_test_setup(a_break_of_a_free_key_changes_nothing, fresh),
        cmocka_unit_test_setup(a_break_that_finds_the_dead_names_the_next, fresh),
        cmocka_unit_test_setup(a_break_after_a_delay_names_the_next, fresh),
        cmocka_unit_test_setup(a_repeated_break_spares_the_next_holder, fresh),
        cmocka_unit_test_setup(a_break_names_whom_it_is_about, fresh),
        cmocka_unit_test_setup(a_repeated_break_spares_a_later_delay, fresh),
        cmocka_unit_test_setup(a_free_key_looks_free, fresh),
        cmocka_unit_test_setup(a_held_key_shows_holder_token_and_rest, fresh),
        cmocka_unit_test_setup(an_ended_grant_is_not_shown, fresh),
        cmocka_unit_test_setup(an_offered_key_shows_to_whom, fresh),
        cmocka_unit_test_setup(a_waiter_does_not_hold, fresh),
        cmocka_unit_test_setup(a_cooling_key_shows_by_whom_and_how_long, fresh),
        cmocka_unit_test_setup(a_delayed_key_shows_after_whom, fresh),
        cmocka_unit_test_setup(without_a_clock_no_end_is_shown, fresh),
        cmocka_unit_test_setup(an_unknown_time_has_no_end, fresh),
        cmocka_unit_test_setup(a_renewal_by_session_writes_only_a_longer_ttl, fresh),
    };
    return cmocka_run_group_tests_name("rules_end", tests, NULL, NULL);
}
