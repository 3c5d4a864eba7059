/* SPDX-License-Identifier: Apache-2.0 */
/* See redis_message.h. */
#include "wire/redis_message.h"

#include <string.h>

enum { DIGITS_MAX = 16 /* of a revision with its epoch, which ends below 2^53, or a time */ };

/* Reads digits and a space at `from`; returns the offset after them, 0 for anything else. */
static size_t take_number(const char *message, size_t length, size_t from, uint64_t *out)
{
    size_t at = from;
    uint64_t number = 0;
    for (; at < length && at - from < DIGITS_MAX && message[at] >= '0' && message[at] <= '9'; at++)
        number = number * 10 + (uint64_t)(message[at] - '0');
    if (at == from || at == length || message[at] != ' ')
        return 0;
    *out = number;
    return at + 1;
}

size_t redis_record_read(const char *message, size_t length, size_t from, struct stamp *out)
{
    uint64_t order = 0, time_ms = 0;
    size_t at = take_number(message, length, from, &order);
    at = at > 0 ? take_number(message, length, at, &time_ms) : 0;
    *out = stamp_of_order(order, (int64_t)time_ms);
    return at;
}

/* As in the script, the digits may be too many: then the record is unreadable, and not foreign. */
size_t redis_sole_read(const char *value, size_t length)
{
    static const char mark[] = "leasehold:";
    size_t at = sizeof mark - 1;
    if (length < at || memcmp(value, mark, at) != 0)
        return 0;
    for (unsigned i = 0; i < 2; i++) { /* revision and time */
        size_t from = at;
        while (at < length && value[at] >= '0' && value[at] <= '9')
            at++;
        if (at == from || at == length || value[at++] != ' ')
            return 0;
    }
    return sizeof mark - 1;
}

bool redis_change_read(const char *message, size_t length, uint64_t *out_revision, size_t *out_name)
{
    size_t name = take_number(message, length, /* from= */ 0, out_revision);
    *out_name = name;
    return name > 0;
}

struct redis_notice redis_notice_read(const char *message, size_t length)
{
    const char *end = length > 0 ? memchr(message, '\n', length) : NULL;
    struct redis_notice notify = {.name_length = end != NULL ? (size_t)(end - message) : length};
    size_t from = notify.name_length + 1;
    size_t at = end != NULL ? redis_record_read(message, length, from, &notify.written) : 0;
    notify.has_record = at > 0 && at < length && notify.written.revision > 0;
    if (!notify.has_record)
        return (struct redis_notice){.name_length = notify.name_length};
    notify.bytes = message + at;
    notify.length = length - at;
    return notify;
}
