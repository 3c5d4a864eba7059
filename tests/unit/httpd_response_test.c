/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of HTTP responses: every status, values with line ends, and memory that is too small. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/httpd_response.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_unauthorized(struct text *out)
{
    httpd_response_start(out, 401);
    httpd_response_field(out, "Content-Type", "application/json");
    httpd_response_number(out, "Content-Length", 0);
    httpd_response_number(out, "Retry-After", UINT64_MAX);
    httpd_response_field(out, "WWW-Authenticate", "Bearer realm=\"é\"");
    httpd_response_field(out, "Connection", "close");
    httpd_response_field(out, "Allow", "");
    httpd_response_end(out);
}

static const char unauthorized[] = "HTTP/1.1 401 Unauthorized\r\n"
                                   "Content-Type: application/json\r\n"
                                   "Content-Length: 0\r\n"
                                   "Retry-After: 18446744073709551615\r\n"
                                   "WWW-Authenticate: Bearer realm=\"é\"\r\n"
                                   "Connection: close\r\n"
                                   "Allow: \r\n"
                                   "\r\n";

static void a_head_is_written(void **state)
{
    char bytes[512];
    struct text out;
    (void)state;
    text_init(&out, bytes, sizeof bytes);
    write_unauthorized(&out);
    assert_string_equal(bytes, unauthorized);
    assert_false(out.cut);
    text_clear(&out);
    httpd_response_start(&out, 100);
    httpd_response_end(&out);
    assert_string_equal(bytes, "HTTP/1.1 100 Continue\r\n\r\n");
}

/* In memory of exactly that size: the sanitizer finds a write behind it. */
static void a_head_that_does_not_fit_is_cut(void **state)
{
    (void)state;
    for (size_t size = 1; size <= sizeof unauthorized; size++) {
        char *bytes = malloc(size);
        struct text out;
        assert_non_null(bytes);
        text_init(&out, bytes, size);
        write_unauthorized(&out);
        assert_int_equal(out.cut, size < sizeof unauthorized);
        free(bytes);
    }
}

static void every_status_has_a_phrase(void **state)
{
    static const int statuses[] = {100, 200, 400, 401, 403, 404, 405, 408, 409, 410, 412, 413,
                                   414, 415, 417, 421, 422, 423, 429, 431, 500, 501, 503, 505};
    char bytes[64], expected[64];
    struct text out;
    (void)state;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        const char *phrase = httpd_response_phrase(statuses[i]);
        assert_true(strlen(phrase) > 1 && strpbrk(phrase, "\r\n") == NULL);
        text_init(&out, bytes, sizeof bytes);
        httpd_response_start(&out, statuses[i]);
        (void)snprintf(expected, sizeof expected, "HTTP/1.1 %d %s\r\n", statuses[i], phrase);
        assert_string_equal(bytes, expected);
    }
    assert_string_equal(httpd_response_phrase(200), "OK");
    assert_string_equal(httpd_response_phrase(423), "Locked");
    assert_string_equal(httpd_response_phrase(505), "HTTP Version Not Supported");
}

/* Every byte in the value: the head has exactly one line end per line. */
static void no_value_ends_its_line(void **state)
{
    char bytes[128];
    struct text out;
    (void)state;
    for (int byte = 1; byte < 256; byte++) {
        char value[] = {'a', (char)byte, (char)byte, 'A', ':', ' ', 'b', '\0'};
        text_init(&out, bytes, sizeof bytes);
        httpd_response_field(&out, "Location", value);
        assert_int_equal(out.length, strlen("Location: a..A: b\r\n"));
        assert_int_equal(strcspn(bytes, "\r\n"), out.length - 2);
        assert_string_equal(bytes + out.length - 2, "\r\n");
        for (size_t i = 0; i < out.length - 2; i++)
            assert_true((unsigned char)bytes[i] >= ' ' && bytes[i] != 0x7f);
    }
    text_init(&out, bytes, sizeof bytes);
    httpd_response_field(&out, "Allow", "GET\r\nSet-Cookie: a=b\r\n\r\n<html>");
    assert_string_equal(bytes, "Allow: GET  Set-Cookie: a=b    <html>\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_written),
        cmocka_unit_test(a_head_that_does_not_fit_is_cut),
        cmocka_unit_test(every_status_has_a_phrase),
        cmocka_unit_test(no_value_ends_its_line),
    };
    return cmocka_run_group_tests_name("httpd_response", tests, NULL, NULL);
}
