/* SPDX-License-Identifier: Apache-2.0 */
/* See json_api_kit.h. */
#include "json_api_kit.h"

#include "process/host.h"
#include "stream_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 64 * 1024 };

/* ---- the credential ---- */

static unsigned issued; /* number of the credential */
bool json_kit_ready, json_kit_missing;

static bool login_ready(void *owner)
{
    (void)owner;
    return json_kit_ready;
}

static bool login_credential(void *owner, const char **out, struct text *why)
{
    static char credential[32];
    (void)owner;
    (void)snprintf(credential, sizeof credential, "s3cret-%u", issued);
    *out = credential;
    text_add(why, json_kit_missing ? "there is no credential" : "");
    return !json_kit_missing;
}

static void login_refused(void *owner)
{
    (void)owner;
    issued++;
}

/* ---- the client ---- */

struct json_api *json_kit_api;
static char server[64];
unsigned json_kit_warnings;
char json_kit_warning[256];

static void on_warning(void *user, const char *text)
{
    (void)user;
    json_kit_warnings++;
    (void)snprintf(json_kit_warning, sizeof json_kit_warning, "%s", text);
}

void json_kit_open(const char *scheme, const char *const *answers)
{
    static const struct stream_tls plain;
    (void)snprintf(server, sizeof server, "http://127.0.0.1:%u/base", answers_port());
    struct json_api_options options = {
        .name = "the server",
        .server = server,
        .tls = &plain,
        .scheme = scheme,
        .login = {.ready = login_ready, .credential = login_credential, .refused = login_refused},
        .pause_max_ms = JSON_KIT_TIMEOUT_MS,
        .warning = on_warning};
    answers_say(answers);
    json_kit_api = json_api_new(kit_net, &options);
    assert_non_null(json_kit_api);
}

int json_kit_begin(void **state)
{
    issued = json_kit_warnings = 0;
    json_kit_ready = true;
    json_kit_missing = false;
    return !answers_open() || kit_open(state) != 0;
}

int json_kit_end(void **state)
{
    json_api_free(&json_kit_api);
    answers_close();
    return kit_close(state);
}

static const char *const shown[ASKER_HEADERS] = {"ETag", "link", "X-RateLimit-Remaining", "Twice"};

static void on_done(void *owner, const struct json_reply *reply)
{
    struct asker *asker = owner;
    asker->done++;
    asker->status = reply->status;
    asker->has_json = reply->json != NULL;
    asker->now_ms = reply->now_ms;
    (void)snprintf(asker->why, sizeof asker->why, "%s", reply->why);
    assert_null(strstr(reply->why, "s3cret"));
    assert_null(asker->request.api);
    const char *text = json_string_value(json_object_get(reply->json, "a"));
    (void)snprintf(asker->text, sizeof asker->text, "%s", text != NULL ? text : "");
    for (size_t i = 0; i < ASKER_HEADERS && reply->response != NULL; i++) {
        const char *value = http_header(reply->response, shown[i], /* index= */ 0);
        asker->found[i] = value != NULL;
        (void)snprintf(asker->value[i], sizeof asker->value[i], "%s", value != NULL ? value : "");
    }
    if (asker->next != NULL && asker->stops)
        json_request_cancel(&asker->next->request);
    else if (asker->next != NULL)
        asker_start(asker->next, "GET", "/next");
}

static bool on_line(void *owner, json_t *value, size_t size)
{
    struct asker *asker = owner;
    const char *text = json_string_value(json_object_get(value, "a"));
    assert_true(value == NULL || size > 0);
    asker->lines++;
    asker->bad_lines += value == NULL ? 1 : 0;
    (void)snprintf(asker->last, sizeof asker->last, "%s", text != NULL ? text : "");
    if (asker->lines < asker->most_lines)
        return true;
    json_request_cancel(&asker->request);
    return false;
}

struct json_call json_kit_call(const char *method, const char *path)
{
    return (struct json_call){.method = method,
                              .path = path,
                              .most = MOST,
                              .give_up_at_ms = host_boot_ms() + JSON_KIT_TIMEOUT_MS};
}

void asker_start_call(struct asker *asker, const struct json_call *call)
{
    struct json_callbacks callbacks = {.done = on_done, .owner = asker};
    callbacks.line = asker->most_lines > 0 ? on_line : NULL;
    json_request_start(&asker->request, json_kit_api, call, &callbacks);
    assert_int_equal(asker->done, 0); /* never before it returns */
}

void asker_start(struct asker *asker, const char *method, const char *path)
{
    json_t *body = strcmp(method, "GET") != 0 ? json_pack("{s:f}", "x", 0.1) : NULL;
    struct json_call call = json_kit_call(method, path);
    call.body = body;
    asker_start_call(asker, &call);
    json_decref(body);
}

void asker_ask(struct asker *asker, const char *method, const char *path)
{
    asker_start(asker, method, path);
    assert_true(kit_until(&asker->done));
    assert_int_equal(asker->done, 1);
}
