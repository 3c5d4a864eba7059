/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports: the outcome, the holder, the times, and one line of text for people. Decides nothing:
 * the outcome comes from the core.
 */
#include "face/lib/lib_internal.h"

#include "base/check.h"
#include "wire/duration.h"

#include <stdio.h>
#include <string.h>

enum { KEY_SHOWN = 64, SERVER_MAX = 64, TEXT_SHOWN = 130, TEXT_AFTER_URL = 90 };

#ifndef LH_VERSION
#error "the build must define LH_VERSION"
#endif

const char *lh_version(void)
{
    return LH_VERSION;
}

const char *lh_outcome_name(enum lh_outcome outcome)
{
    switch (outcome) {
    case LH_USAGE:
        return "usage";
    case LH_FAILED:
        return "failed";
    case LH_DONE:
        return "done";
    default:
        if ((int)outcome < 0 || outcome > LH_DONE)
            return "unknown";
        return outcome_name((enum outcome)outcome);
    }
}

static void report_clear(struct lh_report *report)
{
    report->outcome = LH_OK;
    report->token = 0;
    report->since_ms = report->ends_in_ms = -1;
    report->takeover_in_ms = report->retry_after_ms = -1;
    report->key[0] = report->holder[0] = report->text[0] = '\0';
    report->refusal = NULL;
    report->effect = LH_EFFECT_NONE;
    report->state = LH_FREE;
}

void report_init(struct lh_report *report)
{
    report->size = sizeof *report;
    report_clear(report);
}

static void report_fill(struct lh_report *report, enum lh_outcome outcome, const char *message)
{
    size_t length = strnlen(message, sizeof report->text - 1);
    report_clear(report);
    report->outcome = outcome;
    report->refusal = lh_refusal_word(LH_VERB_ANY, outcome);
    memcpy(report->text, message, length);
    report->text[length] = '\0';
    text_clean(report->text, length);
}

enum lh_outcome report_ok(struct lh_report *report, const char *message)
{
    size_t length = strlen(message);
    if (report == NULL || report->size < sizeof *report)
        return report_set(report, LH_OK, message);
    ASSERT(length < sizeof report->text);
    report_clear(report);
    memcpy(report->text, message, length + 1);
    return LH_OK;
}

/* For a caller with an older, smaller report. Out of line because of its large frame. */
__attribute__((noinline)) static void
report_fill_short(struct lh_report *report, enum lh_outcome outcome, const char *message)
{
    struct lh_report full = LH_REPORT_INIT;
    report_fill(&full, outcome, message);
    report_copy(report, &full);
}

enum lh_outcome report_set(struct lh_report *report, enum lh_outcome outcome, const char *message)
{
    if (report != NULL && report->size < sizeof *report)
        report_fill_short(report, outcome, message);
    else if (report != NULL && sized_is_valid(report))
        report_fill(report, outcome, message);
    return outcome;
}

void report_copy(struct lh_report *to, const struct lh_report *from)
{
    sized_write(to, from, sizeof *from);
}

int64_t age_of(int64_t since_ms, int64_t now_ms)
{
    if (since_ms == TIME_UNKNOWN || now_ms == TIME_UNKNOWN)
        return -1;
    return now_ms > since_ms ? now_ms - since_ms : 0;
}

/* The grant that the report names, if heartbeats keep it alive; otherwise NULL. */
static const struct grant *report_beating(const struct lh_client *client,
                                          const struct task_news *news)
{
    for (size_t i = 0; client->facts.renews_by_session && i < news->record->grant_count; i++) {
        const struct grant *grant = &news->record->grants[i];
        if (grant->bound && grant_token(grant) == news->key_info.token)
            return grant;
    }
    return NULL;
}

