/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to Entra ID and the parsing of its replies: wire/entra_request.h. */
#include "wire/base64url.h"
#include "wire/entra_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { NOW_S = 1700000000 };

static bool reads(const char *body, struct entra_token *out)
{
    /* In memory of its exact length, without a NUL: the sanitizer detects reads beyond it. */
    size_t length = strlen(body);
    char *copy = test_malloc(length > 0 ? length : 1);
    for (size_t i = 0; i < length; i++)
        copy[i] = body[i];
    bool read = entra_read_token(copy, length, NOW_S, out);
    test_free(copy);
    return read;
}

static void asks_as_app_service_and_clients_do(void **state)
{
    char words[1024];
    struct text text;
    struct entra_identity identity = {.endpoint = "http://127.0.0.1:41/msi/token",
                                      .client_id = "c"};
    (void)state;
    text_init(&text, words, sizeof words);
    entra_app_url(&identity, &text);
    assert_string_equal(words, "http://127.0.0.1:41/msi/token?api-version=2019-08-01&resource="
                               "https%3A%2F%2Fredis.azure.com&client_id=c");
    identity.client_id = NULL;
    text_clear(&text);
    entra_app_url(&identity, &text);
    assert_null(strstr(words, "client_id"));
    identity.client_id = "c";
    identity.secret = "s~&=";
    text_clear(&text);
    entra_workload_form(&identity, &text);
    assert_string_equal(words, "grant_type=client_credentials&client_id=c&scope=https%3A%2F%2F"
                               "redis.azure.com%2F.default&client_secret=s~%26%3D");
    assert_true(entra_is_id("0-9.aZ"));
    assert_false(entra_is_id(""));
    assert_false(entra_is_id("a\"b"));
}

static void tokens_may_say_when_they_end(void **state)
{
    static struct entra_token token;
    (void)state;
    assert_true(reads("{\"access_token\":\"a.b.c\",\"expires_on\":\"1700000060\"}", &token));
    assert_int_equal(token.lives_s, 60);
    assert_true(reads("{\"accessToken\":\"a.b.c\",\"expires_on\":1700003600}", &token));
    assert_int_equal(token.lives_s, 3600);
    assert_false(reads("{\"access_token\":\"a.b.c\",\"expires_on\":\"1700000000\"}", &token));
    assert_false(reads("{\"access_token\":\"a.b.c\",\"expires_on\":\"9999999999999\"}", &token));
    assert_false(reads("{\"accessToken\":\"a.b.c\",\"expiresOn\":\"2026-01-01\"}", &token));
}

