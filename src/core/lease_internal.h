/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files that make up the lease: lease.c, apply_verdict.c, lease_observe.c,
 * lease_states.c, lease_trace.c. */
#ifndef LEASEHOLD_CORE_LEASE_INTERNAL_H
#define LEASEHOLD_CORE_LEASE_INTERNAL_H

#include "core/lease.h"

bool lease_holds(const struct lease *lease);
bool lease_is_acquiring(const struct lease *lease);
enum verb lease_verb(const struct lease *lease);
void lease_send(struct lease *lease, enum action action, struct lease_output *out);
/* How long to pause before the next attempt, after so many that came to nothing. */
int64_t lease_pause_ms(struct lease *lease, uint32_t attempts);

void lease_move(struct lease *lease, enum lease_state to);

/* What is told when every grant came after its deadline. */
extern const char lease_late_text[];

/* Gives up: LEAVING, until the store has nothing of us any more. */
void lease_leave(struct lease *lease, enum outcome final, const char *why);
void lease_lose(struct lease *lease, const char *why, struct lease_output *out);
void lease_end(struct lease *lease, enum outcome outcome, const char *why,
               struct lease_output *out);
/* After trouble: nothing of it is in the store, and no retry is worth waiting for. */
bool lease_is_futile(const struct lease *lease, const struct event *event);
/* The verdict holds: nothing had to be written, or what had to be is written. */
void lease_apply_verdict(struct lease *lease, enum verdict_kind kind, struct record *record,
                         const struct view *view, struct lease_output *out);

/* What the observer knows of time; `seen`: the record was just seen in the store, not remembered.
 */
struct view lease_observe(struct lease *lease, struct record *record, const struct stamp *at,
                          bool seen);
/* We are next, and what blocked us has ended. */
bool lease_is_overdue(const struct lease *lease, struct record *record, const struct view *view);
int64_t lease_next_poll(struct lease *lease, struct record *record, const struct view *view);

void lease_trace(const struct lease *lease, enum lease_state from, const struct event *event,
                 const struct lease_output *out, struct text *trace);

#endif
