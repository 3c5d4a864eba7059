/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes one JSON object for programs, on one line, in the caller's buffer. Always valid JSON as
 * long as it fits: what is no UTF-8 becomes U+FFFD, control characters are escaped. Only a writer,
 * and not for records, which have one way to be written (record_codec.h).
 */
#ifndef LEASEHOLD_WIRE_JSON_TEXT_H
#define LEASEHOLD_WIRE_JSON_TEXT_H

#include "base/text.h"

void json_begin(struct text *text);
void json_end(struct text *text);

/* Each adds a comma first where one is needed. `value` may be NULL: null. */
void json_add_string(struct text *text, const char *name, const char *value);
void json_add_number(struct text *text, const char *name, int64_t value);
/* A length of time, null when it is below 0: unknown. */
void json_add_length(struct text *text, const char *name, int64_t value);
/* 64 bits as text: as a number it would lose digits above 2^53. 0 is null. */
void json_add_token(struct text *text, const char *name, uint64_t token);
void json_add_bool(struct text *text, const char *name, bool value);
void json_add_null(struct text *text, const char *name);
/* An object or an array inside: add members, then json_end() or json_end_list(). */
void json_add_object(struct text *text, const char *name);
void json_add_list(struct text *text, const char *name);
void json_end_list(struct text *text);
/* A member of a list. */
void json_item_string(struct text *text, const char *value);

#endif
