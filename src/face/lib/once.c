/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids that are done once, and watermarks. A claim is left to its TTL as soon as it is granted: its
 * token finishes it, from any process. Everything else is an errand. The core decides.
 */
#include "face/lib/lib_inside.h"

#include <stdio.h>
#include <string.h>

#define CLAIM_USUAL_MS ((int64_t)5 * 60 * 1000)
#define KEEP_USUAL_MS  ((int64_t)24 * 3600 * 1000)

/* Keys of ids and watermarks are apart from those of locks; false when the name is too long. */
static bool make_key(const char *prefix, const char *name, char out[KEY_MAX + 1],
                     struct lh_report *report)
{
    int length = snprintf(out, KEY_MAX + 1, "%s%s", prefix, name != NULL ? name : "");
    if (length <= KEY_MAX)
        return true;
    (void)report_say(report, LH_USAGE, "usage: the name must be at most 500 bytes");
    return false;
}

static void see_once(void *owner, const struct task_news *news)
{
    struct lh_once *out = owner;
    const struct record *record = news->record;
    if (out == NULL || record == NULL || record->kind != KIND_ONCE)
        return;
    if (news->look.state == KEY_COOLING) {
        out->status = record->once.done.status;
        (void)snprintf(out->result, sizeof out->result, "%s", record->once.done.result);
    }
}

/* A claim on its way. */
struct beginning {
    struct loop_task task; /* first */
    struct call call;
    struct lease_options options;
    struct lh_once *out;
    struct light_mark *mark;
};

static void told(void *owner, struct claim *claim, const struct task_news *news)
{
    struct beginning *begun = owner;
    struct lh_client *client = begun->call.client;
    const char *key = begun->options.request.key;
    if (news->event != TASK_HELD && news->event != TASK_ENDED)
        return;
    report_news(client, key, news, news->event == TASK_HELD ? OUTCOME_OK : news->outcome,
                &begun->call.report);
    if (news->event == TASK_HELD) {
        begun->out->token = news->token;
        front_desk_forget(claim);
    } else {
        see_once(begun->out, news);
    }
    light_leave_key(client, &begun->mark);
    call_end(&begun->call);
}

static void start(struct loop_task *task)
{
    struct beginning *begun = (struct beginning *)task;
    struct lh_client *client = begun->call.client;
    struct claim_caller caller = {.told = told, .owner = begun};
    bool entered = light_enter_key(client, begun->options.request.key, &begun->mark);
    if (entered && !client->closing &&
        front_desk_ask(client->desk, &begun->options, &caller) != NULL)
        return;
    light_leave_key(client, &begun->mark);
    (void)report_say(&begun->call.report, LH_UNAVAILABLE,
                     "unavailable: memory is short, or the client is being closed");
    call_end(&begun->call);
}

static const char *fill_claim(const struct lh_client *client, const char *key,
                              const struct lh_once_options *options, struct lease_options *out)
{
    *out = (struct lease_options){
        .request = {.verb = VERB_ASK,
                    .kind = KIND_ONCE,
                    .key = key,
                    .holder = client->holder,
                    .request = "-", /* to be checked */
                    .session = 1,
                    .ttl_ms = options->ttl_ms != 0 ? options->ttl_ms : CLAIM_USUAL_MS,
                    .waits = options->wait_ms != 0,
                    .payload = options->payload},
        .wait_ms = options->wait_ms,
        .patience_ms = client->patience_ms,
        .kill_grace_ms = KILL_GRACE_MS,
        .look_ms = LOOK_MS};
    const char *wrong = request_broken(&out->request);
    out->request.request = NULL; /* the executor makes one */
    if (options->wait_ms < LH_WAIT_FOREVER || options->wait_ms > SPAN_MAX_MS)
        wrong = "the wait must be 0 to 366 days, or LH_WAIT_FOREVER";
    return wrong;
}

static enum lh_outcome say_wrong(struct lh_report *report, const char *wrong)
{
    char words[LH_TEXT_SIZE];
    (void)snprintf(words, sizeof words, "usage: %s", wrong);
    return report_say(report, LH_USAGE, words);
}

