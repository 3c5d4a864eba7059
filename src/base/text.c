/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded text; see text.h. No locale, no printf. */
#include "base/text.h"

#include "base/check.h"

#include <string.h>

void text_init(struct text *text, char *bytes, size_t size)
{
    ASSERT(size > 0);
    text->bytes = bytes;
    text->size = size;
    text_clear(text);
}

void text_clear(struct text *text)
{
    text->length = 0;
    text->cut = false;
    text->bytes[0] = '\0';
}

void text_add_cut(struct text *text, const char *bytes, size_t length)
{
    size_t room = text->size - 1 - text->length;
    ASSERT(length > room);
    memcpy(text->bytes + text->length, bytes, room);
    text->length += room;
    text->bytes[text->length] = '\0';
    text->cut = true;
}

void text_add_digits(struct text *text, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    text_add_bytes(text, digits + at, sizeof digits - at);
}

void text_add_i64(struct text *text, int64_t number)
{
    if (number < 0)
        text_add(text, "-");
    text_add_u64(text, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void text_add_hex(struct text *text, uint64_t number)
{
    char digits[16];
    size_t at = sizeof digits;
    do {
        digits[--at] = "0123456789abcdef"[number & 15];
        number >>= 4;
    } while (number > 0);
    text_add_bytes(text, digits + at, sizeof digits - at);
}

void text_add_all(struct text *text, const char *const *strings)
{
    for (; *strings != NULL; strings++)
        text_add(text, *strings);
}

size_t text_utf8_length(const char *bytes, size_t left)
{
    const unsigned char *at = (const unsigned char *)bytes;
    unsigned char first = at[0];
    size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (length == 0 || length > left || first > 0xf4)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((first == 0xe0 && at[1] < 0xa0) || (first == 0xed && at[1] > 0x9f) ||
        (first == 0xf0 && at[1] < 0x90) || (first == 0xf4 && at[1] > 0x8f))
        return 0;
    return length;
}

static bool is_printable8(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return (text_control_bits(word) & TEXT_TOPS) == 0;
}

bool text_is_plain(const char *bytes, size_t length)
{
    if (length >= sizeof(uint64_t)) {
        const char *last = bytes + length - sizeof(uint64_t);
        for (; bytes < last; bytes += sizeof(uint64_t))
            if (!text_is_plain8(bytes))
                return false;
        return text_is_plain8(last); /* again with bytes that were checked before */
    }
    for (size_t i = 0; i < length; i++)
        if (!text_is_plain1(bytes[i]))
            return false;
    return true;
}

/* The length of the character; 0 if it is malformed or a control character. */
static size_t clean_step(const char *bytes, size_t left)
{
    const unsigned char *at = (const unsigned char *)bytes;
    size_t step = text_utf8_length(bytes, left);
    bool control = at[0] < 0x20 || at[0] == 0x7f || (at[0] == 0xc2 && step == 2 && at[1] < 0xa0);
    return control ? 0 : step;
}

void text_add_clean(struct text *text, const char *bytes, size_t length)
{
    if (text == NULL)
        return;
    size_t before = text->length;
    text_add_bytes(text, bytes, length);
    text_clean(text->bytes + before, text->length - before);
}

bool text_is_clean(const char *bytes, size_t length)
{
    const char *end = bytes + length;
    bool long_enough = length >= sizeof(uint64_t);
    while (bytes < end) {
        size_t left = (size_t)(end - bytes);
        if (left >= sizeof(uint64_t) && is_printable8(bytes)) {
            bytes += sizeof(uint64_t);
            continue;
        }
        /* The tail can be checked together with bytes that were checked before. */
        if (long_enough && left < sizeof(uint64_t) && is_printable8(end - sizeof(uint64_t)))
            return true;
        size_t step = *bytes >= ' ' && *bytes <= '~' ? 1 : clean_step(bytes, left);
        if (step == 0)
            return false;
        bytes += step;
    }
    return true;
}

void text_clean(char *bytes, size_t length)
{
    if (text_is_clean(bytes, length)) /* the usual case, checked eight bytes at a time */
        return;
    for (size_t at = 0; at < length;) {
        size_t step = clean_step(bytes + at, length - at);
        if (step == 0) /* its continuation bytes are then malformed, too */
            bytes[at] = bytes[at] != '\0' && strchr("\t\n\r", bytes[at]) != NULL ? ' ' : '?';
        at += step > 0 ? step : 1;
    }
}

void text_add_brief(struct text *text, const char *string, size_t most)
{
    static const char more[] = "…";
    size_t length = strlen(string), room = text != NULL ? text->size - text->length - 1 : most;
    most = room < most ? room : most;
    if (length <= most || most < sizeof more) {
        text_add_bytes(text, string, length < most ? length : most);
        return;
    }
    size_t end = most - (sizeof more - 1), whole = end;
    while (whole > 0 && string[whole] != ' ')
        whole--;
    while (whole > 0 && strchr(" ,;:", string[whole - 1]) != NULL)
        whole--;
    /* A single word longer than the room: cut it at a character boundary. */
    while (whole == 0 && end > 0 && ((unsigned char)string[end] & 0xc0) == 0x80)
        end--;
    text_add_bytes(text, string, whole > 0 ? whole : end);
    text_add(text, more);
}

void text_copy(char *to, size_t size, const char *from)
{
    size_t length = strlen(from);
    ASSERT(length < size);
    memcpy(to, from, length + 1);
}
