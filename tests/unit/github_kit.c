/* SPDX-License-Identifier: Apache-2.0 */
/* See github_kit.h. */
#include "github_kit.h"

#include "process/host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct github_api *github_kit_api;
struct github_url github_kit_url;
char github_kit_why[512];
static atomic_uint replies;

int github_kit_begin(void **state)
{
    char server[64];
    (void)state;
    if (!answers_open())
        return 1;
    (void)snprintf(server, sizeof server, "http://127.0.0.1:%u/api/v3/", answers_port());
    (void)setenv("GITHUB_API_URL", server, 1);
    (void)setenv("GITHUB_TOKEN", "s3cret", 1);
    (void)unsetenv("GH_TOKEN");
    atomic_store(&replies, 0);
    return !github_url_parse("github://octo/cat?pace=0s", /* loopback= */ true, &github_kit_url,
                             NULL);
}

int github_kit_end(void **state)
{
    (void)state;
    github_api_close(&github_kit_api);
    answers_close();
    return 0;
}

bool github_kit_try_open(struct github_api **out)
{
    struct text why;
    text_init(&why, github_kit_why, sizeof github_kit_why);
    return github_api_open(out, &github_kit_url, GITHUB_KIT_TIMEOUT_MS, &why);
}

void github_kit_open(const char *const *answers)
{
    answers_say(answers);
    if (!github_kit_try_open(&github_kit_api))
        fail_msg("%s", github_kit_why);
}

static void on_done(void *owner, const struct github_reply *reply)
{
    struct caller *caller = owner;
    const char *text = github_string(reply->json, "a");
    assert_null(caller->request.api);
    assert_null(strstr(reply->why, "s3cret"));
    assert_true((reply->why[0] == '\0') ==
                ((reply->status >= 200 && reply->status < 300) || reply->status == 304));
    caller->done++;
    caller->order = atomic_fetch_add(&replies, 1);
    caller->status = reply->status;
    caller->refused = reply->refused;
    caller->has_etag = reply->etag != NULL;
    caller->now_ms = reply->now_ms;
    caller->sent_ms = reply->sent_ms;
    caller->done_ms = host_boot_ms();
    caller->retry_at_ms = reply->retry_at_ms;
    (void)snprintf(caller->why, sizeof caller->why, "%s", reply->why);
    (void)snprintf(caller->text, sizeof caller->text, "%s", text);
    (void)snprintf(caller->etag, sizeof caller->etag, "%s", reply->etag != NULL ? reply->etag : "");
    (void)snprintf(caller->next, sizeof caller->next, "%s", reply->next != NULL ? reply->next : "");
}

struct github_call github_kit_call(const char *method, const char *path, enum github_kind kind)
{
    return (struct github_call){.method = method, .path = path, .kind = kind};
}

void caller_start_call(struct caller *caller, struct github_api *api,
                       const struct github_call *call)
{
    *caller = (struct caller){0};
    github_request_start(&caller->request, api, call, on_done, caller);
    assert_int_equal(caller->done, 0); /* never before it returns */
}

void caller_start(struct caller *caller, const char *method, const char *path,
                  enum github_kind kind)
{
    struct github_call call = github_kit_call(method, path, kind);
    caller_start_call(caller, github_kit_api, &call);
}

void caller_finish(struct caller *caller)
{
    int64_t until_ms = host_boot_ms() + (int64_t)3 * GITHUB_KIT_TIMEOUT_MS;
    while (caller->done == 0 && host_boot_ms() < until_ms)
        github_kit_run(caller->request.api, /* ms= */ 5);
    assert_int_equal(caller->done, 1);
}

void caller_call(struct caller *caller, const char *method, const char *path, enum github_kind kind)
{
    caller_start(caller, method, path, kind);
    caller_finish(caller);
}

void github_kit_run(struct github_api *api, int64_t ms)
{
    struct poller *poller = github_api_poller(api);
    int64_t until_ms = host_boot_ms() + ms;
    for (int64_t left = ms; left > 0; left = until_ms - host_boot_ms()) {
        poller_wait(poller, (int)left);
        poller_step(poller);
    }
}
