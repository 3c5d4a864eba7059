/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking at many records: lists, histories, and the one watch of the store that all watches of a
 * client share. They go to the store past the core, since they change nothing. What the store does
 * not answer within its patience is given up; its memory waits for the answer.
 */
#include "face/lib/lib_inside.h"

#include "base/check.h"
#include "io/host.h"
#include "store/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gaze {
    struct gaze *next;
    struct lh_client *client;
    enum store_verb verb;
    char key[KEY_MAX + 1];
    struct call *call; /* who waits; NULL: nobody any more, or it is the watch */
    lh_view_fn *fn;    /* NULL once it has heard enough */
    void *user;
    int64_t give_up_at_ms;
    bool confirmed; /* the watch stands */
};

struct lh_watcher {
    struct lh_watcher *next;
    struct lh_client *client;
    char prefix[KEY_MAX + 1];
    lh_watch_fn *fn;
    void *user;
    struct call *call; /* until the watch stands */
    bool ended;
};

/* ---- a record as people see it ---- */

struct view view_of(const struct lh_client *client, const struct stamp *at)
{
    return (struct view){.at = *at,
                         .judge = client->facts.judge,
                         .one_clock = client->facts.one_clock,
                         .margin_ms = client->facts.margin_ms};
}

/* The pairs of a holder; they point into the record. */
static size_t list_meta(const struct meta *meta, struct lh_meta *pairs)
{
    const char *at = meta->text;
    for (size_t pair = 0; pair < meta->count; pair++) {
        pairs[pair].name = at;
        pairs[pair].value = at + strlen(at) + 1;
        at = pairs[pair].value + strlen(pairs[pair].value) + 1;
    }
    return meta->count;
}

/* Who would go before us if all went now, and ourselves; 0 when we do not wait. */
static uint32_t place_of(const struct record *record, uint64_t session)
{
    const struct place *own = NULL;
    uint32_t before = 0;
    for (size_t i = 0; i < record->place_count && own == NULL; i++)
        own = record->places[i].session == session ? &record->places[i] : NULL;
    if (own == NULL)
        return 0;
    for (const struct place *place = record->places; place < record->places + record->place_count;
         place++) {
        int64_t ahead = (int64_t)place->priority + place->passed - own->priority - own->passed;
        before += place->offered || ahead > 0 || (ahead == 0 && place < own);
    }
    return own->offered ? 1 : before + 1;
}

static void fill_grants(const struct record *record, const struct view *view, struct lh_meta *pairs,
                        struct lh_view *out)
{
    for (size_t i = 0; i < record->grant_count; i++) {
        const struct grant *grant = &record->grants[i];
        if (grant_ended(grant, view))
            continue;
        out->holders++;
        out->shared = out->shared || grant->mode == MODE_SHARED;
        if (grant_token(grant) != out->token || out->token == 0)
            continue;
        out->broken = grant->broken;
        out->renewed_ago_ms = age_of(grant->renewed.time_ms, view->at.time_ms);
        out->meta = pairs;
        out->meta_count = pairs != NULL ? list_meta(&grant->meta, pairs) : 0;
    }
}

/* What a key has that is no lock. */
static void fill_kind(const struct record *record, const struct stamp *at, bool words,
                      struct lh_view *out)
{
    const struct watermark *watermark = &record->watermark;
    out->result = words ? "" : NULL;
    if (record->kind == KIND_ONCE) {
        bool done = out->state == LH_COOLING_DOWN;
        out->kind = LH_ONCE;
        out->status = done ? record->once.done.status : 0;
        if (done && words)
            out->result = record->once.done.result;
    } else if (record->kind == KIND_WATERMARK) {
        out->kind = LH_WATERMARK;
        out->since_ms = age_of(watermark->moved.time_ms, at->time_ms);
        (void)snprintf(out->holder, sizeof out->holder, "%s", watermark->by);
        if (words)
            out->result = watermark->value;
    }
}

