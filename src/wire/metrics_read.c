/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See metrics.h: reads what metrics_write() wrote. The text comes from a file, so it is not
 * trusted: it must be in the order of the table, every histogram complete and cumulative, every
 * number canonical and at most METRIC_MOST, and the last line the one that metrics_write() ends
 * with.
 */
#include "wire/cursor.h"
#include "wire/metrics_table.h"

enum { FRACTION_DIGITS = 6, TEN = 10 };

struct metrics_reader {
    struct cursor cursor;
    const char *prefix;
};

static bool read_end_of_line(struct metrics_reader *reader)
{
    return cursor_expect(&reader->cursor, "\n");
}

/* Skips the series if it is next, up to its value. */
static bool take_series(struct metrics_reader *reader, const struct metric_family *family,
                        size_t value, const char *suffix, const char *le)
{
    char bytes[METRIC_NAME_MAX];
    struct text name;
    text_init(&name, bytes, sizeof bytes);
    metrics_add_series(&name, reader->prefix, family, value, suffix, le);
    text_add(&name, " ");
    return !name.cut && cursor_take(&reader->cursor, bytes);
}

static bool expect_series(struct metrics_reader *reader, const struct metric_family *family,
                          size_t value, const char *suffix, const char *le)
{
    return take_series(reader, family, value, suffix, le) ||
           cursor_refuse(&reader->cursor, "the next line of this metric");
}

static bool read_number(struct metrics_reader *reader, uint64_t least, uint64_t *out)
{
    return cursor_number(&reader->cursor, least, METRIC_MOST, "a whole number", out) &&
           read_end_of_line(reader);
}

static bool read_seconds(struct metrics_reader *reader, uint64_t *out)
{
    struct cursor *cursor = &reader->cursor;
    uint64_t us = 0;
    if (!cursor_number(cursor, 0, METRIC_MOST / 1000000, "seconds", &us) ||
        !cursor_expect(cursor, "."))
        return false;
    for (size_t i = 0; i < FRACTION_DIGITS; i++, cursor->at++) {
        if (cursor->at >= cursor->length || cursor->bytes[cursor->at] < '0' ||
            cursor->bytes[cursor->at] > '9')
            return cursor_refuse(cursor, "six digits after the point");
        us = us * TEN + (uint64_t)(cursor->bytes[cursor->at] - '0');
    }
    if (us > METRIC_MOST)
        return cursor_refuse(cursor, "a smaller sum");
    *out = us;
    return read_end_of_line(reader);
}

/* After its first bucket's name. A bucket that an earlier release did not have is empty. */
static bool read_histogram(struct metrics_reader *reader, const struct metric_family *family,
                           size_t value, uint64_t *out)
{
    uint64_t before = 0, so_far = 0;
    for (size_t i = 0; i < METRIC_BUCKETS; i++, before = so_far) {
        bool last = i == METRIC_BUCKETS - 1;
        if (i > 0 && !last && !take_series(reader, family, value, "_bucket", family->bounds[i].le))
            continue;
        if (last && !expect_series(reader, family, value, "_bucket", "+Inf"))
            return false;
#ifndef LH_FUZZ_PLANT /* planted bug for the fuzzer: a bucket below the one before it */
        if (!read_number(reader, before, &so_far))
            return false;
#else
        if (!read_number(reader, 0, &so_far))
            return false;
#endif
        out[i] = so_far - before;
    }
    if (!expect_series(reader, family, value, "_sum", NULL) ||
        !read_seconds(reader, &out[METRIC_SUM]) ||
        !expect_series(reader, family, value, "_count", NULL))
        return false;
    return read_number(reader, before, &so_far) &&
           (so_far == before || cursor_refuse(&reader->cursor, "the count of the last bucket"));
}

/* True if the family is next: skips its comments. The help text may be that of another release. */
static bool take_comments(struct metrics_reader *reader, const struct metric_family *family)
{
    struct cursor *cursor = &reader->cursor;
    char bytes[2 * METRIC_NAME_MAX];
    struct text name;
    text_init(&name, bytes, sizeof bytes);
    text_add(&name, "# HELP ");
    text_add(&name, reader->prefix);
    text_add(&name, "_");
    text_add(&name, family->name);
    text_add(&name, " ");
    if (!cursor_take(cursor, bytes))
        return false;
    while (cursor->at < cursor->length && cursor->bytes[cursor->at] != '\n')
        cursor->at++;
    text_clear(&name);
    text_add(&name, "\n# TYPE ");
    text_add(&name, reader->prefix);
    text_add(&name, "_");
    text_add(&name, family->name);
    text_add(&name, " ");
    text_add(&name, metrics_type_name(family->type));
    text_add(&name, "\n");
    return cursor_take(cursor, bytes) || cursor_refuse(cursor, "the TYPE line of this metric");
}

static bool read_family(struct metrics_reader *reader, const struct metric_family *family,
                        uint64_t *out)
{
    bool times = family->type == METRIC_TIMES;
    if (!take_comments(reader, family))
        return reader->cursor.expected == NULL;
    for (size_t i = 0; i < family->count; i++) {
        if (!take_series(reader, family, i, times ? "_bucket" : "",
                         times ? family->bounds[0].le : NULL))
            continue;
        if (times ? !read_histogram(reader, family, i, out + i * METRIC_HISTOGRAM)
                  : !read_number(reader, 0, &out[i]))
            return false;
    }
    return true;
}

static bool refuse_line(const struct cursor *cursor, struct text *why)
{
    uint64_t line = 1;
    for (size_t i = 0; i < cursor->at; i++)
        line += cursor->bytes[i] == '\n' ? 1 : 0;
    text_add(why, "line ");
    text_add_u64(why, line);
    text_add(why, ": expected ");
    for (const char *at = cursor->expected; *at != '\0'; at++) {
        if (*at == '\n')
            text_add(why, "the end of the line");
        else
            text_add_bytes(why, at, 1);
    }
    return false;
}

bool metrics_read(const char *bytes, size_t length, const char *prefix, struct metrics *out,
                  struct text *why)
{
    static const struct metrics zero;
    struct metrics_reader reader = {.cursor = {.bytes = bytes, .length = length}, .prefix = prefix};
    struct metrics found = zero;
    if (length > METRICS_TEXT_MAX) {
        text_add(why, "it is longer than 64 KiB");
        return false;
    }
    for (size_t i = 0; i < METRIC_FAMILIES; i++)
        if (!read_family(&reader, &metric_families[i], &found.values[metric_families[i].slot]))
            return refuse_line(&reader.cursor, why);
    if (!cursor_take(&reader.cursor, "# EOF\n") || reader.cursor.at != length) {
        (void)cursor_refuse(&reader.cursor, "a metric of leasehold, or the last line, # EOF");
        return refuse_line(&reader.cursor, why);
    }
    *out = found;
    return true;
}
