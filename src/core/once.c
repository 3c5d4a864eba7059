/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids that are processed once (rule 6). A claim is a grant under the rules of rules.c. This file
 * adds the fingerprint of the payload, the stored result, and the mark, which finishes an id in one
 * write. Pure.
 */
#include "core/rules_internal.h"

#include "base/text.h"
#include "core/mutant.h"

#include <string.h>

static void once_copy_text(char *to, size_t size, const char *text)
{
    text_copy(to, size, text != NULL ? text : "");
}

const char *once_refuses(struct record *record, const struct request *request,
                         enum record_kind kind)
{
    struct once *once = &record->once;
    if (!record_needed(record)) {
        record_set_kind(record, kind);
        if (kind == KIND_ONCE)
            once_copy_text(once->payload, sizeof once->payload, request->payload);
    }
    if (record->kind != kind)
        return "the key is in use as something else";
    if (kind == KIND_ONCE && request->payload != NULL && once->payload[0] != '\0' &&
        !MUTANT(PAYLOAD_IGNORED) && strcmp(once->payload, request->payload) != 0)
        return "the id is in use with another payload";
    return NULL;
}

/* Only accepted requests get here: a refused one must not set the payload. */
void once_note_payload(struct record *record, const struct request *request)
{
    struct once *once = &record->once;
    if (record->kind == KIND_ONCE && once->payload[0] == '\0')
        once_copy_text(once->payload, sizeof once->payload, request->payload);
}

void once_remember(struct record *record, const char *by_request, uint64_t token,
                   const struct completion *completion)
{
    struct done *done = &record->once.done;
    if (record->kind != KIND_ONCE)
        return;
    memset(done, 0, sizeof *done);
    text_copy(done->request, sizeof done->request, by_request);
    done->token = token;
    if (completion == NULL)
        return;
    done->status = completion->status;
    once_copy_text(done->result, sizeof done->result, completion->result);
    once_copy_text(done->watermark, sizeof done->watermark, completion->watermark);
    once_copy_text(done->until, sizeof done->until, completion->until);
}

bool once_was_done(const struct record *record, uint64_t token)
{
    return record->kind == KIND_ONCE && record->once.done.token == token;
}

struct verdict once_mark(struct record *record, const struct request *request,
                         const struct view *view)
{
    struct verdict out = {.kind = VERDICT_DONE};
    rules_prune(record, NOBODY, view, &out);
    out.write = false;
    out.why = once_refuses(record, request, KIND_ONCE);
    if (out.why != NULL) {
        out.kind = VERDICT_MISMATCH;
    } else if (record->cooling.length_ms > 0) { /* perhaps by this mark (rule 9) */
        bool own = strcmp(record->once.done.request, request->request) == 0;
        bool another =
            own && !request->any_holder && strcmp(record->cooling.by, request->holder) != 0;
        out.kind = another ? VERDICT_MISMATCH : own ? VERDICT_DONE : VERDICT_COOLING;
        out.why = another ? request_id_used : NULL;
    } else if (record->grant_count > 0 || record->delay.length_ms > 0) {
        out.kind = VERDICT_BUSY;
    } else {
        rules_cool(record, request->holder, request->cooldown_ms, view);
        once_note_payload(record, request);
        once_remember(record, request->request, /* token= */ 0, request->completion);
        out.write = true;
    }
    return out;
}

static int64_t once_longer_of(int64_t a_ms, int64_t b_ms)
{
    return a_ms > b_ms ? a_ms : b_ms;
}

/* A live waiter takes the key over within a day of its last holder's end. */
int64_t record_blocks_ms(const struct record *record)
{
    int64_t blocks_ms = once_longer_of(record->cooling.length_ms, record->delay.length_ms);
    for (size_t i = 0; i < record->grant_count; i++) {
        const struct grant *grant = &record->grants[i];
        blocks_ms = once_longer_of(blocks_ms, grant->ttl_ms + grant->lock_delay_ms);
    }
    return record->waiter_count > 0 ? blocks_ms + TTL_MAX_MS : blocks_ms;
}

/*
 * Locks in use are left to their clients, which also detect dead processes. Ids are too many for
 * that.
 */
int64_t record_retention_ms(const struct record *record)
{
    bool in_use = record->grant_count > 0 || record->waiter_count > 0;
    if ((in_use && record->kind != KIND_ONCE) || record->kind == KIND_WATERMARK)
        return 0;
    return record_blocks_ms(record);
}

bool record_awaits_watermark(const struct record *record)
{
    return record->kind == KIND_ONCE && record->once.done.watermark[0] != '\0' &&
           !MUTANT(RETENTION_BY_TIME);
}
