/* SPDX-License-Identifier: Apache-2.0 */
/* Basic operations on records; see record.h. Decides nothing. */
#include "core/record.h"

#include "base/check.h"
#include "base/text.h"
#include "core/mutant.h"

#include <string.h>

/* Of a text the first byte suffices: a record is compared and encoded up to the NUL. */
static void span_clear(struct span *span)
{
    span->since = (struct stamp){0};
    span->length_ms = span->observed_ms = 0;
    span->by[0] = '\0';
    span->over = false;
}

void record_clear(struct record *record)
{
    record->limit = 0;
    record->next_ticket = 1;
    span_clear(&record->cooling);
    span_clear(&record->delay);
    record->reason[0] = '\0';
    record->kind = KIND_LOCK;
    record->grant_count = 0;
    record->waiter_count = 0;
}

void record_init(struct record *record, const char *key)
{
    text_copy(record->key, sizeof record->key, key);
    record_clear(record);
}

void record_set_kind(struct record *record, enum record_kind kind)
{
    record->kind = kind;
    if (kind == KIND_ONCE)
        memset(&record->once, 0, sizeof record->once);
    if (kind == KIND_WATERMARK)
        memset(&record->watermark, 0, sizeof record->watermark);
}

void record_end_cooling(struct record *record)
{
    memset(&record->cooling, 0, sizeof record->cooling);
    if (record->kind == KIND_ONCE)
        memset(&record->once.done, 0, sizeof record->once.done);
}

void record_copy(struct record *to, const struct record *from)
{
    memcpy(to, from, offsetof(struct record, grants));
    memcpy(to->grants, from->grants, from->grant_count * sizeof from->grants[0]);
    memcpy(to->waiters, from->waiters, from->waiter_count * sizeof from->waiters[0]);
    if (from->kind == KIND_ONCE)
        to->once = from->once;
    if (from->kind == KIND_WATERMARK)
        to->watermark = from->watermark;
}

static void resolve_stamp(struct stamp *stamp, const struct stamp *written)
{
    if (stamp->revision == THIS_WRITE)
        *stamp = *written;
}

void record_resolve(struct record *record, const struct stamp *written)
{
    ASSERT(written->revision != THIS_WRITE && written->revision <= REVISION_MAX);
    ASSERT(written->epoch <= EPOCH_MAX);
    ASSERT(written->time_ms == TIME_UNKNOWN || written->time_ms >= 0);
    for (size_t i = 0; i < record->grant_count; i++) {
        resolve_stamp(&record->grants[i].granted, written);
        resolve_stamp(&record->grants[i].renewed, written);
    }
    for (size_t i = 0; i < record->waiter_count; i++)
        if (record->waiters[i].offered)
            resolve_stamp(&record->waiters[i].offer, written);
    if (record->cooling.length_ms > 0)
        resolve_stamp(&record->cooling.since, written);
    if (record->delay.length_ms > 0)
        resolve_stamp(&record->delay.since, written);
    if (record->kind == KIND_WATERMARK)
        resolve_stamp(&record->watermark.moved, written);
}

bool record_needed(const struct record *record)
{
    return record->grant_count > 0 || record->waiter_count > 0 || record->cooling.length_ms > 0 ||
           record->delay.length_ms > 0 || record->kind == KIND_WATERMARK;
}

/* Quotes and backslashes take two bytes in the encoded form. */
static size_t quoted_length(const char *string)
{
    size_t length = strlen(string), escapes = 0;
    if (!text_is_plain(string, length))
        for (size_t i = 0; i < length; i++)
            escapes += string[i] == '"' || string[i] == '\\' ? 1 : 0;
    return length + escapes + 2;
}

/* Maximum encoded sizes, without the strings. */
enum {
    RECORD_FIXED_SIZE = 280,
    GRANT_FIXED_SIZE = 248,
    META_FIXED_SIZE = 16,
    WAITER_FIXED_SIZE = 188,
    OFFER_FIXED_SIZE = 48,
    ONCE_FIXED_SIZE = 128,
    WATERMARK_FIXED_SIZE = 128,
};

/* Additions that a record must have room for after its last waiter. */
_Static_assert(RECORD_RESERVE >=
                   GRANTS_MAX * (GRANT_FIXED_SIZE + META_FIXED_SIZE - WAITER_FIXED_SIZE) +
                       OFFERS_MAX * OFFER_FIXED_SIZE + 2 * REASON_MAX + 4 * HOLDER_MAX,
               "grants made from waiters, offers, a reason and two spans with a holder");

