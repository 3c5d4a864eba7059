/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text in columns on a terminal: its width, shortening, padding and colours. Text must be clean
 * (text_clean()), so that every character has a width.
 */
#ifndef LEASEHOLD_FACE_CLI_COLUMNS_H
#define LEASEHOLD_FACE_CLI_COLUMNS_H

#include "base/text.h"

/* The width of the terminal; 80 if it is unknown. */
size_t columns_of_terminal(int fd);
/* True for a terminal, unless NO_COLOR is set or TERM is dumb. */
bool columns_have_color(int fd);

/* The width of the text: 2 for a wide character, 0 for a combining one. */
size_t columns_of(const char *text);
/* The length in bytes of the longest prefix that is at most `most` columns wide. */
size_t columns_prefix(const char *text, size_t most);
/* Adds the text; one that is wider than `most` columns loses its middle, which becomes "…". */
void columns_add_short(struct text *out, const char *text, size_t most);
/* The same, filled with spaces up to `width`: after the text, or before it with `right`. */
void columns_add_cell(struct text *out, const char *text, size_t width, bool right);

#endif
