/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fence admits the highest token, one process at a time for each key, and none when it cannot
 * decide. After any failure, damage or power loss an admitted token is still remembered.
 */
#include "fake_disk.h"
#include "store/fence.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 3000, KEYS = 700, CALLS_MOST = 2000 };

static struct fake_disk fake, image, base;
static uint64_t highest;
static char words[512];

static struct host_ids ids_of(unsigned boot)
{
    return (struct host_ids){.machine = {7}, .boot = {(unsigned char)boot}};
}

static enum fence_result open_on(struct fake_disk *disk, unsigned boot, struct fence *out)
{
    struct text why;
    struct host_ids ids = ids_of(boot);
    text_init(&why, words, sizeof words);
    return fence_open(out, &disk->table, &ids, &why);
}

static enum fence_result enter(struct fence *fence, const char *key, uint64_t token)
{
    struct text why;
    text_init(&why, words, sizeof words);
    return fence_enter(fence, key, token, /* deadline_ms= */ 0, &highest, &why);
}

/* As a process that starts, is admitted or not, and ends. */
static enum fence_result visit(struct fake_disk *disk, unsigned boot, const char *key,
                               uint64_t token)
{
    struct fence fence;
    enum fence_result result = open_on(disk, boot, &fence);
    if (result == FENCE_OK) {
        result = enter(&fence, key, token);
        fence_close(&fence);
    }
    return result;
}

static int begin(void **state)
{
    (void)state;
    highest = 0;
    fake_disk_init(&fake);
    fake.boot_ms = 1000;
    return 0;
}

static int end(void **state)
{
    (void)state;
    size_t open = fake_disk_open_files(&fake);
    fake_disk_done(&fake);
    return open != 0;
}

static void tokens_only_grow(void **state)
{
    (void)state;
    assert_int_equal(visit(&fake, 1, "a", 5), FENCE_OK);
    assert_int_equal(highest, 0);
    assert_int_equal(visit(&fake, 1, "a", 5), FENCE_OK);
    assert_int_equal(highest, 5);
    assert_int_equal(visit(&fake, 1, "a", UINT64_MAX - 1), FENCE_OK);
    assert_int_equal(visit(&fake, 1, "a", UINT64_MAX - 2), FENCE_STALE);
    assert_true(highest == UINT64_MAX - 1);
    assert_int_equal(visit(&fake, 1, "a", UINT64_MAX), FENCE_OK);
    assert_int_equal(visit(&fake, 2, "a", 5), FENCE_STALE);
}

static void keys_are_not_each_other(void **state)
{
    (void)state;
    assert_int_equal(visit(&fake, 1, "a/b", 9), FENCE_OK);
    assert_int_equal(visit(&fake, 1, "a-b", 3), FENCE_OK);
    assert_int_equal(visit(&fake, 1, "a/b", 8), FENCE_STALE);
}

static void one_key_lets_in_one_at_a_time(void **state)
{
    struct fence first, second, third;
    (void)state;
    assert_int_equal(open_on(&fake, 1, &first), FENCE_OK);
    assert_int_equal(open_on(&fake, 1, &second), FENCE_OK);
    assert_int_equal(open_on(&fake, 1, &third), FENCE_OK);
    assert_int_equal(enter(&first, "a", 5), FENCE_OK);
    assert_int_equal(enter(&second, "a", 6), FENCE_HELD);
    assert_int_equal(enter(&third, "b", 1), FENCE_OK);
    /* A rejected process leaves nothing behind, and a stale token is rejected at once. */
    assert_int_equal(enter(&second, "a", 4), FENCE_STALE);
    assert_int_equal(highest, 5);
    fence_close(&first);
    assert_int_equal(enter(&second, "a", 5), FENCE_OK);
    fence_close(&second);
    fence_close(&third);
}

static void a_store_of_locks_is_left_alone(void **state)
{
    struct log *log;
    struct stamp written;
    struct text why;
    (void)state;
    struct log_options options = LOG_OPTIONS_DEFAULT;
    options.disk = &fake.table;
    options.ids = ids_of(1);
    text_init(&why, words, sizeof words);
    assert_int_equal(log_open(&options, fake.boot_ms + 100, &log, &why), LOG_OK);
    assert_int_equal(log_begin(log, 1000, fake.boot_ms + 100), LOG_OK);
    assert_int_equal(log_append(log, "a", 0, "{}", 2, false, &written), LOG_OK);
    assert_int_equal(log_end(log), LOG_OK);
    assert_int_equal(visit(&fake, 1, "b", 5), FENCE_TROUBLE);
    assert_non_null(strstr(words, "no guard"));
    assert_int_equal(log_begin(log, 0, fake.boot_ms + 100), LOG_OK);
    assert_true(log_revision(log) == written.revision);
    assert_int_equal(log_end(log), LOG_OK);
    log_close(&log);
}

static void a_bad_token_is_trouble(void **state)
{
    static const char *const wrong[] = {"0", "05", "5 ", "-5", "18446744073709551616"};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct fence fence;
        struct stamp written;
        struct log_record found;
        assert_int_equal(open_on(&fake, 1, &fence), FENCE_OK);
        assert_int_equal(log_begin(fence.log, 1000, fake.boot_ms + 100), LOG_OK);
        assert_int_equal(log_find(fence.log, "a", 1, &found), LOG_OK);
        assert_int_equal(
            log_append(fence.log, "a", found.offset, wrong[i], strlen(wrong[i]), true, &written),
            LOG_OK);
        assert_int_equal(log_end(fence.log), LOG_OK);
        assert_int_equal(enter(&fence, "a", 7), FENCE_TROUBLE);
        fence_close(&fence);
    }
}

