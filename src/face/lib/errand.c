/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single verbs: renew and give back by token, break, clear, and a look at one key. Each is an
 * errand of the executor; the core decides, and the store's patience bounds them all.
 */
#include "face/lib/lib_inside.h"

#include "io/host.h"
#include "runtime/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct errand {
    struct loop_task task; /* first */
    struct call call;
    struct lease_options options;
    struct lh_view *status; /* of a look … */
    lh_view_fn *fn;         /* … or whom to show it */
    void *user;
    struct errand_aim aim;
    bool if_held; /* release: it is no error that the token does not hold the key */
    struct broken broken;
    struct light_mark *mark;
    int64_t began_us;
    _Alignas(max_align_t) char words[]; /* of a started one */
};

static void show(struct errand *errand, const struct task_news *news, const char *key)
{
    struct lh_client *client = errand->call.client;
    struct lh_meta pairs[META_PAIRS_MAX];
    struct lh_view view;
    if (errand->status != NULL)
        status_fill(client, news->record, &news->at, key, NULL, errand->status);
    if (errand->fn == NULL)
        return;
    status_fill(client, news->record, &news->at, key, pairs, &view);
    client_enter(client);
    (void)errand->fn(errand->user, &view);
    client_leave(client);
}

/* Of verbs that are counted: by token, marks and watermarks. */
static void count(struct errand *errand)
{
    enum lh_outcome outcome = errand->call.report.outcome;
    struct lh_event event = {.outcome = outcome,
                             .key = errand->options.request.key,
                             .token = errand->options.request.token,
                             .after_us = -1};
    switch (errand->options.request.verb) {
    case VERB_RENEW:
        event.kind = outcome == LH_OK ? LH_EVENT_RENEWED : LH_EVENT_RENEW_FAILED;
        break;
    case VERB_RELEASE:
        if (outcome == LH_OK && errand->call.report.effect != LH_EFFECT_RELEASED)
            return; /* nothing was given back */
        event.kind = LH_EVENT_RELEASED;
        break;
    case VERB_MARK:
        event.kind = LH_EVENT_MARK;
        event.after_us = host_boot_us() - errand->began_us;
        break;
    case VERB_ADVANCE:
    case VERB_SET:
        event.kind = LH_EVENT_WATERMARK;
        event.after_us = host_boot_us() - errand->began_us;
        break;
    default:
        return;
    }
    client_tell(errand->call.client, &event);
}

static void end(struct errand *errand)
{
    light_leave_key(errand->call.client, &errand->mark);
    if (errand->aim.ends != NULL)
        lease_bury(errand->aim.ends, errand->call.report.outcome);
    else
        count(errand);
    call_end(&errand->call);
}

static enum lh_verb verb_of(const struct request *request)
{
    bool id = strncmp(request->key, ONCE_PREFIX, sizeof ONCE_PREFIX - 1) == 0;
    switch (request->verb) {
    case VERB_RENEW:
        return id ? LH_VERB_FINISH : LH_VERB_RENEW;
    case VERB_RELEASE:
        return id ? LH_VERB_FINISH : LH_VERB_RELEASE;
    case VERB_ADVANCE:
    case VERB_SET:
        return LH_VERB_WATERMARK;
    default:
        return id ? LH_VERB_ONCE : LH_VERB_ANY;
    }
}

/* What the outcome alone does not say. */
static void say_more(const struct errand *errand, const struct task_news *news,
                     struct lh_report *report)
{
    const struct request *request = &errand->options.request;
    bool stale = news->outcome == OUTCOME_STALE;
    if (news->outcome == OUTCOME_OK && request->verb == VERB_BREAK)
        report_break(request->key, request->now, &errand->broken, news, report);
    else if (news->outcome == OUTCOME_OK && request->verb == VERB_RELEASE)
        report->effect = LH_EFFECT_RELEASED;
    else if (stale && errand->if_held)
        report_not_held(request->key, request->token, news, report);
    if (report->key[0] == '\0')
        (void)snprintf(report->key, sizeof report->key, "%s", request->key);
    report->refusal = lh_refusal_word(verb_of(request), report->outcome);
}

static void told(void *owner, struct task *task, const struct task_news *news)
{
    struct errand *errand = owner;
    struct lh_client *client = errand->call.client;
    const char *key = errand->options.request.key;
    (void)task;
    if (news->event != TASK_ENDED)
        return;
    report_news(client, key, news, news->outcome, &errand->call.report);
    if (errand->aim.see != NULL)
        errand->aim.see(client, &errand->aim, news, &errand->call.report);
    say_more(errand, news, &errand->call.report);
    if (news->outcome == OUTCOME_OK && news->record != NULL)
        show(errand, news, key);
    if (news->outcome == OUTCOME_OK && errand->options.request.verb == VERB_BREAK)
        client_remark(client, key, "Broken", errand->options.request.reason, /* warns= */ true);
    end(errand);
}

