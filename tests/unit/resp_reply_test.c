/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of a RESP server in both protocols, and in buffers that are too small. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/resp.h"
#include "wire/resp_reply.h"

#include <stdlib.h>
#include <string.h>

static void reply_one_of_each(struct resp_reply *reply)
{
    resp_reply_array(reply, 14);
    resp_reply_map(reply, 2);
    resp_reply_text(reply, "outcome");
    resp_reply_bytes(reply, "a\r\nb", 4);
    resp_reply_text(reply, "");
    resp_reply_null(reply);
    resp_reply_text(reply, "nine byte");
    resp_reply_text(reply, "ten  bytes");
    resp_reply_number(reply, 0);
    resp_reply_number(reply, 1234567890123);
    resp_reply_number(reply, INT64_MAX);
    resp_reply_number(reply, INT64_MIN);
    resp_reply_number(reply, -1);
    resp_reply_bool(reply, true);
    resp_reply_bool(reply, false);
    resp_reply_simple(reply, "OK\r\n+");
    resp_reply_error(reply, "ERR", "no\r\n\tsuch\x7f\x1b key: é");
    resp_reply_raw(reply, ":7\r\n", 4);
    resp_reply_array(reply, 0);
    resp_reply_push(reply, 1);
    resp_reply_bytes(reply, NULL, 0);
}

static const char in_two[] = "*14\r\n*4\r\n$7\r\noutcome\r\n$4\r\na\r\nb\r\n$0\r\n\r\n$-1\r\n"
                             "$9\r\nnine byte\r\n$10\r\nten  bytes\r\n"
                             ":0\r\n:1234567890123\r\n:9223372036854775807\r\n"
                             ":-9223372036854775808\r\n:-1\r\n:1\r\n:0\r\n+OK  +\r\n"
                             "-ERR no   such   key: é\r\n:7\r\n*0\r\n*1\r\n$0\r\n\r\n";
static const char in_three[] = "*14\r\n%2\r\n$7\r\noutcome\r\n$4\r\na\r\nb\r\n$0\r\n\r\n_\r\n"
                               "$9\r\nnine byte\r\n$10\r\nten  bytes\r\n"
                               ":0\r\n:1234567890123\r\n:9223372036854775807\r\n"
                               ":-9223372036854775808\r\n:-1\r\n#t\r\n#f\r\n+OK  +\r\n"
                               "-ERR no   such   key: é\r\n:7\r\n*0\r\n>1\r\n$0\r\n\r\n";

static void check_protocol(unsigned protocol, const char *expected)
{
    char bytes[1024];
    struct resp_reply reply;
    resp_reply_init(&reply, bytes, sizeof bytes, protocol);
    reply_one_of_each(&reply);
    assert_false(reply.overflow);
    assert_int_equal(reply.length, strlen(expected));
    assert_memory_equal(bytes, expected, reply.length);
    /* The client's parser accepts all of it. */
    struct resp reader = {.bulk_max = 64, .items_max = 64};
    size_t found = 0;
    assert_int_equal(resp_feed(&reader, bytes, reply.length, &found), RESP_WHOLE);
}

static void every_kind_in_both_protocols(void **state)
{
    (void)state;
    check_protocol(2, in_two);
    check_protocol(3, in_three);
}

/* In memory of exactly that size: the sanitizer finds a write behind it. */
static void nothing_is_written_past_the_size(void **state)
{
    size_t whole = sizeof in_three - 1;
    (void)state;
    for (size_t size = 0; size <= whole; size++) {
        char *bytes = malloc(size > 0 ? size : 1);
        struct resp_reply reply;
        assert_non_null(bytes);
        resp_reply_init(&reply, bytes, size, 3);
        reply_one_of_each(&reply);
        assert_int_equal(reply.overflow, size < whole);
        assert_true(reply.length <= size);
        /* What was written is the start of the whole, up to a value. */
        assert_memory_equal(bytes, in_three, reply.length);
        if (reply.length > 0)
            assert_memory_equal(bytes + reply.length - 2, "\r\n", 2);
        free(bytes);
    }
}

static void overflow_stays(void **state)
{
    char bytes[8];
    struct resp_reply reply;
    (void)state;
    resp_reply_init(&reply, bytes, sizeof bytes, 2);
    resp_reply_text(&reply, "too long for it");
    assert_true(reply.overflow);
    resp_reply_null(&reply); /* would fit */
    resp_reply_bytes(&reply, "", SIZE_MAX);
    assert_true(reply.overflow);
    assert_int_equal(reply.length, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_in_both_protocols),
        cmocka_unit_test(nothing_is_written_past_the_size),
        cmocka_unit_test(overflow_stays),
    };
    return cmocka_run_group_tests_name("resp_reply", tests, NULL, NULL);
}
