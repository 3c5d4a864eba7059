/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports and views of the library as RESP. Outcomes are data: only a wrong call is an error. Times
 * are durations, never points in time, because clocks differ.
 */
#include "face/daemon/daemon_internal.h"

#include "base/text.h"
#include "wire/json_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void reply_begin(struct resp_reply *out, struct daemon *daemon, unsigned protocol)
{
    resp_reply_init(out, daemon->reply, sizeof daemon->reply, protocol);
}

static void reply_text(struct resp_reply *out, const char *value)
{
    if (value != NULL)
        resp_reply_text(out, value);
    else
        resp_reply_null(out);
}

static void reply_number(struct resp_reply *out, int64_t value)
{
    if (value >= 0)
        resp_reply_number(out, value);
    else
        resp_reply_null(out);
}

static void reply_token(struct resp_reply *out, uint64_t token)
{
    char digits[24];
    struct text text;
    text_init(&text, digits, sizeof digits);
    text_add_u64(&text, token);
    reply_text(out, token != 0 ? digits : NULL);
}

void reply_pair(struct resp_reply *out, const char *name, const char *value)
{
    resp_reply_text(out, name);
    reply_text(out, value);
}

void reply_pair_number(struct resp_reply *out, const char *name, int64_t value)
{
    resp_reply_text(out, name);
    reply_number(out, value);
}

void reply_pair_token(struct resp_reply *out, const char *name, uint64_t token)
{
    resp_reply_text(out, name);
    reply_token(out, token);
}

/* Not by reply_pair(): literals are written in line. */
static void reply_members(struct resp_reply *out, const struct lh_report *report,
                          const char *holder, int64_t since_ms, int64_t ends_in_ms, size_t more)
{
    bool refused = report->refusal != NULL, retries = report->retry_after_ms >= 0;
    resp_reply_map(out, (size_t)6 + (refused ? 1U : 0U) + (retries ? 1U : 0U) + more);
    resp_reply_text(out, "outcome");
    resp_reply_text(out, lh_outcome_name(report->outcome));
    resp_reply_text(out, "token");
    reply_token(out, report->token);
    resp_reply_text(out, "holder");
    reply_text(out, holder[0] != '\0' ? holder : NULL);
    resp_reply_text(out, "since_ms");
    reply_number(out, since_ms);
    resp_reply_text(out, "ends_in_ms");
    reply_number(out, ends_in_ms);
    resp_reply_text(out, "text");
    resp_reply_text(out, report->text);
    if (refused)
        reply_pair(out, "refusal", report->refusal);
    if (retries)
        reply_pair_number(out, "retry_after_ms", report->retry_after_ms);
}

void reply_report(struct resp_reply *out, const struct lh_report *report, size_t more)
{
    reply_members(out, report, report->holder, report->since_ms, report->ends_in_ms, more);
}

void reply_granted(struct resp_reply *out, const struct lh_report *report, const char *holder,
                   int64_t ttl_ms, size_t more)
{
    reply_members(out, report, holder, /* since_ms= */ 0, ttl_ms, more);
}

static const char *view_state_word(const struct lh_view *view)
{
    switch (view->state) {
    case LH_FREE:
        return "free";
    case LH_HELD:
        return "held";
    case LH_OFFERED:
        return "offered";
    case LH_COOLING_DOWN:
        return "cooling";
    case LH_DELAYED:
        return "delayed";
    case LH_UNREADABLE:
        break;
    }
    return "unreadable";
}

static const char *view_kind_word(const struct lh_view *view)
{
    return view->kind == LH_ONCE ? "once" : view->kind == LH_WATERMARK ? "watermark" : "lock";
}

