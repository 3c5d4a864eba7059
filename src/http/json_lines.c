/* SPDX-License-Identifier: Apache-2.0 */
/* See json_lines.h. */
#include "http/json_lines.h"

#include <string.h>

enum { PARSED_MAX = 32 << 20 };

/* An array of empty objects takes a hundred times as much memory as its text. */
static size_t json_parsed_size(const char *bytes, size_t length)
{
    enum { CONTAINER = 320, MEMBER = 96 };
    size_t size = length;
    bool in_text = false;
    for (size_t i = 0; i < length; i++) {
        if (in_text && bytes[i] == '\\')
            i++;
        else if (bytes[i] == '"')
            in_text = !in_text;
        else if (!in_text && (bytes[i] == '{' || bytes[i] == '['))
            size += CONTAINER;
        else if (!in_text && bytes[i] == ',')
            size += MEMBER;
    }
    return size;
}

json_t *json_parse(const char *bytes, size_t length, size_t *out_size)
{
    *out_size = json_parsed_size(bytes, length);
    return *out_size <= PARSED_MAX ? json_loadb(bytes, length, JSON_ALLOW_NUL, NULL) : NULL;
}

size_t json_lines_read(const char *bytes, size_t length, json_line *line, void *owner)
{
    size_t used = 0, size;
    const char *end;
    while ((end = memchr(bytes + used, '\n', length - used)) != NULL) {
        const char *begin = bytes + used;
        size_t line_length = (size_t)(end - begin);
        used += line_length + 1;
        if (line_length == 0 || (line_length == 1 && *begin == '\r'))
            continue;
        json_t *value = json_parse(begin, line_length, &size);
        bool more = line(owner, value, size);
        json_decref(value);
        if (!more)
            return length;
    }
    return used;
}