size_t meta_size_bound(const struct meta *meta)
{
    size_t size = META_FIXED_SIZE;
    for (size_t at = 0; at < meta->used; at += strlen(meta->text + at) + 1)
        size += quoted_length(meta->text + at) + 1;
    return size;
}

static size_t kind_size_bound(const struct record *record)
{
    const struct done *done = &record->once.done;
    const struct watermark *watermark = &record->watermark;
    if (record->kind == KIND_ONCE)
        return ONCE_FIXED_SIZE + quoted_length(record->once.payload) +
               quoted_length(done->request) + quoted_length(done->result) +
               quoted_length(done->watermark) + quoted_length(done->until);
    if (record->kind == KIND_WATERMARK)
        return WATERMARK_FIXED_SIZE + quoted_length(watermark->value) +
               quoted_length(watermark->by) + quoted_length(watermark->request) +
               quoted_length(watermark->from);
    return 0;
}

size_t record_size_bound(const struct record *record)
{
    size_t size = RECORD_FIXED_SIZE + quoted_length(record->key) + quoted_length(record->reason) +
                  quoted_length(record->cooling.by) + quoted_length(record->delay.by) +
                  kind_size_bound(record);
    for (size_t i = 0; i < record->grant_count; i++) {
        const struct grant *grant = &record->grants[i];
        size += GRANT_FIXED_SIZE + quoted_length(grant->holder) + quoted_length(grant->request) +
                meta_size_bound(&grant->meta);
    }
    for (size_t i = 0; i < record->waiter_count; i++) {
        const struct waiter *waiter = &record->waiters[i];
        size += WAITER_FIXED_SIZE + quoted_length(waiter->holder) + quoted_length(waiter->request) +
                (waiter->offered ? OFFER_FIXED_SIZE : 0);
    }
    return size;
}

bool record_fits(const struct record *record, size_t size)
{
    enum { TEXT = 2, QUOTES = 2 }; /* every byte escaped, and the quotes */
    enum {
        LOCK_MOST = RECORD_FIXED_SIZE + TEXT * (KEY_MAX + REASON_MAX + 2 * HOLDER_MAX) + 4 * QUOTES,
        ONCE_MOST = ONCE_FIXED_SIZE + 5 * QUOTES +
                    TEXT * (PAYLOAD_MAX + REQUEST_MAX + RESULT_MAX + KEY_MAX + POSITION_MAX),
        WATERMARK_MOST = WATERMARK_FIXED_SIZE + 4 * QUOTES +
                         TEXT * (POSITION_MAX + HOLDER_MAX + REQUEST_MAX + POSITION_MAX),
        WHO_MOST = TEXT * (HOLDER_MAX + REQUEST_MAX) + 2 * QUOTES,
        META_MOST = META_FIXED_SIZE + TEXT * META_MAX + 2 * META_PAIRS_MAX * (QUOTES + 1),
        GRANT_MOST = GRANT_FIXED_SIZE + WHO_MOST + META_MOST,
        WAITER_MOST = WAITER_FIXED_SIZE + WHO_MOST + OFFER_FIXED_SIZE,
    };
    size_t kind_most = (size_t)LOCK_MOST + ONCE_MOST + WATERMARK_MOST;
    size_t grants_most = (size_t)record->grant_count * GRANT_MOST;
    size_t waiters_most = (size_t)record->waiter_count * WAITER_MOST;
    return kind_most + grants_most + waiters_most <= size || record_size_bound(record) <= size;
}

static const char *record_grants_broken(const struct record *record)
{
    for (size_t i = 0; i < record->grant_count; i++) {
        const struct grant *grant = &record->grants[i];
        if ((grant->mode == MODE_SLOT) != (record->limit > 0))
            return "a slot without a limit, or a lock with one";
        if (grant->mode == MODE_EXCLUSIVE && record->grant_count > 1)
            return "an exclusive grant is not alone (rule 1)";
        for (size_t j = 0; j < i; j++)
            if (grant->n == record->grants[j].n &&
                grant->granted.revision == record->grants[j].granted.revision &&
                grant->granted.epoch == record->grants[j].granted.epoch)
                return "two grants share a token (rule 2)";
    }
    if (record->limit > 0 && record->grant_count + record_offers(record) > record->limit)
        return "more slots given or offered than the limit (rule 1)";
    return NULL;
}

