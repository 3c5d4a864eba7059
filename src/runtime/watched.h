/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of what stands under some keys, kept current by a watch of the store: for looks that ask
 * nobody. A copy is begun by a read that is sent while the watch stands, and is gone when the watch
 * has ended, when it was not heard of for long, or when others need its room. Never the base of a
 * grant: what a copy says is old by the time it is read. Makes no system call.
 */
#ifndef LEASEHOLD_RUNTIME_WATCHED_H
#define LEASEHOLD_RUNTIME_WATCHED_H

#include "runtime/knowledge.h"

/* By so much a copy can be behind at most, should the watch be silent without having ended. */
#define WATCHED_MOST_MS ((int64_t)30000)

enum { WATCHED_KEYS_MAX = 1024, WATCHED_BYTES_MAX = 4 * 1024 * 1024 };

struct watched_copy {
    struct table_node node;
    struct watched_copy *newer, *older; /* by their use */
    struct heard *heard;                /* NULL: the store is being asked */
    int64_t heard_at_ms;                /* on the user's clock */
    uint64_t touched;                   /* when it was begun or last told of, as a count */
    char key[];
};

struct watched {
    struct table table;
    struct watched_copy *newest, *oldest;
    size_t bytes;
    uint64_t count;
};

/* False when memory is short. */
bool watched_init(struct watched *watched);
void watched_done(struct watched *watched);

/* NULL when there is none, or it is too old to be believed. */
const struct watched_copy *watched_find(struct watched *watched, const char *key, int64_t now_ms);
/* The store is about to be asked, and the watch stands. To be given to watched_keep(); 0: memory is
 * short. */
uint64_t watched_begin(struct watched *watched, const char *key);
/* It answered. Not kept when the watch told of the key meanwhile: that may be newer. */
void watched_keep(struct watched *watched, const char *key, uint64_t begun,
                  const struct store_answer *answer, int64_t now_ms);
/* What the watch tells, with its key. Only what was read once is followed: whoever asks may have
 * to write down first what the store does not know yet. */
void watched_hear(struct watched *watched, const struct store_answer *answer, int64_t now_ms);
/* The watch has ended, or missed a change. */
void watched_forget(struct watched *watched);

#endif
