/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log's clock and its list of hosts: it continues over boots and hosts and never goes back,
 * whatever the time of day does, also when all records were compacted away; and it reports from
 * which revision on the processes of this host can be checked for liveness.
 */
#include "log_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OTHER_MACHINE = 8 };

static const int64_t hour_ms = INT64_C(3600) * 1000;

static void open_at(unsigned machine, unsigned boot)
{
    char words[256];
    struct text why;
    struct log_options options = kit_options(disk, boot);
    options.ids.machine[0] = (unsigned char)machine;
    text_init(&why, words, sizeof words);
    log_close(&one);
    assert_int_equal(log_open(&options, kit_deadline(disk), &one, &why), LOG_OK);
}

/* The host boots: its clock restarts, with this time of day. */
static void boot(unsigned machine, unsigned number, int64_t wall_ms)
{
    fake.boot_ms = 50;
    fake.wall_ms = wall_ms;
    open_at(machine, number);
}

static int begin_at_day(void **state)
{
    (void)state;
    begin_at(1000, 100 * hour_ms);
    open_at(KIT_MACHINE, 1);
    return 0;
}

static void it_begins_with_the_time_of_day(void **state)
{
    (void)state;
    assert_int_equal(log_now_ms(one), 100 * hour_ms);
    assert_true(log_foreign_before(one) == 0);
    fake.boot_ms += 5;
    assert_int_equal(put(one, "a", "1").time_ms, 100 * hour_ms + 5);
}

static void within_a_boot_the_time_of_day_says_nothing(void **state)
{
    (void)state;
    put(one, "a", "1");
    fake.boot_ms += 7;
    for (int step = -1; step <= 1; step++) {
        fake.wall_ms = (100 + step) * hour_ms;
        open_at(KIT_MACHINE, 1);
        assert_int_equal(log_now_ms(one), 100 * hour_ms + 7);
        assert_true(log_foreign_before(one) == 0);
    }
}

static void the_next_boot_goes_on_by_the_time_of_day(void **state)
{
    (void)state;
    uint64_t revision = put(one, "a", "1").revision;
    boot(KIT_MACHINE, 2, 101 * hour_ms);
    assert_int_equal(log_now_ms(one), 101 * hour_ms);
    assert_true(log_foreign_before(one) == 0);
    fake.boot_ms += 3;
    struct stamp next = put(one, "a", "2");
    assert_int_equal(next.time_ms, 101 * hour_ms + 3);
    assert_true(next.revision > revision);
}

static void the_next_boot_never_goes_back(void **state)
{
    (void)state;
    fake.boot_ms += 10;
    put(one, "a", "1");
    boot(KIT_MACHINE, 2, 99 * hour_ms);
    assert_int_equal(log_now_ms(one), 100 * hour_ms + 10);
    boot(KIT_MACHINE, 3, 0);
    assert_int_equal(log_now_ms(one), 100 * hour_ms + 10);
    assert_true(log_foreign_before(one) == 0);
}

static void another_host_goes_on_where_the_last_one_stopped(void **state)
{
    (void)state;
    fake.boot_ms += 10;
    uint64_t revision = put(one, "a", "1").revision;
    for (unsigned step = 0; step < 2; step++) {
        boot(OTHER_MACHINE + step, 5 + step, step == 0 ? 200 * hour_ms : 0);
        assert_int_equal(log_now_ms(one), 100 * hour_ms + 10);
        uint64_t foreign = log_foreign_before(one);
        assert_true(foreign > revision);
        revision = put(one, "a", "2").revision;
        assert_true(revision >= foreign);
    }
    uint64_t foreign = log_foreign_before(one);
    boot(OTHER_MACHINE + 1, 7, 201 * hour_ms);
    assert_int_equal(log_now_ms(one), 201 * hour_ms);
    assert_true(log_foreign_before(one) == foreign);
}

/* Without an id no other boot is the same host's. */
static void a_host_without_an_id_is_always_another(void **state)
{
    (void)state;
    boot(/* machine= */ 0, 2, 101 * hour_ms);
    uint64_t revision = put(one, "a", "1").revision;
    boot(/* machine= */ 0, 3, 102 * hour_ms);
    assert_int_equal(log_now_ms(one), 100 * hour_ms);
    assert_true(log_foreign_before(one) > revision);
}

/* A session in the old lock file is not visible in the new one. */
static void a_new_lock_file_hides_who_lives(void **state)
{
    (void)state;
    uint64_t revision = put(one, "a", "1").revision;
    fake.boot_ms += 9;
    fake_disk_remove(&fake, ".lock");
    open_at(KIT_MACHINE, 1);
    assert_int_equal(log_now_ms(one), 100 * hour_ms + 9);
    assert_true(log_foreign_before(one) > revision);
}

static void a_removed_index_hides_nobody(void **state)
{
    (void)state;
    put(one, "a", "1");
    fake_disk_remove(&fake, ".index");
    open_at(KIT_MACHINE, 1);
    assert_true(log_foreign_before(one) == 0);
    assert_int_equal(log_now_ms(one), 100 * hour_ms);
}

/* A container may show a boot id of its own. A live process holds its session's lock, which no
 * reboot survives: the clock continues, whatever the time of day is. */
