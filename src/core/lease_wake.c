/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions that a write wakes once it has succeeded (rule 4). Decides nothing about records. */
#include "core/lease_internal.h"

#include "base/check.h"

#include <string.h>

/* One write wakes at most the whole queue, or all holders, a few offers and the next in line. */
static void lease_wake(struct lease_output *out, uint64_t session)
{
    ASSERT(out->wake_count < WAITERS_MAX);
    out->wake[out->wake_count++] = session;
}

/* As lease_wake(), before all sessions that get nothing. */
static void lease_wake_given(struct lease_output *out, uint64_t session)
{
    lease_wake(out, session);
    out->wake[out->wake_count - 1] = out->wake[out->given_count];
    out->wake[out->given_count++] = session;
}

/* Wakes the waiters that this write offers or grants the key to. */
static void wake_named(const struct lease *l, struct record *record, struct lease_output *out)
{
    const char *own = l->options->request.request;
    for (size_t i = 0; i < record->waiter_count; i++)
        if (record->waiters[i].offered && record->waiters[i].offer.revision == THIS_WRITE)
            lease_wake_given(out, record->waiters[i].session);
    for (size_t i = 0; i < record->grant_count; i++) {
        const struct grant *grant = &record->grants[i];
        bool other = own == NULL || strcmp(grant->request, own) != 0;
        if (other && grant->granted.revision == THIS_WRITE)
            lease_wake_given(out, grant->session);
    }
}

static bool has_new_grant(const struct record *record)
{
    for (size_t i = 0; i < record->grant_count; i++)
        if (record->grants[i].granted.revision == THIS_WRITE)
            return true;
    return false;
}

/*
 * With one clock a waiter becomes the first one without a message. It reads then: no acceptance
 * would offer it the rest of many offers, and the store watches the processes ahead of it, which
 * have changed if one left, or holds beside others.
 */
static void wake_first(const struct lease *l, enum verb verb, struct record *record,
                       struct lease_output *out)
{
    const struct waiter *next = queue_next(record);
    if (!l->options->facts->one_clock || next == NULL)
        return;
    bool beside = record->grant_count > 1 && has_new_grant(record);
    if (out->verdict.offered == OFFERS_MAX || verb == VERB_LEAVE || beside)
        lease_wake(out, next->session);
}

/* Wakes the next in line together with the waiters that get an offer: it takes over the offer of a
 * dead one. A write with the most offers wakes nobody else: its acceptances offer the rest. */
static void wake_spares(const struct lease *l, struct record *record, struct lease_output *out)
{
    const struct waiter *next = queue_next(record);
    if (l->options->facts->takeover_ms == 0 || out->verdict.offered == 0 ||
        out->verdict.offered == OFFERS_MAX || next == NULL)
        return;
    size_t before = out->wake_count;
    lease_wake(out, next->session);
    for (size_t i = 0; i < record->waiter_count && out->wake_count - before < SPARES_MAX; i++)
        if (!record->waiters[i].offered && &record->waiters[i] != next)
            lease_wake(out, record->waiters[i].session);
    out->spare_count = out->wake_count - before;
}

/* Wakes a sole holder whose wake-up carries the record: its release then needs no read. With a long
 * queue the wake-up carries no record and would be useless. */
static void wake_holder(const struct lease *l, const struct record *record,
                        struct lease_output *out)
{
    enum { NOTIFY_MAX = 32 };
    bool waits = out->verdict.kind == VERDICT_WAITING && record->grant_count == 1;
    if (l->options->facts->wakes_with_record && waits && record->waiter_count <= NOTIFY_MAX)
        lease_wake(out, record->grants[0].session);
}

void lease_wake_dismissed(const struct record *record, const struct request *request,
                          struct lease_output *out)
{
    bool cools = request->verb == VERB_MARK || request->verb == VERB_RELEASE;
    if (cools && request->cooldown_ms > 0)
        for (size_t i = 0; i < record->waiter_count; i++)
            lease_wake(out, record->waiters[i].session);
    if (request->verb == VERB_BREAK)
        for (size_t i = 0; i < record->grant_count; i++)
            lease_wake(out, record->grants[i].session);
}

void lease_wake_after(const struct lease *l, enum verb verb, struct record *record,
                      struct lease_output *out)
{
    wake_first(l, verb, record, out);
    wake_named(l, record, out);
    wake_holder(l, record, out);
    wake_spares(l, record, out);
}