void status_fill(const struct lh_client *client, const struct record *record,
                 const struct stamp *at, const char *key, struct lh_meta *pairs,
                 struct lh_view *out)
{
    static const enum lh_state states[] = {[KEY_FREE] = LH_FREE,
                                           [KEY_HELD] = LH_HELD,
                                           [KEY_OFFERED] = LH_OFFERED,
                                           [KEY_COOLING] = LH_COOLING_DOWN,
                                           [KEY_DELAYED] = LH_DELAYED};
    struct view view = view_of(client, at);
    struct look look = record_look(record, &view);
    memset(out, 0, sizeof *out);
    (void)snprintf(out->key, sizeof out->key, "%s", key);
    out->state = states[look.state];
    out->since_ms = out->ends_in_ms = out->takeover_in_ms = -1;
    out->renewed_ago_ms = out->written_ago_ms = out->written_at_ms = -1;
    out->revision = at->revision;
    out->limit = record->limit;
    out->waiters = record->place_count;
    out->place = place_of(record, client->session);
    out->reason = pairs != NULL ? record->reason : NULL;
    fill_kind(record, at, /* words= */ pairs != NULL, out);
    if (look.state == KEY_FREE)
        return;
    (void)snprintf(out->holder, sizeof out->holder, "%s", look.holder != NULL ? look.holder : "");
    out->token = look.token;
    out->since_ms = age_of(look.since_ms, at->time_ms);
    out->ends_in_ms = look.ends_in_ms;
    out->takeover_in_ms = look.takeover_in_ms;
    fill_grants(record, &view, pairs, out);
}

static void fill_unreadable(const char *key, const char *why, struct lh_view *out)
{
    memset(out, 0, sizeof *out);
    (void)snprintf(out->key, sizeof out->key, "%s", key);
    out->state = LH_UNREADABLE;
    out->since_ms = out->ends_in_ms = out->takeover_in_ms = -1;
    out->renewed_ago_ms = out->written_ago_ms = out->written_at_ms = -1;
    out->reason = out->result = "";
    out->text = why;
}

/* A record that cannot be read is shown as such: it must not hide the others. */
static void read_answer(const struct gaze *gaze, const struct store_answer *answer, const char *key,
                        struct lh_meta *pairs, struct lh_view *out)
{
    struct lh_client *client = gaze->client;
    struct event event = {0};
    const char *why = answer->why != NULL ? answer->why : "the store does not say why";
    exchange_event(answer, key, &client->scratch, &event, &why);
    if (!event.known) {
        fill_unreadable(key, why, out);
        return;
    }
    if (gaze->verb == VERB_STORE_HISTORY) /* as it was when it was written */
        event.at.time_ms = answer->written.time_ms;
    event.at.revision = answer->written.revision;
    status_fill(client, &client->scratch, &event.at, key, pairs, out);
    if (answer->written.revision == 0)
        return;
    out->written_ago_ms = age_of(answer->written.time_ms, answer->now_ms);
    if ((client->driver->capabilities & STORE_DURABLE) != 0 &&
        answer->written.time_ms != TIME_UNKNOWN)
        out->written_at_ms = answer->written.time_ms;
}

/* ---- on their way ---- */

int64_t gaze_next_ms(const struct lh_client *client)
{
    int64_t next_ms = NEVER;
    for (const struct gaze *gaze = client->gazes; gaze != NULL; gaze = gaze->next) {
        if (gaze->give_up_at_ms < next_ms)
            next_ms = gaze->give_up_at_ms;
    }
    return next_ms;
}

static void unlink_gaze(const struct gaze *gaze)
{
    struct gaze **at = &gaze->client->gazes;
    while (*at != gaze)
        at = &(*at)->next;
    *at = gaze->next;
}

static void end_call(struct call **call, enum lh_outcome outcome, const char *key, const char *why)
{
    char words[LH_TEXT_SIZE];
    struct call *ending = *call;
    *call = NULL;
    if (ending == NULL)
        return;
    (void)snprintf(words, sizeof words, "%s: %.64s%s%.150s", lh_outcome_name(outcome), key,
                   key[0] != '\0' ? ": " : "", why);
    (void)report_say(&ending->report, outcome, words);
    if (outcome == LH_UNAVAILABLE)
        ending->report.retry_after_ms = client_retry_after(ending->client);
    call_end(ending);
}

static enum lh_outcome outcome_of(enum answer answer)
{
    return answer == ANSWER_DENIED ? LH_DENIED : LH_UNAVAILABLE;
}

/* The watch has ended: who was to be told of changes is told of that, and no copy is kept. */
static void end_watches(struct lh_client *client, enum lh_outcome outcome, const char *why)
{
    struct lh_report report;
    char words[LH_TEXT_SIZE];
    watched_forget(&client->watched);
    (void)snprintf(words, sizeof words, "%s: the watch has ended: %.150s; watch anew",
                   lh_outcome_name(outcome), why);
    (void)report_say(&report, outcome, words);
    for (struct lh_watcher *watch = client->watches; watch != NULL; watch = watch->next) {
        if (watch->ended)
            continue;
        watch->ended = true;
        if (watch->call != NULL) {
            end_call(&watch->call, outcome, watch->prefix, why);
            continue;
        }
        client_enter(client);
        watch->fn(watch->user, NULL, &report);
        client_leave(client);
    }
}

