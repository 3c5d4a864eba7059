/* SPDX-License-Identifier: Apache-2.0 */
/* See json_text.h. */
#include "wire/json_text.h"

#include <string.h>

/* A comma, unless this is the first member. */
static void json_separate(struct text *text)
{
    const char *last = text->bytes + text->length - (text->length > 0 ? 1 : 0);
    if (strchr("{[", *last) == NULL)
        text_add(text, ",");
}

static void json_escape_byte(struct text *text, unsigned char byte)
{
    static const char hex[] = "0123456789abcdef";
    static const char shorts[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (size_t i = 0; shorts[i] != '\0'; i += 2) {
        if ((unsigned char)shorts[i] == byte) {
            char pair[2] = {'\\', shorts[i + 1]};
            text_add_bytes(text, pair, sizeof pair);
            return;
        }
    }
    char code[6] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
    text_add_bytes(text, code, sizeof code);
}

void json_escape(struct text *text, const char *bytes, size_t length)
{
    for (const char *end = bytes + length; bytes < end;) {
        size_t step = text_utf8_length(bytes, (size_t)(end - bytes));
        unsigned char byte = (unsigned char)*bytes;
        if (step == 0)
            text_add(text, "\\ufffd");
        else if (step == 2 && byte == 0xc2 && (unsigned char)bytes[1] < 0xa0)
            json_escape_byte(text,
                             (unsigned char)bytes[1]); /* U+0080 to U+009F: terminals obey them */
        else if (byte < 0x20 || byte == 0x7f || byte == '"' || byte == '\\')
            json_escape_byte(text, byte);
        else
            text_add_bytes(text, bytes, step);
        bytes += step > 0 ? step : 1;
    }
}

static void json_add_quoted(struct text *text, const char *string)
{
    text_add(text, "\"");
    json_escape(text, string, strlen(string));
    text_add(text, "\"");
}

static void json_add_name(struct text *text, const char *name)
{
    json_separate(text);
    json_add_quoted(text, name);
    text_add(text, ":");
}

void json_begin(struct text *text)
{
    text_add(text, "{");
}

void json_end(struct text *text)
{
    text_add(text, "}");
}

void json_reopen(struct text *text)
{
    if (text->length > 0 && !text->cut)
        text->bytes[--text->length] = '\0';
}

void json_add_null(struct text *text, const char *name)
{
    json_add_name(text, name);
    text_add(text, "null");
}

void json_add_string(struct text *text, const char *name, const char *value)
{
    if (value == NULL) {
        json_add_null(text, name);
        return;
    }
    json_add_name(text, name);
    json_add_quoted(text, value);
}

void json_add_number(struct text *text, const char *name, int64_t value)
{
    json_add_name(text, name);
    text_add_i64(text, value);
}

void json_add_length(struct text *text, const char *name, int64_t value)
{
    if (value < 0)
        json_add_null(text, name);
    else
        json_add_number(text, name, value);
}

void json_add_token(struct text *text, const char *name, uint64_t token)
{
    if (token == 0) {
        json_add_null(text, name);
        return;
    }
    json_add_name(text, name);
    text_add(text, "\"");
    text_add_u64(text, token);
    text_add(text, "\"");
}

void json_add_bool(struct text *text, const char *name, bool value)
{
    json_add_name(text, name);
    text_add(text, value ? "true" : "false");
}

void json_add_object(struct text *text, const char *name)
{
    json_add_name(text, name);
    text_add(text, "{");
}

void json_add_list(struct text *text, const char *name)
{
    json_add_name(text, name);
    text_add(text, "[");
}

void json_end_list(struct text *text)
{
    text_add(text, "]");
}

void json_item_string(struct text *text, const char *value)
{
    json_separate(text);
    json_add_quoted(text, value);
}

void json_item_object(struct text *text)
{
    json_separate(text);
    text_add(text, "{");
}