static void start(struct loop_task *task)
{
    struct errand *errand = (struct errand *)task;
    struct lh_client *client = errand->call.client;
    struct executor_caller caller = {.told = told, .owner = errand};
    errand->began_us = host_boot_us();
    errand->options.request.broken = &errand->broken; /* it stays where it is from now on */
    bool entered = light_enter_key(client, errand->options.request.key, &errand->mark);
    if (errand->aim.ends != NULL)
        lease_forget(errand->aim.ends);
    if (errand->mark != NULL) /* a holder that was light is adopted before this is about it */
        front_desk_tick(client->desk);
    if (entered && !client->closing &&
        executor_start(front_desk_executor(client->desk), &errand->options, &caller) != NULL)
        return;
    if (client->closing)
        (void)report_say(&errand->call.report, LH_BUSY, CLOSING_WORDS);
    else
        (void)report_say(&errand->call.report, LH_UNAVAILABLE,
                         "unavailable: memory is short, or too much is on its way; try again");
    end(errand);
}

/* NULL, or what is wrong with it. */
static const char *fill_options(const struct lh_client *client, const struct request *request,
                                struct lease_options *out)
{
    *out = (struct lease_options){.request = *request,
                                  .cooldown_ms = request->cooldown_ms,
                                  .patience_ms = client->patience_ms,
                                  .kill_grace_ms = KILL_GRACE_MS,
                                  .look_ms = LOOK_MS};
    out->request.holder = client->holder;
    out->request.session = 1; /* the executor puts its own here */
    if (request->ttl_ms == 0 && request->verb != VERB_RENEW)
        out->request.ttl_ms = TTL_USUAL_MS;
    bool made = request->request == NULL;
    if (made)
        out->request.request = "-"; /* to be checked; the executor makes one */
    const char *wrong = request_broken(&out->request);
    if (made)
        out->request.request = NULL;
    if (wrong == NULL && request->verb == VERB_MARK && request->cooldown_ms == 0)
        wrong = "what is marked must be kept for a while";
    if (wrong == NULL && (request->cooldown_ms < 0 || request->cooldown_ms > SPAN_MAX_MS))
        wrong = "the cooldown must be from 0 to 366 days";
    return wrong;
}

/* With the words of the request, which are the caller's only until it returns. */
static struct errand *keep(const struct errand *errand)
{
    const char *key = errand->options.request.key;
    size_t key_size = strlen(key) + 1, words_size = options_size(&errand->options);
    struct errand *kept = malloc(sizeof *kept + words_size + key_size);
    if (kept == NULL)
        return NULL;
    memcpy(kept, errand, sizeof *kept);
    options_copy(&kept->options, &errand->options, memcpy(kept->words + words_size, key, key_size),
                 kept->words);
    return kept;
}

/* Blocks, unless there is somebody to tell when it is done. */
static enum lh_outcome run(struct lh_client *client, const struct request *request,
                           struct errand *errand, const struct listener *listener,
                           struct lh_report *report)
{
    enum lh_outcome outcome = listener == NULL ? client_admits(client, /* blocks= */ true, report)
                                               : client_admits_start(client, report);
    if (outcome != LH_OK)
        return outcome;
    if (listener != NULL && listener->done == NULL)
        return report_say(report, LH_USAGE, "usage: give a function to call when done");
    const char *wrong = fill_options(client, request, &errand->options);
    if (wrong != NULL) {
        char words[LH_TEXT_SIZE];
        (void)snprintf(words, sizeof words, "usage: %s", wrong);
        return report_say(report, LH_USAGE, words);
    }
    if (request->ttl_ms != 0 && !client_admits_ttl(client, request->ttl_ms, report))
        return LH_USAGE;
    errand->task.run = start;
    call_begin(&errand->call, client);
    if (listener == NULL)
        return call_make(&errand->call, &errand->task, report);
    struct errand *kept = keep(errand);
    if (kept == NULL)
        return report_say(report, LH_FAILED, "failed: memory is short");
    return call_start(&kept->call, &kept->task, kept, listener->done, listener->user, report);
}

enum lh_outcome errand_run(struct lh_client *client, const struct request *request,
                           const struct errand_aim *aim, const struct listener *listener,
                           struct lh_report *report)
{
    struct errand errand = {0};
    if (aim != NULL)
        errand.aim = *aim;
    return run(client, request, &errand, listener, report);
}

/* ---- by token ---- */

enum lh_outcome lh_renew(struct lh_client *client, const char *key, uint64_t token, int64_t ttl_ms,
                         struct lh_report *report)
{
    struct request request = {.verb = VERB_RENEW, .key = key, .token = token, .ttl_ms = ttl_ms};
    return errand_run(client, &request, NULL, NULL, report);
}

