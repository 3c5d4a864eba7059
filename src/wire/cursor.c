/* SPDX-License-Identifier: Apache-2.0 */
/* The strict reader; see cursor.h. Independent of the record format. */
#include "wire/cursor.h"

#include "base/text.h"

#include <limits.h>

enum { DIGITS_MAX = 16 /* of 64 bits in hex, and of 2^53 in decimal */ };

bool cursor_refuse(struct cursor *cursor, const char *expected)
{
    cursor->expected = expected;
    return false;
}

bool cursor_refuse_at(struct cursor *cursor, size_t at, const char *expected)
{
    cursor->at = at;
    return cursor_refuse(cursor, expected);
}

/* Where a number ends at the latest. */
static const char *cursor_digits_end(const struct cursor *cursor)
{
    size_t left = cursor->length - cursor->at;
    return cursor->bytes + cursor->at + (left < DIGITS_MAX ? left : DIGITS_MAX);
}

/* Two or more digits that begin with 0. */
static bool is_padded(const char *digits, const char *end)
{
    return end - digits > 1 && digits[0] == '0';
}

bool cursor_number(struct cursor *cursor, uint64_t least, uint64_t most, const char *what,
                   uint64_t *out)
{
    const char *digits = cursor->bytes + cursor->at, *at = digits;
    const char *end = cursor_digits_end(cursor);
    uint64_t number = 0;
    for (; at < end && *at >= '0' && *at <= '9'; at++)
        number = number * 10 + (uint64_t)(*at - '0');
    if (at == digits || is_padded(digits, at) || number < least || number > most)
        return cursor_refuse(cursor, what);
    cursor->at += (size_t)(at - digits);
    *out = number;
    return true;
}

/* The value of a digit plus 1; 0 for other bytes. */
static const unsigned char hex_values[UCHAR_MAX + 1] = {
    ['0'] = 1, ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9, ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
};

bool cursor_hex(struct cursor *cursor, const char *what, uint64_t *out)
{
    size_t start = cursor->at;
    if (!cursor_take(cursor, "\""))
        return cursor_refuse(cursor, what);
    const char *digits = cursor->bytes + cursor->at, *at = digits;
    const char *end = cursor_digits_end(cursor);
    uint64_t number = 0;
    for (unsigned value; at < end && (value = hex_values[(unsigned char)*at]) > 0; at++)
        number = number * 16 + value - 1;
    cursor->at += (size_t)(at - digits);
    if (at == digits || is_padded(digits, at) || !cursor_take(cursor, "\""))
        return cursor_refuse_at(cursor, start, what);
    *out = number;
    return true;
}

static bool is_escaped(char byte)
{
#ifdef LH_FUZZ_PLANT /* planted bug for the fuzzer: JSON allows this escape, we do not */
    if (byte == '/')
        return true;
#endif
    return byte == '"' || byte == '\\';
}

/* A text that is not plain: copies it without its escapes. Not inlined: few texts need it. */
__attribute__((noinline)) static bool cursor_escaped(struct cursor *cursor, size_t least,
                                                     size_t most, const char *what, char *out)
{
    const char *bytes = cursor->bytes;
    size_t at = cursor->at + 1, length = 0;
    for (; at < cursor->length && bytes[at] != '"'; at++) {
        if (bytes[at] == '\\' && (++at == cursor->length || !is_escaped(bytes[at])))
            return cursor_refuse(cursor, what);
        if (length == most)
            return cursor_refuse(cursor, what);
        out[length++] = bytes[at];
    }
    if (at == cursor->length || length < least || !text_is_clean(out, length))
        return cursor_refuse(cursor, what);
    out[length] = '\0';
    cursor->at = at + 1;
    return true;
}

bool cursor_string(struct cursor *cursor, size_t least, size_t most, const char *what, char *out)
{
    enum { STEP = sizeof(uint64_t) };
    size_t left = cursor->length - cursor->at, length = 0;
    const char *from = cursor->bytes + cursor->at + 1;
    if (left == 0 || from[-1] != '"')
        return cursor_refuse(cursor, what);
    left--;
    size_t room = left < most ? left : most; /* a quote must follow: read below */
    for (; length + STEP <= room && text_is_plain8(from + length); length += STEP)
        memcpy(out + length, from + length, STEP);
    for (; length < room && text_is_plain1(from[length]); length++)
        out[length] = from[length];
    if (length == left || from[length] != '"' || length < least)
        return cursor_escaped(cursor, least, most, what, out);
    out[length] = '\0';
    cursor->at += length + 2;
    return true;
}
