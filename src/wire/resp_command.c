/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See resp_command.h. Every call starts at the first byte, and skips the bytes of arguments: a
 * command of n arguments costs n steps however long they are. The first byte that decides is the
 * same for every chunking.
 */
#include "wire/resp_command.h"

#include "base/check.h"

struct command_reader {
    const char *at, *end;
    const char *wrong;
};

static enum resp_result command_refuse(struct command_reader *reader, const char *wrong)
{
    reader->wrong = wrong;
    return RESP_BROKEN;
}

/* Reads "\r\n". */
static enum resp_result command_read_line_end(struct command_reader *reader)
{
    size_t left = (size_t)(reader->end - reader->at);
    if (left > 0 && reader->at[0] != '\r')
        return command_refuse(reader, "Protocol error: expected CRLF");
#ifndef LH_FUZZ_PLANT /* planted bug for the fuzzer: any byte ends a line after CR */
    if (left > 1 && reader->at[1] != '\n')
        return command_refuse(reader, "Protocol error: expected LF after CR");
#endif
    if (left < 2)
        return RESP_MORE;
    reader->at += 2;
    return RESP_WHOLE;
}

struct command_number {
    char kind; /* '*' or '$' */
    size_t max;
    const char *wrong_kind, *malformed, *too_large;
};

/* Reads a type, a decimal number without sign and leading zeros, and the line end. */
static inline enum resp_result command_read_number(struct command_reader *reader,
                                                   const struct command_number *wanted, size_t *out)
{
    const char *at = reader->at, *end = reader->end;
    if (at == end)
        return RESP_MORE;
    if (*at != wanted->kind)
        return command_refuse(reader, wanted->wrong_kind);
    if (++at == end)
        return RESP_MORE;
    size_t digit = (size_t)(unsigned char)*at - '0', number = digit;
    if (digit > 9)
        return command_refuse(reader, wanted->malformed);
    for (at++;; at++) {
        if (number > wanted->max)
            return command_refuse(reader, wanted->too_large);
        if (at == end)
            return RESP_MORE;
        digit = (size_t)(unsigned char)*at - '0';
        if (digit > 9)
            break;
        if (number == 0) /* a leading zero */
            return command_refuse(reader, wanted->malformed);
        number = number * 10 + digit; /* cannot overflow: the limits are far below */
    }
    if (*at != '\r')
        return command_refuse(reader, wanted->malformed);
    reader->at = at;
    *out = number;
    return command_read_line_end(reader);
}

/* Reads one bulk string. `limit`: the most bytes of the command from here on. */
static inline enum resp_result command_read_bulk(struct command_reader *reader, size_t limit,
                                                 size_t bulk_max, struct resp_argument *out)
{
    static const char too_large[] = "Protocol error: the command is too long";
    const struct command_number wanted = {
        .kind = '$',
        .max = bulk_max,
        .wrong_kind = "Protocol error: expected '$', an argument as a bulk string",
        .malformed = "Protocol error: invalid bulk length",
        .too_large = "Protocol error: an argument is too long",
    };
    const char *start = reader->at;
    size_t length = 0;
    enum resp_result result = command_read_number(reader, &wanted, &length);
    if (result != RESP_WHOLE)
        return result;
    if ((size_t)(reader->at - start) + length + 2 > limit)
        return command_refuse(reader, too_large);
    if ((size_t)(reader->end - reader->at) < length)
        return RESP_MORE;
    *out = (struct resp_argument){.text = reader->at, .length = length};
    reader->at += length;
    return command_read_line_end(reader);
}

enum resp_result resp_command_feed(const char *bytes, size_t length,
                                   const struct resp_command_limits *limits,
                                   struct resp_command *out, size_t *out_length,
                                   const char **out_wrong)
{
    static const struct command_number wanted = {
        .kind = '*',
        .max = RESP_ARGS_MAX,
        .wrong_kind = "Protocol error: expected '*', a command as an array; inline commands are "
                      "not supported",
        .malformed = "Protocol error: invalid multibulk length",
        .too_large = "Protocol error: too many arguments",
    };
    struct command_reader reader = {.at = bytes, .end = bytes + length};
    size_t count = 0;
    ASSERT(limits->bulk_max <= INT32_MAX && limits->total_max <= INT32_MAX);
    bool empty_line = length > 0 && bytes[0] == '\r'; /* redis-cli --pipe sends one at its end */
    enum resp_result result =
        empty_line ? command_read_line_end(&reader) : command_read_number(&reader, &wanted, &count);
    for (size_t i = 0; i < count && result == RESP_WHOLE; i++) {
        size_t used = (size_t)(reader.at - bytes);
        size_t limit = limits->total_max > used ? limits->total_max - used : 0;
        result = command_read_bulk(&reader, limit, limits->bulk_max, &out->args[i]);
    }
    if (result == RESP_WHOLE) {
        out->count = count;
        *out_length = (size_t)(reader.at - bytes);
    } else if (result == RESP_BROKEN) {
        *out_wrong = reader.wrong;
    }
    return result;
}