enum lh_outcome lh_once_begin(struct lh_client *client, const char *id,
                              const struct lh_once_options *options, struct lh_once *out,
                              struct lh_report *report)
{
    static const struct lh_once_options usual = LH_ONCE_OPTIONS_INIT;
    char key[KEY_MAX + 1];
    struct beginning begun = {.task = {.run = start}, .out = out};
    enum lh_outcome outcome = client_admits(client, /* blocks= */ true, report);
    if (outcome != LH_OK)
        return outcome;
    if (out == NULL || (options != NULL && options->size != sizeof *options))
        return report_say(report, LH_USAGE, "usage: no place for the token, or options unfilled");
    if (!make_key(ONCE_PREFIX, id, key, report))
        return LH_USAGE;
    const char *wrong = fill_claim(client, key, options != NULL ? options : &usual, &begun.options);
    if (wrong != NULL)
        return say_wrong(report, wrong);
    *out = (struct lh_once){0};
    call_begin(&begun.call, client);
    return call_make(&begun.call, &begun.task, report);
}

static struct deed deed_of(const struct lh_done *done)
{
    if (done == NULL)
        return (struct deed){0};
    return (struct deed){
        .status = (uint8_t)done->status, .result = done->result, .until = done->until};
}

/* Finish and mark: what is said of it, checked and in the core's words. */
static enum lh_outcome do_it(struct lh_client *client, const char *id, struct request request,
                             const struct lh_done *done, struct lh_report *report)
{
    char key[KEY_MAX + 1], watermark[KEY_MAX + 1];
    struct deed deed = deed_of(done);
    if (done != NULL && (done->size != sizeof *done || done->status < 0 || done->status > 255))
        return report_say(report, LH_USAGE, "usage: fill the struct; the status is 0 to 255");
    if (!make_key(ONCE_PREFIX, id, key, report))
        return LH_USAGE;
    if (done != NULL && done->watermark != NULL) {
        if (!make_key(WATERMARK_PREFIX, done->watermark, watermark, report))
            return LH_USAGE;
        deed.watermark = watermark;
    }
    request.key = key;
    request.deed = &deed;
    request.cooldown_ms = done != NULL && done->keep_ms != 0 ? done->keep_ms : KEEP_USUAL_MS;
    return errand_run(client, &request, NULL, NULL, report);
}

enum lh_outcome lh_once_finish(struct lh_client *client, const char *id, uint64_t token,
                               const struct lh_done *done, struct lh_report *report)
{
    struct request request = {.verb = VERB_RELEASE, .token = token};
    return do_it(client, id, request, done, report);
}

enum lh_outcome lh_mark(struct lh_client *client, const char *id, const struct lh_done *done,
                        struct lh_report *report)
{
    struct request request = {.verb = VERB_MARK};
    return do_it(client, id, request, done, report);
}

enum lh_outcome lh_once_abandon(struct lh_client *client, const char *id, uint64_t token,
                                struct lh_report *report)
{
    char key[KEY_MAX + 1];
    if (!make_key(ONCE_PREFIX, id, key, report))
        return LH_USAGE;
    return lh_give_back(client, key, token, /* cooldown_ms= */ 0, report);
}

enum lh_outcome lh_once_renew(struct lh_client *client, const char *id, uint64_t token,
                              int64_t ttl_ms, struct lh_report *report)
{
    char key[KEY_MAX + 1];
    if (!make_key(ONCE_PREFIX, id, key, report))
        return LH_USAGE;
    return lh_renew(client, key, token, ttl_ms != 0 ? ttl_ms : CLAIM_USUAL_MS, report);
}

/* A look's report is always OK; here the state is the answer. */
struct glance {
    struct lh_once *out;
    struct look look;
    char holder[HOLDER_MAX + 1];
    int64_t now_ms;
};

static void see_state(void *owner, const struct task_news *news)
{
    struct glance *glance = owner;
    see_once(glance->out, news);
    glance->look = news->look;
    glance->now_ms = news->at.time_ms;
    if (news->look.holder != NULL)
        (void)snprintf(glance->holder, sizeof glance->holder, "%s", news->look.holder);
    glance->look.holder = NULL; /* it was the record's */
}

