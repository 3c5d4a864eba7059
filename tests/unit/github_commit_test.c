/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of commits on GitHub: what is written is read again, and everything else is refused.
 */
#include "wire/github_commit.h"

#include "core/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char message[RECORD_MAX + 1024];

static struct text message_text(void)
{
    struct text text;
    text_init(&text, message, sizeof message);
    return text;
}

static void a_record_is_read_again(void **state)
{
    (void)state;
    struct text text = message_text();
    const struct github_commit commit = {.revision = 42, .bytes = "{\"v\":1}", .length = 7};
    struct github_commit read;
    github_commit_write("k: held by w1", &commit, "7-1", &text);
    assert_string_equal(message, "k: held by w1\n\n{\"v\":1}\n\nLeasehold-Revision: 42\n"
                                 "Leasehold-Write: 7-1\n");
    assert_null(github_commit_read(message, &read));
    assert_int_equal(read.revision, 42);
    assert_int_equal(read.length, 7);
    assert_memory_equal(read.bytes, "{\"v\":1}", 7);
}

static void a_vacant_key_has_no_record(void **state)
{
    (void)state;
    struct text text = message_text();
    const struct github_commit commit = {.revision = REVISION_MAX};
    struct github_commit read;
    github_commit_write("k: free", &commit, "7-2", &text);
    assert_null(github_commit_read(message, &read));
    assert_true(read.revision == REVISION_MAX);
    assert_null(read.bytes);
}

/* The last line counts: a record cannot contain one of its own. */
static void a_revision_is_a_line_of_its_own(void **state)
{
    (void)state;
    struct github_commit read;
    assert_null(github_commit_read("Leasehold-Revision: 1\n\nx\n\nLeasehold-Revision: 2", &read));
    assert_int_equal(read.revision, 2);
    assert_non_null(github_commit_read("k: Leasehold-Revision: 3\n", &read));
}

static void other_messages_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "first commit",
        "k\n\nLeasehold-Revision: ",
        "k\n\nLeasehold-Revision: 0\n",
        "k\n\nLeasehold-Revision: 01\n",
        "k\n\nLeasehold-Revision: -1\n",
        "k\n\nLeasehold-Revision: 1x\n",
        "k\n\nLeasehold-Revision: 35184372088833\n",
        "k\n\nLeasehold-Revision: 99999999999999999999999999\n",
        "k\n\nno end\nLeasehold-Revision: 1\n",
    };
    struct github_commit read;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_non_null(github_commit_read(wrong[i], &read));
}

static void a_long_record_is_refused(void **state)
{
    (void)state;
    static char bytes[RECORD_MAX + 1];
    memset(bytes, 'x', sizeof bytes);
    for (size_t length = RECORD_MAX; length <= RECORD_MAX + 1; length++) {
        struct text text = message_text();
        const struct github_commit commit = {.revision = 1, .bytes = bytes, .length = length};
        struct github_commit read;
        github_commit_write("k", &commit, "7-3", &text);
        const char *wrong = github_commit_read(message, &read);
        assert_true(length > RECORD_MAX ? wrong != NULL : wrong == NULL);
        assert_int_equal(read.length, length);
    }
}

static void a_heartbeat_states_its_stale_time(void **state)
{
    (void)state;
    struct text text = message_text();
    github_beat_write(0xab, 300000, "ab-1", &text);
    assert_string_equal(message, "worker ab is alive\n\nLeasehold-Worker: ab\n"
                                 "Leasehold-Stale: 300000\nLeasehold-Write: ab-1\n");
    assert_int_equal(github_beat_read(message), 300000);
    assert_int_equal(github_beat_read("worker ab is alive"), 0);
    assert_int_equal(github_beat_read("Leasehold-Stale: 99999999999999"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_read_again),
        cmocka_unit_test(a_vacant_key_has_no_record),
        cmocka_unit_test(a_revision_is_a_line_of_its_own),
        cmocka_unit_test(other_messages_are_refused),
        cmocka_unit_test(a_long_record_is_refused),
        cmocka_unit_test(a_heartbeat_states_its_stale_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
