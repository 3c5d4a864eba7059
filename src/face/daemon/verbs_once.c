/* SPDX-License-Identifier: Apache-2.0 */
/* ONCE.* and WATERMARK.*: ids that are done once, and stored positions. */
#include "face/daemon/daemon_internal.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_OVERLAP_MS = 60000 };

/* ---- ids ---- */

/* The result of a claim in flight. */
struct once_call {
    struct lh_once once;
    struct lh_request *started;
    int64_t ttl_ms;
    char holder[LH_HOLDER_SIZE];
};

static void once_on_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct daemon_slot *slot = user;
    struct once_call *call = slot->memory;
    struct resp_reply reply;
    struct lh_report shown = *report;
    bool done = report->outcome == LH_DONE;
    (void)lease;
    lh_request_free(call->started);
    call->started = NULL;
    if (report->outcome == LH_USAGE) {
        slot_reply_report(slot, report);
        return;
    }
    if (report->outcome == LH_OK && call->once.token != 0) {
        shown.token = call->once.token;
        shown.since_ms = 0;
        shown.ends_in_ms = call->ttl_ms;
        text_copy(shown.holder, sizeof shown.holder, call->holder);
        hold_granted(slot->daemon, hold_id(slot->hold, shown.token), call->ttl_ms);
    }
    reply_begin(&reply, slot->daemon, slot_protocol(slot));
    reply_report(&reply, &shown, done ? 2 : 0);
    if (done) {
        reply_pair_number(&reply, "status", call->once.status);
        reply_pair(&reply, "result", call->once.result);
    }
    slot_reply(slot, &reply);
}

/* NULL: refused already. */
static struct once_call *once_call_new(struct daemon_slot *slot)
{
    struct once_call *call = calloc(1, sizeof *call);
    slot->memory = call;
    if (call == NULL)
        slot_reply_error(slot, "ERR", "failed: out of memory");
    else
        call->once = (struct lh_once)LH_ONCE_INIT;
    return call;
}

void verb_once_begin(struct daemon_slot *slot, const struct daemon_args *args,
                     const struct daemon_words *words)
{
    struct lh_once_options options = LH_ONCE_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    char id[65];
    if (drain_refuses(slot))
        return;
    const char *wrong = request_id_wrong(slot->connection, words);
    if (!words_is_number(args->text[3], &options.ttl_ms) || options.ttl_ms < 1)
        wrong = "ttl_ms must be a number of milliseconds above 0";
    if (wrong != NULL) {
        slot_reply_error(slot, "ERR", wrong);
        return;
    }
    struct once_call *call = once_call_new(slot);
    if (call == NULL)
        return;
    options.payload = words->payload;
    options.holder = args->text[2];
    if ((words->given & WORD_ID) != 0) {
        request_id_name(slot->connection->who, words->id, id);
        options.request_id = id;
    }
    call->ttl_ms = options.ttl_ms;
    slot->hold = hold_key(slot->daemon, slot->verb->prefix, args->text[1]);
    (void)snprintf(call->holder, sizeof call->holder, "%s", args->text[2]);
    call->started = lh_once_begin_start(slot->daemon->client, args->text[1], &options, &call->once,
                                        once_on_done, slot, &report);
    slot_started(slot, call->started != NULL ? LH_OK : report.outcome, &report);
}

/* False: refused already. */
static bool once_token(struct daemon_slot *slot, const struct daemon_args *args, uint64_t *out)
{
    if (words_is_token(args->text[2], out)) {
        slot->hold = hold_id(hold_key(slot->daemon, slot->verb->prefix, args->text[1]), *out);
        return true;
    }
    slot_reply_error(slot, "ERR", "token must be a number above 0");
    return false;
}

void verb_once_renew(struct daemon_slot *slot, const struct daemon_args *args,
                     const struct daemon_words *words)
{
    struct lh_report report = LH_REPORT_INIT;
    uint64_t token = 0;
    int64_t ttl_ms = 0;
    (void)words;
    if (!once_token(slot, args, &token))
        return;
    if (args->count > 3 && (!words_is_number(args->text[3], &ttl_ms) || ttl_ms < 1)) {
        slot_reply_error(slot, "ERR", "ttl_ms must be a number of milliseconds above 0");
        return;
    }
    slot_started(slot,
                 lh_once_renew_start(slot->daemon->client, args->text[1], token, ttl_ms,
                                     slot_on_renewed, slot, &report),
                 &report);
}

static struct lh_completion once_completion(const struct daemon_words *words)
{
    struct lh_completion completion = LH_COMPLETION_INIT;
    completion.keep_ms = words->keep_ms;
    completion.status = (int)words->status;
    completion.result = words->result;
    return completion;
}

void verb_once_finish(struct daemon_slot *slot, const struct daemon_args *args,
                      const struct daemon_words *words)
{
    struct lh_completion completion = once_completion(words);
    struct lh_report report = LH_REPORT_INIT;
    uint64_t token = 0;
    if (once_token(slot, args, &token))
        slot_started(slot,
                     lh_once_finish_start(slot->daemon->client, args->text[1], token, &completion,
                                          slot_on_released, slot, &report),
                     &report);
}

