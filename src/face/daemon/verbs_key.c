/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs on an existing grant, and those that read, break or clear a key. */
#include "face/daemon/daemon_internal.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- by token ---- */

/* What a renewal or release remembers until it is done. */
struct token_call {
    uint64_t token;
    int64_t ttl_ms;
    bool binds;
    char key[];
};

/* NULL: refused already. */
static struct token_call *token_call_new(struct daemon_slot *slot, const struct daemon_args *args,
                                         bool binds)
{
    uint64_t token = 0;
    int64_t ttl_ms = 0;
    if (!words_is_token(args->text[2], &token)) {
        slot_reply_error(slot, "ERR", "token must be a number above 0");
        return NULL;
    }
    bool has_ttl = args->positional > 2;
    if (has_ttl && (!words_is_number(args->text[3], &ttl_ms) || ttl_ms < 1)) {
        slot_reply_error(slot, "ERR", "ttl_ms must be a number of milliseconds above 0");
        return NULL;
    }
    size_t size = strlen(args->text[1]) + 1;
    struct token_call *call = malloc(sizeof *call + size);
    if (call == NULL) {
        slot_reply_error(slot, "ERR", "failed: out of memory");
        return NULL;
    }
    *call = (struct token_call){.token = token, .ttl_ms = ttl_ms, .binds = binds};
    memcpy(call->key, args->text[1], size);
    slot->memory = call;
    return call;
}

static void renew_on_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct daemon_slot *slot = user;
    const struct token_call *call = slot->memory;
    struct lh_report shown = *report;
    (void)lease;
    hold_renewed(slot->daemon, slot->hold, report, call->ttl_ms);
    if (report->outcome == LH_OK && shown.token == 0)
        shown.token = call->token;
    if (report->outcome == LH_OK && call->binds && slot->connection != NULL)
        binding_add(slot->connection, call->key, call->token,
                    report->ends_in_ms > 0 ? report->ends_in_ms : call->ttl_ms);
    else if (report->outcome == LH_STALE)
        binding_remove(slot->daemon, call->key, call->token);
    slot_reply_report(slot, &shown);
}

void verb_renew(struct daemon_slot *slot, const struct daemon_args *args,
                const struct daemon_words *words)
{
    struct lh_report report = LH_REPORT_INIT;
    const struct token_call *call = token_call_new(slot, args, (words->given & WORD_BIND) != 0);
    if (call == NULL)
        return;
    slot->hold = hold_id(hold_key(slot->daemon, "", call->key), call->token);
    slot_started(slot,
                 lh_renew_start(slot->daemon->client, call->key, call->token, call->ttl_ms,
                                renew_on_done, slot, &report),
                 &report);
}

void verb_release(struct daemon_slot *slot, const struct daemon_args *args,
                  const struct daemon_words *words)
{
    struct lh_report report = LH_REPORT_INIT;
    uint64_t token = 0;
    if (!words_is_token(args->text[2], &token)) {
        slot_reply_error(slot, "ERR", "token must be a number above 0");
        return;
    }
    binding_remove(slot->daemon, args->text[1], token);
    slot->hold = hold_id(hold_key(slot->daemon, "", args->text[1]), token);
    slot_started(slot,
                 lh_release_token_start(slot->daemon->client, args->text[1], token,
                                        words->cooldown_ms, slot_on_released, slot, &report),
                 &report);
}

/* ---- status ---- */

/* The reply of a view, until the call is done. */
struct view_reply {
    size_t length;
    char bytes[];
};

static bool status_on_view(void *user, const struct lh_view *view)
{
    struct daemon_slot *slot = user;
    size_t record =
        slot->raw ? view_record_shown(view, slot->daemon->record, sizeof slot->daemon->record) : 0;
    struct view_reply *kept = malloc(sizeof *kept + VIEW_REPLY_SIZE + record);
    if (kept == NULL || slot->memory != NULL) {
        free(kept);
        return false;
    }
    struct resp_reply reply;
    resp_reply_init(&reply, kept->bytes, VIEW_REPLY_SIZE + record, slot_protocol(slot));
    reply_view(&reply, "ok", view, slot->raw ? slot->daemon->record : NULL, record);
    kept->length = reply.overflow ? 0 : reply.length;
    slot->memory = kept;
    return false;
}

static void status_on_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct daemon_slot *slot = user;
    struct view_reply *kept = slot->memory;
    (void)lease;
    if (report->outcome != LH_OK || kept == NULL || kept->length == 0)
        slot_reply_report(slot, report);
    else
        slot_reply_bytes(slot, kept->bytes, kept->length);
}

void verb_status(struct daemon_slot *slot, const struct daemon_args *args,
                 const struct daemon_words *words)
{
    struct lh_report report = LH_REPORT_INIT;
    slot->raw = (words->given & WORD_RAW) != 0;
    slot_started(slot,
                 lh_status_details_start(slot->daemon->client, args->text[1], status_on_view,
                                         status_on_done, slot, &report),
                 &report);
}

/* ---- operators ---- */

void verb_break(struct daemon_slot *slot, const struct daemon_args *args,
                const struct daemon_words *words)
{
    struct lh_report report = LH_REPORT_INIT;
    bool at_once = (words->given & WORD_NOW) != 0;
    slot_started(slot,
                 lh_break_start(slot->daemon->client, args->text[1], args->text[2], at_once,
                                slot_on_done, slot, &report),
                 &report);
}

void verb_clear(struct daemon_slot *slot, const struct daemon_args *args,
                const struct daemon_words *words)
{
    struct lh_report report = LH_REPORT_INIT;
    (void)words;
    slot_started(slot,
                 lh_clear_start(slot->daemon->client, args->text[1], slot_on_done, slot, &report),
                 &report);
}
