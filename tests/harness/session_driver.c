/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See session_driver.h. The in-memory driver keeps the records, session_judge.h hides its clock,
 * and this file adds what several clients of one store need: sessions, watches, notifications.
 */
#include "session_driver.h"

#include "session_judge.h"

#include "base/check.h"
#include "base/text.h"
#include "wire/record_codec.h"

#include <stdlib.h>
#include <string.h>

enum { WATCHES_MAX = 64, SESSIONS_MAX = 4096, NAMED_MAX = GRANTS_MAX + WAITERS_MAX };

struct session_watcher {
    struct session_client *client; /* NULL: free */
    char prefix[KEY_MAX + 1];
    store_done *done;
    void *caller;
};

struct session_client {
    struct session_client *next;
    struct store_callbacks callbacks;
};

/* Shared by all clients, from the first open to the last close. */
static struct {
    void *records; /* of the in-memory driver; NULL while nobody has the store open */
    struct session_client *clients;
    struct session_watcher watches[WATCHES_MAX];
    uint64_t ended[SESSIONS_MAX];
    size_t ended_count;
    struct session_judge judge;
} server;

struct session_call {
    struct session_client *client;
    struct store_request request;
    char key[KEY_MAX + 1]; /* the caller's is invalid after its reply */
    uint64_t wake[WAITERS_MAX];
    store_done *done;
    void *caller;
    bool wrote;
};

static bool session_has_ended(uint64_t session)
{
    for (size_t i = 0; i < server.ended_count; i++)
        if (server.ended[i] == session)
            return true;
    return false;
}

/* Of the sessions in the record, those that have ended. */
static size_t session_list_ended(const struct store_reply *reply, uint64_t *out)
{
    static struct record record;
    struct codec_error error;
    size_t count = 0;
    if (!reply->present || record_decode(reply->bytes, reply->length, &record, &error) != DECODE_OK)
        return 0;
    for (size_t i = 0; i < record.grant_count; i++)
        if (session_has_ended(record.grants[i].session))
            out[count++] = record.grants[i].session;
    for (size_t i = 0; i < record.waiter_count; i++)
        if (session_has_ended(record.waiters[i].session))
            out[count++] = record.waiters[i].session;
    return count;
}

static void session_deliver(const struct store_reply *raw, store_done *done, void *caller)
{
    uint64_t dead[NAMED_MAX];
    struct store_reply reply = *raw;
    reply.dead_sessions = dead;
    reply.dead_count = session_list_ended(raw, dead);
    session_judge_reply(&server.judge, &reply);
    done(caller, &reply);
}

static void on_reply(void *caller, const struct store_reply *reply)
{
    struct session_call *call = caller;
    bool writes = call->request.verb == VERB_STORE_SWAP || call->request.verb == VERB_STORE_DELETE;
    call->wrote = writes && reply->result == REPLY_OK;
    if (call->wrote)
        session_judge_note(&server.judge, reply);
    session_deliver(reply, call->done, call->caller);
}

static void on_current(void *caller, const struct store_reply *reply)
{
    session_judge_request(&server.judge, reply, caller);
}

/* A notification or a change, with the record as it is now. */
struct session_news {
    struct session_client *client;
    const struct session_watcher *watch; /* NULL: a notification */
    const char *key;
};

static void on_notice_shaped(void *caller, const struct store_reply *reply)
{
    const struct session_news *news = caller;
    news->client->callbacks.notice(news->client->callbacks.owner, news->key, reply);
}

static void on_news(void *caller, const struct store_reply *reply)
{
    const struct session_news *news = caller;
    struct store_reply change = *reply;
    if (news->watch == NULL) {
        session_deliver(reply, on_notice_shaped, caller);
        return;
    }
    change.more = true;
    change.key = news->key;
    session_deliver(&change, news->watch->done, news->watch->caller);
}

