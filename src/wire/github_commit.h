/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of commits. That of a key has a line for people, the record, and two lines: the
 * revision, which counts along the chain, and a text that makes the commit unique. Equal commits of
 * one second would have the same name, and then two writers would both succeed. That of a worker
 * says after which time without a heartbeat it is dead. Pure.
 */
#ifndef LEASEHOLD_WIRE_GITHUB_COMMIT_H
#define LEASEHOLD_WIRE_GITHUB_COMMIT_H

#include "base/text.h"

/* A commit of a key. */
struct github_commit {
    uint64_t revision;
    int64_t time_ms;   /* the server's date, which is not in the message */
    const char *bytes; /* of the record; NULL: the key is vacant */
    size_t length;
};

/* `title` is the line for people; time_ms is not used. */
void github_commit_write(const char *title, const struct github_commit *commit, const char *unique,
                         struct text *out);
/* NULL, or why it is not a message of ours. `bytes` points into the message. */
const char *github_commit_read(const char *message, struct github_commit *out);

void github_beat_write(uint64_t session, int64_t stale_ms, const char *unique, struct text *out);
/* The worker is dead this long after the date of the commit; 0: it is not a message of ours. */
int64_t github_beat_read(const char *message);

#endif