void gaze_due(struct lh_client *client, int64_t now_ms)
{
    for (struct gaze *gaze = client->gazes; gaze != NULL; gaze = gaze->next) {
        if (now_ms < gaze->give_up_at_ms)
            continue;
        gaze->give_up_at_ms = NEVER;
        gaze->fn = NULL;
        if (gaze->verb == VERB_STORE_WATCH)
            end_watches(client, LH_UNAVAILABLE, "the store does not answer");
        else
            end_call(&gaze->call, LH_UNAVAILABLE, gaze->key, "the store does not answer");
    }
}

void gaze_free_all(struct lh_client *client)
{
    while (client->gazes != NULL) {
        struct gaze *gaze = client->gazes;
        client->gazes = gaze->next;
        free(gaze);
    }
    while (client->watches != NULL) {
        struct lh_watcher *watch = client->watches;
        client->watches = watch->next;
        free(watch);
    }
}

static void send_gaze(struct gaze *gaze, store_done *done)
{
    struct store_request request = {.verb = gaze->verb, .key = gaze->key};
    gaze->next = gaze->client->gazes;
    gaze->client->gazes = gaze;
    gaze->give_up_at_ms = host_boot_ms() + gaze->client->patience_ms;
    client_wake(gaze->client);
    client_submit(gaze->client, &request, done, gaze);
}

static struct gaze *new_gaze(struct lh_client *client, enum store_verb verb, const char *key)
{
    struct gaze *gaze = calloc(1, sizeof *gaze);
    if (gaze == NULL)
        return NULL;
    gaze->client = client;
    gaze->verb = verb;
    (void)snprintf(gaze->key, sizeof gaze->key, "%s", key);
    return gaze;
}

/* ---- lists and histories ---- */

static void show(struct gaze *gaze, const struct store_answer *answer)
{
    struct lh_meta pairs[META_PAIRS_MAX];
    struct lh_view status;
    const char *key = answer->key != NULL ? answer->key : gaze->key;
    if (gaze->fn == NULL || gaze->call == NULL)
        return;
    read_answer(gaze, answer, key, pairs, &status);
    client_enter(gaze->client);
    if (!gaze->fn(gaze->user, &status))
        gaze->fn = NULL;
    client_leave(gaze->client);
}

static void heard(void *caller, const struct store_answer *answer)
{
    struct gaze *gaze = caller;
    bool of_one_key = answer->more && answer->key != NULL; /* the others are told all the same */
    if (!of_one_key && (answer->result == ANSWER_TROUBLE || answer->result == ANSWER_DENIED))
        end_call(&gaze->call, outcome_of(answer->result), gaze->key,
                 answer->why != NULL ? answer->why : "the store is in trouble; try again");
    if (answer->more) {
        if (gaze->call != NULL)
            gaze->give_up_at_ms = host_boot_ms() + gaze->client->patience_ms;
        show(gaze, answer);
        return;
    }
    end_call(&gaze->call, LH_OK, gaze->key, "that is all");
    unlink_gaze(gaze);
    free(gaze);
}

struct looking {
    struct loop_task task; /* first */
    struct call call;
    struct gaze *gaze;
};

static void start_looking(struct loop_task *task)
{
    struct gaze *gaze = ((struct looking *)task)->gaze;
    struct lh_client *client = gaze->client;
    bool lists = gaze->verb == VERB_STORE_LIST, enough = false;
    if (client->closing)
        end_call(&gaze->call, LH_BUSY, gaze->key, "the client is being closed");
    else if (client_retry_after(client) >= 0)
        end_call(&gaze->call, LH_UNAVAILABLE, gaze->key, "the store failed repeatedly; try later");
    else if (lists && !light_list(client, gaze->key, gaze->fn, gaze->user, &enough))
        end_call(&gaze->call, LH_FAILED, gaze->key, "memory is short");
    if (gaze->call == NULL) {
        free(gaze);
        return;
    }
    if (enough)
        gaze->fn = NULL;
    send_gaze(gaze, heard);
}

