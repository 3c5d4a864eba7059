/* SPDX-License-Identifier: Apache-2.0 */
/* See text_table.h. Columns that are not to be shortened are never cut: a row wraps first. */
#include "face/cli/text_table.h"

#include "face/cli/columns.h"

#include <stdlib.h>
#include <string.h>

enum { GAP = 2, FIRST_LEAST = 16, SECOND_LEAST = 10, LEAST = 4 };
#define BOLD  "\033[1m"
#define PLAIN "\033[0m"

static size_t column_count(const struct text_table *table)
{
    size_t count = 0;
    while (count < TABLE_COLUMNS && table->columns[count].header != NULL)
        count++;
    return count;
}

bool text_table_add(struct text_table *table, const char *const *cells, const char *color)
{
    if (table->count == table->room) {
        size_t room = table->room > 0 ? 2 * table->room : 16;
        struct text_table_row *rows =
            room <= TABLE_ROWS_MAX ? realloc(table->rows, room * sizeof *rows) : NULL;
        if (rows == NULL)
            return false;
        table->rows = rows;
        table->room = room;
    }
    struct text_table_row *row = &table->rows[table->count++];
    *row = (struct text_table_row){.color = color};
    for (size_t i = 0; i < column_count(table); i++) {
        row->cells[i] = strndup(cells[i], TABLE_CELL_SIZE - 1);
        if (row->cells[i] == NULL)
            return false;
        text_clean(row->cells[i], strlen(row->cells[i]));
    }
    return true;
}

/* Takes what is missing from the columns that give way, first down to a readable width. */
static void fit_widths(const struct text_table *table, size_t total, size_t width,
                       size_t widths[TABLE_COLUMNS])
{
    const size_t steps[][2] = {{table->shrinks[0], FIRST_LEAST},
                               {table->shrinks[1], SECOND_LEAST},
                               {table->shrinks[0], LEAST},
                               {table->shrinks[1], LEAST}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && total > width; i++) {
        size_t *column = &widths[steps[i][0]], least = steps[i][1];
        size_t spare = *column > least ? *column - least : 0;
        size_t give = spare < total - width ? spare : total - width;
        *column -= give;
        total -= give;
    }
}

static void measure(const struct text_table *table, size_t width, size_t widths[TABLE_COLUMNS])
{
    size_t count = column_count(table), total = GAP * (count - 1);
    for (size_t i = 0; i < count; i++) {
        const struct text_table_column *column = &table->columns[i];
        widths[i] = columns_of(column->header);
        for (size_t j = 0; j < table->count; j++) {
            size_t cell = columns_of(table->rows[j].cells[i]);
            widths[i] = cell > widths[i] ? cell : widths[i];
        }
        if (column->most > 0 && widths[i] > column->most)
            widths[i] = column->most;
        total += widths[i];
    }
    fit_widths(table, total, width, widths);
}

static void add_colored(struct text *line, const char *cell, size_t width, bool right,
                        const char *color)
{
    text_add(line, color);
    columns_add_cell(line, cell, width, right);
    text_add(line, color[0] != '\0' ? PLAIN : "");
}

/* Row NULL is the header. No line ends in spaces. */
static void print_line(const struct text_table *table, const struct text_table_row *row,
                       size_t indent, const size_t widths[TABLE_COLUMNS], bool color, FILE *to)
{
    char bytes[TABLE_COLUMNS * TABLE_CELL_SIZE];
    struct text line;
    size_t count = column_count(table);
    text_init(&line, bytes, sizeof bytes);
    for (size_t i = 0; i < count; i++) {
        const struct text_table_column *column = &table->columns[i];
        const char *cell = row != NULL ? row->cells[i] : column->header;
        const char *paint = !color ? "" : row == NULL ? BOLD : column->colored ? row->color : "";
        size_t own = columns_of(cell), width = widths[i];
        if (i + 1 == count && !column->right && own < width)
            width = own;
        for (size_t j = 0; i > 0 && j < GAP; j++)
            text_add(&line, " ");
        add_colored(&line, cell, width, column->right, paint);
    }
    while (line.length > 0 && bytes[line.length - 1] == ' ')
        line.length--;
    (void)fprintf(to, "%*s%.*s\n", (int)indent, "", (int)line.length, bytes);
}

void text_table_print(const struct text_table *table, size_t indent, size_t width, bool color,
                      FILE *to)
{
    size_t widths[TABLE_COLUMNS] = {0};
    measure(table, width > indent ? width - indent : 1, widths);
    print_line(table, NULL, indent, widths, color, to);
    for (size_t i = 0; i < table->count && !ferror(to); i++)
        print_line(table, &table->rows[i], indent, widths, color, to);
}

void text_table_done(struct text_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        for (size_t j = 0; j < TABLE_COLUMNS; j++)
            free(table->rows[i].cells[j]);
    free(table->rows);
    *table = (struct text_table){.columns = table->columns};
}
