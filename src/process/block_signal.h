/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suppresses a signal that a write raises in the calling thread (SIGXFSZ, SIGPIPE), so that it
 * neither kills the process nor runs a handler. Blocks the signal in this thread and consumes the
 * one that the write raised. Must not change dispositions: they belong to the whole process.
 */
#ifndef LEASEHOLD_PROCESS_BLOCK_SIGNAL_H
#define LEASEHOLD_PROCESS_BLOCK_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

struct block_signal {
    sigset_t before;
    sigset_t signal;
    bool was_pending; /* raised before the write; stays pending */
};

void block_signal_begin(struct block_signal *block_signal, int signal);
/* `raised`: the write failed with the errno that accompanies the signal. Preserves errno. */
void block_signal_end(const struct block_signal *block_signal, bool raised);

#endif
