/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery of the log: a process stopped in the middle of a turn, a sync failed, the index, the
 * lock file or the log itself was removed, the disk is full.
 */
#include "log_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The n-th call from here on fails, once. */
static void fail_in(unsigned calls, int error)
{
    fake.fail_at = fake.calls + calls;
    fake.error = error;
}

/* A turn of three changes, two of them to one key, whose n-th call fails. False: there is none. */
static bool stop_in_a_turn(unsigned call)
{
    struct stamp written;
    fail_in(call, EIO);
    result = log_begin(one, 512, kit_deadline(disk));
    if (result == LOG_OK) {
        result = kit_append(one, "a", "1", false, &written);
        if (result == LOG_OK)
            result = kit_append(one, "a", NULL, false, &written);
        if (result == LOG_OK)
            result = kit_append(one, "b", "2", false, &written);
        (void)log_end(one);
    }
    bool reached = fake.calls >= fake.fail_at;
    fake.fail_at = 0;
    return reached;
}

/* Both keys have their previous values, and the index agrees. */
static void check_same(struct log *log, const struct kit_value *a, const struct kit_value *b)
{
    struct kit_value seen_value;
    kit_read(disk, log, "a", &seen_value);
    assert_true(seen_value.result == LOG_OK && seen_value.revision == a->revision);
    kit_read(disk, log, "b", &seen_value);
    assert_true(seen_value.result == LOG_OK && seen_value.revision == b->revision);
    assert_true(kit_agrees(disk, log));
}

static void a_stopped_turn_is_mended_by_the_next(void **state)
{
    (void)state;
    bool reached = true;
    for (unsigned call = 1; reached; call++) {
        struct kit_value a, b;
        (void)begin(state);
        uint64_t before = put(two, "a", "0").revision;
        reached = stop_in_a_turn(call);
        kit_read(disk, two, "a", &a);
        kit_read(disk, two, "b", &b);
        assert_true(a.result == LOG_OK && b.result == LOG_OK);
        assert_true(a.revision == 0 || a.revision == before || a.revision == before + 1);
        assert_true(b.revision == 0 || (b.revision == before + 3 && a.revision == 0));
        assert_true(reached || b.revision != 0);
        check_same(two, &a, &b);
        assert_int_equal(kit_make_garbage(disk, one), LOG_OK);
        assert_int_equal(kit_tend(two), LOG_OK);
        check_same(one, &a, &b);
        log_close(&one);
        one = open_log(2);
        check_same(one, &a, &b);
        assert_int_equal(end(state), 0);
    }
}

static void half_a_record_is_cut(void **state)
{
    (void)state;
    uint64_t last = put(one, "a", "1").revision;
    struct stamp written;
    fake.short_writes = true;
    fail_in(6, EIO); /* the second half of the record */
    assert_int_equal(kit_put(disk, one, "b", "2", &written), LOG_IO);
    fake.short_writes = false;
    assert_int_equal(log_cuts(two), 0);
    assert_true(stands(two, "b", NULL));
    assert_int_equal(log_cuts(two), 1);
    assert_true(put(two, "b", "3").revision == last + 1);
    assert_true(stands(one, "a", "1") && stands(one, "b", "3"));
    assert_int_equal(log_cuts(one), 0);
}

static void a_failed_sync_is_everybodys(void **state)
{
    (void)state;
    put(one, "a", "1");
    assert_int_equal(kit_sync(disk, one), LOG_OK);
    put(two, "b", "1");
    uint64_t last = put(one, "a", "2").revision;
    assert_true(stands(two, "a", "2"));
    fail_in(2, EIO);
    assert_int_equal(kit_sync(disk, one), LOG_POISONED);
    unsigned calls = fake.calls;
    assert_int_equal(kit_sync(disk, one), LOG_POISONED);
    assert_int_equal(kit_sync(disk, two), LOG_POISONED);
    assert_int_equal(fake.calls, calls); /* no second sync: it would report success */
    assert_true(stands(two, "a", "1") && stands(two, "b", NULL));
    assert_int_equal(kit_sync(disk, one), LOG_POISONED); /* its earlier reads are void */
    assert_true(put(one, "b", "2").revision > last);
    assert_int_equal(kit_sync(disk, one), LOG_OK);
    assert_int_equal(kit_sync(disk, two), LOG_OK);
    log_close(&one);
    log_close(&two);
    one = open_log(2);
    assert_true(stands(one, "a", "1") && stands(one, "b", "2"));
}

static void a_removed_lock_file_is_noticed(void **state)
{
    (void)state;
    put(one, "a", "1");
    fake_disk_remove(&fake, ".lock");
    struct stamp written;
    assert_int_equal(kit_put(disk, one, "a", "2", &written), LOG_REMOVED);
    log_close(&two);
    two = open_log(1);
    assert_true(stands(two, "a", "1"));
    assert_int_equal(kit_put(disk, one, "a", "2", &written), LOG_REMOVED);
}

static void a_removed_log_is_not_made_anew(void **state)
{
    (void)state;
    put(one, "a", "1");
    fake_disk_remove(&fake, "");
    struct stamp written;
    assert_int_equal(kit_put(disk, one, "a", "2", &written), LOG_REMOVED);
    assert_int_equal(kit_put(disk, two, "a", "2", &written), LOG_REMOVED);
    struct log *three = kit_open(disk, 1, &result, NULL);
    assert_null(three);
    assert_int_equal(result, LOG_REMOVED);
    assert_null(fake_disk_file(&fake, ""));
}