/* NULL with a report when it cannot be. */
static struct gaze *prepare(struct lh_client *client, enum store_verb verb, const char *key,
                            lh_view_fn *fn, void *user, struct lh_report *report)
{
    const char *wrong = NULL;
    if (key == NULL || fn == NULL || strlen(key) > KEY_MAX || !text_is_clean(key, strlen(key)))
        wrong = "usage: give a function, and at most 512 bytes of clean UTF-8";
    else if (verb == VERB_STORE_HISTORY && (client->driver->capabilities & STORE_HISTORY) == 0)
        wrong = "usage: this store keeps no history";
    struct gaze *gaze = wrong == NULL ? new_gaze(client, verb, key) : NULL;
    if (gaze == NULL) {
        (void)report_say(report, wrong != NULL ? LH_USAGE : LH_FAILED,
                         wrong != NULL ? wrong : "failed: memory is short");
        return NULL;
    }
    gaze->fn = fn;
    gaze->user = user;
    return gaze;
}

static enum lh_outcome look_at(struct lh_client *client, enum store_verb verb, const char *key,
                               lh_view_fn *fn, void *user, struct lh_report *report)
{
    struct looking looking = {.task = {.run = start_looking}};
    struct lh_report own = {0};
    report = report != NULL ? report : &own;
    enum lh_outcome outcome = client_admits(client, /* blocks= */ true, report);
    if (outcome != LH_OK)
        return outcome;
    looking.gaze = prepare(client, verb, key, fn, user, report);
    if (looking.gaze == NULL)
        return report->outcome;
    looking.gaze->call = &looking.call;
    call_begin(&looking.call, client);
    return call_make(&looking.call, &looking.task, report);
}

static enum lh_outcome start_look_at(struct lh_client *client, enum store_verb verb,
                                     const char *key, lh_view_fn *fn, lh_done_fn *done, void *user,
                                     struct lh_report *report)
{
    struct lh_report own = {0};
    report = report != NULL ? report : &own;
    enum lh_outcome outcome = client_admits_start(client, report);
    if (outcome != LH_OK)
        return outcome;
    if (done == NULL)
        return report_say(report, LH_USAGE, "usage: give a function to call when done");
    struct gaze *gaze = prepare(client, verb, key, fn, user, report);
    struct looking *looking = gaze != NULL ? calloc(1, sizeof *looking) : NULL;
    if (looking == NULL) {
        free(gaze);
        return gaze != NULL ? report_say(report, LH_FAILED, "failed: memory is short")
                            : report->outcome;
    }
    looking->task.run = start_looking;
    looking->gaze = gaze;
    gaze->call = &looking->call;
    call_begin(&looking->call, client);
    return call_start(&looking->call, &looking->task, looking, done, user, report);
}

enum lh_outcome lh_list(struct lh_client *client, const char *prefix, lh_view_fn *fn, void *user,
                        struct lh_report *report)
{
    return look_at(client, VERB_STORE_LIST, prefix != NULL ? prefix : "", fn, user, report);
}

enum lh_outcome lh_history(struct lh_client *client, const char *key, lh_view_fn *fn, void *user,
                           struct lh_report *report)
{
    return look_at(client, VERB_STORE_HISTORY, key, fn, user, report);
}

enum lh_outcome lh_list_start(struct lh_client *client, const char *prefix, lh_view_fn *fn,
                              lh_done_fn *done, void *user, struct lh_report *report)
{
    return start_look_at(client, VERB_STORE_LIST, prefix != NULL ? prefix : "", fn, done, user,
                         report);
}

enum lh_outcome lh_history_start(struct lh_client *client, const char *key, lh_view_fn *fn,
                                 lh_done_fn *done, void *user, struct lh_report *report)
{
    return start_look_at(client, VERB_STORE_HISTORY, key, fn, done, user, report);
}

/* ---- watches ---- */

static void confirm(struct lh_client *client)
{
    for (struct lh_watcher *watch = client->watches; watch != NULL; watch = watch->next)
        end_call(&watch->call, LH_OK, watch->prefix, "watching");
}

static void spread(struct gaze *gaze, const struct store_answer *answer)
{
    struct lh_client *client = gaze->client;
    struct lh_meta pairs[META_PAIRS_MAX];
    struct lh_view status;
    read_answer(gaze, answer, answer->key, pairs, &status);
    for (struct lh_watcher *watch = client->watches; watch != NULL; watch = watch->next) {
        if (watch->ended || watch->call != NULL ||
            strncmp(answer->key, watch->prefix, strlen(watch->prefix)) != 0)
            continue;
        client_enter(client);
        watch->fn(watch->user, &status, NULL);
        client_leave(client);
    }
}

