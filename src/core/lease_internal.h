/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the lease: lease.c, apply_verdict.c, lease_observe.c, lease_states.c,
 * lease_trace.c, lease_wake.c. */
#ifndef LEASEHOLD_CORE_LEASE_INTERNAL_H
#define LEASEHOLD_CORE_LEASE_INTERNAL_H

#include "core/lease.h"

static inline bool lease_holds(const struct lease *l)
{
    return l->state == LEASE_HELD || l->state == LEASE_RENEWING;
}

static inline bool lease_is_acquiring(const struct lease *l)
{
    return l->state == LEASE_ACQUIRING || l->state == LEASE_WAITING || l->state == LEASE_OFFERED;
}

/* A renewal only reads: the session keeps its bound grants alive. */
static inline bool lease_renews_by_session(const struct lease *l)
{
    return l->options->facts->renews_by_session && l->options->request.bound && lease_holds(l);
}

enum verb lease_verb(const struct lease *lease);
void lease_send(struct lease *lease, enum action action, struct lease_output *out);
/* The pause before the next attempt, after `attempts` failed ones. */
int64_t lease_pause_ms(struct lease *lease, uint32_t attempts);

void lease_move(struct lease *lease, enum lease_state to);

/* The reason reported when grants arrive only after their deadline. */
extern const char lease_late_text[];

/* Gives up: LEAVING, until the store has no entry of this lease. */
void lease_leave(struct lease *lease, enum outcome final, const char *why);
void lease_lose(struct lease *lease, const char *why, struct lease_output *out);
void lease_end(struct lease *lease, enum outcome outcome, const char *why,
               struct lease_output *out);
/* After trouble: the store has no entry of this request, and no retry in time can succeed. */
bool lease_is_futile(const struct lease *lease, const struct event *event);
/* Applies a verdict that holds: no write was needed, or the write succeeded. */
void lease_apply_verdict(struct lease *lease, enum verdict_kind kind, struct record *record,
                         const struct view *view, struct lease_output *out);

/* Wakes the sessions that must stop: waiters when a cooldown begins, holders on a break. */
void lease_wake_dismissed(const struct record *record, const struct request *request,
                          struct lease_output *out);
/* Wakes those that the written record concerns. */
void lease_wake_after(const struct lease *lease, enum verb verb, struct record *record,
                      struct lease_output *out);

/* The client's view of time. `seen`: the record was just read from the store, not cached. */
struct view lease_observe(struct lease *lease, struct record *record, const struct stamp *at,
                          bool seen);
/* True if this lease is next and the blocking grant or lock-delay has ended. */
bool lease_is_overdue(const struct lease *lease, struct record *record, const struct view *view);
int64_t lease_next_poll(struct lease *lease, struct record *record, const struct view *view);

void lease_trace(const struct lease *lease, enum lease_state from, const struct event *event,
                 const struct lease_output *out, struct text *trace);

#endif