void verb_once_abandon(struct daemon_slot *slot, const struct daemon_args *args,
                       const struct daemon_words *words)
{
    struct lh_report report = LH_REPORT_INIT;
    uint64_t token = 0;
    (void)words;
    if (once_token(slot, args, &token))
        slot_started(slot,
                     lh_once_abandon_start(slot->daemon->client, args->text[1], token,
                                           slot_on_released, slot, &report),
                     &report);
}

void verb_once_status(struct daemon_slot *slot, const struct daemon_args *args,
                      const struct daemon_words *words)
{
    struct lh_report report = LH_REPORT_INIT;
    struct once_call *call = once_call_new(slot);
    (void)words;
    if (call != NULL)
        slot_started(slot,
                     lh_once_status_start(slot->daemon->client, args->text[1], &call->once,
                                          once_on_done, slot, &report),
                     &report);
}

void verb_once_mark(struct daemon_slot *slot, const struct daemon_args *args,
                    const struct daemon_words *words)
{
    struct lh_completion completion = once_completion(words);
    struct lh_report report = LH_REPORT_INIT;
    if (drain_refuses(slot))
        return;
    slot_started(slot,
                 lh_mark_start(slot->daemon->client, args->text[1], &completion, slot_on_done, slot,
                               &report),
                 &report);
}

/* ---- watermarks ---- */

static void watermark_reply(struct daemon_slot *slot, const struct lh_report *report,
                            const char *value, int64_t start_ms)
{
    struct resp_reply reply;
    if (report->outcome == LH_USAGE) {
        slot_reply_report(slot, report);
        return;
    }
    reply_begin(&reply, slot->daemon, slot_protocol(slot));
    reply_report(&reply, report, report->outcome == LH_OK ? 2 : 0);
    if (report->outcome == LH_OK) {
        reply_pair(&reply, "value", value);
        reply_pair_number(&reply, "start_ms", start_ms); /* of the source's time, for the cursor */
    }
    slot_reply(slot, &reply);
}

static bool watermark_on_view(void *user, const struct lh_view *view)
{
    struct daemon_slot *slot = user;
    if (slot->memory == NULL)
        slot->memory = strdup(view->result != NULL ? view->result : "");
    return false;
}

static void watermark_on_read(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct daemon_slot *slot = user;
    (void)lease;
    watermark_reply(slot, report, slot->memory != NULL ? slot->memory : "", /* start_ms= */ -1);
}

void verb_watermark_get(struct daemon_slot *slot, const struct daemon_args *args,
                        const struct daemon_words *words)
{
    struct lh_report report = LH_REPORT_INIT;
    char key[LH_KEY_SIZE];
    struct text text;
    (void)words;
    text_init(&text, key, sizeof key);
    TEXT_JOIN(&text, "watermark:", args->text[1]);
    if (text.cut || args->text[1][0] == '\0') {
        slot_reply_error(slot, "ERR", "the name must be 1 to 500 bytes");
        return;
    }
    slot_started(slot,
                 lh_status_details_start(slot->daemon->client, key, watermark_on_view,
                                         watermark_on_read, slot, &report),
                 &report);
}

static void watermark_on_begun(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct daemon_slot *slot = user;
    const struct lh_watermark *watermark = slot->memory;
    (void)lease;
    watermark_reply(slot, report, watermark->value, watermark->start_ms);
}

void verb_watermark_begin(struct daemon_slot *slot, const struct daemon_args *args,
                          const struct daemon_words *words)
{
    struct lh_report report = LH_REPORT_INIT;
    struct lh_watermark *watermark = calloc(1, sizeof *watermark);
    slot->memory = watermark;
    if (watermark == NULL) {
        slot_reply_error(slot, "ERR", "failed: out of memory");
        return;
    }
    *watermark = (struct lh_watermark)LH_WATERMARK_INIT;
    int64_t overlap_ms =
        (words->given & WORD_OVERLAP) != 0 ? words->overlap_ms : DEFAULT_OVERLAP_MS;
    slot_started(slot,
                 lh_watermark_begin_start(slot->daemon->client, args->text[1], overlap_ms,
                                          watermark, watermark_on_begun, slot, &report),
                 &report);
}

void verb_watermark_advance(struct daemon_slot *slot, const struct daemon_args *args,
                            const struct daemon_words *words)
{
    struct lh_report report = LH_REPORT_INIT;
    char id[65];
    bool named = (words->given & WORD_ID) != 0;
    const char *wrong = request_id_wrong(slot->connection, words);
    if (wrong != NULL) {
        slot_reply_error(slot, "ERR", wrong);
        return;
    }
    if (named)
        request_id_name(slot->connection->who, words->id, id);
    slot_started(slot,
                 lh_watermark_advance_id_start(slot->daemon->client, args->text[1], args->text[2],
                                               args->text[3], named ? id : NULL, slot_on_done, slot,
                                               &report),
                 &report);
}

void verb_watermark_set(struct daemon_slot *slot, const struct daemon_args *args,
                        const struct daemon_words *words)
{
    struct lh_report report = LH_REPORT_INIT;
    (void)words;
    slot_started(slot,
                 lh_watermark_set_start(slot->daemon->client, args->text[1], args->text[2],
                                        args->text[3], slot_on_done, slot, &report),
                 &report);
}
