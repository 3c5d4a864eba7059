/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of RESP clients: every cut, every limit, and refusal at the first wrong byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/resp_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BULK_LIMIT = 20, TOTAL_LIMIT = 100 };

static const struct resp_command_limits limits = {.bulk_max = BULK_LIMIT, .total_max = TOTAL_LIMIT};

static const struct {
    const char *bytes;
    const char *args; /* each between < and > */
} commands[] = {
    {"*1\r\n$4\r\nPING\r\n", "<PING>"},
    {"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", "<ECHO><>"},
    {"*0\r\n", ""},
    {"*3\r\n$1\r\n*\r\n$3\r\n$1\r\r\n$2\r\n\r\n\r\n", "<*><$1\r><\r\n>"},
    {"*1\r\n$20\r\n12345678901234567890\r\n", "<12345678901234567890>"},
    {"*10\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n$1\r\nf\r\n$1\r\ng\r\n"
     "$1\r\nh\r\n$1\r\ni\r\n$1\r\nj\r\n",
     "<a><b><c><d><e><f><g><h><i><j>"},
};

/* The last byte of each is the one that decides. */
static const struct {
    const char *bytes, *wrong;
} refused[] = {
    {"P", "inline"},
    {"\n", "inline"},
    {"\rP", "expected LF"},
    {" ", "inline"},
    {"$", "inline"},
    {"*-", "multibulk length"},
    {"*+", "multibulk length"},
    {"* ", "multibulk length"},
    {"*\r", "multibulk length"},
    {"*a", "multibulk length"},
    {"*1a", "multibulk length"},
    {"*1 ", "multibulk length"},
    {"*1\n", "multibulk length"},
    {"*00", "multibulk length"},
    {"*01", "multibulk length"},
    {"*1\r\r", "LF after CR"},
    {"*129", "too many arguments"},
    {"*200", "too many arguments"},
    {"*1\r\n*", "expected '$'"},
    {"*1\r\n:", "expected '$'"},
    {"*1\r\n+", "expected '$'"},
    {"*1\r\n\r", "expected '$'"},
    {"*1\r\n$-", "bulk length"},
    {"*1\r\n$+", "bulk length"},
    {"*1\r\n$\r", "bulk length"},
    {"*1\r\n$00", "bulk length"},
    {"*1\r\n$05", "bulk length"},
    {"*1\r\n$1x", "bulk length"},
    {"*1\r\n$1\r\r", "LF after CR"},
    {"*1\r\n$21", "argument is too long"},
    {"*1\r\n$99", "argument is too long"},
    {"*1\r\n$3\r\nabcd", "expected CRLF"},
    {"*1\r\n$3\r\nabc\n", "expected CRLF"},
    {"*1\r\n$3\r\nabc\rd", "LF after CR"},
    {"*2\r\n$3\r\nabc\r\n*", "expected '$'"},
    {"*9\r\n$20\r\n12345678901234567890\r\n$20\r\n12345678901234567890\r\n"
     "$20\r\n12345678901234567890\r\n$15\r\n\n",
     "command is too long"},
};

/* A copy of exactly that length, so that the sanitizer finds reads behind it. */
static enum resp_result feed_command(const char *bytes, size_t length, char *out_args,
                                     size_t *out_length, const char **out_wrong)
{
    struct resp_command command;
    char *copy = malloc(length > 0 ? length : 1);
    size_t at = 0;
    assert_non_null(copy);
    memcpy(copy, bytes, length);
    enum resp_result result =
        resp_command_feed(copy, length, &limits, &command, out_length, out_wrong);
    out_args[0] = '\0';
    for (size_t i = 0; result == RESP_WHOLE && i < command.count; i++)
        at += (size_t)sprintf(out_args + at, "<%.*s>", (int)command.args[i].length,
                              command.args[i].text);
    free(copy);
    return result;
}

