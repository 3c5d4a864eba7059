/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: what the user's on_event receives, and what a store shows to people who look at it with
 * its own tools. Requests to the store are timed here. Decides nothing.
 */
#include "face/lib/lib_inside.h"

#include "io/host.h"

#include <stdlib.h>

/* A store request whose answer the user wants to have timed. */
struct timed {
    struct timed *next, *before;
    struct lh_client *client;
    store_done *done;
    void *caller;
    enum store_verb verb;
    int64_t sent_at_ms;
};

void client_remark(struct lh_client *client, const char *key, const char *word, const char *more,
                   bool warns)
{
    struct store_remark remark = {
        .key = key, .word = word, .holder = client->holder, .more = more, .warns = warns};
    if (client->driver->remark == NULL || client->beside != NULL)
        return;
    client->driver->remark(client->state, &remark);
    client->submitted = client->driver->step != NULL;
}

/* What those who look at the store with its own tools should see. */
static void remark_event(struct lh_client *client, const struct lh_event *event)
{
    if (event->kind == LH_EVENT_GRANTED)
        client_remark(client, event->key, "Acquired", "", /* warns= */ false);
    else if (event->kind == LH_EVENT_TAKEOVER)
        client_remark(client, event->key, "TakenOver", "from a holder that was gone",
                      /* warns= */ true);
    else if (event->kind == LH_EVENT_LOST)
        client_remark(client, event->key, "Lost", "", /* warns= */ true);
}

void client_tell(struct lh_client *client, const struct lh_event *event)
{
    remark_event(client, event);
    if (client->on_event == NULL)
        return;
    client_enter(client);
    client->on_event(client->event_user, event);
    client_leave(client);
}

static void submit_to_store(struct lh_client *client, const struct store_request *request,
                            store_done *done, void *caller)
{
    if (client->beside != NULL) {
        beside_submit(client->beside, request, done, caller);
        return;
    }
    client->driver->submit(client->state, request, done, caller);
    client->submitted = client->driver->step != NULL;
}

static void forget_timed(struct timed *timed)
{
    if (timed->next != NULL)
        timed->next->before = timed->before;
    if (timed->before != NULL)
        timed->before->next = timed->next;
    else
        timed->client->timed = timed->next;
    free(timed);
}

static void timed_answer(void *caller, const struct store_answer *answer)
{
    static const char *const verbs[] = {
        [VERB_STORE_READ] = "read", [VERB_STORE_SWAP] = "swap",   [VERB_STORE_DELETE] = "delete",
        [VERB_STORE_LIST] = "list", [VERB_STORE_WATCH] = "watch", [VERB_STORE_HISTORY] = "history"};
    static const enum lh_outcome outcomes[] = {[ANSWER_OK] = LH_OK,
                                               [ANSWER_CONFLICT] = LH_BUSY,
                                               [ANSWER_TROUBLE] = LH_UNAVAILABLE,
                                               [ANSWER_DENIED] = LH_DENIED,
                                               [ANSWER_FULL] = LH_UNAVAILABLE};
    struct timed *timed = caller;
    timed->done(timed->caller, answer);
    if (answer->more)
        return;
    client_tell(timed->client, &(struct lh_event){.kind = LH_EVENT_STORE,
                                                  .outcome = outcomes[answer->result],
                                                  .key = verbs[timed->verb],
                                                  .after_ms = host_boot_ms() - timed->sent_at_ms});
    forget_timed(timed);
}

void client_submit(struct lh_client *client, const struct store_request *request, store_done *done,
                   void *caller)
{
    /* A watch is answered without end. Without memory the request goes out untimed. */
    bool wanted = client->on_event != NULL && request->verb != VERB_STORE_WATCH;
    struct timed *timed = wanted ? malloc(sizeof *timed) : NULL;
    if (timed == NULL) {
        submit_to_store(client, request, done, caller);
        return;
    }
    *timed = (struct timed){.next = client->timed,
                            .client = client,
                            .done = done,
                            .caller = caller,
                            .verb = request->verb,
                            .sent_at_ms = host_boot_ms()};
    if (timed->next != NULL)
        timed->next->before = timed;
    client->timed = timed;
    submit_to_store(client, request, timed_answer, timed);
}

void events_free(struct lh_client *client)
{
    for (struct timed *timed = client->timed, *next; timed != NULL; timed = next) {
        next = timed->next;
        free(timed);
    }
}
