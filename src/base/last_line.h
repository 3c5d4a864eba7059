/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last line of an output that comes in pieces, as words that can be kept: of any bytes whatever
 * it makes clean text of bounded length. Empty lines do not count. Pure.
 */
#ifndef LEASEHOLD_BASE_LAST_LINE_H
#define LEASEHOLD_BASE_LAST_LINE_H

#include <stdbool.h>
#include <stddef.h>

enum { LAST_LINE_MOST = 1024 };

struct last_line {
    char bytes[LAST_LINE_MOST]; /* as they came; what is longer is left out */
    size_t length;
    bool ended; /* the next byte begins another line */
};

/* All zero is a good beginning, too. */
void last_line_add(struct last_line *line, const char *bytes, size_t length);
/* A tab becomes a space, any other control character and what is not UTF-8 a question mark. */
void last_line_read(const struct last_line *line, char out[LAST_LINE_MOST + 1]);

#endif
