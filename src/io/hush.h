/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal that a write raises in the writing thread (SIGXFSZ, SIGPIPE), kept from the process: it
 * must neither die of it nor have its handlers called. Blocks, and takes away what the write left;
 * dispositions, which are the whole process's, are never touched.
 */
#ifndef LEASEHOLD_IO_HUSH_H
#define LEASEHOLD_IO_HUSH_H

#include <signal.h>
#include <stdbool.h>

struct hush {
    sigset_t before;
    sigset_t signal;
    bool was_pending; /* somebody else's, and stays so */
};

void hush_begin(struct hush *hush, int signal);
/* `raised`: the write failed with the error that goes with the signal. errno stays as it is. */
void hush_end(const struct hush *hush, bool raised);

#endif
