/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifications that carry the current record: a waiter that is named there accepts by one write,
 * and an old, duplicated or late one costs at most one query.
 */
#include "runtime_kit.h"

#include "wire/record_codec.h"

#include <string.h>

static struct process *const them = &processes[0], *const us = &processes[1];

/* The record at the time it was kept, as a notification carries it. */
struct kept {
    struct store_reply reply;
    char bytes[1024];
};

static void acquire(struct process *process, struct caller *caller, bool waits)
{
    struct lease_options options = options_for("k", waits);
    start(process, caller, "a", &options);
    tick(process);
}

static void keep_answer(void *caller, const struct store_reply *reply)
{
    struct kept *kept = caller;
    assert_true(reply->length <= sizeof kept->bytes);
    kept->reply = *reply;
    if (reply->present)
        memcpy(kept->bytes, reply->bytes, reply->length);
    kept->reply.bytes = kept->bytes;
}

static void keep_what_stands(struct kept *out)
{
    struct store_request read = {.verb = VERB_STORE_READ, .key = "k"};
    them->site.submit(them, &read, keep_answer, out);
}

static void notice(const struct kept *kept)
{
    us->submitted = us->reads = 0;
    executor_on_notify(us->executor, "k", &kept->reply);
    tick(us);
}

/* They hold, we wait, they release; the notification is kept for the case to deliver. */
static void offer_to_us(struct caller *a, struct caller *b, struct kept *out)
{
    us->takes_notices = false;
    acquire(them, a, /* waits= */ false);
    acquire(us, b, /* waits= */ true);
    assert_told(b, NOTIFY_WAITING);
    let_go(a);
    tick(them);
    assert_ended(a, OUTCOME_OK);
    keep_what_stands(out);
}

static uint64_t known_revision(void)
{
    struct stamp at = {0};
    (void)executor_cached_record(us->executor, "k", &at);
    return at.revision;
}

static void a_notice_with_the_record_saves_a_read(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0};
    struct kept kept;
    offer_to_us(&a, &b, &kept);
    notice(&kept);
    assert_told(&b, NOTIFY_HELD);
    assert_int_equal(us->submitted, 1);
    assert_int_equal(us->reads, 0);
    assert_true(b.token == token_in_store("k") && b.token > a.token);
}

/* Rule 3: the deadline counts from before the acceptance was sent. */
static void the_deadline_begins_with_the_acceptance(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0};
    struct kept kept;
    offer_to_us(&a, &b, &kept);
    now_ms += 300;
    us->reply_mode = ANSWERS_LATER;
    notice(&kept);
    now_ms += 40;
    assert_true(answer_kept(us));
    tick(us);
    assert_told(&b, NOTIFY_HELD);
    assert_int_equal(b.deadline_ms, START_MS + 300 + 6000);
}

static void a_notice_that_comes_twice_is_taken_once(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0};
    struct kept kept;
    offer_to_us(&a, &b, &kept);
    us->reply_mode = ANSWERS_LATER;
    notice(&kept);
    assert_int_equal(us->submitted, 1);
    notice(&kept);
    assert_int_equal(us->submitted, 0);
    us->reply_mode = ANSWERS_AT_ONCE;
    assert_true(answer_kept(us));
    tick(us);
    assert_told(&b, NOTIFY_HELD);
    uint64_t revision = known_revision();
    notice(&kept); /* of the grant that we have accepted by now */
    assert_int_equal(us->submitted, 0);
    assert_told(&b, NOTIFY_HELD);
    assert_true(known_revision() == revision);
}

/* Their offer was not accepted: it lapsed, and they hold again. The store is authoritative. */
static void an_old_offer_is_a_conflict_and_no_grant(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0};
    struct kept kept;
    offer_to_us(&a, &b, &kept);
    acquire(them, &a, /* waits= */ true); /* in the queue behind us */
    run_until(START_MS + 4000);           /* and passes the offer on, to itself */
    assert_told(&a, NOTIFY_HELD);
    notice(&kept);
    assert_told(&b, NOTIFY_WAITING);
    assert_true(token_in_store("k") == a.token);
    let_go(&a);
    tick(them);
    keep_what_stands(&kept);
    notice(&kept);
    assert_told(&b, NOTIFY_HELD);
    assert_true(b.token > a.token);
}

/* The copy shows no record; without a revision it cannot be compared, so we query. */
static void a_notice_after_the_end_causes_a_read(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0};
    struct kept kept;
    offer_to_us(&a, &b, &kept);
    notice(&kept);
    let_go(&b);
    tick(us);
    assert_ended(&b, OUTCOME_OK);
    us->reply_mode = ANSWERS_LATER;
    acquire(us, &b, /* waits= */ true);
    notice(&kept);
    assert_int_equal(us->submitted, 0);
    us->reply_mode = ANSWERS_AT_ONCE;
    assert_true(answer_kept(us));
    run_until(now_ms + 10);
    assert_told(&b, NOTIFY_HELD);
    assert_true(b.token == token_in_store("k") && b.token > a.token);
}

static void an_unreadable_notice_causes_a_read(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0};
    struct kept kept;
    offer_to_us(&a, &b, &kept);
    kept.bytes[0] = '?';
    notice(&kept);
    run_until(now_ms + 10);
    assert_told(&b, NOTIFY_HELD);
    assert_int_equal(us->reads, 1);
}

/* Our write is in flight, and a waiter came behind it. The absence in the cache has no revision to
 * compare with, so the record is not kept; but the waiter is known, and no grant passes it. */
static void a_waiter_in_a_notice_is_known_after_an_absence(void **state)
{
    (void)state;
    struct caller a = {0}, b = {0};
    struct kept kept;
    acquire(us, &a, /* waits= */ false);
    acquire(them, &b, /* waits= */ true);
    keep_what_stands(&kept);
    cancel(&b);
    tick(them);
    let_go(&a);
    tick(us);
    assert_ended(&a, OUTCOME_OK);
    us->reply_mode = ANSWERS_LATER;
    acquire(us, &a, /* waits= */ false);
    kept.reply.written.revision += 100;
    notice(&kept);
    assert_true(answer_kept(us));
    tick(us);
    assert_told(&a, NOTIFY_HELD);
    assert_true(executor_others_wait(a.task));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FAR_TEST(a_notice_with_the_record_saves_a_read),
        FAR_TEST(the_deadline_begins_with_the_acceptance),
        FAR_TEST(a_notice_that_comes_twice_is_taken_once),
        FAR_TEST(an_old_offer_is_a_conflict_and_no_grant),
        FAR_TEST(a_notice_after_the_end_causes_a_read),
        FAR_TEST(a_waiter_in_a_notice_is_known_after_an_absence),
        FAR_TEST(an_unreadable_notice_causes_a_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