static void base64url_has_no_padding(void **state)
{
    static const struct {
        const char *bytes, *words;
    } cases[] = {{"", ""}, {"f", "Zg"}, {"fo", "Zm8"}, {"foo", "Zm9v"}, {"\xfb\xff", "-_8"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char words[16] = "";
        struct text text;
        text_init(&text, words, sizeof words);
        base64url_add((const unsigned char *)cases[i].bytes, strlen(cases[i].bytes), &text);
        assert_string_equal(words, cases[i].words);
    }
}

static void asks_as_documented(void **state)
{
    char words[1024];
    struct text text;
    struct entra_identity identity = {.endpoint = "http://169.254.169.254"};
    (void)state;
    text_init(&text, words, sizeof words);
    entra_managed_url(&identity, &text);
    assert_string_equal(words, "http://169.254.169.254/metadata/identity/oauth2/token?"
                               "api-version=2018-02-01&resource=https%3A%2F%2Fredis.azure.com");
    identity.client_id = "a b&c";
    text_clear(&text);
    entra_managed_url(&identity, &text);
    assert_non_null(strstr(words, "&client_id=a%20b%26c"));

    identity = (struct entra_identity){.endpoint = "https://login.test",
                                       .client_id = "client",
                                       .tenant_id = "ten/ant",
                                       .assertion = "e.y.J+="};
    text_clear(&text);
    entra_workload_url(&identity, &text);
    assert_string_equal(words, "https://login.test/ten%2Fant/oauth2/v2.0/token");
    text_clear(&text);
    entra_workload_form(&identity, &text);
    assert_string_equal(words,
                        "grant_type=client_credentials&client_id=client&scope=https%3A%2F%2F"
                        "redis.azure.com%2F.default&client_assertion_type=urn%3Aietf%3Aparams%3A"
                        "oauth%3Aclient-assertion-type%3Ajwt-bearer&client_assertion=e.y.J%2B%3D");
}

static void reads_both_answers(void **state)
{
    struct entra_token token;
    (void)state;
    assert_true(
        reads("{\"access_token\":\"abc.def\",\"refresh_token\":\"\",\"expires_in\":\"3599\","
              "\"expires_on\":\"1506484173\",\"token_type\":\"Bearer\"}",
              &token));
    assert_string_equal(token.token, "abc.def");
    assert_int_equal(token.lives_s, 3599);
    assert_string_equal(token.object_id, "");
    assert_true(reads(" { \"token_type\" : \"Bearer\" , \"more\": {\"access_token\":\"no\", \"x\":"
                      "[1,\"}\\\"\"]}, \"expires_in\" : 60 ,\n\"access_token\" : \"t\" } ",
                      &token));
    assert_string_equal(token.token, "t");
    assert_int_equal(token.lives_s, 60);
}

/* {"aud":"x","oid":"5f0d"} between two dots */
static void tells_whose_it_is(void **state)
{
    struct entra_token token;
    (void)state;
    assert_true(reads("{\"expires_in\":1,\"access_token\":"
                      "\"eyJ0eXAiOiJKV1QifQ.eyJhdWQiOiJ4Iiwib2lkIjoiNWYwZCJ9.sig\"}",
                      &token));
    assert_string_equal(token.object_id, "5f0d");
}

static void refuses_anything_else(void **state)
{
    static const char *const bodies[] = {
        "",
        "{",
        "{}",
        "null",
        "<html>",
        "{\"access_token\":\"a\"}",
        "{\"expires_in\":1}",
        "{\"access_token\":\"\",\"expires_in\":1}",
        "{\"access_token\":\"a\\nb\",\"expires_in\":1}",
        "{\"access_token\":\"a b\",\"expires_in\":1}",
        "{\"access_token\":\"a\",\"expires_in\":0}",
        "{\"access_token\":\"a\",\"expires_in\":-1}",
        "{\"access_token\":\"a\",\"expires_in\":9999999999}",
        "{\"access_token\":\"a\",\"expires_in\":\"soon\"}",
        "{\"access_token\":",
        "{\"expires_in\":1,\"access_token\":\"abc",
        "{\"access_token\"",
        "{\"acc",
        "{\"a\\",
    };
    struct entra_token token;
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        if (reads(bodies[i], &token))
            fail_msg("taken: %s", bodies[i]);
}

static void says_why_not(void **state)
{
    char words[512];
    struct text text;
    static const char body[] = "{\"error\":\"invalid_client\",\"error_description\":"
                               "\"AADSTS700024: not within its time.\\r\\nTrace ID: 1\"}";
    (void)state;
    text_init(&text, words, sizeof words);
    entra_read_error(body, sizeof body - 1, &text);
    assert_string_equal(words, "invalid_client: AADSTS700024: not within its time.");
    text_clear(&text);
    entra_read_error("oops", 4, &text);
    assert_string_equal(words, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_as_app_service_and_clients_do),
        cmocka_unit_test(tokens_may_say_when_they_end),
        cmocka_unit_test(base64url_has_no_padding),
        cmocka_unit_test(asks_as_documented),
        cmocka_unit_test(reads_both_answers),
        cmocka_unit_test(tells_whose_it_is),
        cmocka_unit_test(refuses_anything_else),
        cmocka_unit_test(says_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
