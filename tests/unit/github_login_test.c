/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens for GitHub: of the environment, of a file that changes, and of a GitHub App. */
#include "github_kit.h"
#include "process/host.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/github-login-XXXXXX";
static EVP_PKEY *key;

static const char *path(const char *name)
{
    static char out[64];
    (void)snprintf(out, sizeof out, "%s/%s", folder, name);
    return out;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(path(name), "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* ---- tokens of the user ---- */

static void expect_token(const char *line)
{
    static const char *const answers[] = {"200 OK\n{}", NULL};
    static struct caller caller;
    github_kit_open(answers);
    caller_call(&caller, "GET", "x", GITHUB_READ);
    answers_expect(0, line);
    github_api_close(&github_kit_api);
}

static void tokens_are_found_in_order(void **state)
{
    (void)state;
    write_file("token", "s3cret-file\n");
    text_copy(github_kit_url.token_file, sizeof github_kit_url.token_file, path("token"));
    (void)setenv("GITHUB_TOKEN", "s3cret-1", 1);
    (void)setenv("GH_TOKEN", "s3cret-2", 1);
    expect_token("\r\nAuthorization: Bearer s3cret-1\r\n");
    (void)setenv("GITHUB_TOKEN", "", 1);
    expect_token("\r\nAuthorization: Bearer s3cret-2\r\n");
    (void)unsetenv("GH_TOKEN");
    expect_token("\r\nAuthorization: Bearer s3cret-file\r\n");
    github_kit_url.token_file[0] = '\0';
    assert_false(github_kit_try_open(&github_kit_api));
    assert_non_null(strstr(github_kit_why, "GITHUB_TOKEN"));
    assert_non_null(strstr(github_kit_why, "GH_TOKEN"));
    assert_non_null(strstr(github_kit_why, "?token-file="));
}

static void a_new_token_in_the_file_is_used(void **state)
{
    static const char *const answers[] = {"200 OK\n{}", "401 Unauthorized\n{}", "200 OK\n{}", NULL};
    static struct caller caller;
    (void)state;
    (void)unsetenv("GITHUB_TOKEN");
    write_file("token", "s3cret-old");
    text_copy(github_kit_url.token_file, sizeof github_kit_url.token_file, path("token"));
    github_kit_open(answers);
    caller_call(&caller, "GET", "x", GITHUB_READ);
    write_file("token", "s3cret-young");
    caller_call(&caller, "GET", "x", GITHUB_READ);
    assert_int_equal(caller.status, 200);
    answers_expect(2, "\r\nAuthorization: Bearer s3cret-young\r\n");
}

static void a_missing_file_is_an_error(void **state)
{
    static const char *const none[] = {NULL};
    static struct caller caller;
    (void)state;
    (void)unsetenv("GITHUB_TOKEN");
    text_copy(github_kit_url.token_file, sizeof github_kit_url.token_file, path("missing"));
    github_kit_open(none);
    caller_call(&caller, "POST", "x", GITHUB_GRANT);
    assert_true(caller.status == 0 && caller.refused);
    assert_non_null(strstr(caller.why, "missing"));
    assert_int_equal(answers_heard(), 0);
}

/* ---- tokens of an App ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    unsigned issued; /* tokens */
    bool revoked;    /* all of them */
    const char *expires;
    char jwt[2048];
} app;

static void app_reply(int file, const char *status, const char *body)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "HTTP/1.1 %s\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Length: "
                   "%zu\r\n\r\n%s",
                   status, strlen(body), body);
    http_kit_say(file, text);
}

static bool app_server(int file, const char *request)
{
    static const char token_path[] = "POST /api/v3/app/installations/7/access_tokens ";
    const char *bearer = strstr(request, "\r\nAuthorization: Bearer ");
    char text[128];
    bearer = bearer != NULL ? bearer + 24 : "";
    (void)pthread_mutex_lock(&lock);
    if (strncmp(request, "GET /api/v3/repos/octo/cat/installation ", 40) == 0) {
        (void)snprintf(app.jwt, sizeof app.jwt, "%.*s", (int)strcspn(bearer, "\r"), bearer);
        app_reply(file, "200 OK", "{\"id\":7}");
    } else if (strncmp(request, token_path, sizeof token_path - 1) == 0 &&
               strstr(request, "{\"repositories\":[\"cat\"]}") != NULL) {
        app.revoked = false;
        (void)snprintf(text, sizeof text, "{\"token\":\"ghs_s3cret%u\",\"expires_at\":\"%s\"}",
                       ++app.issued, app.expires);
        app_reply(file, "201 Created", text);
    } else {
        bool good = !app.revoked && strncmp(bearer, "ghs_s3cret", 10) == 0;
        app_reply(file, good ? "200 OK" : "401 Unauthorized", "{}");
    }
    (void)pthread_mutex_unlock(&lock);
    return true;
}

