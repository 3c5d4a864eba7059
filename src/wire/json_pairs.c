/* SPDX-License-Identifier: Apache-2.0 */
/* See json_pairs.h. */
#include "wire/json_pairs.h"

#include <stdint.h>
#include <string.h>

struct json_reader {
    const char *at;
    char *memory;
    size_t left;
};

static void json_reader_skip(struct json_reader *reader)
{
    while (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\n' || *reader->at == '\r')
        reader->at++;
}

/* Skips white space, and the sign if it is next. */
static bool json_reader_take(struct json_reader *reader, char sign)
{
    json_reader_skip(reader);
    if (*reader->at != sign)
        return false;
    reader->at++;
    return true;
}

static bool json_reader_put(struct json_reader *reader, unsigned byte)
{
    if (reader->left == 0)
        return false;
    *reader->memory++ = (char)byte;
    reader->left--;
    return true;
}

static bool json_reader_hex(struct json_reader *reader, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++, reader->at++) {
        char digit = *reader->at;
        if (digit >= '0' && digit <= '9')
            *out = *out << 4 | (uint32_t)(digit - '0');
        else if ((digit | 0x20) >= 'a' && (digit | 0x20) <= 'f')
            *out = *out << 4 | (uint32_t)((digit | 0x20) - 'a' + 10);
        else
            return false;
    }
    return true;
}

static bool json_reader_put_utf8(struct json_reader *reader, uint32_t point)
{
    if (point < 0x80)
        return json_reader_put(reader, point);
    if (point < 0x800)
        return json_reader_put(reader, 0xc0 | point >> 6) &&
               json_reader_put(reader, 0x80 | (point & 0x3f));
    if (point < 0x10000)
        return json_reader_put(reader, 0xe0 | point >> 12) &&
               json_reader_put(reader, 0x80 | (point >> 6 & 0x3f)) &&
               json_reader_put(reader, 0x80 | (point & 0x3f));
    return json_reader_put(reader, 0xf0 | point >> 18) &&
           json_reader_put(reader, 0x80 | (point >> 12 & 0x3f)) &&
           json_reader_put(reader, 0x80 | (point >> 6 & 0x3f)) &&
           json_reader_put(reader, 0x80 | (point & 0x3f));
}

/* The reader is behind "\u". */
static bool json_reader_point(struct json_reader *reader)
{
    uint32_t point = 0, low = 0;
    if (!json_reader_hex(reader, &point) || point == 0 || (point >= 0xdc00 && point < 0xe000))
        return false;
    if (point >= 0xd800 && point < 0xdc00) {
        if (reader->at[0] != '\\' || reader->at[1] != 'u')
            return false;
        reader->at += 2;
        if (!json_reader_hex(reader, &low) || low < 0xdc00 || low >= 0xe000)
            return false;
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    }
    return json_reader_put_utf8(reader, point);
}

static bool json_reader_escape(struct json_reader *reader)
{
    static const char signs[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    char sign = *reader->at;
    if (sign == '\0')
        return false;
    reader->at++;
    if (sign == 'u')
        return json_reader_point(reader);
    const char *found = strchr(signs, sign);
    return found != NULL && json_reader_put(reader, (unsigned char)bytes[found - signs]);
}

static const char *json_reader_string(struct json_reader *reader)
{
    const char *start = reader->memory;
    if (!json_reader_take(reader, '"'))
        return NULL;
    while (*reader->at != '"') {
        unsigned char byte = (unsigned char)*reader->at;
        if (byte < ' ')
            return NULL;
        reader->at++;
        if (byte == '\\' ? !json_reader_escape(reader) : !json_reader_put(reader, byte))
            return NULL;
    }
    reader->at++;
    return json_reader_put(reader, '\0') ? start : NULL;
}

bool json_pairs_parse(const char *json, struct json_pair *out, size_t most, char *memory,
                      size_t size, size_t *out_count)
{
    struct json_reader reader = {.at = json, .left = size};
    size_t count = 0;
    reader.memory = memory;
    if (!json_reader_take(&reader, '{'))
        return false;
    if (!json_reader_take(&reader, '}')) {
        do {
            if (count == most || (out[count].name = json_reader_string(&reader)) == NULL ||
                !json_reader_take(&reader, ':') ||
                (out[count].value = json_reader_string(&reader)) == NULL)
                return false;
            count++;
        } while (json_reader_take(&reader, ','));
        if (!json_reader_take(&reader, '}'))
            return false;
    }
    json_reader_skip(&reader);
    *out_count = count;
    return *reader.at == '\0';
}
