/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a JSON object whose values are strings, as people and programs write it: white space and
 * all escapes are allowed. Not for records, which have a canonical form (cursor.h). Pure.
 */
#ifndef LEASEHOLD_WIRE_JSON_PAIRS_H
#define LEASEHOLD_WIRE_JSON_PAIRS_H

#include <stdbool.h>
#include <stddef.h>

struct json_pair {
    const char *name, *value; /* NUL-terminated, in the caller's memory */
};

/* At most `most` pairs, with their strings in `memory`. False if it is anything else, too much, or
 * contains U+0000 or half a surrogate pair; the outputs are undefined then. */
bool json_pairs_parse(const char *json, struct json_pair *out, size_t most, char *memory,
                      size_t size, size_t *out_count);

#endif
