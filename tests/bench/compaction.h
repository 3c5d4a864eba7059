/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seen from outside: whether a log is being compacted. While it is, the next generation stands
 * beside it under another name; when it is done, the log is another file. Looks at names only.
 */
#ifndef LEASEHOLD_TESTS_COMPACTION_H
#define LEASEHOLD_TESTS_COMPACTION_H

#include <stdbool.h>
#include <sys/types.h>

struct compaction {
    char log[4096], next[4096 + 8];
    ino_t file;
    bool running;
    double since; /* the one that runs */
    unsigned count;
    double last_s; /* how long the last one took */
};

void compaction_init(struct compaction *compaction, const char *log);
/* Runs one, or did one end since the last look? */
bool compaction_look(struct compaction *compaction);

#endif
