/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The look before work that somebody else may be at, or has just done: from the copy that the
 * client's watch keeps, so that most looks ask nobody. Where there is no copy the store is asked.
 * A hint and nothing more: the acquisition behind it decides.
 */
#include "face/lib/lib_inside.h"

#include "base/check.h"
#include "io/host.h"
#include "store/exchange.h"

struct peek {
    struct loop_task task; /* first */
    struct call call;
    const char *key;
    bool asks;      /* there is no copy */
    uint64_t begun; /* one will be kept; 0: no */
    int64_t cached_ms;
};

/* A semaphore is free while it has room and nobody is in line. */
static bool has_room(const struct record *record, const struct view *view)
{
    uint32_t taken = 0;
    for (size_t i = 0; i < record->grant_count; i++)
        taken += grant_ended(&record->grants[i], view) ? 0 : 1;
    return taken < record->limit && record->place_count == 0;
}

static enum outcome judge(const struct record *record, const struct view *view,
                          const struct look *look)
{
    if (look->state == KEY_FREE || (look->state == KEY_HELD && has_room(record, view)))
        return OUTCOME_OK;
    return look->state == KEY_COOLING ? OUTCOME_COOLING : OUTCOME_BUSY;
}

static void report_record(const struct lh_client *client, const char *key,
                          const struct record *record, const struct stamp *at,
                          struct lh_report *out)
{
    struct view view = view_of(client, at);
    struct task_news news = {.event = TASK_ENDED, .record = record, .at = *at};
    news.look = record_look(record, &view);
    news.outcome = judge(record, &view, &news.look);
    news.why = news.outcome == OUTCOME_OK ? "free" : NULL;
    report_news(client, key, &news, news.outcome, out);
}

/* What was heard then, judged as of now: the store's time has gone on as ours has. */
static bool answer_from_copy(struct peek *peek, const struct watched_copy *copy, int64_t now_ms)
{
    struct lh_client *client = peek->call.client;
    struct record *record = &client->scratch;
    struct event event = {0};
    const char *why = NULL;
    int64_t age_ms = now_ms - copy->heard_at_ms;
    exchange_event(&copy->heard->answer, peek->key, record, &event, &why);
    if (!event.known) /* the store says what is wrong with it */
        return false;
    if (event.at.time_ms != TIME_UNKNOWN)
        event.at.time_ms += age_ms;
    for (size_t i = 0; i < record->grant_count; i++)
        record->grants[i].seen_ms = age_ms;
    record->cooling.seen_ms = record->delay.seen_ms = age_ms;
    report_record(client, peek->key, record, &event.at, &peek->call.report);
    peek->cached_ms = age_ms;
    return true;
}

static void look_at_copy(struct loop_task *task)
{
    struct peek *peek = (struct peek *)task;
    struct lh_client *client = peek->call.client;
    bool can_watch = (client->driver->capabilities & STORE_WATCHES) != 0;
    int64_t now_ms = host_boot_ms();
    const struct watched_copy *copy = watched_find(&client->watched, peek->key, now_ms);
    if (client->closing) {
        (void)report_say(&peek->call.report, LH_BUSY, CLOSING_WORDS);
    } else if (copy == NULL || !answer_from_copy(peek, copy, now_ms)) {
        peek->asks = true;
        if (can_watch && gaze_stands(client))
            peek->begun = watched_begin(&client->watched, peek->key);
    }
    call_end(&peek->call);
}

static void see(const struct lh_client *asked, const struct errand_aim *aim,
                const struct task_news *news, struct lh_report *report)
{
    struct peek *peek = aim->out;
    struct lh_client *client = peek->call.client;
    ASSERT(client == asked);
    const struct store_answer *answer =
        executor_heard(front_desk_executor(client->desk), peek->key);
    if (news->outcome != OUTCOME_OK || news->record == NULL)
        return;
    report_record(client, peek->key, news->record, &news->at, report);
    if (peek->begun != 0 && answer != NULL)
        watched_keep(&client->watched, peek->key, peek->begun, answer, host_boot_ms());
}

enum lh_outcome lh_peek(struct lh_client *client, const char *key, int64_t *cached_ms,
                        struct lh_report *report)
{
    struct peek peek = {.task = {.run = look_at_copy}, .key = key, .cached_ms = -1};
    struct request request = {.verb = VERB_LOOK, .key = key};
    enum lh_outcome outcome = client_admits(client, /* blocks= */ true, report);
    if (outcome != LH_OK)
        return outcome;
    if (key == NULL)
        return report_say(report, LH_USAGE, "usage: there is no key");
    call_begin(&peek.call, client);
    outcome = call_make(&peek.call, &peek.task, report);
    if (peek.asks) {
        struct errand_aim aim = {.see = see, .out = &peek};
        outcome = errand_run(client, &request, &aim, /* listener= */ NULL, report);
    }
    if (cached_ms != NULL)
        *cached_ms = peek.cached_ms;
    return outcome;
}