static void session_notify(struct session_client *client, const struct session_watcher *watch,
                           const char *key)
{
    struct session_news news = {.client = client, .watch = watch, .key = key};
    struct store_request request = {.verb = VERB_STORE_READ, .key = key};
    memory_driver.submit(server.records, &request, on_news, &news);
}

static void session_notify_all(const struct session_call *call)
{
    for (struct session_client *client = server.clients; client != NULL; client = client->next)
        for (size_t i = 0; i < call->request.wake_count; i++)
            if (client != call->client && client->callbacks.session == call->wake[i])
                session_notify(client, /* watch= */ NULL, call->key);
    for (size_t i = 0; i < WATCHES_MAX; i++) {
        const struct session_watcher *watch = &server.watches[i];
        if (watch->client != NULL && strncmp(call->key, watch->prefix, strlen(watch->prefix)) == 0)
            session_notify(watch->client, watch, call->key);
    }
}

static void session_watch(struct session_client *client, const struct store_request *request,
                          store_done *done, void *caller)
{
    struct store_reply reply = {.result = REPLY_TROUBLE, .now_ms = TIME_UNKNOWN};
    for (size_t i = 0; i < WATCHES_MAX && !reply.more; i++) {
        struct session_watcher *watch = &server.watches[i];
        if (watch->client != NULL)
            continue;
        *watch = (struct session_watcher){.client = client, .done = done, .caller = caller};
        text_copy(watch->prefix, sizeof watch->prefix, request->key);
        reply.result = REPLY_OK;
        reply.more = true;
    }
    done(caller, &reply);
}

static void session_submit(void *state, const struct store_request *request, store_done *done,
                           void *caller)
{
    struct session_call call = {
        .client = state, .request = *request, .done = done, .caller = caller};
    struct store_request current = {.verb = VERB_STORE_READ, .key = request->key};
    if (request->verb == VERB_STORE_WATCH) {
        session_watch(state, request, done, caller);
        return;
    }
    text_copy(call.key, sizeof call.key, request->key);
    ASSERT(request->wake_count <= WAITERS_MAX);
    if (request->wake_count > 0)
        memcpy(call.wake, request->wake, request->wake_count * sizeof request->wake[0]);
    memory_driver.submit(server.records, &current, on_current, &call.request);
    memory_driver.submit(server.records, &call.request, on_reply, &call);
    if (call.wrote)
        session_notify_all(&call);
}

static bool session_open(void *state, const char *url, const struct store_callbacks *callbacks,
                         struct text *why)
{
    struct session_client *client = state;
    (void)url;
    if (server.records == NULL) {
        void *records = malloc(memory_driver.state_size);
        ASSERT(records != NULL);
        if (!memory_driver.open(records, "memory:", callbacks, why)) {
            free(records);
            return false;
        }
        server.records = records;
    }
    *client = (struct session_client){.next = server.clients, .callbacks = *callbacks};
    server.clients = client;
    return true;
}

static void session_close(void *state)
{
    struct session_client *client = state, **at = &server.clients;
    while (*at != client)
        at = &(*at)->next;
    *at = client->next;
    for (size_t i = 0; i < WATCHES_MAX; i++)
        if (server.watches[i].client == client)
            server.watches[i].client = NULL;
    ASSERT(server.ended_count < SESSIONS_MAX);
    server.ended[server.ended_count++] = client->callbacks.session;
    if (server.clients != NULL)
        return;
    memory_driver.close(server.records);
    free(server.records);
    server.records = NULL;
}

const struct store_driver session_driver = {
    .scheme = "sessions",
    .capabilities = STORE_WATCHES | STORE_TELLS | STORE_SESSIONS | STORE_TESTS_GRANT |
                    STORE_RENEWS_GRANT | STORE_DELETES,
    .state_size = sizeof(struct session_client),
    .facts = {STORE_USUAL_FACTS(WAITERS_MAX), .answer_ms = 1, .ttl_least_ms = 10},
    .open = session_open,
    .close = session_close,
    .submit = session_submit,
};
