/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events for the metrics, for the user's on_event, and those that a store shows in its own tools,
 * such as kubectl. Times the requests to the store. Decides nothing.
 */
#include "face/lib/lib_internal.h"

#include "process/host.h"

#include <stdlib.h>
#include <string.h>

#define US_PER_MS ((int64_t)1000)

/* A store request in flight, to be counted with its duration. */
struct timed {
    struct list_node node;
    struct lh_client *client;
    store_done *done;
    void *caller;
    enum store_verb verb;
    int64_t sent_at_us;
};

void client_store_event(struct lh_client *client, const char *key, const char *reason,
                        const char *more, bool warns)
{
    if (client->driver->event == NULL || client->store_thread != NULL)
        return;
    struct store_event event = {
        .key = key, .reason = reason, .holder = client->holder, .more = more, .warns = warns};
    client->driver->event(client->state, &event);
    client->submitted = client->driver->step != NULL;
}

static void emit_store_event(struct lh_client *client, const struct lh_event *event)
{
    if (event->kind == LH_EVENT_GRANTED)
        client_store_event(client, event->key, "Acquired", "", /* warns= */ false);
    else if (event->kind == LH_EVENT_TAKEOVER)
        client_store_event(client, event->key, "TakenOver", "from a holder that was gone",
                           /* warns= */ true);
    else if (event->kind == LH_EVENT_LOST)
        client_store_event(client, event->key, "Lost", "", /* warns= */ true);
}

static enum lh_kind kind_of(const char *key)
{
    return text_begins(key, ONCE_PREFIX)        ? LH_ONCE
           : text_begins(key, WATERMARK_PREFIX) ? LH_WATERMARK
                                                : LH_LOCK;
}

void client_emit(struct lh_client *client, const struct lh_event *event)
{
    struct lh_event emitted = *event;
    emitted.size = sizeof emitted;
    emitted.key_kind = kind_of(event->key);
    emit_store_event(client, event);
    client_count_event(client, &emitted);
    if (client->on_event == NULL)
        return;
    client_enter_callback(client);
    client->on_event(client->event_user, &emitted);
    client_leave_callback(client);
}

static const enum lh_outcome outcomes[] = {
    [REPLY_OK] = LH_OK,         [REPLY_CONFLICT] = LH_BUSY,    [REPLY_TROUBLE] = LH_UNAVAILABLE,
    [REPLY_DENIED] = LH_DENIED, [REPLY_FULL] = LH_UNAVAILABLE, [REPLY_INVALID] = LH_USAGE};

void client_on_failure(void *owner, const struct executor_failure *failure)
{
    struct lh_event event = {.kind = LH_EVENT_RENEW_FAILED,
                             .outcome = outcomes[failure->reply],
                             .key = failure->key,
                             .token = failure->token,
                             .after_us = failure->took_ms * US_PER_MS};
    if (failure->renews && failure->reply != REPLY_CONFLICT)
        client_emit(owner, &event);
    event.kind = LH_EVENT_RETRY;
    client_emit(owner, &event);
}

static void submit_to_store(struct lh_client *client, const struct store_request *request,
                            store_done *done, void *caller)
{
    if (client->store_thread != NULL) {
        store_thread_queue(client->store_thread, request, done, caller);
        client->submitted = true;
        return;
    }
    client->driver->submit(client->state, request, done, caller);
    client->submitted = client->driver->step != NULL;
}

static void timed_free(struct timed *timed)
{
    list_remove(&timed->client->timed, &timed->node);
    free(timed);
}

/* After the caller of a request got its last reply. */
static void events_count_reply(struct timed *timed, const struct store_reply *reply, int64_t us)
{
    static const char *const verbs[] = {
        [VERB_STORE_READ] = "read", [VERB_STORE_SWAP] = "swap",   [VERB_STORE_DELETE] = "delete",
        [VERB_STORE_LIST] = "list", [VERB_STORE_WATCH] = "watch", [VERB_STORE_HISTORY] = "history"};
    client_count_reply(timed->client, timed->verb, reply->result, us);
    if (timed->client->on_event != NULL)
        client_emit(timed->client, &(struct lh_event){.kind = LH_EVENT_STORE,
                                                      .outcome = outcomes[reply->result],
                                                      .key = "",
                                                      .verb = verbs[timed->verb],
                                                      .after_us = us});
}

static void on_timed_reply(void *caller, const struct store_reply *reply)
{
    struct timed *timed = caller;
    timed->done(timed->caller, reply);
    if (reply->more)
        return;
    events_count_reply(timed, reply, host_boot_us() - timed->sent_at_us);
    timed_free(timed);
}

/* memory: replies before its submit() returns, and faster than the clock can be read. */
static void on_immediate_reply(void *caller, const struct store_reply *reply)
{
    struct timed *timed = caller;
    timed->done(timed->caller, reply);
    if (!reply->more)
        events_count_reply(timed, reply, /* us= */ 0);
}

void client_submit(void *owner, const struct store_request *request, store_done *done, void *caller)
{
    struct lh_client *client = owner;
    struct timed now = {.client = client, .done = done, .caller = caller, .verb = request->verb};
    /* A watch gets replies without end. */
    bool counted = request->verb != VERB_STORE_WATCH;
    if (counted && client->driver == &memory_driver) {
        submit_to_store(client, request, on_immediate_reply, &now);
        return;
    }
    /* When out of memory the request is sent untimed. */
    struct timed *timed = counted ? malloc(sizeof *timed) : NULL;
    if (timed == NULL) {
        submit_to_store(client, request, done, caller);
        return;
    }
    *timed = now;
    timed->sent_at_us = host_boot_us();
    list_prepend(&client->timed, &timed->node);
    submit_to_store(client, request, on_timed_reply, timed);
}

void events_free(struct lh_client *client)
{
    for (struct list_node *node = client->timed.first, *next; node != NULL; node = next) {
        next = node->next;
        free(LIST_ENTRY(node, struct timed, node));
    }
}
