/* SPDX-License-Identifier: Apache-2.0 */
/* See columns.h. Widths are those of the C library, for UTF-8 in every locale. */
#include "face/cli/columns.h"

#include <locale.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

enum { DEFAULT_COLUMNS = 80, CELL_SIZE = 4096 };

/* ---- the terminal ---- */

size_t columns_of_terminal(int fd)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col < 2)
        return DEFAULT_COLUMNS;
    return size.ws_col;
}

bool columns_have_color(int fd)
{
    const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
    if ((none != NULL && none[0] != '\0') || term == NULL || strcmp(term, "dumb") == 0)
        return false;
    return isatty(fd) == 1;
}

/* ---- widths ---- */

static wchar_t code_point(const char *bytes, size_t length)
{
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    unsigned long code = (unsigned char)bytes[0] & masks[length];
    for (size_t i = 1; i < length; i++)
        code = code << 6 | ((unsigned char)bytes[i] & 0x3f);
    return (wchar_t)code;
}

/* The width of the character at `text`, and its length in bytes. */
static size_t character_columns(const char *text, size_t *out_length)
{
    static locale_t utf8;
    size_t length = text_utf8_length(text, strnlen(text, 4));
    *out_length = length > 0 ? length : 1;
    if (length <= 1)
        return 1;
    if (utf8 == (locale_t)0)
        utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (utf8 == (locale_t)0)
        return 1;
    locale_t before = uselocale(utf8);
    int width = wcwidth(code_point(text, length));
    (void)uselocale(before);
    return width >= 0 ? (size_t)width : 1;
}

size_t columns_of(const char *text)
{
    size_t width = 0, length;
    for (; *text != '\0'; text += length)
        width += character_columns(text, &length);
    return width;
}

size_t columns_prefix(const char *text, size_t most)
{
    size_t at = 0, length;
    while (text[at] != '\0') {
        size_t width = character_columns(text + at, &length);
        if (width > most)
            break;
        most -= width;
        at += length;
    }
    return at;
}

/* ---- shortening ---- */

static bool terminal_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0')
            return strstr(value, "UTF-8") != NULL || strstr(value, "utf8") != NULL;
    }
    return false;
}

void columns_add_short(struct text *out, const char *text, size_t most)
{
    const char *mark = terminal_is_utf8() ? "…" : "...";
    size_t width = columns_of(text), mark_width = columns_of(mark), length;
    if (width <= most || most <= mark_width) {
        text_add_bytes(out, text, columns_prefix(text, most));
        return;
    }
    size_t left = (most - mark_width) / 2, right = most - mark_width - left;
    text_add_bytes(out, text, columns_prefix(text, left));
    text_add(out, mark);
    /* A combining character must not follow the mark: it belongs to a character that was cut. */
    while (width > right || (*text != '\0' && character_columns(text, &length) == 0)) {
        width -= character_columns(text, &length);
        text += length;
    }
    text_add(out, text);
}

void columns_add_cell(struct text *out, const char *text, size_t width, bool right)
{
    char cell[CELL_SIZE];
    struct text shown;
    text_init(&shown, cell, sizeof cell);
    columns_add_short(&shown, text, width);
    size_t used = columns_of(cell);
    for (size_t i = used; right && i < width; i++)
        text_add(out, " ");
    text_add(out, cell);
    for (size_t i = used; !right && i < width; i++)
        text_add(out, " ");
}
