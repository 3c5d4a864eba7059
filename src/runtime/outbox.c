/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests on their way. At most FLIGHT_MAX are with the store at a time; the others wait here,
 * holders' first, and those that nobody waits for any more are never sent. Answers are copied and
 * handled in the tick.
 */
#include "base/check.h"
#include "runtime/executor_inside.h"
#include "store/exchange.h"

#include <stdlib.h>
#include <string.h>

static void empty_line(struct sent_line *line)
{
    line->first = NULL;
    line->last = &line->first;
}

void outbox_init(struct executor *executor)
{
    empty_line(&executor->urgent);
    empty_line(&executor->ordinary);
    empty_line(&executor->answered);
}

static void append(struct sent_line *line, struct sent *sent)
{
    sent->next_in_line = NULL;
    *line->last = sent;
    line->last = &sent->next_in_line;
}

static struct sent *take_first(struct sent_line *line)
{
    struct sent *sent = line->first;
    if (sent == NULL)
        return NULL;
    line->first = sent->next_in_line;
    if (line->first == NULL)
        line->last = &line->first;
    return sent;
}

/* Renewals and releases are what holders live by: they ask nobody, and go first. So does a grant
 * that came too late and is given back: it keeps the key from everybody. */
static bool is_holders(const struct lease *lease)
{
    return lease->sent_verb == VERB_RENEW || lease->sent_verb == VERB_RELEASE || lease->asks_again;
}

/* Those of our own process hear of the write with its answer. */
static size_t keep_others(uint64_t *to, const struct store_request *request, uint64_t own)
{
    size_t count = 0;
    for (size_t i = 0; i < request->poke_count; i++)
        if (request->poke[i] != own)
            to[count++] = request->poke[i];
    return count;
}

static struct sent *new_sent(struct executor *executor, struct task *task)
{
    struct store_request request;
    const struct lease_output *out = &executor->output;
    exchange_request(&task->lease, out, &executor->record, executor->encoded,
                     sizeof executor->encoded, &request);
    size_t pokes = request.poke_count * sizeof *request.poke;
    size_t key_size = strlen(request.key) + 1;
    struct sent *sent = malloc(sizeof *sent + pokes + key_size + request.length);
    if (sent == NULL)
        return NULL;
    char *key = (char *)sent->words + pokes;
    char *bytes = key + key_size;
    request.poke_count = keep_others(sent->words, &request, executor->site.session);
    memcpy(key, request.key, key_size);
    if (request.length > 0)
        memcpy(bytes, request.bytes, request.length);
    *sent = (struct sent){.executor = executor,
                          .task = task,
                          .serial = out->serial,
                          .urgent = is_holders(&task->lease),
                          .request = request};
    sent->request.poke = sent->words;
    sent->request.key = key;
    sent->request.bytes = bytes;
    return sent;
}

bool outbox_add(struct executor *executor, struct task *task)
{
    bool may =
        is_holders(&task->lease) || breaker_admits(&executor->breaker, executor_now(executor));
    struct sent *sent = may && executor->sent_count < SENTS_MAX ? new_sent(executor, task) : NULL;
    if (sent == NULL) {
        executor->counts.refused++;
        return false;
    }
    sent->next = executor->sents;
    if (sent->next != NULL)
        sent->next->before = sent;
    executor->sents = sent;
    executor->sent_count++;
    sent->sibling = task->sent;
    task->sent = sent;
    append(sent->urgent ? &executor->urgent : &executor->ordinary, sent);
    return true;
}

void outbox_abandon(struct task *task)
{
    for (struct sent *sent = task->sent; sent != NULL; sent = sent->sibling)
        sent->task = NULL;
    task->sent = NULL;
}

/* It is answered, or was never sent. */
void outbox_forget(struct executor *executor, struct sent *sent)
{
    if (sent->next != NULL)
        sent->next->before = sent->before;
    if (sent->before != NULL)
        sent->before->next = sent->next;
    else
        executor->sents = sent->next;
    executor->sent_count--;
    if (sent->task != NULL) {
        struct sent **at = &sent->task->sent;
        while (*at != sent)
            at = &(*at)->sibling;
        *at = sent->sibling;
    }
    free(sent->heard);
    free(sent);
}

static void note_trouble(struct executor *executor, const char *why)
{
    struct text text;
    text_init(&text, executor->trouble, sizeof executor->trouble);
    text_add(&text, why);
}

static void receive(void *caller, const struct store_answer *answer)
{
    struct sent *sent = caller;
    struct executor *executor = sent->executor;
    ASSERT(sent->heard == NULL && executor->flight > 0);
    executor->flight--;
    sent->heard = heard_new(answer);
    bool troubled = answer->result != ANSWER_OK && answer->result != ANSWER_CONFLICT;
    if (troubled && answer->why != NULL)
        note_trouble(executor, answer->why);
    append(&executor->answered, sent);
    executor_rouse(executor);
}

struct sent *outbox_answered(struct executor *executor)
{
    return take_first(&executor->answered);
}

/* Has the task given this up since? */
static bool is_wanted(const struct sent *sent)
{
    return sent->task != NULL && sent->task->lease.in_flight &&
           sent->task->lease.serial == sent->serial;
}

void outbox_submit(struct executor *executor)
{
    while (executor->flight < FLIGHT_MAX) {
        struct sent *sent = take_first(&executor->urgent);
        if (sent == NULL)
            sent = take_first(&executor->ordinary);
        if (sent == NULL)
            return;
        if (!is_wanted(sent)) {
            outbox_forget(executor, sent);
            continue;
        }
        executor->flight++;
        executor->counts.requests++;
        executor->site.submit(executor->site.owner, &sent->request, receive, sent);
    }
}