static const char *record_waiters_broken(const struct record *record)
{
    bool writer_inside = record->grant_count > 0 && record->grants[0].mode == MODE_EXCLUSIVE;
    size_t offers = record_offers(record);
    for (size_t i = 0; i < record->waiter_count; i++) {
        const struct waiter *waiter = &record->waiters[i];
        if (waiter->ticket >= record->next_ticket)
            return "a ticket that was never issued";
        if (i > 0 && waiter->ticket <= record->waiters[i - 1].ticket)
            return "waiters are not in the order of their tickets";
        if ((waiter->mode == MODE_SLOT) != (record->limit > 0))
            return "a waiter for a semaphore without a limit, or for a lock with one";
        if (!waiter->offered)
            continue;
        if (writer_inside)
            return "an offer while a writer holds (rule 1)";
        if (waiter->mode == MODE_EXCLUSIVE && offers + record->grant_count > 1)
            return "an exclusive offer is not alone (rule 4)";
    }
    return offers > OFFERS_MAX ? "too many offers at once (rule 4)" : NULL;
}

/* A finished id must be in its cooldown. */
static const char *record_once_broken(const struct record *record)
{
    const struct done *done = &record->once.done;
    bool says = done->request[0] != '\0' || done->token != 0 || done->status != 0 ||
                done->result[0] != '\0' || done->watermark[0] != '\0';
    if (says && record->cooling.length_ms == 0)
        return "done without a retention (rule 6)";
    if ((done->watermark[0] == '\0') != (done->until[0] == '\0'))
        return "a watermark without a position, or a position without one";
    if (record->limit > 0)
        return "an id with a limit";
    for (size_t i = 0; i < record->grant_count; i++)
        if (record->grants[i].mode != MODE_EXCLUSIVE)
            return "a claim that is not exclusive (rule 6)";
    for (size_t i = 0; i < record->waiter_count; i++)
        if (record->waiters[i].mode != MODE_EXCLUSIVE)
            return "a waiter for a claim that is not exclusive (rule 6)";
    return NULL;
}

static const char *record_watermark_broken(const struct record *record)
{
    const struct watermark *watermark = &record->watermark;
    if (record->limit > 0 || record->grant_count > 0 || record->waiter_count > 0 ||
        record->cooling.length_ms > 0 || record->delay.length_ms > 0)
        return "a watermark that is held, awaited or blocked";
    bool came_fits = watermark->from[0] == '\0' || order_fits(watermark->order, watermark->from);
    if (watermark->value[0] == '\0' || !order_fits(watermark->order, watermark->value) ||
        !came_fits)
        return "a watermark whose value is not of its order (rule 7)";
    return NULL;
}

const char *record_broken(const struct record *record)
{
    const char *what = record_grants_broken(record);
    if (what == NULL)
        what = record_waiters_broken(record);
    if (what == NULL && record->kind == KIND_ONCE)
        what = record_once_broken(record);
    if (what == NULL && record->kind == KIND_WATERMARK)
        what = record_watermark_broken(record);
    bool blocked = record->cooling.length_ms > 0 || record->delay.length_ms > 0;
    if (what == NULL && blocked && record_offers(record) > 0)
        what = "an offer in a cooldown or lock-delay (rule 5)";
    return what;
}

uint64_t stamp_order(const struct stamp *stamp)
{
    return (uint64_t)stamp->epoch << 45 | stamp->revision;
}

struct stamp stamp_of_order(uint64_t order, int64_t time_ms)
{
    return (struct stamp){
        .revision = order & REVISION_MAX, .time_ms = time_ms, .epoch = (uint16_t)(order >> 45)};
}

uint64_t token_of(const struct stamp *granted, uint16_t n)
{
    if (granted->revision == THIS_WRITE)
        return 0;
    if (MUTANT(TOKEN_FROM_TIME))
        return ((uint64_t)granted->time_ms << 10) + n;
    return (stamp_order(granted) << 10) + n;
}

uint64_t grant_token(const struct grant *grant)
{
    return token_of(&grant->granted, grant->n);
}

int64_t waiter_since_ms(const struct waiter *waiter)
{
    bool timed = waiter->ticket >= TICKET_TIMED && waiter->ticket % TICKET_STEP == 0;
    return timed ? (int64_t)((waiter->ticket - TICKET_TIMED) / TICKET_STEP) : TIME_UNKNOWN;
}

void record_time_ticket(struct record *record, struct waiter *waiter, int64_t now_ms)
{
    ASSERT(waiter->ticket + 1 == record->next_ticket);
    const int64_t most_ms = (int64_t)((TICKET_MAX - TICKET_TIMED) / TICKET_STEP);
    if (now_ms < 0 || now_ms > most_ms) /* TIME_UNKNOWN is below 0 */
        return;
    uint64_t ticket = TICKET_TIMED + (uint64_t)now_ms * TICKET_STEP;
    if (ticket < waiter->ticket) /* an earlier waiter has this time or a later one */
        ticket = (waiter->ticket + TICKET_STEP - 1) / TICKET_STEP * TICKET_STEP;
    if (ticket >= TICKET_MAX)
        return;
    waiter->ticket = ticket;
    record->next_ticket = ticket + 1;
}

