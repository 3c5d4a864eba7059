/* SPDX-License-Identifier: Apache-2.0 */
/* See k8s_kit.h. */
#include "k8s_kit.h"

#include "process/host.h"
#include "store/translate.h"
#include "wire/record_codec.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];
void *k8s_kit_store;

void k8s_kit_answered(void *caller, const struct store_reply *reply)
{
    struct asked *asked = caller;
    asked->done++;
    asked->last = *reply;
    (void)snprintf(asked->why, sizeof asked->why, "%s", reply->why != NULL ? reply->why : "");
    (void)snprintf(asked->key, sizeof asked->key, "%s", reply->key != NULL ? reply->key : "");
    (void)snprintf(asked->bytes, sizeof asked->bytes, "%.*s", (int)reply->length,
                   reply->bytes != NULL ? reply->bytes : "");
    assert_null(strstr(asked->why, "t-secret"));
}

void k8s_kit_turn(int64_t ms)
{
    struct pollfd wait = {.fd = k8s_driver.fd(k8s_kit_store), .events = POLLIN};
    (void)poll(&wait, 1, (int)ms);
    k8s_driver.step(k8s_kit_store);
}

bool k8s_kit_until(const unsigned *count, unsigned wanted)
{
    for (int64_t end_ms = host_boot_ms() + 60000; *count < wanted && host_boot_ms() < end_ms;)
        k8s_kit_turn(/* ms= */ 50);
    return *count >= wanted;
}

void k8s_kit_write_file(const char *name, const char *text)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int64_t no_time(void *owner)
{
    (void)owner;
    return 0;
}

unsigned k8s_kit_notices;
char k8s_kit_noticed[1024]; /* the last record that came with one */

static void on_notice(void *owner, const char *key, const struct store_reply *stands)
{
    (void)owner;
    assert_string_equal(key, "k");
    k8s_kit_notices++;
    if (stands != NULL)
        (void)snprintf(k8s_kit_noticed, sizeof k8s_kit_noticed, "%.*s", (int)stands->length,
                       stands->bytes);
}

const char *k8s_kit_by_proxy = ""; /* more fields of the kubeconfig's cluster */

void k8s_kit_begin_at(const char *url, const char *const *answers)
{
    char path[128], text[256], config[512];
    struct text why;
    struct store_callbacks site = {
        .clock = {.now_ms = no_time}, .session = 7, .timeout_ms = 3000, .notice = on_notice};
    answers_say(answers);
    k8s_kit_write_file("token", "t-secret-1\n");
    (void)snprintf(config, sizeof config,
                   "current-context: x\nclusters: [{name: x, cluster: {%s: "
                   "'http://127.0.0.1:%u'}}]\nusers: [{name: x, user: {tokenFile: token}}]\n"
                   "contexts: [{name: x, context: {cluster: x, user: x}}]\n",
                   *k8s_kit_by_proxy != '\0' ? k8s_kit_by_proxy : "server", answers_port());
    k8s_kit_write_file("config", config);
    (void)snprintf(path, sizeof path, "%s/config", folder);
    (void)setenv("KUBECONFIG", path, 1);
    text_init(&why, text, sizeof text);
    k8s_kit_store = malloc(k8s_driver.state_size);
    assert_non_null(k8s_kit_store);
    assert_true(k8s_driver.open(k8s_kit_store, url, &site, &why));
}

void k8s_kit_begin(const char *const *answers)
{
    k8s_kit_begin_at("k8s://blue", answers);
}

int k8s_kit_set_up(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/leasehold-k8s-XXXXXX");
    return mkdtemp(folder) == NULL || !answers_open();
}

void k8s_kit_end(void)
{
    if (k8s_kit_store != NULL)
        k8s_driver.close(k8s_kit_store);
    free(k8s_kit_store);
    k8s_kit_store = NULL;
}

int k8s_kit_tear_down(void **state)
{
    char path[128];
    (void)state;
    k8s_kit_end();
    answers_close();
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, i == 0 ? "token" : "config");
        (void)unlink(path);
    }
    return rmdir(folder);
}

void k8s_kit_read_key(struct asked *asked)
{
    struct store_request request = {.verb = VERB_STORE_READ, .key = "k"};
    k8s_driver.submit(k8s_kit_store, &request, k8s_kit_answered, asked);
}

void k8s_kit_create_key(struct asked *asked)
{
    static struct record record;
    static char bytes[1024];
    record_init(&record, "k");
    record.cooling.length_ms = 5;
    size_t length = record_encode(&record, bytes, sizeof bytes);
    struct store_request request = {.verb = VERB_STORE_SWAP,
                                    .key = "k",
                                    .condition = {.kind = IF_ABSENT},
                                    .bytes = bytes,
                                    .length = length};
    k8s_driver.submit(k8s_kit_store, &request, k8s_kit_answered, asked);
}

void k8s_kit_grant_key(struct asked *asked, uint64_t revision)
{
    static struct record record;
    static char bytes[1024];
    record_init(&record, "k");
    struct grant *grant = record_add_grant(&record);
    text_copy(grant->holder, sizeof grant->holder, "me");
    text_copy(grant->request, sizeof grant->request, "wish");
    grant->session = 7;
    grant->ttl_ms = 20000;
    grant->granted.revision = grant->renewed.revision = THIS_WRITE;
    size_t length = record_encode(&record, bytes, sizeof bytes);
    struct store_request request = {
        .verb = VERB_STORE_SWAP,
        .key = "k",
        .condition = {.kind = revision > 0 ? IF_REVISION : IF_ABSENT, .revision = revision},
        .bytes = bytes,
        .length = length};
    summarize_record(&record, grant->session, &request.summary);
    k8s_driver.submit(k8s_kit_store, &request, k8s_kit_answered, asked);
}
