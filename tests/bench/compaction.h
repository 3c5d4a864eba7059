/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects from outside whether a log is being compacted. Meanwhile the next generation exists
 * beside it under another name; afterwards the log is another file. Only names are read.
 */
#ifndef LEASEHOLD_TESTS_COMPACTION_H
#define LEASEHOLD_TESTS_COMPACTION_H

#include <stdbool.h>
#include <sys/types.h>

struct compaction {
    char log[4096], next[4096 + 8];
    ino_t file;
    bool running;
    double since; /* the current one */
    unsigned count;
    double last_s; /* duration of the last one */
};

void compaction_init(struct compaction *compaction, const char *log);
/* True if one runs, or ended since the last call. */
bool compaction_look(struct compaction *compaction);

#endif
