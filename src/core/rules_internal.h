/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files that make up the rules: rules.c, once.c and watermark.c. */
#ifndef LEASEHOLD_CORE_RULES_INTERNAL_H
#define LEASEHOLD_CORE_RULES_INTERNAL_H

#include "core/rules.h"

enum { NOBODY = 0 }; /* as a session */

/* Takes out what time has ended. The next write carries it; nobody writes for this alone. */
void rules_prune(struct record *record, uint64_t own, const struct view *view, struct verdict *out);
/* The key cools from this write on, and sends all who wait home (rule 5). */
void rules_cool(struct record *record, const char *by, int64_t length_ms, const struct view *view);

/* once.c. NULL, or why the key cannot be used as that kind; a key that says nothing can. */
const char *once_refuses(struct record *record, const struct request *request,
                         enum record_kind kind);
/* Whoever comes in or waits says what the id is about, where nobody has said it. */
void once_note_payload(struct record *record, const struct request *request);
/* What is remembered, of a key that was just made to cool; nothing if it is no id. */
void once_remember(struct record *record, const char *by_request, uint64_t token,
                   const struct completion *completion);
/* Was it done with this token? Then doing it again is the same thing, its first answer lost. */
bool once_was_done(const struct record *record, uint64_t token);
struct verdict once_mark(struct record *record, const struct request *request,
                         const struct view *view);

/* watermark.c */
struct verdict watermark_advance(struct record *record, const struct request *request,
                                 const struct view *view);
struct verdict watermark_set(struct record *record, const struct request *request,
                             const struct view *view);

#endif
