/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the positions of a watermark compare. They are the source's own words: numbers compare as
 * numbers however many digits they have, moments as moments, everything else byte by byte. Which of
 * these it is belongs to the watermark, not to the value. Pure; a value is stored as it was given.
 */
#ifndef LEASEHOLD_CORE_ORDER_H
#define LEASEHOLD_CORE_ORDER_H

#include <stdbool.h>

enum order {
    ORDER_NONE,   /* not said: order_of() the first value */
    ORDER_NUMBER, /* digits, perhaps a point and more digits */
    ORDER_TIME,   /* RFC 3339: 2026-01-31T23:59:59.999Z, any number of digits, Z or +hh:mm */
    ORDER_TEXT,   /* byte by byte */
};

/* ORDER_NONE for a moment without an offset: byte by byte it would be compared wrongly. */
enum order order_of(const char *value);
bool order_fits(enum order order, const char *value);
/* Below 0, 0 or above 0. Both fit the order. */
int order_compare(enum order order, const char *a, const char *b);

#endif
