/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peeks: whether a key is free, held or cooling, from the watch cache if the key is in it, so
 * that most calls send no request; otherwise from the store. Only a hint: the acquisition decides.
 */
#include "face/lib/lib_internal.h"

#include "base/check.h"
#include "process/host.h"
#include "store/translate.h"

#include <stdlib.h>
#include <string.h>

struct peek {
    struct inbox_item task; /* first */
    struct call call;
    const char *key;
    int64_t *out_cached_ms; /* of a started peek; may be NULL */
    bool needs_store;       /* the key is not in the cache */
    uint64_t begun;         /* of the read that will be cached; 0: none */
    int64_t cached_ms;
    char storage[]; /* the key of a started peek */
};

/* A semaphore is free if it has a free slot and no waiters. */
static bool has_free_slot(const struct record *record, const struct view *view)
{
    uint32_t taken = 0;
    for (size_t i = 0; i < record->grant_count; i++)
        taken += grant_ended(&record->grants[i], view) ? 0 : 1;
    return taken < record->limit && record->waiter_count == 0;
}

static enum outcome peek_outcome(const struct record *record, const struct view *view,
                                 const struct key_info *key_info)
{
    if (key_info->state == KEY_FREE || (key_info->state == KEY_HELD && has_free_slot(record, view)))
        return OUTCOME_OK;
    return key_info->state == KEY_COOLING ? OUTCOME_COOLING : OUTCOME_BUSY;
}

static void report_record(const struct lh_client *client, const char *key,
                          const struct record *record, const struct stamp *at,
                          struct lh_report *out)
{
    struct view view = view_of(client, at);
    struct task_news news = {.notify = NOTIFY_ENDED, .record = record, .at = *at};
    news.key_info = record_key_info(record, &view);
    news.outcome = peek_outcome(record, &view, &news.key_info);
    news.why = news.outcome == OUTCOME_OK ? "free" : NULL;
    report_news(client, key, &news, news.outcome, out);
}

/* Judges the cached reply as of now: the store's time has advanced by the entry's age. */
static bool peek_from_entry(struct peek *peek, const struct watch_cache_entry *entry,
                            int64_t now_ms)
{
    struct lh_client *client = peek->call.client;
    struct record *record = &client->scratch;
    struct event event = {0};
    const char *why = NULL;
    int64_t age_ms = now_ms - entry->received_at_ms;
    translate_reply(&entry->saved_reply->reply, peek->key, record, &event, &why);
    if (!event.known) /* unreadable: the store's reply has the cause */
        return false;
    if (client->facts.judge == JUDGE_SESSION && record_needed(record))
        return false; /* only a new reply reports what has ended since */
    if (event.at.time_ms != TIME_UNKNOWN)
        event.at.time_ms += age_ms;
    for (size_t i = 0; i < record->grant_count; i++)
        record->grants[i].observed_ms = age_ms;
    record->cooling.observed_ms = record->delay.observed_ms = age_ms;
    report_record(client, peek->key, record, &event.at, &peek->call.report);
    peek->cached_ms = age_ms;
    return true;
}

static void peek_cache(struct peek *peek)
{
    struct lh_client *client = peek->call.client;
    bool can_watch = (client->driver->capabilities & STORE_WATCHES) != 0;
    int64_t now_ms = host_boot_ms();
    const struct watch_cache_entry *entry =
        watch_cache_find(&client->watch_cache, peek->key, now_ms);
    if (client->closing) {
        (void)report_set(&peek->call.report, LH_BUSY, CLOSING_TEXT);
    } else if (entry == NULL || !peek_from_entry(peek, entry, now_ms)) {
        peek->needs_store = true;
        if (can_watch && watches_start_store(client))
            peek->begun = watch_cache_begin_read(&client->watch_cache, peek->key);
    }
}

static void on_peek_done(const struct lh_client *asked, const struct operation_hooks *hooks,
                         const struct task_news *news, struct lh_report *report)
{
    struct peek *peek = hooks->out;
    struct lh_client *client = peek->call.client;
    ASSERT(client == asked);
    const struct store_reply *reply = executor_last_reply(client->executor, peek->key);
    if (news->outcome != OUTCOME_OK || news->record == NULL)
        return;
    report_record(client, peek->key, news->record, &news->at, report);
    if (peek->begun != 0 && reply != NULL)
        watch_cache_end_read(&client->watch_cache, peek->key, peek->begun, reply, host_boot_ms());
}

/* The rest of a peek that the cache cannot answer. Blocks, unless there is a listener. */
static enum lh_outcome peek_query(struct peek *peek, const struct listener *listener,
                                  struct lh_report *report)
{
    struct request request = {.verb = VERB_QUERY, .key = peek->key};
    struct operation_hooks hooks = {.on_done = on_peek_done, .out = peek};
    return operation_run(peek->call.client, &request, &hooks, listener, report);
}

static void peek_blocking(struct inbox_item *task)
{
    struct peek *peek = (struct peek *)task;
    peek_cache(peek);
    call_end(&peek->call);
}

enum lh_outcome lh_peek(struct lh_client *client, const char *key, int64_t *cached_ms,
                        struct lh_report *report)
{
    struct peek peek = {.task = {.run = peek_blocking}, .key = key, .cached_ms = -1};
    enum lh_outcome outcome = client_admits(client, /* blocks= */ true, report);
    if (outcome != LH_OK)
        return outcome;
    if (key == NULL)
        return report_set(report, LH_USAGE, "usage: there is no key");
    call_begin(&peek.call, client);
    outcome = call_make(&peek.call, &peek.task, report);
    if (peek.needs_store)
        outcome = peek_query(&peek, /* listener= */ NULL, report);
    if (cached_ms != NULL)
        *cached_ms = peek.cached_ms;
    return outcome;
}

/* ---- without blocking ---- */

static void peek_end(struct peek *peek)
{
    if (peek->out_cached_ms != NULL)
        *peek->out_cached_ms = peek->cached_ms;
    call_end(&peek->call);
}

static void on_peek_queried(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct peek *peek = user;
    (void)lease;
    peek->call.report = *report;
    peek_end(peek);
}

static void peek_started(struct inbox_item *task)
{
    struct peek *peek = (struct peek *)task;
    const struct listener listener = {on_peek_queried, peek};
    peek_cache(peek);
    if (!peek->needs_store || peek_query(peek, &listener, &peek->call.report) != LH_OK)
        peek_end(peek);
}

enum lh_outcome lh_peek_start(struct lh_client *client, const char *key, int64_t *cached_ms,
                              lh_done_fn *done, void *user, struct lh_report *report)
{
    enum lh_outcome outcome = client_admits_start(client, report);
    if (outcome != LH_OK)
        return outcome;
    size_t length = key != NULL ? strnlen(key, KEY_MAX + 1) : 0;
    if (length == 0 || length > KEY_MAX || !text_is_clean(key, length) || done == NULL)
        return report_set(report, LH_USAGE,
                          "usage: give a function to call when done, and a key of 1 to 512 bytes "
                          "of UTF-8 without control characters");
    struct peek *peek = calloc(1, sizeof *peek + length + 1);
    if (peek == NULL)
        return report_set(report, LH_FAILED, "failed: out of memory");
    peek->task.run = peek_started;
    peek->key = memcpy(peek->storage, key, length + 1);
    peek->out_cached_ms = cached_ms;
    peek->cached_ms = -1;
    call_begin(&peek->call, client);
    return call_start(&peek->call, &peek->task, peek, done, user, report);
}
