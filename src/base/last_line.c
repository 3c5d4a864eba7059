/* SPDX-License-Identifier: Apache-2.0 */
/* See last_line.h. */
#include "base/last_line.h"

#include "base/text.h"

#include <string.h>

/* A bare carriage return begins a line anew, too: what shows progress ends with its last word. */
static bool ends_line(char byte)
{
    return byte == '\n' || byte == '\r';
}

void last_line_add(struct last_line *line, const char *bytes, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t end = at;
        while (end < length && !ends_line(bytes[end]))
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

/* The length of the character here that can stay as it is; 0: it cannot. */
static size_t clean_length(const char *bytes, size_t left)
{
    size_t length = text_sequence(bytes, left);
    return length > 0 && text_is_clean(bytes, length) ? length : 0;
}

void last_line_read(const struct last_line *line, char out[LAST_LINE_MOST + 1])
{
    size_t length = line->length, written = 0;
    bool cut = length == LAST_LINE_MOST;
    for (size_t at = 0; at < length;) {
        size_t step = clean_length(line->bytes + at, length - at);
        if (step == 0 && cut && length - at < 4 && (line->bytes[at] & 0xc0) == 0xc0)
            break; /* half a character, where the line was cut */
        if (step > 0)
            memcpy(out + written, line->bytes + at, step);
        else
            out[written] = line->bytes[at] == '\t' ? ' ' : '?';
        written += step > 0 ? step : 1;
        at += step > 0 ? step : 1;
    }
    out[written] = '\0';
}