static void a_removed_index_is_made_anew(void **state)
{
    (void)state;
    put(one, "a", "1");
    put(one, "b", "2");
    log_close(&two);
    fake_disk_remove(&fake, ".index");
    assert_true(stands(one, "a", "1"));
    two = open_log(1);
    assert_true(stands(two, "a", "1") && stands(two, "b", "2"));
    put(two, "a", "3");
    assert_true(stands(one, "a", "3") && stands(one, "b", "2"));
    put(one, "b", NULL);
    assert_true(stands(two, "b", NULL) && kit_agrees(disk, two));
}

/* Any call may fail while it is rebuilt: the next one tries again. */
static void an_index_that_is_half_made_counts_nothing(void **state)
{
    (void)state;
    bool reached = true;
    for (unsigned call = 1; reached; call++) {
        (void)begin(state);
        put(one, "a", "1");
        put(one, "b", "2");
        assert_int_equal(kit_sync(disk, one), LOG_OK);
        log_close(&two);
        fake_disk_remove(&fake, ".index");
        fail_in(call, ENOSPC);
        two = kit_open(disk, 1, &result, NULL);
        reached = fake.calls >= fake.fail_at;
        fake.fail_at = 0;
        log_close(&two);
        two = open_log(1);
        assert_true(stands(two, "a", "1") && stands(two, "b", "2"));
        assert_true(stands(one, "a", "1") && kit_agrees(disk, one));
        put(one, "a", "3");
        put(two, "b", "4");
        log_close(&one);
        one = open_log(2);
        assert_true(stands(one, "a", "3") && stands(one, "b", "4"));
        assert_int_equal(end(state), 0);
    }
}

/* Changes one byte of the file at the last occurrence of this text. */
static void damage(const char *text)
{
    static unsigned char bytes[1 << 16];
    struct fake_file *file = fake_disk_file(&fake, "");
    size_t at = fake_file_get(file, bytes, sizeof bytes, /* offset= */ 0);
    while (at > 0 && memcmp(bytes + at - 1, text, strlen(text)) != 0)
        at--;
    assert_true(at > 0);
    bytes[at - 1] ^= 1;
    fake_file_put(file, bytes + at - 1, 1, at - 1);
}

/* Within a boot the page records what was synced, also when no later record does. */
static void damage_of_what_was_synced_is_refused(void **state)
{
    (void)state;
    put(one, "a", "kept");
    assert_int_equal(kit_sync(disk, one), LOG_OK);
    damage("kept");
    log_close(&two);
    fake_disk_remove(&fake, ".index");
    assert_null(kit_open(disk, 1, &result, NULL));
    assert_int_equal(result, LOG_DAMAGED);
}

/* Earlier reads behind the cut do not apply to what is written there afterwards. */
static void after_a_cut_everything_is_synced_anew(void **state)
{
    (void)state;
    put(one, "a", "kept");
    assert_int_equal(kit_sync(disk, one), LOG_OK);
    put(one, "b", "lost");
    for (int i = 0; i < 4; i++)
        put(one, "b", "as well");
    damage("lost");
    log_close(&two);
    fake_disk_remove(&fake, ".index");
    two = open_log(1);
    assert_int_equal(log_cuts(two), 1);
    assert_true(stands(two, "a", "kept") && stands(two, "b", NULL));
    put(two, "b", "new");
    fake.recording = true;
    assert_int_equal(kit_sync(disk, two), LOG_OK);
    assert_int_equal(fake.event_count, 1);
    assert_true(stands(one, "b", "new"));
}

/* A compaction has synced all that it copied before the file got its name. */
static void damage_of_what_was_copied_is_refused(void **state)
{
    (void)state;
    put(one, "a", "kept");
    assert_int_equal(kit_make_garbage(disk, one), LOG_OK);
    put(one, "b", "kept, too");
    assert_int_equal(kit_tend(one), LOG_OK);
    assert_false(log_needs_maintenance(one));
    damage("kept, too");
    assert_null(kit_open(disk, 2, &result, NULL));
    assert_int_equal(result, LOG_DAMAGED);
}

static void a_full_disk_leaves_the_reserve(void **state)
{
    (void)state;
    struct stamp written;
    fake.full = true;
    int count = 0;
    for (result = LOG_OK; result == LOG_OK; count++)
        result = kit_put(disk, count % 2 == 0 ? one : two, "a", "something", &written);
    assert_int_equal(result, LOG_FULL);
    assert_in_range(count, 10, 100);
    for (count = 0; count < KIT_RESERVE / 80; count++) {
        assert_int_equal(log_begin(two, 72, kit_deadline(disk)), LOG_OK);
        assert_int_equal(kit_append(two, "b", "something", false, &written), LOG_FULL);
        assert_int_equal(kit_append(two, "a", NULL, true, &written), LOG_OK);
        assert_int_equal(log_end(two), LOG_OK);
        assert_int_equal(kit_sync(disk, two), LOG_OK);
    }
    fake.full = false;
    put(one, "b", "there is room again");
    assert_true(stands(two, "b", "there is room again") && stands(two, "a", NULL));
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stopped_turn_is_mended_by_the_next),
        CASE(half_a_record_is_cut),
        CASE(a_failed_sync_is_everybodys),
        CASE(a_removed_lock_file_is_noticed),
        CASE(a_removed_log_is_not_made_anew),
        CASE(a_removed_index_is_made_anew),
        cmocka_unit_test(an_index_that_is_half_made_counts_nothing),
        CASE(damage_of_what_was_synced_is_refused),
        CASE(after_a_cut_everything_is_synced_anew),
        CASE(damage_of_what_was_copied_is_refused),
        CASE(a_full_disk_leaves_the_reserve),
    };
    return cmocka_run_group_tests_name("log_mend", tests, NULL, NULL);
}