/* " (lease ends in 18s; free 3s later)" */
static void report_add_end(const struct lh_client *client, const struct task_news *news,
                           const struct lh_report *report, struct text *out)
{
    char shown[DURATION_SHOWN];
    const struct grant *beating = report_beating(client, news);
    if (beating != NULL) {
        TEXT_JOIN(out, ", until its worker ends or sends no heartbeat for ",
                  duration_show(beating->ttl_ms, shown));
        return;
    }
    if (report->ends_in_ms < 0) {
        text_add(out, "; its end is not known");
        return;
    }
    TEXT_JOIN(out, " (lease ends in ", duration_show(report->ends_in_ms, shown));
    if (report->takeover_in_ms > report->ends_in_ms)
        TEXT_JOIN(out, "; free ", duration_show(report->takeover_in_ms - report->ends_in_ms, shown),
                  " later");
    text_add(out, ")");
}

static void report_busy(const struct lh_client *client, const char *key,
                        const struct task_news *news, struct lh_report *out)
{
    const char *why = news->why;
    char since[DURATION_SHOWN] = "a while", ends[72] = "";
    struct text end;
    text_init(&end, ends, sizeof ends);
    if (out->since_ms >= 0)
        (void)duration_show(out->since_ms, since);
    if (news->record != NULL)
        report_add_end(client, news, out, &end);
    if (out->holder[0] == '\0')
        (void)snprintf(out->text, sizeof out->text, "busy: %.*s: %s; wait, or try again", KEY_SHOWN,
                       key, why != NULL ? why : "it was not granted within the wait");
    else if (news->record == NULL)
        (void)snprintf(out->text, sizeof out->text,
                       "busy: %.*s is held by %.64s, in this process; wait, or try again",
                       KEY_SHOWN, key, out->holder);
    else
        (void)snprintf(out->text, sizeof out->text, "busy: %.*s is held by %.64s for %s%s%s%s",
                       KEY_SHOWN, key, out->holder, since, ends, why != NULL ? "; " : "",
                       why != NULL ? why : "");
}

static void report_cooling(const char *key, struct lh_report *out)
{
    char since[DURATION_SHOWN] = "a while", ends[DURATION_SHOWN];
    bool known = out->ends_in_ms >= 0;
    if (out->since_ms >= 0)
        (void)duration_show(out->since_ms, since);
    (void)snprintf(out->text, sizeof out->text,
                   "%s: %.*s was done by %.64s %s ago; free %s%s, or when it is cleared",
                   lh_outcome_name(out->outcome), KEY_SHOWN, key,
                   out->holder[0] != '\0' ? out->holder : "another process", since,
                   known ? "in " : "after its cooldown",
                   known ? duration_show(out->ends_in_ms, ends) : "");
}

static void report_unavailable(const struct lh_client *client, const char *key,
                               const struct task_news *news, struct lh_report *out)
{
    const char *what = news->trouble != NULL && news->trouble[0] != '\0' ? news->trouble
                       : news->why != NULL                               ? news->why
                                                                         : "it did not reply";
    /* A store with several servers names the failed one itself: do not repeat the URL. */
    char server[SERVER_MAX] = "";
    const char *end = strstr(what, ": ");
    if (end != NULL && end - what < SERVER_MAX)
        memcpy(server, what, (size_t)(end - what));
    bool named = server[0] != '\0' && strstr(client->url, server) != NULL;
    char when[DURATION_SHOWN] = "";
    if (out->retry_after_ms >= 0)
        (void)duration_show(out->retry_after_ms, when);
    (void)snprintf(out->text, sizeof out->text,
                   "unavailable: %.*s: %.40s%s%.*s; check the store, then try again%s%s", KEY_SHOWN,
                   key, named ? "" : client->url, named ? "" : ": ",
                   named ? TEXT_SHOWN : TEXT_AFTER_URL, what, when[0] != '\0' ? " in " : "", when);
}

static void report_why(const char *key, const char *usual, const char *why, struct lh_report *out)
{
    (void)snprintf(out->text, sizeof out->text, "%s: %.*s: %s", lh_outcome_name(out->outcome),
                   KEY_SHOWN, key, why != NULL ? why : usual);
}

