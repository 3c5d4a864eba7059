/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal that a write raises in the writing thread (SIGXFSZ, SIGPIPE), kept from the process: it
 * must neither die of it nor have its handlers called. Blocks, and takes away what the write left;
 * dispositions, which are the whole process's, are never touched.
 */
#ifndef LEASEHOLD_PROCESS_BLOCK_SIGNAL_H
#define LEASEHOLD_PROCESS_BLOCK_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

struct block_signal {
    sigset_t before;
    sigset_t signal;
    bool was_pending; /* somebody else's, and stays so */
};

void block_signal_begin(struct block_signal *block_signal, int signal);
/* `raised`: the write failed with the error that goes with the signal. errno stays as it is. */
void block_signal_end(const struct block_signal *block_signal, bool raised);

#endif
