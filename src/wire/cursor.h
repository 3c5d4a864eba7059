/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strict reader of the JSON that we write ourselves: one way to write each thing, every other way
 * refused. No white space, no padded number, no escape but \" and \\, no text that is not clean.
 * Not a JSON parser: the caller knows what comes next and says so. Bytes need no NUL at their end.
 *
 * Every reader moves the cursor only when it succeeds, and on refusal says what was expected there.
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
    const char *expected; /* NULL until something was refused */
};

/* Both return false, for the caller to return in turn. */
bool cursor_refuse(struct cursor *cursor, const char *expected);
bool cursor_refuse_at(struct cursor *cursor, size_t at, const char *expected);

/* Moves behind the literal if it stands here. Its absence is no error. Inline: with the literal's
 * length known it is a few comparisons, and records are little else. */
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
/* 64 bits as small hex digits in quotes: as a number it would lose digits above 2^53. */
bool cursor_hex(struct cursor *cursor, const char *what, uint64_t *out);
/* Quoted clean text of `least` to `most` bytes; `out` has room for `most` and the NUL. */
bool cursor_string(struct cursor *cursor, size_t least, size_t most, const char *what, char *out);

#endif
