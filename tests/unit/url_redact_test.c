/* SPDX-License-Identifier: Apache-2.0 */
/* A URL as it may be shown: no secret survives, at any position. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/url_redact.h"

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
    {"redis://secret@host/0", "redis://***@host/0"}, /* passwords are often written there */
    {"redis://user@host/0?password-file=/p", "redis://user@host/0?password-file=/p"},
    {"redis://user@host/?auth=entra&client-id=1-2", "redis://user@host/?auth=entra&client-id=1-2"},
    {"redis://[::1]:6379,host:26379/15", "redis://[::1]:6379,host:26379/15"},
    {"redis://u:se@cr/et?x@host/0", "redis://u:***@host/0"},
    {"rediss://h/?password-file=/p&password=x", "rediss://h/?password-file=/p&password=***"},
    {"rediss://h/?key=lock:%s&auth=entra", "rediss://h/?key=lock:%s&auth=entra"},
    {"postgres://h/db?password=secret&sslmode=require",
     "postgres://h/db?password=***&sslmode=require"},
    {"postgres://h/db?sslpassword=secret", "postgres://h/db?sslpassword=***"},
    {"k8s://space?token=secret&secret", "k8s://space?token=***&***"},
    {"github://owner/repo", "github://owner/repo"},
    {"redis:/user:secret@host", "redis:/user:***@host"},
    {"redis:user:secret@host", "redis:user:***@host"},
    {"redis:secret@host", "redis:***@host"},
    {"rediss:///user:secret@host", "rediss:///user:***@host"},
    {"redis://user:secret", "redis://user:***"},
    {"redis://:secret", "redis://:***"},
    {"redis://user:secret/0", "redis://user:***/0"},
    {"redis://user:secret%40host:6379/0", "redis://user:***/0"},
    {"redis://host:6379/secret", "redis://host:6379/***"},
    {"redis://host/0#secret", "redis://host/***"},
    {"redis://host secret", "redis://***"},
    {"redis://host;password=secret", "redis://***"},
    {"redis://host&password=secret", "redis://***"},
    {"redis://host?password=a@secret", "redis:***"},
    {"redis://host?db=0;password=secret", "redis://host?db=***"},
    {"redis://host?secret", "redis://host?***"},
    {"redis://host?S3=secret", "redis://host?***=***"},
    {"k8s:user:secret@host", "k8s:user:***@host"},
    {"k8s://user:secret@host", "k8s://user:***@host"},
    {"redis;//user:secret@host", "***"},
    {"redis//secret@host", "***"},
    {"user:secret@host", "user:***@host"},
    {"secret", "***"},
    {" redis://user:secret@host", "***"},
    {"/var/lib/x.log", "/var/lib/x.log"},
    {"redis://ho\033[31mst", "redis://***"},
    {"file:/a\033[31mb", "file:/a?[31mb"},
    {"leasehold://host:7379", "leasehold://host:7379"},
};

static void secrets_are_hidden_and_the_rest_is_shown(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        char bytes[256];
        struct text text;
        text_init(&text, bytes, sizeof bytes);
        url_redact(urls[i].url, &text);
        assert_string_equal(bytes, urls[i].shown);
        assert_null(strstr(bytes, "secret"));
    }
}

/* A path is shown unchanged, but this is none. */
static void a_url_in_the_place_of_a_path_is_hidden(void **state)
{
    (void)state;
    char bytes[256], hidden[] = "file:redis://user:secret@host";
    struct text text;
    text_init(&text, bytes, sizeof bytes);
    url_redact(hidden, &text);
    assert_string_equal(bytes, "file:***");
    url_redact_in_place(hidden);
    assert_null(strstr(hidden, "secret"));
}

/* In the arguments of a process, where its length cannot change. */
static void secrets_are_hidden_where_they_stand(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        char hidden[256], bytes[256];
        struct text text;
        text_copy(hidden, sizeof hidden, urls[i].url);
        url_redact_in_place(hidden);
        assert_int_equal(strlen(hidden), strlen(urls[i].url));
        assert_null(strstr(hidden, "secret"));
        assert_null(strstr(hidden, "cr/et"));
        text_init(&text, bytes, sizeof bytes);
        url_redact(hidden, &text);
        assert_string_equal(bytes, urls[i].shown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_are_hidden_and_the_rest_is_shown),
        cmocka_unit_test(a_url_in_the_place_of_a_path_is_hidden),
        cmocka_unit_test(secrets_are_hidden_where_they_stand),
    };
    return cmocka_run_group_tests_name("url_shown", tests, NULL, NULL);
}
