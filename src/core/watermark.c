/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watermarks (rule 7): how far a source was read. A watermark moves only forward, and only from the
 * value that the client expects. An operator may set it to any value, with a reason. Pure.
 */
#include "core/rules_internal.h"

#include "base/text.h"
#include "core/mutant.h"

#include <string.h>

static void watermark_put(struct record *record, const struct request *request, enum order order,
                          const struct view *view)
{
    struct watermark *watermark = &record->watermark;
    record_set_kind(record, KIND_WATERMARK);
    watermark->order = order;
    text_copy(watermark->value, sizeof watermark->value, request->value);
    if (MUTANT(WATERMARK_TO_NOW)) {
        struct text text;
        text_init(&text, watermark->value, sizeof watermark->value);
        text_add_i64(&text, view->at.time_ms);
    }
    text_copy(watermark->by, sizeof watermark->by, request->holder);
    watermark->moved = (struct stamp){.revision = THIS_WRITE};
}

static struct verdict watermark_refuse(enum verdict_kind kind, const char *why)
{
    return (struct verdict){.kind = kind, .why = why};
}

static bool is_used_otherwise(struct record *record, const struct view *view)
{
    struct verdict ignored = {.kind = VERDICT_DONE};
    rules_prune(record, NOBODY, view, &ignored);
    return record_needed(record) && record->kind != KIND_WATERMARK;
}

static enum order order_wanted(const struct request *request)
{
    return request->order != ORDER_NONE ? request->order : order_of(request->value);
}

/* True if both are the same position; "" equals only "". */
static bool is_same_position(enum order order, const char *a, const char *b)
{
    if (a[0] == '\0' || b[0] == '\0')
        return a[0] == b[0];
    return order_fits(order, a) && order_fits(order, b) && order_compare(order, a, b) == 0;
}

/* True if this request, repeated after a lost reply, has already moved the watermark (rule 9). */
static bool is_own_move(const struct watermark *watermark, const struct request *request)
{
    return strcmp(watermark->request, request->request) == 0 &&
           is_same_position(watermark->order, watermark->from, request->expected) &&
           is_same_position(watermark->order, watermark->value, request->value);
}

static void watermark_move(struct record *record, const struct request *request, enum order order,
                           const struct view *view)
{
    struct watermark *watermark = &record->watermark;
    watermark_put(record, request, order, view);
    text_copy(watermark->request, sizeof watermark->request, request->request);
    text_copy(watermark->from, sizeof watermark->from, request->expected);
    record->reason[0] = '\0';
}

struct verdict watermark_advance(struct record *record, const struct request *request,
                                 const struct view *view)
{
    if (is_used_otherwise(record, view))
        return watermark_refuse(VERDICT_MISMATCH, "the key is in use as something else");
    bool exists = record->kind == KIND_WATERMARK;
    const struct watermark *watermark = &record->watermark;
    if (exists && is_own_move(watermark, request))
        return (struct verdict){.kind = VERDICT_DONE, .why = "this request has moved it already"};
    enum order order = exists ? watermark->order : order_wanted(request);
    const char *value = exists ? watermark->value : "";
    bool there = exists && is_same_position(order, value, request->value);
    if (MUTANT(ADVANCE_WITHOUT_MOVE) && there)
        return (struct verdict){.kind = VERDICT_DONE};
    if (!is_same_position(order, value, request->expected) && !MUTANT(WATERMARK_BY_ANYBODY))
        return watermark_refuse(VERDICT_STALE, "the watermark is not what was expected");
    bool same_order = request->order == ORDER_NONE || request->order == order;
    if (!same_order || !order_fits(order, request->value))
        return watermark_refuse(VERDICT_MISMATCH, "the value is not of the watermark's order");
    if (there) /* no write: the identity of the last move stays */
        return (struct verdict){.kind = VERDICT_DONE, .why = "it stands there already"};
    if (exists && order_compare(order, request->value, value) < 0 && !MUTANT(WATERMARK_BY_ANYBODY))
        return watermark_refuse(VERDICT_STALE, "a watermark only moves forward");
    watermark_move(record, request, order, view);
    return (struct verdict){.kind = VERDICT_DONE, .write = true};
}

struct verdict watermark_set(struct record *record, const struct request *request,
                             const struct view *view)
{
    if (is_used_otherwise(record, view))
        return watermark_refuse(VERDICT_MISMATCH, "the key is in use as something else");
    /* A set that is repeated after a lost reply must not undo a later move. */
    bool moved = record->kind == KIND_WATERMARK && request->up_to != 0 &&
                 stamp_order(&record->watermark.moved) > request->up_to;
    if (moved)
        return (struct verdict){.kind = VERDICT_DONE, .why = "it was moved meanwhile"};
    watermark_put(record, request, order_wanted(request), view);
    text_copy(record->reason, sizeof record->reason, request->reason);
    return (struct verdict){.kind = VERDICT_DONE, .write = true};
}

struct poll watermark_begin(const struct record *record, int64_t now_ms, int64_t overlap_ms)
{
    bool exists = record->kind == KIND_WATERMARK;
    int64_t before_ms = now_ms == TIME_UNKNOWN || MUTANT(OVERLAP_IGNORED) ? 0 : overlap_ms;
    return (struct poll){.from = exists ? record->watermark.value : "",
                         .start_ms = now_ms - before_ms};
}

bool watermark_has_passed(const struct record *watermark, const char *position)
{
    enum order order = watermark->watermark.order;
    if (watermark->kind != KIND_WATERMARK || !order_fits(order, position))
        return false;
    int ahead = order_compare(order, watermark->watermark.value, position);
    return ahead > 0 || (ahead == 0 && MUTANT(EQUAL_IS_PASSED));
}
