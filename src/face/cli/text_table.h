/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table for people: a header, aligned columns, and two columns that are shortened in the middle
 * if the terminal is too narrow. Copies and cleans what it is given.
 */
#ifndef LEASEHOLD_FACE_CLI_TEXT_TABLE_H
#define LEASEHOLD_FACE_CLI_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { TABLE_COLUMNS = 6, TABLE_ROWS_MAX = 1 << 20, TABLE_CELL_SIZE = 4096 };

struct text_table_column {
    const char *header;
    bool right;   /* numbers and durations */
    bool colored; /* in the colour of the row */
    size_t most;  /* its widest cell is cut to this; 0: not */
};

struct text_table_row {
    char *cells[TABLE_COLUMNS];
    const char *color; /* an escape sequence, or "" */
};

struct text_table {
    const struct text_table_column *columns; /* TABLE_COLUMNS, or fewer and a NULL header */
    size_t shrinks[2];                       /* the columns that give way, this one first */
    struct text_table_row *rows;
    size_t count, room;
};

/* One cell per column. False: out of memory, or TABLE_ROWS_MAX rows. */
bool text_table_add(struct text_table *table, const char *const *cells, const char *color);
/* Prints header and rows, each after `indent` spaces and at most `width` wide if possible. */
void text_table_print(const struct text_table *table, size_t indent, size_t width, bool color,
                      FILE *to);
void text_table_done(struct text_table *table);

#endif
