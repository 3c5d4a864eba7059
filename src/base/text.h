/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds text in the caller's buffer: bounded, always NUL-terminated, never allocating. Text that
 * does not fit is truncated and sets `cut`. The text_add functions ignore a NULL text.
 */
#ifndef LEASEHOLD_BASE_TEXT_H
#define LEASEHOLD_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct text {
    char *bytes;
    size_t size;
    size_t length;
    bool cut;
};

void text_init(struct text *text, char *bytes, size_t size);
void text_clear(struct text *text);
/* The slow path of text_add_bytes(): the bytes do not fit. */
void text_add_cut(struct text *text, const char *bytes, size_t length);
void text_add_digits(struct text *text, uint64_t number);
void text_add_i64(struct text *text, int64_t number);
void text_add_hex(struct text *text, uint64_t number);

/* Inline, so that the compiler knows the length of a literal: encoding a record adds some forty
 * pieces. */
static inline void text_add_bytes(struct text *text, const char *bytes, size_t length)
{
    if (text == NULL || length == 0) /* `bytes` may be NULL then */
        return;
    if (length >= text->size - text->length) {
        text_add_cut(text, bytes, length);
        return;
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

static inline void text_add(struct text *text, const char *string)
{
    text_add_bytes(text, string, strlen(string));
}

static inline void text_add_u64(struct text *text, uint64_t number)
{
    if (number < 10)
        text_add_bytes(text, &"0123456789"[number], 1);
    else
        text_add_digits(text, number);
}

/* Adds several strings: TEXT_JOIN(&text, path, ": ", why). */
#define TEXT_JOIN(text, ...) text_add_all((text), (const char *const[]){__VA_ARGS__, NULL})
void text_add_all(struct text *text, const char *const *strings); /* NULL after the last */

/* Adds at most `most` bytes; longer text ends after a whole word, with "…". */
void text_add_brief(struct text *text, const char *string, size_t most);

/* The length of the UTF-8 sequence at `bytes`, of which `left` > 0 bytes exist; 0 if it is
 * overlong, a surrogate or malformed. */
size_t text_utf8_length(const char *bytes, size_t left);

/* True for valid UTF-8 without control characters, as keys, holders, reasons and meta must be. */
bool text_is_clean(const char *bytes, size_t length);

/*
 * Plain is printable ASCII without " and \, as most text is: clean, and the same in JSON. Eight
 * bytes are checked at once: the top bit of each byte is the result. No sum carries out of an ASCII
 * byte, and a word with another byte is refused.
 */
bool text_is_plain(const char *bytes, size_t length);

#define TEXT_ONES ((uint64_t)0x0101010101010101)
#define TEXT_TOPS ((uint64_t)0x8080808080808080)

/* Top bits: the byte is below a space, 0x7f, or beyond ASCII. */
static inline uint64_t text_control_bits(uint64_t eight)
{
    return eight | (eight + TEXT_ONES) | ~(eight + TEXT_ONES * (0x80 - ' '));
}

static inline bool text_is_plain8(const char *at)
{
    uint64_t eight;
    memcpy(&eight, at, sizeof eight);
    uint64_t not_quote = (eight ^ TEXT_ONES * '"') + TEXT_ONES * 0x7f;
    uint64_t not_backslash = (eight ^ TEXT_ONES * '\\') + TEXT_ONES * 0x7f;
    return ((text_control_bits(eight) | ~(not_quote & not_backslash)) & TEXT_TOPS) == 0;
}

static inline bool text_is_plain1(char byte)
{
    return byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\';
}

/* In line: most keys differ from a prefix in their first byte. */
static inline bool text_begins(const char *string, const char *prefix)
{
    while (*prefix != '\0' && *string == *prefix) {
        string++;
        prefix++;
    }
    return *prefix == '\0';
}

/* Makes outside text safe to print, also on a terminal: tabs and line ends become spaces; each byte
 * of any other control character or of invalid UTF-8 becomes a question mark. */
void text_clean(char *bytes, size_t length);
/* Adds the text in that form. */
void text_add_clean(struct text *text, const char *bytes, size_t length);

/* Copies a C string that the caller has checked to fit; asserts that it does. */
void text_copy(char *to, size_t size, const char *from);

#endif