static void it_stays_small(void **state)
{
    struct fence fence;
    char key[16] = "key";
    (void)state;
    for (unsigned i = 1; i <= MANY; i++) {
        assert_int_equal(open_on(&fake, 1, &fence), FENCE_OK);
        key[3] = (char)('a' + i % KEYS % 26);
        key[4] = (char)('a' + i % KEYS / 26);
        assert_int_equal(enter(&fence, key, i), FENCE_OK);
        fence_maintain(&fence);
        fence_close(&fence);
    }
    assert_true(fake_disk_file(&fake, "")->size < (size_t)1 << 18);
    for (unsigned i = MANY - KEYS + 1; i <= MANY; i++) {
        key[3] = (char)('a' + i % KEYS % 26);
        key[4] = (char)('a' + i % KEYS / 26);
        assert_int_equal(visit(&fake, 1, key, i - 1), FENCE_STALE);
        assert_int_equal(highest, i);
    }
}

/* Every bit of the current file: never a lower token, never "not seen". */
static void damage_lets_nobody_in(void **state)
{
    unsigned refused = 0;
    (void)state;
    assert_int_equal(visit(&fake, 1, "a", 5), FENCE_OK);
    assert_int_equal(visit(&fake, 1, "a", 7), FENCE_OK);
    /* In this boot the page records what was synced; the last record included. */
    for (uint64_t offset = 0; offset < LOG_START + 512; offset++) {
        unsigned char byte;
        fake_disk_copy(&image, &fake);
        struct fake_file *file = fake_disk_file(&image, "");
        fake_file_get(file, &byte, 1, offset);
        byte ^= 0x11;
        fake_file_put(file, &byte, 1, offset);
        fake_disk_remove(&image, ".index"); /* the next one rebuilds it from the whole log */
        enum fence_result result = visit(&image, 1, "a", 6);
        assert_true(result == FENCE_TROUBLE || result == FENCE_STALE);
        refused += result == FENCE_TROUBLE;
        assert_int_equal(fake_disk_open_files(&image), 0);
        fake_disk_done(&image);
    }
    assert_true(refused > 300);
}

/* The n-th call fails, or all from there on. */
static void a_failing_disk_lets_nobody_in(void **state)
{
    static const int errors[] = {EIO, ENOSPC};
    unsigned refused = 0, let_in = 0;
    (void)state;
    for (unsigned kind = 0; kind < 4; kind++) {
        bool met = true;
        for (unsigned n = 1; met && n < CALLS_MOST; n++) {
            fake_disk_init(&image);
            image.boot_ms = 1000;
            assert_int_equal(visit(&image, 1, "a", 5), FENCE_OK);
            image.calls = 0;
            image.fail_at = n;
            image.error = errors[kind / 2];
            image.for_good = kind % 2 == 1;
            enum fence_result result = visit(&image, 1, "a", 7);
            met = image.calls >= n;
            image.fail_at = 0;
            assert_true(result == FENCE_OK || result == FENCE_TROUBLE);
            refused += result == FENCE_TROUBLE;
            let_in += result == FENCE_OK;
            assert_int_equal(fake_disk_open_files(&image), 0);
            enum fence_result later = visit(&image, 1, "a", 6);
            assert_true(later == FENCE_STALE || (later == FENCE_OK && result != FENCE_OK));
            assert_int_equal(visit(&image, 1, "a", 4), FENCE_STALE);
            fake_disk_done(&image);
        }
        assert_false(met);
    }
    assert_true(refused > 20 && let_in >= 4);
}

/* At every moment, with no unsynced write left, or all but the oldest of them. */
static void the_power_goes(void **state)
{
    unsigned moments = 0;
    (void)state;
    fake_disk_copy(&base, &fake);
    fake.recording = true;
    for (unsigned token = 1; token <= 6; token++) {
        assert_int_equal(visit(&fake, 1, token % 2 == 0 ? "a" : "b", token), FENCE_OK);
        fake_disk_note(&fake, token);
    }
    fake.recording = false;
    for (size_t moment = 0; moment <= fake.event_count; moment++) {
        unsigned notify = 0;
        for (size_t i = 0; i < moment; i++)
            notify = fake.events[i].kind == FAKE_NOTE ? fake.events[i].note : notify;
        for (unsigned kind = 0; kind < 2; kind++) {
            struct fake_choice choice = {.kept = kind == 0 ? 0 : ~(uint64_t)1, .torn = -1};
            fake_disk_image(&fake, &base, moment, &choice, &image);
            for (unsigned token = notify; token + 2 > notify && token > 1; token--) {
                const char *key = token % 2 == 0 ? "a" : "b";
                assert_int_equal(visit(&image, 2, key, token - 1), FENCE_STALE);
                assert_true(highest >= token);
            }
            assert_int_equal(visit(&image, 2, "a", 100), FENCE_OK);
            fake_disk_done(&image);
            moments++;
        }
    }
    fake_disk_done(&base);
    assert_true(moments > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tokens_only_grow, begin, end),
        cmocka_unit_test_setup_teardown(keys_are_not_each_other, begin, end),
        cmocka_unit_test_setup_teardown(one_key_lets_in_one_at_a_time, begin, end),
        cmocka_unit_test_setup_teardown(a_store_of_locks_is_left_alone, begin, end),
        cmocka_unit_test_setup_teardown(a_bad_token_is_trouble, begin, end),
        cmocka_unit_test_setup_teardown(it_stays_small, begin, end),
        cmocka_unit_test_setup_teardown(damage_lets_nobody_in, begin, end),
        cmocka_unit_test_setup_teardown(a_failing_disk_lets_nobody_in, begin, end),
        cmocka_unit_test_setup_teardown(the_power_goes, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
