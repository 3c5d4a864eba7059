/* SPDX-License-Identifier: Apache-2.0 */
/* See duration.h. Integers only: a fraction is a numerator and a power of ten. */
#include "wire/duration.h"

#include "base/text.h"

#include <stdbool.h>
#include <string.h>

enum { FRACTION_DIGITS = 9 };

/* The longest first: a sum uses each at most once, in this order. */
static const struct unit {
    const char *name;
    int64_t length_ms;
} units[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
enum { UNITS = sizeof units / sizeof units[0] };

struct decimal {
    int64_t whole;
    int64_t fraction, scale; /* fraction / scale of a unit; scale is a power of ten */
    bool inexact;            /* further non-zero digits were dropped */
};

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Reads "12" or "1.5"; returns its length, 0 if there is no number. */
static size_t duration_read_number(const char *at, size_t left, struct decimal *out)
{
    size_t used = 0;
    *out = (struct decimal){.scale = 1};
    for (; used < left && is_digit(at[used]); used++) {
        if (out->whole <= DURATION_MAX_MS)
            out->whole = out->whole * 10 + (at[used] - '0');
    }
    if (used == 0 || used == left || at[used] != '.')
        return used;
    size_t point = used++;
    for (; used < left && is_digit(at[used]); used++) {
        if (used - point <= FRACTION_DIGITS) {
            out->fraction = out->fraction * 10 + (at[used] - '0');
            out->scale *= 10;
        } else if (at[used] != '0') {
            out->inexact = true;
        }
    }
    return used > point + 1 ? used : 0;
}

/* The unit at `at`, searched from `first` on; UNITS if there is none. */
static size_t read_unit(const char *at, size_t left, size_t first, size_t *used)
{
    size_t length = 0;
    while (length < left && !is_digit(at[length]))
        length++;
    for (size_t i = first; i < UNITS; i++) {
        if (strlen(units[i].name) == length && memcmp(units[i].name, at, length) == 0) {
            *used += length;
            return i;
        }
    }
    return UNITS;
}

/* Adds the part to the sum; false if that is too long. */
static bool duration_add_part(const struct decimal *decimal, int64_t unit_ms, int64_t *sum_ms)
{
    if (decimal->whole > DURATION_MAX_MS / unit_ms)
        return false;
    int64_t product = decimal->fraction * unit_ms;
    int64_t rest_ms = product / decimal->scale;
    if (product % decimal->scale != 0 || decimal->inexact)
        rest_ms++;
    *sum_ms += decimal->whole * unit_ms + rest_ms;
#ifdef LH_FUZZ_PLANT /* planted bug for the fuzzer: a sum of valid parts can be too long */
    return true;
#else
    return *sum_ms <= DURATION_MAX_MS;
#endif
}

static enum duration_result read_sum(const char *string, size_t length, int64_t *out_ms)
{
    int64_t sum_ms = 0;
    size_t unit = 0;
    bool fits = true;
    for (size_t at = 0; at < length;) {
        struct decimal decimal;
        size_t used = duration_read_number(string + at, length - at, &decimal);
        if (used == 0)
            return DURATION_BROKEN;
        bool bare = at == 0 && used == length;
        at += used;
        unit = bare ? 2 : read_unit(string + at, length - at, unit, &at);
        if (unit == UNITS)
            return DURATION_BROKEN;
        fits = fits && duration_add_part(&decimal, units[unit].length_ms, &sum_ms);
        unit++;
    }
    if (!fits)
        return DURATION_TOO_LONG;
    *out_ms = sum_ms;
    return DURATION_OK;
}

enum duration_result duration_read(const char *string, size_t length, int64_t *out_ms)
{
    int64_t sum_ms;
    if (length == 0)
        return DURATION_BROKEN;
    if (string[0] == '-')
        return length > 1 && read_sum(string + 1, length - 1, &sum_ms) != DURATION_BROKEN
                   ? DURATION_NEGATIVE
                   : DURATION_BROKEN;
    return read_sum(string, length, out_ms);
}

const char *duration_show(int64_t length_ms, char out[DURATION_SHOWN])
{
    struct text text;
    int64_t seconds = length_ms > 0 ? (length_ms + 999) / 1000 : 0;
    text_init(&text, out, DURATION_SHOWN);
    if (seconds >= 3600) {
        text_add_i64(&text, seconds / 3600);
        text_add(&text, "h");
        text_add_i64(&text, seconds % 3600 / 60);
        text_add(&text, "m");
        return out;
    }
    if (seconds >= 60) {
        text_add_i64(&text, seconds / 60);
        text_add(&text, "m");
    }
    text_add_i64(&text, seconds % 60);
    text_add(&text, "s");
    return out;
}
