/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the last non-empty line of an output that arrives in pieces. Turns any bytes into clean
 * text of bounded length. Pure.
 */
#ifndef LEASEHOLD_BASE_LAST_LINE_H
#define LEASEHOLD_BASE_LAST_LINE_H

#include <stdbool.h>
#include <stddef.h>

enum { LAST_LINE_MOST = 1024 };

struct last_line {
    char bytes[LAST_LINE_MOST]; /* as received; longer lines are truncated */
    size_t length;
    bool ended; /* the next byte begins another line */
};

/* A zeroed struct is a valid initial state. */
void last_line_add(struct last_line *line, const char *bytes, size_t length);
/* A tab becomes a space, any other control character and any invalid UTF-8 a question mark. */
void last_line_read(const struct last_line *line, char out[LAST_LINE_MOST + 1]);

#endif
