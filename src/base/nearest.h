/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which known word did the user mean? Used for messages only: nothing may ever act on the guess.
 */
#ifndef LH_BASE_NEAREST_H
#define LH_BASE_NEAREST_H

#include <stddef.h>

/* How many single-letter slips (insert, drop, change, swap of neighbours) lie between two words.
 * Only the first NEAREST_WORD_MAX bytes of each are looked at. */
size_t nearest_distance(const char *a, const char *b);

/* The one of `count` words that is closest to `word`, the earlier one on a tie; NULL when count
 * is 0. */
const char *nearest_word(const char *word, const char *const *candidates, size_t count);

enum { NEAREST_WORD_MAX = 32 };

#endif
