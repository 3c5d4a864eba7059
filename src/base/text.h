/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text built in the caller's buffer: bounded, always ended by NUL, never allocating. What does not
 * fit is cut and remembered in `cut`. A NULL text swallows everything, so callers need no ifs.
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
/* The rare part of text_add_bytes(): more than there is room for. */
void text_add_cut(struct text *text, const char *bytes, size_t length);
void text_add_u64(struct text *text, uint64_t number);
void text_add_i64(struct text *text, int64_t number);
void text_add_hex(struct text *text, uint64_t number);

/* These two are here so that the length of a literal is known when it is compiled: a record is made
 * of some forty pieces. */
static inline void text_add_bytes(struct text *text, const char *bytes, size_t length)
{
    if (text == NULL || length == 0) /* of which there may be no bytes at all */
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

/* At most `most` bytes of them; longer words end behind a whole word, with "…". */
void text_add_brief(struct text *text, const char *string, size_t most);

/* The length of the UTF-8 sequence that begins here, with `left` bytes above 0; 0 when it is
 * overlong, a surrogate or broken. */
size_t text_utf8_length(const char *bytes, size_t left);

/* Valid UTF-8 without control characters: what keys, holders, reasons and meta must be. */
bool text_is_clean(const char *bytes, size_t length);

/* Text from outside as it may be shown, on a terminal too: tabs and line ends become spaces, each
 * byte of another control character, or of what is no UTF-8, a question mark. */
void text_clean(char *bytes, size_t length);
/* Adds it in that form. */
void text_add_clean(struct text *text, const char *bytes, size_t length);

/* Copies a C string that the caller has checked to fit; asserts that it does. */
void text_copy(char *to, size_t size, const char *from);

#endif
