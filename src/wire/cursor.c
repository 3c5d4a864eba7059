/* SPDX-License-Identifier: Apache-2.0 */
/* The strict reader; see cursor.h. Independent of the record format. */
#include "wire/cursor.h"

#include "base/text.h"

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

/* The value of a digit, or `base` if it is not a digit. */
static unsigned digit_value(char digit, unsigned base)
{
    if (digit >= '0' && digit <= '9')
        return (unsigned)(digit - '0');
    if (base == 16 && digit >= 'a' && digit <= 'f')
        return (unsigned)(digit - 'a') + 10;
    return base;
}

/* The number of digits at `at`, at most DIGITS_MAX; 0 also if they are padded with a zero. */
static size_t cursor_read_digits(const struct cursor *cursor, size_t at, unsigned base,
                                 uint64_t *out)
{
    uint64_t number = 0;
    size_t digits = 0;
    for (; digits < DIGITS_MAX && at + digits < cursor->length; digits++) {
        unsigned value = digit_value(cursor->bytes[at + digits], base);
        if (value == base)
            break;
        number = number * base + value;
    }
    *out = number;
    return digits > 1 && cursor->bytes[at] == '0' ? 0 : digits;
}

bool cursor_number(struct cursor *cursor, uint64_t least, uint64_t most, const char *what,
                   uint64_t *out)
{
    uint64_t number;
    size_t digits = cursor_read_digits(cursor, cursor->at, /* base= */ 10, &number);
    if (digits == 0 || number < least || number > most)
        return cursor_refuse(cursor, what);
    cursor->at += digits;
    *out = number;
    return true;
}

bool cursor_hex(struct cursor *cursor, const char *what, uint64_t *out)
{
    uint64_t number = 0;
    size_t start = cursor->at, digits = 0;
    if (cursor_take(cursor, "\""))
        digits = cursor_read_digits(cursor, cursor->at, /* base= */ 16, &number);
    cursor->at += digits;
    if (digits == 0 || !cursor_take(cursor, "\""))
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

/* Copies a quoted text without its escapes; false if it is malformed or too long. */
static bool unquote(const struct cursor *cursor, size_t *at, size_t most, char *out,
                    size_t *out_length)
{
    const char *bytes = cursor->bytes;
    size_t length = 0;
    for (; *at < cursor->length && bytes[*at] != '"'; (*at)++) {
        if (bytes[*at] == '\\' && (++*at == cursor->length || !is_escaped(bytes[*at])))
            return false;
        if (length == most)
            return false;
        out[length++] = bytes[*at];
    }
    *out_length = length;
    return *at < cursor->length;
}

/* The same for text without escapes, the usual case. */
static bool unquote_plain(const struct cursor *cursor, size_t *at, size_t most, char *out,
                          size_t *out_length)
{
    const char *from = cursor->bytes + *at;
    const char *quote = memchr(from, '"', cursor->length - *at);
    size_t length = quote != NULL ? (size_t)(quote - from) : 0;
    if (quote == NULL || length > most || memchr(from, '\\', length) != NULL)
        return false;
    memcpy(out, from, length);
    *at += length;
    *out_length = length;
    return true;
}

bool cursor_string(struct cursor *cursor, size_t least, size_t most, const char *what, char *out)
{
    size_t at = cursor->at, length;
    if (at == cursor->length || cursor->bytes[at++] != '"')
        return cursor_refuse(cursor, what);
    if (!unquote_plain(cursor, &at, most, out, &length) &&
        !unquote(cursor, &at, most, out, &length))
        return cursor_refuse(cursor, what);
    if (length < least || !text_is_clean(out, length))
        return cursor_refuse(cursor, what);
    out[length] = '\0';
    cursor->at = at + 1;
    return true;
}
