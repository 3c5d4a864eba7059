/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the API server of on-k8s.sh wrote about writes to Leases: who (a token is a process), which
 * Lease, from when until when. The server writes a line before it lets go of the answer.
 */
#ifndef LEASEHOLD_TESTS_AUDIT_H
#define LEASEHOLD_TESTS_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct audit_writes {
    size_t count;
    size_t pairs;         /* of a process and a Lease */
    size_t together;      /* began too early behind the one before of the same pair */
    int64_t least_gap_us; /* from the end of one to the beginning of the next of its pair */
};

/* How long the log is now. */
long audit_length(void);
/* All writes that stand behind `from`; the next one of a pair begins at least `apart_us` after the
 * end of the one before. False: the log cannot be read. */
bool audit_read(long from, int64_t apart_us, struct audit_writes *out);

#endif