static void app_open(const char *expires)
{
    static const char *const none[] = {NULL};
    app.issued = 0;
    app.revoked = false;
    app.expires = expires;
    FILE *file = fopen(path("key"), "we");
    assert_non_null(file);
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    assert_int_equal(fclose(file), 0);
    github_kit_url.app = 123456;
    text_copy(github_kit_url.app_key_file, sizeof github_kit_url.app_key_file, path("key"));
    github_kit_open(none);
    answers_say_by(app_server);
}

/* Decodes base64url; the result ends with a NUL. */
static size_t decode(const char *text, size_t length, unsigned char *out)
{
    char padded[1024] = "";
    assert_true(length + 4 < sizeof padded);
    memcpy(padded, text, length);
    for (char *at = padded; *at != '\0'; at++) {
        if (*at == '-')
            *at = '+';
        if (*at == '_')
            *at = '/';
    }
    while (length % 4 != 0)
        padded[length++] = '=';
    int decoded = EVP_DecodeBlock(out, (const unsigned char *)padded, (int)length);
    assert_true(decoded > 0);
    size_t padding = strcspn(padded, "=") < length ? length - strcspn(padded, "=") : 0;
    out[(size_t)decoded - padding] = '\0';
    return (size_t)decoded - padding;
}

static void an_app_signs_its_request(void **state)
{
    static struct caller caller;
    unsigned char claims[1024], signature[1024];
    (void)state;
    app_open("2026-01-01T01:00:00.000Z");
    caller_call(&caller, "POST", "git/refs", GITHUB_GRANT);
    assert_int_equal(caller.status, 200);
    char *middle = strchr(app.jwt, '.') + 1, *end = strrchr(app.jwt, '.');
    (void)decode(middle, (size_t)(end - middle), claims);
    size_t length = decode(end + 1, strlen(end + 1), signature);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(EVP_DigestVerify(context, signature, length, (unsigned char *)app.jwt,
                                      (size_t)(end - app.jwt)),
                     1);
    EVP_MD_CTX_free(context);
    json_t *json = json_loads((const char *)claims, 0, NULL);
    json_int_t from_s = json_integer_value(json_object_get(json, "iat"));
    json_int_t until_s = json_integer_value(json_object_get(json, "exp"));
    assert_string_equal(github_string(json, "iss"), "123456");
    assert_true(until_s - from_s <= 600 && from_s <= host_wall_ms() / 1000 - 55);
    json_decref(json);
    caller_call(&caller, "GET", "x", GITHUB_READ);
    assert_int_equal(app.issued, 1); /* it is used until it expires */
}

static void the_token_of_an_app_is_renewed(void **state)
{
    static struct caller caller;
    (void)state;
    app_open("2026-01-01T00:00:02Z");
    caller_call(&caller, "GET", "x", GITHUB_READ);
    assert_int_equal(app.issued, 1);
    github_kit_run(github_kit_api, /* ms= */ 1100);
    caller_call(&caller, "GET", "x", GITHUB_READ); /* renews it, but does not wait for that */
    assert_int_equal(caller.status, 200);
    github_kit_run(github_kit_api, /* ms= */ 200);
    assert_int_equal(app.issued, 2);
    github_kit_run(github_kit_api, /* ms= */ 2100); /* that one has expired, too */
    caller_call(&caller, "GET", "x", GITHUB_READ);
    assert_int_equal(caller.status, 200);
    assert_int_equal(app.issued, 3);
    app.expires = "2026-01-01T01:00:00Z";
    app.revoked = true;
    caller_call(&caller, "POST", "x", GITHUB_HEARTBEAT);
    assert_int_equal(caller.status, 200);
    assert_int_equal(app.issued, 4);
}

static void an_app_may_be_unable_to_get_one(void **state)
{
    static const char *const nowhere[] = {"404 Not Found\n{\"message\":\"Not Found\"}", NULL};
    static struct caller caller;
    (void)state;
    app_open("2026-01-01T01:00:00Z");
    answers_say(nowhere);
    caller_call(&caller, "GET", "x", GITHUB_READ);
    assert_true(caller.status == 0 && caller.refused);
    assert_non_null(strstr(caller.why, "the App is not installed in this repository"));
    github_api_close(&github_kit_api);
    write_file("key", "no key");
    github_kit_open(nowhere);
    caller_call(&caller, "GET", "x", GITHUB_READ);
    assert_non_null(strstr(caller.why, "it contains no RSA private key"));
    assert_int_equal(answers_heard(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(tokens_are_found_in_order),      STORY(a_new_token_in_the_file_is_used),
        STORY(a_missing_file_is_an_error),     STORY(an_app_signs_its_request),
        STORY(the_token_of_an_app_is_renewed), STORY(an_app_may_be_unable_to_get_one),
    };
    (void)unsetenv("http_proxy");
    key = EVP_RSA_gen(2048);
    if (key == NULL || mkdtemp(folder) == NULL)
        return 1;
    int status = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(path("key"));
    (void)unlink(path("token"));
    (void)rmdir(folder);
    EVP_PKEY_free(key);
    return status;
}
