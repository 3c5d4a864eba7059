/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the rules: rules.c, once.c and watermark.c. */
#ifndef LEASEHOLD_CORE_RULES_INTERNAL_H
#define LEASEHOLD_CORE_RULES_INTERNAL_H

#include "core/rules.h"

enum { NOBODY = 0 }; /* as a session: none */

/* elapsed.c */
/* True if the length has passed since then; false for what this write begins. If the store's clock
 * is unknown, or was set back before that time, the client's own observation counts. */
bool span_has_passed(const struct stamp *since, int64_t length_ms, int64_t observed_ms,
                     const struct view *view);

extern const char request_id_used[]; /* a reason */

/* Removes expired entries; sets out->write if a grant or waiter was removed. */
void rules_prune(struct record *record, uint64_t own, const struct view *view, struct verdict *out);
/* Starts the cooldown with this write and removes all waiters (rule 5). */
void rules_cool(struct record *record, const char *by, int64_t length_ms, const struct view *view);

/* once.c. NULL, or why the key cannot be used as that kind; an empty record can. */
const char *once_refuses(struct record *record, const struct request *request,
                         enum record_kind kind);
/* Stores the payload's fingerprint if the id has none. */
void once_note_payload(struct record *record, const struct request *request);
/* Stores the result of an id whose cooldown was just started; ignores other kinds. */
void once_remember(struct record *record, const char *by_request, uint64_t token,
                   const struct completion *completion);
/* True if the id was finished with this token: a finish repeated after a lost reply succeeds. */
bool once_was_done(const struct record *record, uint64_t token);
struct verdict once_mark(struct record *record, const struct request *request,
                         const struct view *view);

/* watermark.c */
struct verdict watermark_advance(struct record *record, const struct request *request,
                                 const struct view *view);
struct verdict watermark_set(struct record *record, const struct request *request,
                             const struct view *view);

#endif
