/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on Redis channels, valid ones and those that any client could publish. */
#include "wire/redis_message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct redis_notice read_told(const char *words)
{
    return redis_notice_read(words, strlen(words));
}

static void a_change_has_its_revision_and_name(void **state)
{
    (void)state;
    uint64_t revision = 7;
    size_t name = 0;
    assert_true(redis_change_read("12 leasehold:x", 14, &revision, &name));
    assert_true(revision == 12 && name == 3);
    assert_true(redis_change_read("0 n", 3, &revision, &name));
    assert_true(revision == 0 && name == 2);
}

static void a_message_that_is_no_change_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",     " n",   "n",     "12",
                                        "-1 n", "1\tn", "12x n", "12345678901234567 n"};
    uint64_t revision;
    size_t name;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(redis_change_read(wrong[i], strlen(wrong[i]), &revision, &name));
}

static void a_name_may_be_alone(void **state)
{
    (void)state;
    struct redis_notice notify = read_told("leasehold:{x}:lock:a b");
    assert_int_equal(notify.name_length, 22);
    assert_false(notify.has_record);
    notify = redis_notice_read(NULL, 0);
    assert_true(notify.name_length == 0 && !notify.has_record);
}

static void a_name_may_bring_what_stands(void **state)
{
    (void)state;
    struct redis_notice notify = read_told("name\n17 1700000000123 {\"a\":\"b c\n\"}");
    assert_int_equal(notify.name_length, 4);
    assert_true(notify.has_record && notify.written.revision == 17 && notify.written.epoch == 0);
    assert_int_equal(notify.written.time_ms, 1700000000123);
    assert_int_equal(notify.length, 12);
    assert_memory_equal(notify.bytes, "{\"a\":\"b c\n\"}", notify.length);
}

static void a_revision_includes_its_epoch(void **state)
{
    (void)state;
    struct redis_notice notify = read_told("name\n70368744177681 5 {}"); /* 2 * 2^45 + 17 */
    assert_true(notify.has_record && notify.written.revision == 17 && notify.written.epoch == 2);
}

/* Then only the name counts: receivers query the key. */
static void a_bad_value_after_a_name_is_ignored(void **state)
{
    (void)state;
    static const char *const wrong[] = {"name\n",
                                        "name\n17",
                                        "name\n17 5",
                                        "name\n17 5 ",
                                        "name\n 17 5 {}",
                                        "name\n17  5 {}",
                                        "name\n0 5 {}",
                                        "name\n-17 5 {}",
                                        "name\n17 -5 {}",
                                        "name\n17 5x {}",
                                        "name\n99999999999999999999 5 {}",
                                        "name\n17 99999999999999999999 {}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct redis_notice notify = read_told(wrong[i]);
        assert_int_equal(notify.name_length, 4);
        assert_true(!notify.has_record && notify.bytes == NULL && notify.length == 0);
    }
}

/* Then another program wrote it. */
static void a_value_that_is_no_sole_grant_is_foreign(void **state)
{
    (void)state;
    static const char *const foreign[] = {"",
                                          "x",
                                          "leasehold",
                                          "leasehold:",
                                          "leasehold:17:host",
                                          "17 5 {}",
                                          " ",
                                          "leasehold:17",
                                          "leasehold:17 5",
                                          "leasehold:17  {}",
                                          "Leasehold:17 5 {}"};
    static const char *const sole[] = {"leasehold:17 1700000000123 {}", "leasehold:0 0 x",
                                       "leasehold:99999999999999999999 1 {}"};
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        assert_int_equal(redis_sole_read(foreign[i], strlen(foreign[i])), 0);
    for (size_t i = 0; i < sizeof sole / sizeof sole[0]; i++)
        assert_int_equal(redis_sole_read(sole[i], strlen(sole[i])), strlen("leasehold:"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_has_its_revision_and_name),
        cmocka_unit_test(a_message_that_is_no_change_is_refused),
        cmocka_unit_test(a_name_may_be_alone),
        cmocka_unit_test(a_name_may_bring_what_stands),
        cmocka_unit_test(a_revision_includes_its_epoch),
        cmocka_unit_test(a_bad_value_after_a_name_is_ignored),
        cmocka_unit_test(a_value_that_is_no_sole_grant_is_foreign),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
