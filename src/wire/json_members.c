/* SPDX-License-Identifier: Apache-2.0 */
/* See json_members.h. */
#include "wire/json_members.h"

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

/* ---- values ---- */

enum { JSON_DEPTH_MAX = 8 };

static bool json_reader_digits(struct json_reader *reader)
{
    const char *start = reader->at;
    while (*reader->at >= '0' && *reader->at <= '9')
        reader->at++;
    return reader->at > start;
}

static bool json_reader_number(struct json_reader *reader)
{
    if (*reader->at == '-')
        reader->at++;
    const char *start = reader->at;
    if (!json_reader_digits(reader) || (*start == '0' && reader->at > start + 1))
        return false;
    if (*reader->at == '.') {
        reader->at++;
        if (!json_reader_digits(reader))
            return false;
    }
    if (*reader->at != 'e' && *reader->at != 'E')
        return true;
    reader->at++;
    if (*reader->at == '+' || *reader->at == '-')
        reader->at++;
    return json_reader_digits(reader);
}

static bool json_reader_word(struct json_reader *reader, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(reader->at, word, length) != 0)
        return false;
    reader->at += length;
    return true;
}

/* A value that has no values in it; strings are decoded. */
static bool json_reader_skip_plain(struct json_reader *reader, enum json_kind *out_kind)
{
    switch (*reader->at) {
    case '"':
        *out_kind = JSON_STRING;
        return json_reader_string(reader) != NULL;
    case 't':
    case 'f':
        *out_kind = JSON_BOOL;
        return json_reader_word(reader, *reader->at == 't' ? "true" : "false");
    case 'n':
        *out_kind = JSON_NULL;
        return json_reader_word(reader, "null");
    default:
        *out_kind = JSON_NUMBER;
        return json_reader_number(reader);
    }
}

/* Strings that it skips are decoded into the memory, which the caller restores. */
static bool json_reader_skip_value(struct json_reader *reader, enum json_kind *out_kind)
{
    char ends[JSON_DEPTH_MAX]; /* of the objects and lists around */
    unsigned depth = 0;
    bool first = true;
    do {
        enum json_kind kind = JSON_NULL;
        if (depth > 0 && ends[depth - 1] == '}' &&
            (json_reader_string(reader) == NULL || !json_reader_take(reader, ':')))
            return false;
        json_reader_skip(reader);
        bool object = *reader->at == '{', list = *reader->at == '[', filled = false;
        if (object || list) {
            char end = object ? '}' : ']';
            kind = object ? JSON_OBJECT : JSON_LIST;
            reader->at++;
            if (depth == JSON_DEPTH_MAX)
                return false;
            filled = !json_reader_take(reader, end);
            if (filled)
                ends[depth++] = end;
        } else if (!json_reader_skip_plain(reader, &kind)) {
            return false;
        }
        if (first)
            *out_kind = kind;
        first = false;
        while (!filled && depth > 0 && !json_reader_take(reader, ',')) {
            if (!json_reader_take(reader, ends[--depth]))
                return false;
        }
    } while (depth > 0);
    return true;
}

static bool json_reader_value(struct json_reader *reader, struct json_member *out)
{
    json_reader_skip(reader);
    struct json_reader before = *reader;
    if (!json_reader_skip_value(reader, &out->kind))
        return false;
    out->value = before.memory;
    if (out->kind == JSON_STRING)
        return true;
    size_t length = (size_t)(reader->at - before.at);
    reader->memory = before.memory;
    reader->left = before.left;
    if (length >= reader->left)
        return false;
    memcpy(reader->memory, before.at, length);
    reader->memory[length] = '\0';
    reader->memory += length + 1;
    reader->left -= length + 1;
    return true;
}

static bool json_reader_members(struct json_reader *reader, bool object, struct json_member *out,
                                size_t most, size_t *out_count)
{
    char end = object ? '}' : ']';
    size_t count = 0;
    if (!json_reader_take(reader, object ? '{' : '['))
        return false;
    if (!json_reader_take(reader, end)) {
        do {
            if (count == most)
                return false;
            out[count].name = object ? json_reader_string(reader) : NULL;
            if (object && (out[count].name == NULL || !json_reader_take(reader, ':')))
                return false;
            if (!json_reader_value(reader, &out[count]))
                return false;
            count++;
        } while (json_reader_take(reader, ','));
        if (!json_reader_take(reader, end))
            return false;
    }
    json_reader_skip(reader);
    *out_count = count;
    return *reader->at == '\0';
}

bool json_members_parse(const char *json, struct json_member *out, size_t most, char *memory,
                        size_t size, size_t *out_count)
{
    struct json_reader reader = {.at = json, .left = size};
    reader.memory = memory;
    return json_reader_members(&reader, /* object= */ true, out, most, out_count);
}

bool json_items_parse(const char *json, struct json_member *out, size_t most, char *memory,
                      size_t size, size_t *out_count)
{
    struct json_reader reader = {.at = json, .left = size};
    reader.memory = memory;
    return json_reader_members(&reader, /* object= */ false, out, most, out_count);
}

bool json_members_are_strings(const struct json_member *members, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (members[i].kind != JSON_STRING)
            return false;
    }
    return true;
}
