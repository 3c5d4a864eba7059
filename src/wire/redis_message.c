/* SPDX-License-Identifier: Apache-2.0 */
/* See redis_message.h. */
#include "wire/redis_message.h"

#include <string.h>

enum { DIGITS_MAX = 15 /* of a revision or a time: both end below 2^45 */ };

/* Digits and a space, from there on; the place behind them, or 0 when it is anything else. */
static size_t take_number(const char *words, size_t length, size_t from, uint64_t *out)
{
    size_t at = from;
    uint64_t number = 0;
    for (; at < length && at - from < DIGITS_MAX && words[at] >= '0' && words[at] <= '9'; at++)
        number = number * 10 + (uint64_t)(words[at] - '0');
    if (at == from || at == length || words[at] != ' ')
        return 0;
    *out = number;
    return at + 1;
}

size_t redis_record_read(const char *words, size_t length, size_t from, uint64_t *out_revision,
                         int64_t *out_time_ms)
{
    uint64_t time_ms = 0;
    size_t at = take_number(words, length, from, out_revision);
    at = at > 0 ? take_number(words, length, at, &time_ms) : 0;
    *out_time_ms = (int64_t)time_ms;
    return at;
}

bool redis_change_read(const char *words, size_t length, uint64_t *out_revision, size_t *out_name)
{
    size_t name = take_number(words, length, /* from= */ 0, out_revision);
    *out_name = name;
    return name > 0;
}

struct redis_told redis_told_read(const char *words, size_t length)
{
    const char *end = length > 0 ? memchr(words, '\n', length) : NULL;
    struct redis_told told = {.name_length = end != NULL ? (size_t)(end - words) : length};
    size_t from = told.name_length + 1;
    size_t at =
        end != NULL ? redis_record_read(words, length, from, &told.revision, &told.time_ms) : 0;
    told.tells = at > 0 && at < length && told.revision > 0;
    if (!told.tells)
        return (struct redis_told){.name_length = told.name_length};
    told.bytes = words + at;
    told.length = length - at;
    return told;
}
