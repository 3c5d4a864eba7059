/* SPDX-License-Identifier: Apache-2.0 */
/* See compaction.h. */
#include "compaction.h"

#include "rounds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void compaction_init(struct compaction *compaction, const char *log)
{
    struct stat status;
    memset(compaction, 0, sizeof *compaction);
    int length = snprintf(compaction->log, sizeof compaction->log, "%s", log);
    if (length < 0 || length >= (int)sizeof compaction->log || stat(log, &status) != 0)
        rounds_fail(log, "cannot be looked at");
    (void)snprintf(compaction->next, sizeof compaction->next, "%s.new", log);
    compaction->file = status.st_ino;
}

bool compaction_look(struct compaction *compaction)
{
    struct stat status;
    bool was_running = compaction->running;
    compaction->running = stat(compaction->next, &status) == 0;
    if (compaction->running && !was_running)
        compaction->since = rounds_seconds();
    if (stat(compaction->log, &status) != 0)
        rounds_fail(compaction->log, strerror(errno));
    if (status.st_ino == compaction->file)
        return compaction->running;
    compaction->file = status.st_ino;
    compaction->count++;
    compaction->last_s = was_running ? rounds_seconds() - compaction->since : 0;
    return true;
}
