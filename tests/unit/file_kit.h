/* SPDX-License-Identifier: Apache-2.0 */
/* A file store in a folder of its own, used through the driver, for its unit tests. */
#ifndef LEASEHOLD_TESTS_FILE_KIT_H
#define LEASEHOLD_TESTS_FILE_KIT_H

#include "store/store.h"

enum { FILE_KIT_TTL_MS = 60000 };

extern char path[48], url[64]; /* of the store */
extern char words[512];        /* of the last opening */
/* For all stores that are opened from here on. */
extern struct store_callbacks file_kit_callbacks;

/* The last reply; reset before each test. */
extern struct heard {
    enum reply_status result;
    struct stamp written;
    bool present;
    size_t dead_count;
    uint64_t dead; /* the first of them */
    char why[512];
} heard;
extern void (*file_kit_on_reply)(const struct store_reply *reply); /* NULL: none */

int file_kit_begin(void **state);
int file_kit_end(void **state);

/* The path with a suffix, valid until the next call. */
const char *beside(const char *suffix);
void *try_open(uint64_t session); /* NULL: refused */
void *open_store(uint64_t session);
void close_store(void *store);
enum reply_status ask(void *store, struct store_request request);
/* The callback of its requests. */
void hear(void *caller, const struct store_reply *reply);

#endif