static void a_live_session_proves_that_there_was_no_reboot(void **state)
{
    (void)state;
    uint64_t revision = put(one, "a", "1").revision;
    int session = log_session_keep(one, /* session= */ 77);
    assert_true(session >= 0);
    fake.boot_ms += 7;
    fake.wall_ms = 105 * hour_ms;
    open_at(KIT_MACHINE, 2);
    assert_int_equal(log_now_ms(one), 100 * hour_ms + 7);
    assert_true(log_foreign_before(one) == 0);
    assert_true(put(one, "a", "2").revision == revision + 1); /* nothing was recovered, either */
    fake_disk_remove(&fake, ".index");
    open_at(OTHER_MACHINE, 3);
    assert_int_equal(log_now_ms(one), 100 * hour_ms + 7);
    assert_true(log_foreign_before(one) == 0);
    assert_int_equal(kit_make_garbage(disk, one), LOG_OK);
    assert_int_equal(kit_tend(one), LOG_OK);
    assert_true(log_generation(one) == 2);
    fake_disk_remove(&fake, ".index");
    open_at(KIT_MACHINE, 1);
    assert_int_equal(log_now_ms(one), 100 * hour_ms + 7);
    assert_true(log_foreign_before(one) == 0);
    disk->close(disk->owner, session);
    boot(KIT_MACHINE, 2, 105 * hour_ms);
    assert_int_equal(log_now_ms(one), 105 * hour_ms);
}

/* A handle without a session cannot prove that it lives. When the page is rebuilt meanwhile, it
 * must attach to the new files: in the old ones it would grant what another process holds. */
static void a_handle_without_a_session_finds_the_new_files(void **state)
{
    (void)state;
    put(one, "a", "1");
    assert_int_equal(kit_sync(disk, one), LOG_OK);
    struct log *before = one;
    one = NULL;
    open_at(KIT_MACHINE, 2);
    put(one, "a", "2");
    assert_int_equal(kit_sync(disk, one), LOG_OK);
    assert_true(kit_has(disk, before, "a", "2"));
    log_close(&before);
}

/* The page of a live process is left alone, including its mark of a failed sync. */
static void a_failed_sync_is_known_under_another_boot_id(void **state)
{
    (void)state;
    put(one, "a", "1");
    assert_int_equal(kit_sync(disk, one), LOG_OK);
    int session = log_session_keep(one, /* session= */ 77);
    put(one, "a", "2");
    fake.fail_sync_at = fake.syncs + 1;
    assert_int_equal(kit_sync(disk, one), LOG_POISONED);
    open_at(KIT_MACHINE, 2);
    assert_true(kit_has(disk, one, "a", "1"));
    disk->close(disk->owner, session);
}

/* No record and no history; the clock is kept all the same. */
static void a_compaction_does_not_forget_the_time(void **state)
{
    (void)state;
    struct log_options options = kit_options(disk, 1);
    char words[256];
    struct text why;
    text_init(&why, words, sizeof words);
    options.window = 0;
    log_close(&one);
    assert_int_equal(log_open(&options, kit_deadline(disk), &one, &why), LOG_OK);
    fake.boot_ms += hour_ms;
    assert_int_equal(kit_make_garbage(disk, one), LOG_OK);
    assert_int_equal(kit_tend(one), LOG_OK);
    assert_false(log_needs_maintenance(one));
    int64_t now_ms = log_now_ms(one);
    boot(KIT_MACHINE, 2, 99 * hour_ms);
    assert_true(log_now_ms(one) >= now_ms);
    boot(OTHER_MACHINE, 2, 99 * hour_ms);
    assert_true(log_now_ms(one) >= now_ms);
}

static void nor_does_a_file_made_after_a_failed_sync(void **state)
{
    (void)state;
    put(one, "a", "1");
    boot(KIT_MACHINE, 2, 105 * hour_ms);
    struct stamp written;
    assert_int_equal(kit_put(disk, one, "a", "2", &written), LOG_OK);
    fake.fail_at = fake.calls + 2;
    fake.error = EIO;
    assert_int_equal(kit_sync(disk, one), LOG_POISONED);
    assert_true(kit_has(disk, one, "a", NULL) || kit_has(disk, one, "a", "1"));
    boot(KIT_MACHINE, 3, 99 * hour_ms);
    assert_true(log_now_ms(one) >= 105 * hour_ms);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, begin_at_day, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(it_begins_with_the_time_of_day),
        CASE(within_a_boot_the_time_of_day_says_nothing),
        CASE(the_next_boot_goes_on_by_the_time_of_day),
        CASE(the_next_boot_never_goes_back),
        CASE(another_host_goes_on_where_the_last_one_stopped),
        CASE(a_host_without_an_id_is_always_another),
        CASE(a_new_lock_file_hides_who_lives),
        CASE(a_removed_index_hides_nobody),
        CASE(a_live_session_proves_that_there_was_no_reboot),
        CASE(a_handle_without_a_session_finds_the_new_files),
        CASE(a_failed_sync_is_known_under_another_boot_id),
        CASE(a_compaction_does_not_forget_the_time),
        CASE(nor_does_a_file_made_after_a_failed_sync),
    };
    return cmocka_run_group_tests_name("log_time", tests, NULL, NULL);
}
