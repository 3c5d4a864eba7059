/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edit distance between short words, row by row on the stack. The length limit bounds the cost of a
 * hostile argument.
 */
#include "base/nearest.h"

#include <string.h>

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t nearest_distance(const char *a, const char *b)
{
    size_t a_length = strnlen(a, NEAREST_WORD_MAX);
    size_t b_length = strnlen(b, NEAREST_WORD_MAX);
    /* rows[i % 3][j]: edits between the first i letters of a and the first j of b. A transposition
     * reads two rows back, so three are kept. */
    size_t rows[3][NEAREST_WORD_MAX + 1];

    for (size_t j = 0; j <= b_length; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
            row[j] = least(above[j - 1] + change, least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = least(row[j], rows[(i - 2) % 3][j - 2] + 1);
            }
        }
    }
    return rows[a_length % 3][b_length];
}

const char *nearest_word(const char *word, const char *const *candidates, size_t count)
{
    const char *best = NULL;
    size_t best_distance = 0;

    for (size_t i = 0; i < count; i++) {
        size_t distance = nearest_distance(word, candidates[i]);
        if (best == NULL || distance < best_distance) {
            best = candidates[i];
            best_distance = distance;
        }
    }
    return best;
}

const char *nearest_match(const char *word, const char *const *candidates, size_t count)
{
    const char *best = nearest_word(word, candidates, count);
    size_t length = strnlen(word, NEAREST_WORD_MAX);
    if (best == NULL || length < 2)
        return NULL;
    size_t longer = strlen(best) > length ? strlen(best) : length;
    if (nearest_distance(word, best) * 3 <= longer)
        return best;
    for (size_t i = 0; i < count; i++) {
        if (strncmp(word, candidates[i], length) == 0)
            return candidates[i];
    }
    return NULL;
}
