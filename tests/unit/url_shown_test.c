/* SPDX-License-Identifier: Apache-2.0 */
/* A URL as it may be shown: no secret survives, wherever it stands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/url_shown.h"

#include <string.h>

static const struct {
    const char *url, *shown;
} urls[] = {
    {"file:/var/lib/x.log", "file:/var/lib/x.log"},
    {"file:/odd@name:with?signs=1", "file:/odd@name:with?signs=1"},
    {"memory:", "memory:"},
    {"redis://host:6379/0", "redis://host:6379/0"},
    {"redis://:secret@host/0", "redis://:***@host/0"},
    {"redis://user:secret@host/0", "redis://user:***@host/0"},
    {"redis://user@host/0", "redis://user@host/0"},
    {"redis://u:se@cr/et?x@host/0", "redis://u:***@host/0"},
    {"rediss://h/?password-file=/p&password=x", "rediss://h/?password-file=/p&password=***"},
    {"rediss://h/?key=lock:%s&auth=entra", "rediss://h/?key=lock:%s&auth=entra"},
    {"postgres://h/db?password=secret&sslmode=require",
     "postgres://h/db?password=***&sslmode=require"},
    {"postgres://h/db?sslpassword=secret", "postgres://h/db?sslpassword=***"},
    {"k8s://space?token=secret&bare", "k8s://space?token=***&bare"},
    {"leasehold://host:7379", "leasehold://host:7379"},
};

static void secrets_are_hidden_and_the_rest_is_shown(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        char bytes[256];
        struct text text;
        text_init(&text, bytes, sizeof bytes);
        url_show(urls[i].url, &text);
        assert_string_equal(bytes, urls[i].shown);
        assert_null(strstr(bytes, "secret"));
    }
}

/* As it stands among the words of a call, where its length cannot change. */
static void secrets_are_hidden_where_they_stand(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        char hidden[256], bytes[256];
        struct text text;
        text_copy(hidden, sizeof hidden, urls[i].url);
        url_hide(hidden);
        assert_int_equal(strlen(hidden), strlen(urls[i].url));
        assert_null(strstr(hidden, "secret"));
        assert_null(strstr(hidden, "cr/et"));
        text_init(&text, bytes, sizeof bytes);
        url_show(hidden, &text);
        assert_string_equal(bytes, urls[i].shown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_are_hidden_and_the_rest_is_shown),
        cmocka_unit_test(secrets_are_hidden_where_they_stand),
    };
    return cmocka_run_group_tests_name("url_shown", tests, NULL, NULL);
}
