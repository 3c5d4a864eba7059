/* SPDX-License-Identifier: Apache-2.0 */
/* See resp_reply.h. Each function reserves the room of its whole value before it writes. */
#include "wire/resp_reply.h"

#include "base/check.h"
#include "wire/resp.h"

#include <string.h>

void resp_reply_init(struct resp_reply *reply, char *bytes, size_t size, unsigned protocol)
{
    ASSERT(protocol == 2 || protocol == 3);
    *reply = (struct resp_reply){.size = size, .protocol = protocol};
    reply->bytes = bytes;
}

/* Where the value begins, or NULL if it does not fit. */
static char *reply_reserve(struct resp_reply *reply, size_t length)
{
    if (reply->overflow || length > reply->size - reply->length) {
        reply->overflow = true;
        return NULL;
    }
    char *at = reply->bytes + reply->length;
    reply->length += length;
    return at;
}

void resp_reply_raw(struct resp_reply *reply, const char *bytes, size_t length)
{
    char *at = reply_reserve(reply, length);
    if (at != NULL && length > 0)
        memcpy(at, bytes, length);
}

static void reply_head(struct resp_reply *reply, char kind, uint64_t number)
{
    char head[RESP_HEAD_MAX];
    resp_reply_raw(reply, head, resp_head(kind, number, head));
}

void resp_reply_map(struct resp_reply *reply, size_t pairs)
{
    if (reply->protocol == 3)
        reply_head(reply, '%', pairs);
    else
        reply_head(reply, '*', (uint64_t)pairs * 2);
}

void resp_reply_array(struct resp_reply *reply, size_t count)
{
    reply_head(reply, '*', count);
}

void resp_reply_push(struct resp_reply *reply, size_t count)
{
    reply_head(reply, reply->protocol == 3 ? '>' : '*', count);
}

static void reply_end_line(char *at)
{
    at[0] = '\r';
    at[1] = '\n';
}

void resp_reply_long(struct resp_reply *reply, const char *bytes, size_t length)
{
    char head[RESP_HEAD_MAX];
    size_t head_length = resp_head('$', length, head);
    char *at = length < SIZE_MAX / 2 ? reply_reserve(reply, head_length + length + 2) : NULL;
    if (at == NULL) {
        reply->overflow = true;
        return;
    }
    memcpy(at, head, head_length);
    at += head_length;
    if (length > 0)
        memcpy(at, bytes, length);
    reply_end_line(at + length);
}

void resp_reply_number(struct resp_reply *reply, int64_t number)
{
    char head[RESP_HEAD_MAX + 1];
    if (number >= 0) {
        reply_head(reply, ':', (uint64_t)number);
        return;
    }
    /* resp_head() writes no sign: the '-' stands in place of the type, behind it. */
    size_t length = resp_head('-', 0 - (uint64_t)number, head + 1);
    head[0] = ':';
    resp_reply_raw(reply, head, length + 1);
}

void resp_reply_bool(struct resp_reply *reply, bool value)
{
    if (reply->protocol == 3)
        resp_reply_raw(reply, value ? "#t\r\n" : "#f\r\n", 4);
    else
        reply_head(reply, ':', value ? 1 : 0);
}

void resp_reply_null(struct resp_reply *reply)
{
    if (reply->protocol == 3)
        resp_reply_raw(reply, "_\r\n", 3);
    else
        resp_reply_raw(reply, "$-1\r\n", 5);
}

static char *reply_copy_line(char *to, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char byte = text[i];
        if ((unsigned char)byte < ' ' || byte == 0x7f)
            byte = ' ';
        to[i] = byte;
    }
    return to + length;
}

void resp_reply_simple(struct resp_reply *reply, const char *text)
{
    size_t length = strlen(text);
    char *at = reply_reserve(reply, length + 3);
    if (at == NULL)
        return;
    *at = '+';
    at = reply_copy_line(at + 1, text, length);
    reply_end_line(at);
}

void resp_reply_error(struct resp_reply *reply, const char *code, const char *text)
{
    size_t code_length = strlen(code), text_length = strlen(text);
    char *at = reply_reserve(reply, code_length + text_length + 4);
    if (at == NULL)
        return;
    *at = '-';
    at = reply_copy_line(at + 1, code, code_length);
    *at = ' ';
    at = reply_copy_line(at + 1, text, text_length);
    reply_end_line(at);
}
