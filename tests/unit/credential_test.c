/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials from every source, and their renewal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net/credential.h"
#include "process/host.h"
#include "stream_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct credential credential;
static char words[256];
static const char *command; /* of the program; NULL: it cannot be started */
static unsigned runs;
static unsigned readies;
static int64_t lives_ms;

static const char *now(void)
{
    const char *out = NULL;
    struct text why;
    text_init(&why, words, sizeof words);
    return credential_now(&credential, &out, &why) ? out : NULL;
}

static bool start(void *owner, struct credential_helper *helper)
{
    const char *const argv[] = {"sh", "-c", command, NULL};
    (void)owner;
    runs++;
    return command != NULL && credential_helper_start(helper, argv, environ) == 0;
}

static bool read_output(void *owner, const char *output, size_t length, char **out_value,
                        int64_t *out_expires_ms)
{
    (void)owner;
    if (length == 0)
        return false;
    *out_value = strndup(output, length);
    *out_expires_ms = lives_ms > 0 ? host_wall_ms() + lives_ms : CREDENTIAL_NEVER;
    return true;
}

static void on_ready(void *owner)
{
    (void)owner;
    readies++;
}

static const struct credential_program program = {
    .name = "the helper", .start = start, .read = read_output, .ready = on_ready};

static void use(const struct credential_source *source)
{
    runs = 0;
    lives_ms = 0;
    assert_true(credential_init(&credential, kit_net, source));
}

static void run(void)
{
    readies = 0;
    assert_false(credential_ready(&credential));
    assert_false(credential_ready(&credential)); /* one run at a time */
    assert_null(now());
    assert_string_equal(words, "the helper has not returned yet");
    assert_true(kit_until(&readies));
    assert_true(credential_ready(&credential));
}

static int end(void **state)
{
    credential_done(&credential);
    return kit_close(state);
}

static void none_or_a_fixed_one_is_always_ready(void **state)
{
    (void)state;
    use(&(struct credential_source){.fixed = NULL});
    assert_true(credential_ready(&credential));
    assert_null(now());
    assert_string_equal(words, ""); /* none is needed */
    use(&(struct credential_source){.fixed = "fixed"});
    assert_string_equal(now(), "fixed");
    credential_refused(&credential);
    assert_string_equal(now(), "fixed");
}

static void a_variable_is_read_at_every_use(void **state)
{
    (void)state;
    use(&(struct credential_source){.variable = "LEASEHOLD_TEST_TOKEN", .fixed = "unused"});
    assert_int_equal(setenv("LEASEHOLD_TEST_TOKEN", "one", 1), 0);
    assert_string_equal(now(), "one");
    assert_int_equal(setenv("LEASEHOLD_TEST_TOKEN", "two", 1), 0);
    assert_string_equal(now(), "two");
    assert_int_equal(unsetenv("LEASEHOLD_TEST_TOKEN"), 0);
    assert_null(now());
    assert_string_equal(words, "the environment variable LEASEHOLD_TEST_TOKEN is not set");
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void a_file_is_read_again_when_it_changes(void **state)
{
    char path[] = "/tmp/leasehold-credential-XXXXXX";
    int file = mkstemp(path);
    (void)state;
    assert_true(file >= 0 && close(file) == 0);
    write_file(path, "one\n");
    use(&(struct credential_source){.file = path, .variable = "HOME"});
    assert_true(credential_ready(&credential));
    assert_string_equal(now(), "one");
    write_file(path, "second\n");
    assert_string_equal(now(), "second");
    assert_int_equal(unlink(path), 0);
    assert_string_equal(now(), "second"); /* until a server refuses it */
    credential_refused(&credential);
    assert_null(now());
    assert_null(strstr(words, "second"));
}

static void a_program_runs_again_when_refused_or_before_the_end(void **state)
{
    (void)state;
    use(&(struct credential_source){.program = &program, .file = "/nowhere"});
    command = "printf one";
    run();
    assert_string_equal(now(), "one");
    assert_true(credential.good_until_ms == CREDENTIAL_NEVER);
    credential_refused(&credential);
    command = "printf two";
    lives_ms = 3600000;
    run();
    assert_string_equal(now(), "two");
    int64_t left_ms = credential.good_until_ms - host_boot_ms();
    assert_true(left_ms > 3500000 && left_ms <= 3540000); /* a minute early */
    credential.good_until_ms = host_boot_ms();
    lives_ms = 30000;
    run();
    left_ms = credential.good_until_ms - host_boot_ms();
    assert_true(left_ms > 1000 && left_ms <= 15000); /* a short life: after half of it */
    assert_int_equal(runs, 3);
}

static void a_failed_program_is_not_repeated_at_once(void **state)
{
    (void)state;
    use(&(struct credential_source){.program = &program});
    command = "echo secret; exit 3";
    run();
    assert_null(now());
    assert_string_equal(words, "the helper failed");
    credential_refused(&credential);
    command = "exit 0";
    run();
    assert_null(now());
    assert_string_equal(words, "the helper returned no credential");
    assert_int_equal(runs, 2);
    credential_refused(&credential);
    command = NULL;
    assert_true(credential_ready(&credential));
    assert_null(now());
    assert_string_equal(words, "the helper cannot be started");
    assert_int_equal(runs, 3);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, kit_open, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(none_or_a_fixed_one_is_always_ready),
        STORY(a_variable_is_read_at_every_use),
        STORY(a_file_is_read_again_when_it_changes),
        STORY(a_program_runs_again_when_refused_or_before_the_end),
        STORY(a_failed_program_is_not_repeated_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
