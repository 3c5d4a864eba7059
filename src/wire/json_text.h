/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes one JSON object on one line into the caller's buffer. Always valid JSON if it fits:
 * invalid UTF-8 becomes U+FFFD, control characters are escaped. Only a writer, and not for records,
 * which have a canonical form (record_codec.h).
 */
#ifndef LEASEHOLD_WIRE_JSON_TEXT_H
#define LEASEHOLD_WIRE_JSON_TEXT_H

#include "base/text.h"

void json_begin(struct text *text);
void json_end(struct text *text);
/* Continues an object that was ended: more members follow, then json_end(). */
void json_reopen(struct text *text);

/* Each function adds a separating comma if needed. A NULL `value` is written as null. */
void json_add_string(struct text *text, const char *name, const char *value);
void json_add_number(struct text *text, const char *name, int64_t value);
/* A duration; a negative one means unknown and is written as null. */
void json_add_length(struct text *text, const char *name, int64_t value);
/* 64 bits as a string: a JSON number would lose digits above 2^53. 0 is written as null. */
void json_add_token(struct text *text, const char *name, uint64_t token);
void json_add_bool(struct text *text, const char *name, bool value);
void json_add_null(struct text *text, const char *name);
/* A nested object or array: add members, then call json_end() or json_end_list(). */
void json_add_object(struct text *text, const char *name);
void json_add_list(struct text *text, const char *name);
void json_end_list(struct text *text);
/* Members of a list; an object is ended by json_end(). */
void json_item_string(struct text *text, const char *value);
void json_item_object(struct text *text);

/* The inside of a string. */
void json_escape(struct text *text, const char *bytes, size_t length);

#endif
