/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the store. They go to the driver's queue at once, which sends those of one turn
 * together. At most IN_FLIGHT_MAX are there; the others wait here, holders' first, and are dropped
 * if their task gives them up. Replies are copied and handled in the tick.
 */
#include "base/check.h"
#include "runtime/executor_internal.h"
#include "store/translate.h"

#include <stdlib.h>
#include <string.h>

static struct sent *sent_pop(struct list *queue)
{
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a freed request is in no list */
    struct sent *sent = LIST_ENTRY(queue->first, struct sent, in_queue);
    if (sent != NULL)
        list_remove(queue, &sent->in_queue);
    return sent;
}

/* Holders depend on renewals and releases: these bypass the breaker and go first. So does the
 * release of a late grant, which blocks the key for all. */
static bool is_holder_request(const struct lease *lease)
{
    return lease->sent_verb == VERB_RENEW || lease->sent_verb == VERB_RELEASE || lease->reacquires;
}

/* Waiters of our own process are notified by the reply to the write. */
static void copy_other_sessions(uint64_t *to, struct store_request *request, uint64_t own)
{
    size_t count = 0, given_count = 0, spare_count = 0;
    for (size_t i = 0; i < request->wake_count; i++) {
        if (request->wake[i] == own)
            continue;
        to[count++] = request->wake[i];
        given_count += i < request->given_count ? 1 : 0;
        spare_count += i >= request->wake_count - request->spare_count ? 1 : 0;
    }
    request->wake = to;
    request->wake_count = count;
    request->given_count = given_count;
    request->spare_count = spare_count;
}

static const char *append_string(char **at, const char *string, size_t size)
{
    char *copy = *at;
    memcpy(copy, string, size);
    *at += size;
    return copy;
}

static struct sent *sent_new(struct executor *executor, struct task *task)
{
    struct store_request request;
    const struct lease_output *out = &executor->output;
    translate_request(&task->lease, out, &executor->record, executor->encoded,
                      sizeof executor->encoded, &request);
    size_t sessions_size = request.wake_count * sizeof *request.wake;
    struct store_summary *summary = &request.summary;
    size_t key_size = strlen(request.key) + 1;
    size_t holder_size = request.length > 0 ? strlen(summary->holder) + 1 : 0;
    size_t request_size = request.length > 0 ? strlen(summary->request) + 1 : 0;
    struct sent *sent = malloc(sizeof *sent + sessions_size + key_size + holder_size +
                               request_size + request.length);
    if (sent == NULL)
        return NULL;
    char *at = (char *)sent->storage + sessions_size;
    copy_other_sessions(sent->storage, &request, executor->callbacks.session);
    request.key = append_string(&at, request.key, key_size);
    if (request.length > 0) {
        summary->holder = append_string(&at, summary->holder, holder_size);
        summary->request = append_string(&at, summary->request, request_size);
        request.bytes = append_string(&at, request.bytes, request.length);
    }
    *sent = (struct sent){.executor = executor,
                          .task = task,
                          .serial = out->serial,
                          .urgent = is_holder_request(&task->lease),
                          .request = request};
    return sent;
}

void send_queue_abandon(struct task *task)
{
    for (struct list_node *node = task->sents.first; node != NULL; node = node->next)
        LIST_ENTRY(node, struct sent, in_task)->task = NULL;
}

/* The request is answered, or was never sent. */
void send_queue_free(struct executor *executor, struct sent *sent)
{
    list_remove(&executor->sents, &sent->in_all);
    executor->sent_count--;
    if (sent->task != NULL)
        list_remove(&sent->task->sents, &sent->in_task);
    free(sent->saved_reply);
    free(sent);
}

static void note_trouble(struct executor *executor, const char *why)
{
    struct text text;
    text_init(&text, executor->trouble, sizeof executor->trouble);
    text_add(&text, why);
}

static void send_queue_on_reply(void *caller, const struct store_reply *reply)
{
    struct sent *sent = caller;
    struct executor *executor = sent->executor;
    ASSERT(sent->saved_reply == NULL && executor->in_flight_count > 0);
    executor->in_flight_count--;
    sent->saved_reply = saved_reply_new(reply);
    bool troubled = reply->result != REPLY_OK && reply->result != REPLY_CONFLICT;
    if (troubled && reply->why != NULL)
        note_trouble(executor, reply->why);
    list_append(&executor->answered, &sent->in_queue);
    executor_schedule(executor);
}

static void sent_submit(struct sent *sent)
{
    struct executor *executor = sent->executor;
    executor->in_flight_count++;
    executor->counts.requests++;
    executor->callbacks.submit(executor->callbacks.owner, &sent->request, send_queue_on_reply,
                               sent);
}

bool send_queue_add(struct executor *executor, struct task *task)
{
    bool may = is_holder_request(&task->lease) ||
               breaker_admits(&executor->breaker, executor_now(executor));
    struct sent *sent =
        may && executor->sent_count < REQUESTS_MAX ? sent_new(executor, task) : NULL;
    if (sent == NULL) {
        executor->counts.refused++;
        return false;
    }
    list_append(&executor->sents, &sent->in_all);
    executor->sent_count++;
    list_append(&task->sents, &sent->in_task);
    bool first =
        executor->urgent.first == NULL && (sent->urgent || executor->ordinary.first == NULL);
    if (first && executor->in_flight_count < IN_FLIGHT_MAX)
        sent_submit(sent);
    else
        list_append(sent->urgent ? &executor->urgent : &executor->ordinary, &sent->in_queue);
    return true;
}

struct sent *send_queue_pop_answered(struct executor *executor)
{
    return sent_pop(&executor->answered);
}

/* False if the task has given up this request. */
static bool is_wanted(const struct sent *sent)
{
    return sent->task != NULL && sent->task->lease.in_flight &&
           sent->task->lease.serial == sent->serial;
}

void send_queue_submit(struct executor *executor)
{
    while (executor->in_flight_count < IN_FLIGHT_MAX) {
        struct sent *sent = sent_pop(&executor->urgent);
        if (sent == NULL)
            sent = sent_pop(&executor->ordinary);
        if (sent == NULL)
            return;
        if (!is_wanted(sent)) {
            send_queue_free(executor, sent);
            continue;
        }
        sent_submit(sent);
    }
}
