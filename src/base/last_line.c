/* SPDX-License-Identifier: Apache-2.0 */
/* See last_line.h. */
#include "base/last_line.h"

#include "base/text.h"

#include <string.h>

void last_line_add(struct last_line *line, const char *bytes, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t end = at;
        /* A bare carriage return also starts a new line, as progress displays use it. */
        while (end < length && bytes[end] != '\n' && bytes[end] != '\r')
            end++;
        if (line->ended && end > at) {
            line->length = 0;
            line->ended = false;
        }
        size_t room = LAST_LINE_MOST - line->length, part = end - at;
        if (part > 0)
            memcpy(line->bytes + line->length, bytes + at, part < room ? part : room);
        line->length += part < room ? part : room;
        line->ended = line->ended || (end < length && line->length > 0);
        at = end + 1;
    }
}

/* The length without a character that the truncation split. */
static size_t whole_length(const char *bytes, size_t length)
{
    for (size_t back = 1; back < 4 && back <= length; back++)
        if ((bytes[length - back] & 0xc0) == 0xc0)
            return text_utf8_length(bytes + length - back, back) > 0 ? length : length - back;
    return length;
}

void last_line_read(const struct last_line *line, char out[LAST_LINE_MOST + 1])
{
    size_t length = line->length;
    if (length == LAST_LINE_MOST)
        length = whole_length(line->bytes, length);
    memcpy(out, line->bytes, length);
    text_clean(out, length);
    out[length] = '\0';
}
