/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a JSON object or list as people and programs write it: white space and all escapes are
 * allowed. Not for records, which have a canonical form (cursor.h). Pure.
 */
#ifndef LEASEHOLD_WIRE_JSON_MEMBERS_H
#define LEASEHOLD_WIRE_JSON_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>

enum json_kind { JSON_STRING, JSON_NUMBER, JSON_BOOL, JSON_NULL, JSON_OBJECT, JSON_LIST };

/* Texts are NUL-terminated, in the caller's memory. */
struct json_member {
    const char *name; /* NULL in a list */
    enum json_kind kind;
    const char *value; /* of a string its characters, of anything else its JSON text */
};

/* At most `most` members, with their texts in `memory`. A nested value has at most 8 levels. False
 * if it is anything else, too much, or contains U+0000 or half a surrogate pair; the outputs are
 * undefined then. */
bool json_members_parse(const char *json, struct json_member *out, size_t most, char *memory,
                        size_t size, size_t *out_count);
bool json_items_parse(const char *json, struct json_member *out, size_t most, char *memory,
                      size_t size, size_t *out_count);
/* True if every value is a string. */
bool json_members_are_strings(const struct json_member *members, size_t count);

#endif