void report_expired(struct lh_report *report, const char *key, int64_t over_ms)
{
    char ago[DURATION_SHOWN];
    (void)snprintf(report->text, sizeof report->text,
                   "lost: %.*s: the lease ended %s ago; another client may have held it since, and "
                   "writes in between are refused only where tokens are checked",
                   KEY_SHOWN, key, duration_show(over_ms, ago));
}

/* In the words of the user: "deadline" is a word of traces. */
static const char *explain_loss(const char *why)
{
    return why != NULL && strcmp(why, "deadline") == 0
               ? "not renewed in time; the store did not reply, or the process was stopped"
               : why;
}

static void report_describe(const struct lh_client *client, const char *key,
                            const struct task_news *news, struct lh_report *out)
{
    switch (out->outcome) {
    case LH_OK:
        (void)snprintf(out->text, sizeof out->text, "ok: %.*s%s%s", KEY_SHOWN, key,
                       news->why != NULL ? ": " : "", news->why != NULL ? news->why : "");
        return;
    case LH_BUSY:
        report_busy(client, key, news, out);
        return;
    case LH_COOLING:
    case LH_DONE:
        report_cooling(key, out);
        return;
    case LH_UNAVAILABLE:
        report_unavailable(client, key, news, out);
        return;
    case LH_DENIED:
    case LH_USAGE:
        report_why(key, "the store does not permit it",
                   news->trouble != NULL ? news->trouble : news->why, out);
        return;
    case LH_LOST:
        report_why(key, "the lease is not yours any more; stop the work that it protects",
                   explain_loss(news->why), out);
        return;
    case LH_STALE:
        report_why(key, "the token does not hold the key; nothing was changed", news->why, out);
        return;
    default:
        report_why(key, "the store refused", news->why, out);
        return;
    }
}

enum lh_outcome report_outcome(enum record_kind kind, enum outcome outcome)
{
    bool done = kind == KIND_ONCE && outcome == OUTCOME_COOLING;
    return done ? LH_DONE : (enum lh_outcome)outcome;
}

void report_news(const struct lh_client *client, const char *key, const struct task_news *news,
                 enum outcome outcome, struct lh_report *out)
{
    report_clear(out);
    out->outcome = report_outcome(news->record != NULL ? news->record->kind : KIND_LOCK, outcome);
    out->refusal = lh_refusal_word(LH_VERB_ANY, out->outcome);
    (void)snprintf(out->key, sizeof out->key, "%s", key);
    bool others = outcome == OUTCOME_BUSY || outcome == OUTCOME_COOLING;
    if (out->outcome == LH_UNAVAILABLE)
        out->retry_after_ms = client_retry_after(client);
    out->token = out->outcome == LH_BUSY ? news->key_info.token : others ? 0 : news->token;
    if (others && news->key_info.state != KEY_FREE && news->key_info.holder != NULL) {
        (void)snprintf(out->holder, sizeof out->holder, "%s", news->key_info.holder);
        if (news->record != NULL) /* otherwise from the local queue, without a time */
            out->since_ms = age_of(news->key_info.since_ms, news->at.time_ms);
        out->ends_in_ms = news->key_info.ends_in_ms;
        out->takeover_in_ms = news->key_info.takeover_in_ms;
    }
    report_describe(client, key, news, out);
    text_clean(out->text, strlen(out->text)); /* it contains text from servers */
}

/* ---- effects ---- */

_Static_assert((int)KEY_DELAYED == (int)LH_DELAYED, "the states are in the same order");

static enum lh_state state_of(const struct task_news *news)
{
    return news->record != NULL ? (enum lh_state)news->key_info.state : LH_FREE;
}

static const struct grant *grant_of(const struct task_news *news, uint64_t token)
{
    for (size_t i = 0; news->record != NULL && i < news->record->grant_count; i++)
        if (grant_token(&news->record->grants[i]) == token)
            return &news->record->grants[i];
    return NULL;
}

