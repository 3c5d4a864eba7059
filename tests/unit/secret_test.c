/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets in files that others replace, and pauses between tries. */
#include "net/backoff.h"
#include "disk/secret.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64], path[96], words[256];
static struct secret *secret;
static struct text why;

static void put(const char *name, const char *bytes, size_t length)
{
    int file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, length), length);
    (void)close(file);
}

/* As kubelets and careful administrators do it. */
static void replace(const char *line)
{
    char beside[128];
    (void)snprintf(beside, sizeof beside, "%s.new", path);
    put(beside, line, strlen(line));
    assert_int_equal(rename(beside, path), 0);
}

static int begin(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/leasehold-secret-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    (void)snprintf(path, sizeof path, "%s/password", folder);
    text_init(&why, words, sizeof words);
    secret = secret_new(path);
    return secret != NULL ? 0 : -1;
}

static int finish(void **state)
{
    (void)state;
    secret_free(&secret);
    secret_free(&secret); /* NULL is allowed */
    (void)unlink(path);
    return rmdir(folder);
}

static const char *now(int64_t at_ms)
{
    text_clear(&why);
    return secret_now(secret, at_ms, &why);
}

static void the_first_line_counts(void **state)
{
    (void)state;
    replace("hunter2\nnot this\n");
    assert_string_equal(now(0), "hunter2");
    replace("windows\r\n");
    assert_string_equal(now(0), "windows");
    replace("bare");
    assert_string_equal(now(0), "bare");
}

static void a_replaced_file_is_read_at_once(void **state)
{
    (void)state;
    replace("old1");
    assert_string_equal(now(0), "old1");
    replace("new1");
    assert_string_equal(now(1), "new1");
}

static bool was_read(int watching)
{
    char events[4096];
    return read(watching, events, sizeof events) > 0;
}

/* A file system that reports no change is no reason to keep an old one. */
static void it_is_read_at_least_once_a_minute(void **state)
{
    (void)state;
    replace("same");
    int watching = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(inotify_add_watch(watching, path, IN_ACCESS) >= 0);
    assert_string_equal(now(0), "same");
    assert_true(was_read(watching));
    assert_string_equal(now(59999), "same");
    assert_false(was_read(watching));
    assert_string_equal(now(60000), "same");
    assert_true(was_read(watching));
    secret_refused(secret);
    assert_string_equal(now(60001), "same");
    assert_true(was_read(watching));
    (void)close(watching);
}

static void one_that_cannot_be_read_leaves_the_old_one_good(void **state)
{
    (void)state;
    replace("good");
    assert_string_equal(now(0), "good");
    assert_int_equal(unlink(path), 0);
    assert_string_equal(now(1), "good");
    secret_refused(secret);
    assert_null(now(2));
    assert_non_null(strstr(words, path));
    assert_null(strstr(words, "good"));
    replace("better");
    assert_string_equal(now(3), "better");
}

static void a_bad_secret_is_refused_with_a_reason(void **state)
{
    static char large[SECRET_MAX + 2];
    (void)state;
    assert_null(now(0)); /* not there */
    assert_non_null(strstr(words, "No such file"));
    replace("\n");
    assert_null(now(0));
    assert_non_null(strstr(words, "empty"));
    put(path, "a\0b\n", 4);
    assert_null(now(0));
    assert_non_null(strstr(words, "no text"));
    memset(large, 'x', sizeof large);
    put(path, large, SECRET_MAX + 1);
    assert_null(now(0));
    assert_non_null(strstr(words, "too long"));
    put(path, large, SECRET_MAX);
    assert_int_equal(strlen(now(0)), SECRET_MAX);
    secret_refused(secret);
    (void)unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0); /* no writer: must not block */
    assert_null(now(0));
    assert_non_null(strstr(words, "no regular file"));
}

static void pauses_double_up_to_a_limit_with_jitter(void **state)
{
    struct backoff backoff, twin, other;
    int64_t longest[] = {100, 200, 400, 800, 1000, 1000, 1000};
    bool differs = false;
    (void)state;
    backoff_init(&backoff, /* seed= */ 7, /* first_ms= */ 100, /* most_ms= */ 1000);
    backoff_init(&twin, /* seed= */ 7, /* first_ms= */ 100, /* most_ms= */ 1000);
    backoff_init(&other, /* seed= */ 8, /* first_ms= */ 100, /* most_ms= */ 1000);
    for (size_t i = 0; i < sizeof longest / sizeof longest[0]; i++) {
        int64_t pause_ms = backoff_pause_ms(&backoff);
        assert_in_range(pause_ms, longest[i] / 2, longest[i]);
        assert_int_equal(backoff_pause_ms(&twin), pause_ms);
        differs |= backoff_pause_ms(&other) != pause_ms;
    }
    assert_true(differs);
    backoff_reset(&backoff);
    assert_in_range(backoff_pause_ms(&backoff), 50, 100);
    backoff_init(&backoff, /* seed= */ 1, /* first_ms= */ 1, /* most_ms= */ INT64_MAX);
    for (int i = 0; i < 200; i++)
        assert_true(backoff_pause_ms(&backoff) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_line_counts, begin, finish),
        cmocka_unit_test_setup_teardown(a_replaced_file_is_read_at_once, begin, finish),
        cmocka_unit_test_setup_teardown(it_is_read_at_least_once_a_minute, begin, finish),
        cmocka_unit_test_setup_teardown(one_that_cannot_be_read_leaves_the_old_one_good, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(a_bad_secret_is_refused_with_a_reason, begin, finish),
        cmocka_unit_test(pauses_double_up_to_a_limit_with_jitter),
    };
    return cmocka_run_group_tests_name("secret", tests, NULL, NULL);
}
