/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a command's standard output to our own, unchanged, and keeps its last line. A thread does
 * the copying, because the reader of our output may stall without limit, and the process that holds
 * a lease must not wait for it. The struct must not be moved or freed while the thread runs, which
 * is forever if the output is never read.
 */
#ifndef LEASEHOLD_PROCESS_TEE_H
#define LEASEHOLD_PROCESS_TEE_H

#include "base/last_line.h"

#include <pthread.h>
#include <stdbool.h>

struct tee {
    int from, into; /* the pipe; `into` is the command's standard output */
    int stop, over; /* eventfds to the thread, and from it */
    bool stopped, joined;
    pthread_t thread;
    /* owned by the thread until it has ended */
    struct last_line line;
    int trouble; /* errno of a failed write to our output; 0: none, or its reader is gone */
};

/* 0 or −errno; then there is nothing to undo. The caller must have blocked all signals. */
int tee_open(struct tee *tee);
/* After the command's start: closes our write end, so that the thread sees the end of file. */
void tee_close_pipe(struct tee *tee);
/* The command has ended: only the bytes already in the pipe are still copied. */
void tee_stop(struct tee *tee);
/* True if everything has been copied; `over` is readable then. */
bool tee_is_done(struct tee *tee);

#endif