void report_renewed(const struct lh_client *client, uint64_t token, const struct task_news *news,
                    struct lh_report *out)
{
    const struct grant *grant = grant_of(news, token);
    struct view view = view_of(client, &news->at);
    out->token = token;
    out->state = LH_HELD;
    if (grant == NULL)
        return;
    struct key_info key_info = grant_key_info(grant, &view);
    (void)snprintf(out->holder, sizeof out->holder, "%s", grant->holder);
    out->since_ms = age_of(key_info.since_ms, news->at.time_ms);
    /* Without a clock of the store the whole TTL is left: it has just begun. */
    out->ends_in_ms = key_info.ends_in_ms >= 0 ? key_info.ends_in_ms : grant->ttl_ms;
    out->takeover_in_ms = key_info.takeover_in_ms;
}

void report_released(uint64_t token, const struct task_news *news, struct lh_report *out)
{
    out->effect = LH_EFFECT_RELEASED;
    out->token = token;
    out->state = state_of(news);
    if (out->state != LH_COOLING_DOWN)
        return;
    (void)snprintf(out->holder, sizeof out->holder, "%s", news->key_info.holder);
    out->since_ms = age_of(news->key_info.since_ms, news->at.time_ms);
    out->ends_in_ms = news->key_info.ends_in_ms;
    out->takeover_in_ms = news->key_info.takeover_in_ms;
}

void report_break(const char *key, bool at_once, const struct broken *broken,
                  const struct task_news *news, struct lh_report *out)
{
    char others[32] = "", ends[DURATION_SHOWN + 32] = "until its lease ends";
    out->state = state_of(news);
    if (broken->count == 0) /* the text says that it was free */
        return;
    out->effect = at_once ? LH_EFFECT_FREED : LH_EFFECT_ASKED;
    (void)snprintf(out->holder, sizeof out->holder, "%s", broken->holder);
    out->token = broken->token;
    out->since_ms = age_of(broken->since_ms, news->at.time_ms);
    if (broken->count > 1)
        (void)snprintf(others, sizeof others, " and %u other%s", (unsigned)broken->count - 1,
                       broken->count > 2 ? "s" : "");
    if (at_once) {
        (void)snprintf(out->text, sizeof out->text,
                       "ok: %.*s: taken from %.64s%s; only tokens keep the old holder out",
                       KEY_SHOWN, key, broken->holder, others);
        return;
    }
    bool held = out->state == LH_HELD;
    out->ends_in_ms = held ? news->key_info.ends_in_ms : -1;
    out->takeover_in_ms = held ? news->key_info.takeover_in_ms : -1;
    if (out->takeover_in_ms >= 0) {
        char span[DURATION_SHOWN];
        (void)snprintf(ends, sizeof ends, "until %s from now",
                       duration_show(out->takeover_in_ms, span));
    }
    (void)snprintf(out->text, sizeof out->text,
                   "ok: %.*s: asked %.64s%s to stop; held until it confirms or %.40s", KEY_SHOWN,
                   key, broken->holder, others, ends);
}

void report_not_held(const char *key, uint64_t token, const struct task_news *news,
                     struct lh_report *out)
{
    bool taken = news->record != NULL && news->key_info.state == KEY_HELD;
    report_clear(out);
    (void)snprintf(out->key, sizeof out->key, "%s", key);
    out->state = state_of(news);
    out->effect = taken ? LH_EFFECT_TAKEN : LH_EFFECT_GONE;
    if (!taken) {
        (void)snprintf(out->text, sizeof out->text,
                       "ok: %.*s: already gone: nobody holds it; nothing was changed", KEY_SHOWN,
                       key);
        return;
    }
    (void)snprintf(out->holder, sizeof out->holder, "%s", news->key_info.holder);
    out->token = news->key_info.token;
    out->since_ms = age_of(news->key_info.since_ms, news->at.time_ms);
    out->ends_in_ms = news->key_info.ends_in_ms;
    out->takeover_in_ms = news->key_info.takeover_in_ms;
    (void)snprintf(out->text, sizeof out->text,
                   "ok: %.*s: held by %.64s with token %llu, not with %llu; nothing was changed",
                   KEY_SHOWN, key, out->holder, (unsigned long long)out->token,
                   (unsigned long long)token);
}
