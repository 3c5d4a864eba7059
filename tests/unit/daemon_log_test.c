/* SPDX-License-Identifier: Apache-2.0 */
/* The log of refusals: how many lines, and what they must not contain. The clock is the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/text.h"
#include "daemon_kit.h"
#include "process/host.h"

#include <stdio.h>
#include <string.h>

enum { LINES_MAX = 64 };

static struct daemon *served;
static struct peer *ann;
static int64_t ahead_ms; /* of the real clock */

/* The logged lines: "class event peer identity count text". */
static char lines[LINES_MAX][512];
static size_t line_count;
static uint64_t counted; /* the sum of all counts */

/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
int64_t __real_host_boot_ms(void);
/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
int64_t __wrap_host_boot_ms(void);

/* NOLINTNEXTLINE(readability-identifier-naming): the name is the linker's */
int64_t __wrap_host_boot_ms(void)
{
    return __real_host_boot_ms() + ahead_ms;
}

static void on_line(const struct daemon_line *line)
{
    assert_true(line_count < LINES_MAX);
    (void)snprintf(
        lines[line_count++], sizeof lines[0], "%s %s %s %s %llu %s",
        line->class != NULL ? line->class : "-", line->event, line->peer != NULL ? line->peer : "-",
        line->identity != NULL ? line->identity : "-", (unsigned long long)line->count, line->text);
    counted += line->count;
}

static int open_all(void **state)
{
    (void)state;
    line_count = 0;
    counted = 0;
    kit_read_log(on_line);
    served = kit_daemon_new();
    ann = peer_new(served);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    if (ann != NULL)
        peer_free(ann);
    ann = NULL;
    if (served != NULL)
        daemon_free(served);
    served = NULL;
    return 0;
}

static void pass(int64_t length_ms)
{
    ahead_ms += length_ms;
    for (int i = 0; i < 5; i++)
        kit_daemon_turn(served, 0);
}

static void refuse(enum daemon_refusal_class class, int times)
{
    for (int i = 0; i < times; i++)
        daemon_refused(served, class, "127.0.0.1", "ann", "why");
}

static void expect_line(size_t index, const char *wanted)
{
    assert_true(index < line_count);
    assert_string_equal(lines[index], wanted);
}

static void one_line_per_class_and_second(void **state)
{
    (void)state;
    refuse(REFUSED_LIMIT, 1000);
    assert_int_equal(line_count, 1);
    expect_line(0, "limit_exceeded refused 127.0.0.1 ann 1 why");
    refuse(REFUSED_CREDENTIAL, 3);
    assert_int_equal(line_count, 2);
    expect_line(1, "wrong_credential refused 127.0.0.1 ann 1 why");
    pass(900);
    refuse(REFUSED_LIMIT, 1);
    assert_int_equal(line_count, 2);
    ahead_ms += 150; /* before a timer could run */
    refuse(REFUSED_LIMIT, 1);
    assert_int_equal(line_count, 3);
    expect_line(2, "limit_exceeded refused 127.0.0.1 ann 1001 why");
    assert_int_equal(served->refusals[REFUSED_LIMIT].count, 1002);
    assert_int_equal(served->refusals[REFUSED_CREDENTIAL].count, 3);
}

static void a_last_line_counts_what_was_not_written(void **state)
{
    (void)state;
    refuse(REFUSED_TLS, 5);
    pass(500);
    refuse(REFUSED_HTTP, 8);
    assert_int_equal(line_count, 2);
    pass(600);
    assert_int_equal(line_count, 3);
    expect_line(2, "tls_handshake connection_cut - - 4 further ones of this class");
    pass(500);
    assert_int_equal(line_count, 4);
    expect_line(3, "bad_http_request refused - - 7 further ones of this class");
    pass(100000);
    assert_int_equal(line_count, 4);
    refuse(REFUSED_TLS, 1);
    expect_line(4, "tls_handshake connection_cut 127.0.0.1 ann 1 why");
}

/* The last line is one of the class, too. */
static void a_steady_stream_has_a_line_a_second(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        refuse(REFUSED_PROTOCOL, 10);
        pass(50);
    }
    assert_in_range(line_count, 9, 11);
    pass(1000);
    assert_int_equal(counted, 2000);
}

static void the_end_of_the_daemon_writes_what_is_left(void **state)
{
    (void)state;
    refuse(REFUSED_LIMIT, 7);
    refuse(REFUSED_DRAINING, 1);
    assert_int_equal(line_count, 2);
    (void)close_all(NULL);
    assert_int_equal(line_count, 3);
    assert_int_equal(counted, 8);
}

static void every_class_has_a_name(void **state)
{
    (void)state;
    for (unsigned class = 0; class < REFUSAL_CLASSES; class ++) {
        const char *name = refusal_class_name(class);
        assert_non_null(name);
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
        for (unsigned other = 0; other < class; other++)
            assert_string_not_equal(name, refusal_class_name(other));
        refuse(class, 1);
    }
    assert_int_equal(line_count, REFUSAL_CLASSES);
}