enum lh_outcome lh_renew_start(struct lh_client *client, const char *key, uint64_t token,
                               int64_t ttl_ms, lh_done_fn *done, void *user,
                               struct lh_report *report)
{
    struct request request = {.verb = VERB_RENEW, .key = key, .token = token, .ttl_ms = ttl_ms};
    return errand_run(client, &request, NULL, &(struct listener){done, user}, report);
}

enum lh_outcome lh_give_back(struct lh_client *client, const char *key, uint64_t token,
                             int64_t cooldown_ms, struct lh_report *report)
{
    struct request request = {
        .verb = VERB_RELEASE, .key = key, .token = token, .cooldown_ms = cooldown_ms};
    return errand_run(client, &request, NULL, NULL, report);
}

enum lh_outcome lh_give_back_start(struct lh_client *client, const char *key, uint64_t token,
                                   int64_t cooldown_ms, lh_done_fn *done, void *user,
                                   struct lh_report *report)
{
    struct request request = {
        .verb = VERB_RELEASE, .key = key, .token = token, .cooldown_ms = cooldown_ms};
    return errand_run(client, &request, NULL, &(struct listener){done, user}, report);
}

static enum lh_outcome give_back_if_held(struct lh_client *client, const char *key, uint64_t token,
                                         int64_t cooldown_ms, const struct listener *listener,
                                         struct lh_report *report)
{
    struct request request = {
        .verb = VERB_RELEASE, .key = key, .token = token, .cooldown_ms = cooldown_ms};
    struct errand errand = {.if_held = true};
    return run(client, &request, &errand, listener, report);
}

enum lh_outcome lh_give_back_if_held(struct lh_client *client, const char *key, uint64_t token,
                                     int64_t cooldown_ms, struct lh_report *report)
{
    return give_back_if_held(client, key, token, cooldown_ms, NULL, report);
}

enum lh_outcome lh_give_back_if_held_start(struct lh_client *client, const char *key,
                                           uint64_t token, int64_t cooldown_ms, lh_done_fn *done,
                                           void *user, struct lh_report *report)
{
    return give_back_if_held(client, key, token, cooldown_ms, &(struct listener){done, user},
                             report);
}

/* ---- operators ---- */

enum lh_outcome lh_break(struct lh_client *client, const char *key, const char *reason,
                         bool at_once, struct lh_report *report)
{
    struct request request = {
        .verb = VERB_BREAK, .key = key, .reason = reason != NULL ? reason : "", .now = at_once};
    return errand_run(client, &request, NULL, NULL, report);
}

enum lh_outcome lh_break_start(struct lh_client *client, const char *key, const char *reason,
                               bool at_once, lh_done_fn *done, void *user, struct lh_report *report)
{
    struct request request = {
        .verb = VERB_BREAK, .key = key, .reason = reason != NULL ? reason : "", .now = at_once};
    return errand_run(client, &request, NULL, &(struct listener){done, user}, report);
}

enum lh_outcome lh_clear(struct lh_client *client, const char *key, struct lh_report *report)
{
    struct request request = {.verb = VERB_CLEAR, .key = key};
    return errand_run(client, &request, NULL, NULL, report);
}

enum lh_outcome lh_clear_start(struct lh_client *client, const char *key, lh_done_fn *done,
                               void *user, struct lh_report *report)
{
    struct request request = {.verb = VERB_CLEAR, .key = key};
    return errand_run(client, &request, NULL, &(struct listener){done, user}, report);
}

/* ---- looking ---- */

enum lh_outcome lh_status(struct lh_client *client, const char *key, struct lh_view *out,
                          struct lh_report *report)
{
    struct request request = {.verb = VERB_LOOK, .key = key};
    struct errand errand = {.status = out};
    if (out == NULL)
        return report_say(report, LH_USAGE, "usage: there is no place for the status");
    return run(client, &request, &errand, NULL, report);
}

static enum lh_outcome look(struct lh_client *client, const char *key, lh_view_fn *fn, void *user,
                            const struct listener *listener, struct lh_report *report)
{
    struct request request = {.verb = VERB_LOOK, .key = key};
    struct errand errand = {.fn = fn, .user = user};
    if (fn == NULL)
        return report_say(report, LH_USAGE, "usage: there is no function to show it to");
    return run(client, &request, &errand, listener, report);
}

enum lh_outcome lh_look(struct lh_client *client, const char *key, lh_view_fn *fn, void *user,
                        struct lh_report *report)
{
    return look(client, key, fn, user, NULL, report);
}

enum lh_outcome lh_look_start(struct lh_client *client, const char *key, lh_view_fn *fn,
                              lh_done_fn *done, void *user, struct lh_report *report)
{
    return look(client, key, fn, user, &(struct listener){done, user}, report);
}
