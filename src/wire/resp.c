/* SPDX-License-Identifier: Apache-2.0 */
/* See resp.h. read_item() serves both resp_feed() and resp_next(). */
#include "wire/resp.h"

#include "base/check.h"

#include <string.h>

enum { HEAD_WHOLE, HEAD_MORE, HEAD_BROKEN };

/* Decimal digits with an optional sign; false for anything else, or beyond 64 bits. */
static bool resp_read_number(const char *digits, size_t length, int64_t *out)
{
    bool negative = length > 0 && digits[0] == '-';
    size_t at = length > 0 && (negative || digits[0] == '+') ? 1 : 0;
    int64_t number = 0;
    if (at == length)
        return false;
    for (; at < length; at++) {
        int digit = digits[at] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, negative ? -digit : digit, &number))
            return false;
    }
    *out = number;
    return true;
}

/* The types whose line has a count of bytes or of items. */
static bool is_counted(char sign)
{
    return sign != '\0' && strchr("$!=*~>%|", sign) != NULL;
}

static bool fill_counted(char sign, int64_t count, struct resp_item *out)
{
    bool is_text = sign == '$' || sign == '!' || sign == '=';
    if (count == -1 && (sign == '$' || sign == '*')) {
        out->kind = RESP_NULL;
        return true;
    }
    if (count < 0 || count > INT32_MAX)
        return false;
    if (is_text) {
        out->kind = sign == '!' ? RESP_ERROR : RESP_TEXT;
        out->length = (size_t)count;
        return true;
    }
    bool pairs = sign == '%' || sign == '|';
    out->kind = sign == '>'   ? RESP_PUSH
                : sign == '|' ? RESP_ATTRIBUTE
                : pairs       ? RESP_MAP
                              : RESP_LIST;
    out->count = (size_t)count * (pairs ? 2 : 1);
    return true;
}

static bool fill_line(char sign, const char *line, size_t length, struct resp_item *out)
{
    switch (sign) {
    case '+':
    case ',':
    case '(':
        out->kind = RESP_TEXT;
        break;
    case '-':
        out->kind = RESP_ERROR;
        break;
    case ':':
        out->kind = RESP_NUMBER;
        return resp_read_number(line, length, &out->number);
    case '#':
        out->kind = RESP_NUMBER;
        out->number = length == 1 && line[0] == 't' ? 1 : 0;
        return length == 1 && (line[0] == 't' || line[0] == 'f');
    case '_':
        out->kind = RESP_NULL;
        return length == 0;
    default:
        return false;
    }
    out->text = line;
    out->length = length;
    return true;
}

/* Reads the start of a value, with the bytes of a text; `used` is its length. */
static int read_item(const char *bytes, size_t length, size_t bulk_max, struct resp_item *out,
                     size_t *used)
{
    const char *end = memchr(bytes, '\n', length < RESP_LINE_MAX ? length : RESP_LINE_MAX);
    int64_t count = 0;
    if (end == NULL)
        return length < RESP_LINE_MAX ? HEAD_MORE : HEAD_BROKEN;
    size_t line = (size_t)(end - bytes);
    if (line < 2 || bytes[line - 1] != '\r')
        return HEAD_BROKEN;
    *out = (struct resp_item){0};
    *used = line + 1;
    if (!is_counted(bytes[0]))
        return fill_line(bytes[0], bytes + 1, line - 2, out) ? HEAD_WHOLE : HEAD_BROKEN;
    if (!resp_read_number(bytes + 1, line - 2, &count) || !fill_counted(bytes[0], count, out))
        return HEAD_BROKEN;
    bool has_bytes = (out->kind == RESP_TEXT || out->kind == RESP_ERROR);
    if (!has_bytes)
        return HEAD_WHOLE;
    if (out->length > bulk_max)
        return HEAD_BROKEN;
    if (length - *used < out->length + 2)
        return HEAD_MORE;
    out->text = bytes + *used;
    *used += out->length + 2;
#ifndef LH_FUZZ_PLANT /* planted bug for the fuzzer: a text longer than its length */
    if (out->text[out->length] != '\r' || out->text[out->length + 1] != '\n')
        return HEAD_BROKEN;
#endif
    if (bytes[0] == '=') { /* "txt:" before a verbatim text */
        if (out->length < 4)
            return HEAD_BROKEN;
        out->text += 4;
        out->length -= 4;
    }
    return HEAD_WHOLE;
}

static enum resp_result resp_refuse(struct resp *resp, const char *wrong)
{
    resp->wrong = wrong;
    return RESP_BROKEN;
}

/* Counts the items still to come at each depth. False if the message is nested too deep. */
static bool count_item(struct resp *resp, const struct resp_item *item)
{
    if (resp->depth > 0 && item->kind != RESP_ATTRIBUTE)
        resp->left[resp->depth - 1]--;
    if (item->kind == RESP_ATTRIBUTE && resp->depth == 0) { /* its value follows */
        resp->left[resp->depth++] = 1;
    }
    if (item->count > 0) {
        if (resp->depth == RESP_DEPTH_MAX)
            return false;
        resp->left[resp->depth++] = item->count;
    }
    while (resp->depth > 0 && resp->left[resp->depth - 1] == 0)
        resp->depth--;
    return true;
}

enum resp_result resp_feed(struct resp *resp, const char *bytes, size_t length, size_t *out_length)
{
    do {
        struct resp_item item;
        size_t used = 0;
        if (resp->at >= length)
            return RESP_MORE;
        int head = read_item(bytes + resp->at, length - resp->at, resp->bulk_max, &item, &used);
        if (head == HEAD_MORE)
            return RESP_MORE;
        if (head == HEAD_BROKEN)
            return resp_refuse(resp, "the data is not RESP, or is too long");
        resp->at += used;
        if (++resp->items > resp->items_max || item.count > resp->items_max)
            return resp_refuse(resp, "the message has too many parts");
        if (!count_item(resp, &item))
            return resp_refuse(resp, "the message is nested too deep");
    } while (resp->depth > 0);
    *out_length = resp->at;
    resp->at = resp->items = 0;
    return RESP_WHOLE;
}

bool resp_next(struct resp_walk *walk, struct resp_item *out)
{
    size_t used = 0;
    if (walk->at >= walk->length)
        return false;
    int head = read_item(walk->bytes + walk->at, walk->length - walk->at, SIZE_MAX / 2, out, &used);
    ASSERT(head == HEAD_WHOLE); /* only whole messages are walked */
    walk->at += used;
    return true;
}

void resp_skip(struct resp_walk *walk, const struct resp_item *item)
{
    size_t left = item->count + (item->kind == RESP_ATTRIBUTE ? 1 : 0);
    struct resp_item nested;
    for (; left > 0 && resp_next(walk, &nested); left--)
        left += nested.count + (nested.kind == RESP_ATTRIBUTE ? 1 : 0);
}

bool resp_begins(const struct resp_item *item, const char *text)
{
    size_t length = strlen(text);
    return item->length >= length && length > 0 && memcmp(item->text, text, length) == 0;
}

bool resp_is(const struct resp_item *item, const char *text)
{
    return item->kind == RESP_TEXT && item->length == strlen(text) && resp_begins(item, text);
}

size_t resp_head(char kind, uint64_t number, char *out)
{
    size_t length = 2; /* the type and the last digit */
    for (uint64_t left = number; left > 9; left /= 10)
        length++;
    out[0] = kind;
    for (size_t at = length - 1; at > 0; at--, number /= 10)
        out[at] = (char)('0' + number % 10);
    out[length] = '\r';
    out[length + 1] = '\n';
    return length + 2;
}
