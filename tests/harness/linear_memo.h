/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states that a search has visited, so that none is searched twice. A state has three strings
 * of words: a key; a set of spent items; bounds, where smaller ones allow more. A state with the
 * same key, no fewer items spent and no smaller bound can reach nothing that was not tried. Whole
 * strings are compared, never hashes alone: a collision would refuse good histories. It must not
 * interpret the words.
 */
#ifndef LEASEHOLD_TESTS_LINEAR_MEMO_H
#define LEASEHOLD_TESTS_LINEAR_MEMO_H

#include <stddef.h>
#include <stdint.h>

struct linear_memo {
    size_t count;
    size_t max_count;
    uint64_t *words; /* the entries, one after the other */
    size_t word_count;
    size_t word_room;
    size_t *slots; /* per key: the position of its newest entry in words, plus one; 0: empty */
    size_t slot_count;
    size_t used_slots;
};

struct linear_memo_item {
    const uint64_t *key;
    size_t key_count;
    const uint64_t *spent; /* one bit each */
    size_t spent_count;    /* the same for all items of a key, as is bound_count */
    const uint64_t *bounds;
    size_t bound_count;
};

enum linear_memo_answer {
    LINEAR_MEMO_NEW,
    LINEAR_MEMO_SEEN,
    LINEAR_MEMO_FULL, /* max_count reached, or out of memory */
};

void linear_memo_init(struct linear_memo *memo, size_t max_count);
void linear_memo_done(struct linear_memo *memo);
enum linear_memo_answer linear_memo_add(struct linear_memo *memo,
                                        const struct linear_memo_item *item);

#endif
