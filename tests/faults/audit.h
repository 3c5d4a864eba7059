/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit log of the API server of on-k8s.sh, writes to Leases only: which process (a token is a
 * process), which Lease, start and end. The server writes a line before it sends the reply.
 */
#ifndef LEASEHOLD_TESTS_AUDIT_H
#define LEASEHOLD_TESTS_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct audit_writes {
    size_t count;
    size_t pairs;         /* of a process and a Lease */
    size_t together;      /* started too early after the previous one of the same pair */
    int64_t least_gap_us; /* from the end of one to the start of the next of its pair */
};

/* Current length of the log. */
long audit_length(void);
/* Reads all writes after `from`; the next one of a pair starts at least `apart_us` after the end of
 * the previous one. False: the log cannot be read. */
bool audit_read(long from, int64_t apart_us, struct audit_writes *out);

#endif