static void changed(void *caller, const struct store_answer *answer)
{
    struct gaze *gaze = caller;
    if (!answer->more) {
        end_watches(gaze->client, outcome_of(answer->result),
                    answer->why != NULL ? answer->why : "the store is in trouble");
        unlink_gaze(gaze);
        free(gaze);
        return;
    }
    gaze->give_up_at_ms = NEVER;
    if (answer->result != ANSWER_OK && answer->key == NULL) { /* it stands; a change was missed */
        end_watches(gaze->client, outcome_of(answer->result),
                    answer->why != NULL ? answer->why : "the store is in trouble");
    } else if (answer->key != NULL) {
        watched_hear(&gaze->client->watched, answer, host_boot_ms());
        spread(gaze, answer);
    }
    if (!gaze->confirmed)
        confirm(gaze->client);
    gaze->confirmed = true;
}

struct watching {
    struct loop_task task; /* first */
    struct call call;
    struct lh_watcher *watch;
};

static struct gaze *standing_watch(const struct lh_client *client)
{
    struct gaze *gaze = client->gazes;
    while (gaze != NULL && gaze->verb != VERB_STORE_WATCH)
        gaze = gaze->next;
    return gaze;
}

/* From now on every lock is written down, so that the watch tells of it. */
bool gaze_stands(struct lh_client *client)
{
    struct gaze *gaze = standing_watch(client);
    if (client->light != NULL)
        light_shut(client->light);
    if (gaze != NULL)
        return gaze->confirmed;
    gaze = new_gaze(client, VERB_STORE_WATCH, "");
    if (gaze == NULL) {
        end_watches(client, LH_FAILED, "memory is short");
        return false;
    }
    send_gaze(gaze, changed);
    gaze = standing_watch(client); /* gone by now when the store has refused it at once */
    return gaze != NULL && gaze->confirmed;
}

/* The first one's confirmation is everybody's. */
static void start_watching(struct loop_task *task)
{
    struct watching *watching = (struct watching *)task;
    struct lh_watcher *watch = watching->watch;
    struct lh_client *client = watch->client;
    watch->next = client->watches;
    client->watches = watch;
    if (gaze_stands(client))
        end_call(&watch->call, LH_OK, watch->prefix, "watching");
}

static void stop_watching(struct loop_task *task)
{
    struct watching *watching = (struct watching *)task;
    struct lh_watcher **at = &watching->call.client->watches;
    while (*at != watching->watch)
        at = &(*at)->next;
    *at = watching->watch->next;
    free(watching->watch);
    if (watching->call.report.text[0] == '\0')
        (void)report_say(&watching->call.report, LH_OK, "ok: not watching any more");
    call_end(&watching->call);
}

static enum lh_outcome unwatch(struct lh_watcher *watch, const struct lh_report *said,
                               struct lh_report *report)
{
    struct watching watching = {.task = {.run = stop_watching}, .watch = watch};
    call_begin(&watching.call, watch->client);
    if (said != NULL)
        watching.call.report = *said;
    return call_make(&watching.call, &watching.task, report);
}

enum lh_outcome lh_watch(struct lh_client *client, const char *prefix, lh_watch_fn *fn, void *user,
                         struct lh_watcher **out, struct lh_report *report)
{
    struct lh_report said;
    enum lh_outcome outcome = client_admits(client, /* blocks= */ true, report);
    if (outcome != LH_OK)
        return outcome;
    prefix = prefix != NULL ? prefix : "";
    if (fn == NULL || out == NULL || strlen(prefix) > KEY_MAX)
        return report_say(report, LH_USAGE,
                          "usage: give a function, a place for the watch, a prefix of at most 512");
    struct lh_watcher *watch = calloc(1, sizeof *watch);
    if (watch == NULL)
        return report_say(report, LH_FAILED, "failed: memory is short");
    struct watching watching = {.task = {.run = start_watching}, .watch = watch};
    *watch = (struct lh_watcher){.client = client, .fn = fn, .user = user, .call = &watching.call};
    (void)snprintf(watch->prefix, sizeof watch->prefix, "%s", prefix);
    call_begin(&watching.call, client);
    outcome = call_make(&watching.call, &watching.task, &said);
    if (outcome != LH_OK)
        return unwatch(watch, &said, report);
    report_copy(report, &said);
    *out = watch;
    return LH_OK;
}

enum lh_outcome lh_unwatch(struct lh_watcher **watch, struct lh_report *report)
{
    if (watch == NULL || *watch == NULL)
        return report_say(report, LH_USAGE, "usage: there is no watch");
    enum lh_outcome outcome = client_admits((*watch)->client, /* blocks= */ true, report);
    if (outcome != LH_OK)
        return outcome;
    outcome = unwatch(*watch, NULL, report);
    *watch = NULL;
    return outcome;
}