enum lh_outcome lh_once_status(struct lh_client *client, const char *id, struct lh_once *out,
                               struct lh_report *report)
{
    char key[KEY_MAX + 1];
    struct glance glance = {.out = out};
    if (!make_key(ONCE_PREFIX, id, key, report))
        return LH_USAGE;
    if (out != NULL)
        *out = (struct lh_once){0};
    struct request request = {.verb = VERB_LOOK, .key = key};
    enum lh_outcome outcome = errand_run(client, &request, see_state, &glance, report);
    if (outcome != LH_OK || glance.look.state == KEY_FREE)
        return outcome;
    bool done = glance.look.state == KEY_COOLING;
    char words[LH_TEXT_SIZE];
    (void)snprintf(words, sizeof words, "%s: %s by %.128s", done ? "cooling" : "busy",
                   done ? "done" : "running", glance.holder);
    (void)report_say(report, done ? LH_COOLING : LH_BUSY, words);
    if (report != NULL) {
        (void)snprintf(report->holder, sizeof report->holder, "%s", glance.holder);
        report->since_ms = age_of(glance.look.since_ms, glance.now_ms);
        report->ends_in_ms = glance.look.ends_in_ms;
    }
    return done ? LH_COOLING : LH_BUSY;
}

enum lh_outcome lh_seen(struct lh_client *client, const char *id, struct lh_report *report)
{
    return lh_once_status(client, id, NULL, report);
}

/* ---- watermarks ---- */

struct reading {
    struct lh_watermark *out;
    int64_t overlap_ms;
    bool lasting; /* the store's clock is one that outlives the process */
};

static void see_watermark(void *owner, const struct task_news *news)
{
    struct reading *reading = owner;
    struct lh_watermark *out = reading->out;
    if (news->record == NULL)
        return;
    struct poll poll = watermark_begin(news->record, news->at.time_ms, reading->overlap_ms);
    (void)snprintf(out->value, sizeof out->value, "%s", poll.from);
    if (reading->lasting && news->at.time_ms != TIME_UNKNOWN)
        out->start_ms = poll.start_ms;
}

enum lh_outcome lh_watermark_begin(struct lh_client *client, const char *name, int64_t overlap_ms,
                                   struct lh_watermark *out, struct lh_report *report)
{
    char key[KEY_MAX + 1];
    enum lh_outcome outcome = client_admits(client, /* blocks= */ true, report);
    if (outcome != LH_OK)
        return outcome;
    if (out == NULL || overlap_ms <= 0)
        return report_say(report, LH_USAGE, "usage: give a place for it, and an overlap above 0");
    if (!make_key(WATERMARK_PREFIX, name, key, report))
        return LH_USAGE;
    *out = (struct lh_watermark){.start_ms = -1};
    struct reading reading = {.out = out,
                              .overlap_ms = overlap_ms,
                              .lasting = (client->driver->capabilities & STORE_DURABLE) != 0};
    struct request request = {.verb = VERB_LOOK, .key = key};
    return errand_run(client, &request, see_watermark, &reading, report);
}

enum lh_outcome lh_watermark_advance(struct lh_client *client, const char *name,
                                     const char *expected, const char *value,
                                     struct lh_report *report)
{
    char key[KEY_MAX + 1];
    if (!make_key(WATERMARK_PREFIX, name, key, report))
        return LH_USAGE;
    struct request request = {.verb = VERB_ADVANCE,
                              .key = key,
                              .value = value,
                              .expected = expected != NULL ? expected : ""};
    return errand_run(client, &request, NULL, NULL, report);
}

enum lh_outcome lh_watermark_set(struct lh_client *client, const char *name, const char *value,
                                 const char *reason, struct lh_report *report)
{
    char key[KEY_MAX + 1];
    if (!make_key(WATERMARK_PREFIX, name, key, report))
        return LH_USAGE;
    struct request request = {
        .verb = VERB_SET, .key = key, .value = value, .reason = reason != NULL ? reason : ""};
    return errand_run(client, &request, NULL, NULL, report);
}