/* ---- what clients cause ---- */

static void expect_refusal(const char *command, enum daemon_refusal_class class, const char *line)
{
    uint64_t before = served->refusals[class].count;
    pass(1000);
    line_count = 0;
    const char *reply = peer_ask(ann, command);
    if (reply[0] != '-')
        fail_msg("%s\n  says %.300s", command, reply);
    assert_int_equal(served->refusals[class].count, before + 1);
    expect_line(0, line);
    assert_int_equal(line_count, 1);
}

static void lines_have_no_bytes_of_clients(void **state)
{
    (void)state;
    expect_refusal("S3CRET-KEY-ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
                   REFUSED_COMMAND,
                   "bad_command refused peer default 1 unknown command "
                   "S3CRET-KEY-ABCDEFGHIJKLMNOPQRSTUVWXYZabc");
    expect_refusal("A\nB\x1b", REFUSED_COMMAND,
                   "bad_command refused peer default 1 unknown command A B?");
    expect_refusal("LOCK.ACQUIRE s3cret-key ann 1000 s3cret-word", REFUSED_COMMAND,
                   "bad_command refused peer default 1 wrong arguments of LOCK.ACQUIRE");
    ann->connection->who = &(struct may_identity){.name = "nobody"};
    expect_refusal("LOCK.ACQUIRE s3cret-key ann 1000", REFUSED_NOT_PERMITTED,
                   "not_permitted refused peer nobody 1 nobody may not use this key with "
                   "LOCK.ACQUIRE");
    expect_refusal("LOCK.ACQUIRE s3cret\x01key ann 1000", REFUSED_PROTOCOL,
                   "protocol_error refused peer nobody 1 a key must be at most 512 bytes of UTF-8 "
                   "without control characters");
    assert_int_equal(refusals_of_commands(served), 5);
}

static void what_is_not_resp_is_a_protocol_error(void **state)
{
    static const char bytes[] = "GET /s3cret HTTP/1.1\r\n\r\n";
    (void)state;
    peer_send_bytes(ann, bytes, sizeof bytes - 1);
    assert_non_null(peer_message(ann));
    assert_int_equal(line_count, 1);
    assert_int_equal(strncmp(lines[0], "protocol_error refused peer default 1 ", 38), 0);
    assert_null(strstr(lines[0], "s3cret"));
}

static void a_slow_client_is_cut(void **state)
{
    static char bytes[CONNECTION_OUT_MAX / 2];
    (void)state;
    memset(bytes, 'x', sizeof bytes);
    for (int i = 0; i < 3; i++) /* nothing is sent before a turn */
        stream_write(ann->connection->stream, bytes, sizeof bytes);
    pass(0);
    assert_int_equal(served->refusals[REFUSED_SLOW_CLIENT].count, 1);
    assert_int_equal(served->counters.cut, 1);
    assert_int_equal(strncmp(lines[0], "slow_client connection_cut peer default 1 peer: ", 48), 0);
    assert_int_equal(line_count, 1);
}

static void too_many_watches_are_a_limit(void **state)
{
    (void)state;
    served->watches = WATCHES_LIMIT;
    expect_refusal("LOCK.WATCH p", REFUSED_LIMIT,
                   "limit_exceeded refused peer default 1 too many watches");
    served->watches = 0;
    served->waiters = WAITERS_LIMIT;
    pass(1000);
    line_count = 0;
    assert_non_null(strstr(peer_ask(ann, "LOCK.ACQUIRE k ann 1000 WAIT 1"), "queue full"));
    expect_line(0, "limit_exceeded refused peer default 1 too many waiters");
    served->waiters = 0;
}

static void refusals_of_a_drain_are_counted(void **state)
{
    (void)state;
    assert_non_null(strstr(peer_ask(ann, "LOCK.ACQUIRE k ann 60000 BIND"), "outcome ok"));
    drain_begin(served);
    for (int i = 0; i < 3; i++)
        assert_non_null(strstr(peer_ask(ann, "LOCK.ACQUIRE l ann 1000"), "stopping"));
    assert_int_equal(served->refusals[REFUSED_DRAINING].count, 3);
    expect_line(0, "draining refused peer default 1 unavailable: the daemon is stopping; try "
                   "another one");
    assert_int_equal(line_count, 1);
}

#define LOG(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOG(one_line_per_class_and_second),
        LOG(a_last_line_counts_what_was_not_written),
        LOG(a_steady_stream_has_a_line_a_second),
        LOG(the_end_of_the_daemon_writes_what_is_left),
        LOG(every_class_has_a_name),
        LOG(lines_have_no_bytes_of_clients),
        LOG(what_is_not_resp_is_a_protocol_error),
        LOG(a_slow_client_is_cut),
        LOG(too_many_watches_are_a_limit),
        LOG(refusals_of_a_drain_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
