/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How watermark positions compare. Positions are the source's own values: numbers compare as
 * numbers of any length, timestamps as points in time, everything else byte by byte. The order
 * belongs to the watermark, not to the value. Pure; a value is stored as given.
 */
#ifndef LEASEHOLD_CORE_ORDER_H
#define LEASEHOLD_CORE_ORDER_H

#include <stdbool.h>

enum order {
    ORDER_NONE,   /* not given: order_of() the first value */
    ORDER_NUMBER, /* digits, optionally a point and more digits */
    ORDER_TIME,   /* RFC 3339: 2026-01-31T23:59:59.999Z, any number of digits, Z or +hh:mm */
    ORDER_TEXT,   /* byte by byte */
};

/* ORDER_NONE for a timestamp without an offset: byte order would be wrong for it. */
enum order order_of(const char *value);
bool order_fits(enum order order, const char *value);
/* Returns below 0, 0 or above 0. Both values must fit the order. */
int order_compare(enum order order, const char *a, const char *b);

#endif