void reply_view(struct resp_reply *out, const char *outcome, const struct lh_view *view,
                const char *record, size_t record_length)
{
    resp_reply_map(out, (size_t)17 + (outcome != NULL ? 1U : 0U) + (record != NULL ? 1U : 0U));
    if (outcome != NULL)
        reply_pair(out, "outcome", outcome);
    reply_pair(out, "key", view->key);
    reply_pair(out, "kind", view_kind_word(view));
    reply_pair(out, "state", view_state_word(view));
    reply_pair_token(out, "token", view->token);
    reply_pair(out, "holder", view->holder[0] != '\0' ? view->holder : NULL);
    reply_pair_number(out, "since_ms", view->since_ms);
    reply_pair_number(out, "ends_in_ms", view->ends_in_ms);
    reply_pair_number(out, "takeover_in_ms", view->takeover_in_ms);
    reply_pair_number(out, "renewed_ago_ms", view->renewed_ago_ms);
    reply_pair_number(out, "written_ago_ms", view->written_ago_ms);
    reply_pair_number(out, "holders", view->holders);
    reply_pair_number(out, "waiters", view->waiters);
    reply_pair_number(out, "limit", view->limit);
    resp_reply_text(out, "shared");
    resp_reply_bool(out, view->shared);
    resp_reply_text(out, "broken");
    resp_reply_bool(out, view->broken);
    reply_pair(out, "result", view->result);
    resp_reply_text(out, "meta");
    resp_reply_map(out, view->meta_count);
    for (size_t i = 0; i < view->meta_count; i++)
        reply_pair(out, view->meta[i].name, view->meta[i].value);
    if (record == NULL)
        return;
    resp_reply_text(out, "record");
    resp_reply_bytes(out, record, record_length);
}

void view_to_event_json(const struct lh_view *view, struct text *out)
{
    json_begin(out);
    json_add_string(out, "key", view->key);
    json_add_string(out, "kind", view_kind_word(view));
    json_add_string(out, "state", view_state_word(view));
    json_add_token(out, "token", view->token);
    json_add_string(out, "holder", view->holder[0] != '\0' ? view->holder : NULL);
    json_add_length(out, "since_ms", view->since_ms);
    json_add_length(out, "ends_in_ms", view->ends_in_ms);
    json_add_number(out, "holders", view->holders);
    json_add_number(out, "waiters", view->waiters);
    json_end(out);
}

/* Removes `,"request":"…"`: whoever knows the id of a request can repeat it and gets its grant. */
size_t view_record_shown(const struct lh_view *view, char *out, size_t size)
{
    static const char member[] = ",\"request\":\"";
    size_t length = lh_view_record(view, out, size);
    size_t to = 0;
    bool quoted = false;
    for (size_t from = 0; from < length;) {
        if (!quoted && length - from >= sizeof member &&
            memcmp(out + from, member, sizeof member - 1) == 0) {
            from += sizeof member - 1;
            while (from < length && out[from] != '"')
                from += out[from] == '\\' ? 2 : 1;
            from++;
            continue;
        }
        if (out[from] == '\\' && quoted && from + 1 < length)
            out[to++] = out[from++];
        else if (out[from] == '"')
            quoted = !quoted;
        out[to++] = out[from++];
    }
    return to;
}

void slot_reply_report(struct daemon_slot *slot, const struct lh_report *report)
{
    struct resp_reply reply;
    if (report->outcome == LH_USAGE) {
        static const char usage[] = "usage: ";
        bool prefixed = strncmp(report->text, usage, sizeof usage - 1) == 0;
        slot_reply_error(slot, "ERR", report->text + (prefixed ? sizeof usage - 1 : 0));
        return;
    }
    reply_begin(&reply, slot->daemon, slot_protocol(slot));
    reply_report(&reply, report, /* more= */ 0);
    slot_reply(slot, &reply);
}

void slot_started(struct daemon_slot *slot, enum lh_outcome outcome, const struct lh_report *report)
{
    if (outcome != LH_OK)
        slot_reply_report(slot, report);
    else
        daemon_turn(slot->daemon);
}

void slot_on_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    (void)lease;
    slot_reply_report(user, report);
}

void slot_on_renewed(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct daemon_slot *slot = user;
    hold_renewed(slot->daemon, slot->hold, report, /* ttl_ms= */ 0);
    slot_on_done(user, lease, report);
}

void slot_on_released(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct daemon_slot *slot = user;
    hold_released(slot->daemon, slot->hold, report->outcome);
    slot_on_done(user, lease, report);
}
