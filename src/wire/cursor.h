/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strict reader of the JSON that leasehold writes: it accepts one canonical form and refuses
 * every other. No white space, no padded number, no escape but \" and \\, no text that is not
 * clean. Not a JSON parser: the caller states what comes next. The bytes need no NUL at their end.
 *
 * Every reader moves the cursor only if it succeeds. On refusal it records what was expected there.
 */
#ifndef LEASEHOLD_WIRE_CURSOR_H
#define LEASEHOLD_WIRE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
    const char *bytes;
    size_t length;
    size_t at;
    const char *expected; /* NULL until a reader has refused */
};

/* Both return false, for the caller to return in turn. */
bool cursor_refuse(struct cursor *cursor, const char *expected);
bool cursor_refuse_at(struct cursor *cursor, size_t at, const char *expected);

/* Skips the literal if it is next; its absence is no error. Inline: with a known length this is a
 * few comparisons, and decoding a record does little else. */
static inline bool cursor_take(struct cursor *cursor, const char *literal)
{
    size_t length = strlen(literal);
    if (cursor->length - cursor->at < length ||
        memcmp(cursor->bytes + cursor->at, literal, length) != 0)
        return false;
    cursor->at += length;
    return true;
}

static inline bool cursor_expect(struct cursor *cursor, const char *literal)
{
    return cursor_take(cursor, literal) || cursor_refuse(cursor, literal);
}

/* `most` is below 10^16. */
bool cursor_number(struct cursor *cursor, uint64_t least, uint64_t most, const char *what,
                   uint64_t *out);
/* 64 bits as lower-case hex digits in quotes: a JSON number would lose digits above 2^53. */
bool cursor_hex(struct cursor *cursor, const char *what, uint64_t *out);
/* Quoted clean text of `least` to `most` bytes; `out` has room for `most` bytes and the NUL. */
bool cursor_string(struct cursor *cursor, size_t least, size_t most, const char *what, char *out);

#endif
