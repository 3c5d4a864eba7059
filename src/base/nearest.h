/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the known word closest to a mistyped one. For messages only: no code may act on the guess.
 */
#ifndef LH_BASE_NEAREST_H
#define LH_BASE_NEAREST_H

#include <stddef.h>

/* The number of edits (insert, delete, substitute, transpose) between two words. Only the first
 * NEAREST_WORD_MAX bytes of each count. */
size_t nearest_distance(const char *a, const char *b);

/* The candidate closest to `word`, the first one on a tie; NULL if count is 0. */
const char *nearest_word(const char *word, const char *const *candidates, size_t count);

/* The same, or NULL if nothing is near: more than a third of the letters differ, and `word` is not
 * the beginning of a candidate. */
const char *nearest_match(const char *word, const char *const *candidates, size_t count);

enum { NEAREST_WORD_MAX = 32 };

#endif