static void commands_are_found_at_every_cut(void **state)
{
    char args[512], longer[512];
    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        size_t length = strlen(commands[i].bytes), found = 0;
        const char *wrong = NULL;
        for (size_t cut = 0; cut < length; cut++)
            assert_int_equal(feed_command(commands[i].bytes, cut, args, &found, &wrong), RESP_MORE);
        assert_int_equal(feed_command(commands[i].bytes, length, args, &found, &wrong), RESP_WHOLE);
        assert_int_equal(found, length);
        assert_string_equal(args, commands[i].args);
        (void)snprintf(longer, sizeof longer, "%sINLINE", commands[i].bytes); /* not looked at */
        assert_int_equal(feed_command(longer, length + 6, args, &found, &wrong), RESP_WHOLE);
        assert_int_equal(found, length);
        assert_null(wrong);
    }
}

static void a_wrong_byte_is_refused_at_once(void **state)
{
    char args[512];
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        size_t length = strlen(refused[i].bytes), found = 0;
        const char *wrong = NULL;
        bool at_last = strcmp(refused[i].wrong, "command is too long") != 0;
        for (size_t cut = 0; at_last && cut < length; cut++)
            assert_int_equal(feed_command(refused[i].bytes, cut, args, &found, &wrong), RESP_MORE);
        assert_int_equal(feed_command(refused[i].bytes, length, args, &found, &wrong), RESP_BROKEN);
        assert_int_equal(strncmp(wrong, "Protocol error: ", 16), 0);
        if (strstr(wrong, refused[i].wrong) == NULL)
            fail_msg("case %zu: %s", i, wrong);
        assert_int_equal(found, 0);
    }
}

static void as_many_arguments_as_fit(void **state)
{
    const struct resp_command_limits wide = {.bulk_max = 1, .total_max = 4096};
    struct resp_command command;
    char bytes[4096];
    size_t length = (size_t)sprintf(bytes, "*%d\r\n", RESP_ARGS_MAX), found = 0;
    const char *wrong = NULL;
    (void)state;
    for (int i = 0; i < RESP_ARGS_MAX; i++)
        length += (size_t)sprintf(bytes + length, "$1\r\n%c\r\n", 'a' + i % 26);
    assert_int_equal(resp_command_feed(bytes, length, &wide, &command, &found, &wrong), RESP_WHOLE);
    assert_int_equal(command.count, RESP_ARGS_MAX);
    assert_int_equal(command.args[RESP_ARGS_MAX - 1].text[0], 'a' + (RESP_ARGS_MAX - 1) % 26);
    assert_int_equal(found, length);
}

/* Exactly the limit passes; one byte more is refused with the length, before its bytes. */
static void the_limit_of_the_whole(void **state)
{
    static const char bytes[] = "*2\r\n$1\r\na\r\n$2\r\nbb\r\n";
    struct resp_command_limits tight = {.bulk_max = 2, .total_max = sizeof bytes - 1};
    struct resp_command command;
    size_t found = 0;
    const char *wrong = NULL;
    (void)state;
    assert_int_equal(resp_command_feed(bytes, sizeof bytes - 1, &tight, &command, &found, &wrong),
                     RESP_WHOLE);
    tight.total_max--;
    assert_int_equal(resp_command_feed(bytes, 14, &tight, &command, &found, &wrong), RESP_MORE);
    assert_int_equal(resp_command_feed(bytes, 15, &tight, &command, &found, &wrong), RESP_BROKEN);
    assert_non_null(strstr(wrong, "too long"));
}

static void huge_numbers_do_not_wrap(void **state)
{
    static const char *const huge[] = {"*18446744073709551617\r\n",
                                       "*1\r\n$18446744073709551617\r\n", "*4294967297\r\n",
                                       "*1\r\n$4294967297\r\n"};
    char args[64];
    size_t found = 0;
    const char *wrong = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof huge / sizeof huge[0]; i++)
        assert_int_equal(feed_command(huge[i], strlen(huge[i]), args, &found, &wrong), RESP_BROKEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_are_found_at_every_cut),
        cmocka_unit_test(a_wrong_byte_is_refused_at_once),
        cmocka_unit_test(as_many_arguments_as_fit),
        cmocka_unit_test(the_limit_of_the_whole),
        cmocka_unit_test(huge_numbers_do_not_wrap),
    };
    return cmocka_run_group_tests_name("resp_command", tests, NULL, NULL);
}
