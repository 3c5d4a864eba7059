/* SPDX-License-Identifier: Apache-2.0 */
/* See order.h. */
#include "core/order.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SECONDS_AT = 17, SECONDS_LENGTH = 19 /* of a timestamp without fraction and offset */ };

static size_t digits_at(const char *text)
{
    return strspn(text, "0123456789");
}

/* The end of an optional fraction; NULL if its digits are missing. */
static const char *behind_fraction(const char *text)
{
    if (*text != '.')
        return text;
    size_t digits = digits_at(text + 1);
    return digits > 0 ? text + 1 + digits : NULL;
}

static bool is_decimal(const char *value)
{
    size_t digits = digits_at(value);
    const char *end = digits > 0 ? behind_fraction(value + digits) : NULL;
    return end != NULL && *end == '\0';
}

/* True if the text begins like the pattern, in which 0 stands for any digit. */
static bool begins_like(const char *text, const char *pattern)
{
    for (; *pattern != '\0'; text++, pattern++) {
        bool digit = *text >= '0' && *text <= '9';
        if (*pattern == '0' ? !digit : *text != *pattern)
            return false;
    }
    return true;
}

static int two_digits(const char *text)
{
    return (text[0] - '0') * 10 + (text[1] - '0');
}

/* Z, or the offset from UTC: +02:00. */
static bool is_offset(const char *text)
{
    if (strcmp(text, "Z") == 0)
        return true;
    bool is_signed = *text == '+' || *text == '-';
    return is_signed && begins_like(text + 1, "00:00") && text[6] == '\0' &&
           two_digits(text + 1) < 24 && two_digits(text + 4) < 60;
}

static bool is_moment(const char *value)
{
    if (!begins_like(value, "0000-00-00T00:00:00"))
        return false;
    const char *end = behind_fraction(value + SECONDS_LENGTH);
    return end != NULL && is_offset(end);
}

enum order order_of(const char *value)
{
    if (is_decimal(value))
        return ORDER_NUMBER;
    if (is_moment(value))
        return ORDER_TIME;
    return begins_like(value, "0000-00-00T") ? ORDER_NONE : ORDER_TEXT;
}

bool order_fits(enum order order, const char *value)
{
    if (order == ORDER_NUMBER)
        return is_decimal(value);
    return order == ORDER_TEXT || (order == ORDER_TIME && is_moment(value));
}

/* Compares the digits after a point; missing ones count as zeros. */
static int compare_fractions(const char *a, const char *b)
{
    size_t a_digits = *a == '.' ? digits_at(++a) : 0;
    size_t b_digits = *b == '.' ? digits_at(++b) : 0;
    for (size_t i = 0; i < a_digits || i < b_digits; i++) {
        int difference = (i < a_digits ? a[i] : '0') - (i < b_digits ? b[i] : '0');
        if (difference != 0)
            return difference;
    }
    return 0;
}

static int compare_numbers(const char *a, const char *b)
{
    a += strspn(a, "0");
    b += strspn(b, "0");
    size_t a_digits = digits_at(a), b_digits = digits_at(b);
    if (a_digits != b_digits)
        return a_digits < b_digits ? -1 : 1;
    int difference = memcmp(a, b, a_digits);
    return difference != 0 ? difference : compare_fractions(a + a_digits, b + b_digits);
}

/* The day in the Gregorian calendar, counted from 1 March of year 0. */
static int64_t day_of(const char *moment)
{
    int64_t year = (int64_t)two_digits(moment) * 100 + two_digits(moment + 2);
    int64_t month = two_digits(moment + 5) - 3; /* so that a leap day ends its year */
    if (month < 0) {
        month += 12;
        year--;
    }
    int64_t leap_days = year < 0 ? -1 : year / 4 - year / 100 + year / 400;
    return year * 365 + leap_days + (month * 153 + 2) / 5 + two_digits(moment + 8);
}

/* The minute in UTC. Offsets are whole minutes, so seconds, leap seconds too, stay as written. */
static int64_t minute_of(const char *moment)
{
    const char *offset = behind_fraction(moment + SECONDS_LENGTH);
    int64_t minutes =
        day_of(moment) * 24 * 60 + (int64_t)two_digits(moment + 11) * 60 + two_digits(moment + 14);
    if (offset == NULL || *offset == 'Z')
        return minutes;
    int64_t ahead = (int64_t)two_digits(offset + 1) * 60 + two_digits(offset + 4);
    return *offset == '+' ? minutes - ahead : minutes + ahead;
}

static int compare_moments(const char *a, const char *b)
{
    int64_t a_minute = minute_of(a), b_minute = minute_of(b);
    if (a_minute != b_minute)
        return a_minute < b_minute ? -1 : 1;
    int difference = memcmp(a + SECONDS_AT, b + SECONDS_AT, SECONDS_LENGTH - SECONDS_AT);
    return difference != 0 ? difference : compare_fractions(a + SECONDS_LENGTH, b + SECONDS_LENGTH);
}

int order_compare(enum order order, const char *a, const char *b)
{
    if (order == ORDER_NUMBER)
        return compare_numbers(a, b);
    if (order == ORDER_TEXT)
        return strcmp(a, b);
    return compare_moments(a, b);
}