struct grant *record_grant_by_token(struct record *record, uint64_t token)
{
    for (size_t i = 0; i < record->grant_count; i++)
        if (grant_token(&record->grants[i]) == token)
            return &record->grants[i];
    return NULL;
}

struct grant *record_grant_by_request(struct record *record, const char *request)
{
    for (size_t i = 0; i < record->grant_count; i++)
        if (strcmp(record->grants[i].request, request) == 0)
            return &record->grants[i];
    return NULL;
}

struct waiter *record_waiter_by_request(struct record *record, const char *request)
{
    for (size_t i = 0; i < record->waiter_count; i++)
        if (strcmp(record->waiters[i].request, request) == 0)
            return &record->waiters[i];
    return NULL;
}

struct waiter *record_waiter_by_session(struct record *record, uint64_t session)
{
    for (size_t i = 0; i < record->waiter_count; i++)
        if (record->waiters[i].session == session)
            return &record->waiters[i];
    return NULL;
}

size_t record_offers(const struct record *record)
{
    size_t offers = 0;
    for (size_t i = 0; i < record->waiter_count; i++)
        offers += record->waiters[i].offered ? 1 : 0;
    return offers;
}

struct grant *record_add_grant(struct record *record)
{
    ASSERT(record->grant_count < GRANTS_MAX);
    struct grant *grant = &record->grants[record->grant_count++];
    memset(grant, 0, offsetof(struct grant, meta.text));
    return grant;
}

struct waiter *record_add_waiter(struct record *record)
{
    ASSERT(record->waiter_count < WAITERS_MAX);
    struct waiter *waiter = &record->waiters[record->waiter_count++];
    memset(waiter, 0, sizeof *waiter);
    waiter->ticket = record->next_ticket++;
    return waiter;
}

struct waiter *record_return_waiter(struct record *record, uint64_t ticket)
{
    size_t at = record->waiter_count;
    ASSERT(record->waiter_count < WAITERS_MAX && ticket < TICKET_MAX);
    while (at > 0 && record->waiters[at - 1].ticket > ticket)
        at--;
    if (at > 0 && record->waiters[at - 1].ticket == ticket)
        return NULL;
    struct waiter *waiter = &record->waiters[at];
    memmove(waiter + 1, waiter, (record->waiter_count - at) * sizeof *waiter);
    record->waiter_count++;
    memset(waiter, 0, sizeof *waiter);
    waiter->ticket = ticket;
    if (ticket >= record->next_ticket)
        record->next_ticket = ticket + 1;
    return waiter;
}

void record_remove_grant(struct record *record, struct grant *grant)
{
    size_t at = (size_t)(grant - record->grants);
    ASSERT(at < record->grant_count);
    record->grant_count--;
    memmove(grant, grant + 1, (record->grant_count - at) * sizeof *grant);
}

void record_remove_waiter(struct record *record, struct waiter *waiter)
{
    size_t at = (size_t)(waiter - record->waiters);
    ASSERT(at < record->waiter_count);
    record->waiter_count--;
    memmove(waiter, waiter + 1, (record->waiter_count - at) * sizeof *waiter);
}

static bool meta_has(const struct meta *meta, const char *name)
{
    const char *at = meta->text;
    for (size_t i = 0; i < meta->count; i++) {
        if (strcmp(at, name) == 0)
            return true;
        at += strlen(at) + 1;
        at += strlen(at) + 1;
    }
    return false;
}

bool meta_add(struct meta *meta, const char *name, const char *value)
{
    size_t name_length = strlen(name), value_length = strlen(value);
    size_t room = META_MAX - meta->used;
    bool clean = text_is_clean(name, name_length) && text_is_clean(value, value_length);
    bool fits = name_length + value_length + 2 <= room && meta->count < META_PAIRS_MAX;
    if (name_length == 0 || !clean || !fits || meta_has(meta, name))
        return false;
    memcpy(meta->text + meta->used, name, name_length + 1);
    memcpy(meta->text + meta->used + name_length + 1, value, value_length + 1);
    meta->used = (uint16_t)(meta->used + name_length + value_length + 2);
    meta->count++;
    return true;
}
