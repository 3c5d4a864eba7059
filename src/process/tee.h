/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tap in a command's standard output: everything goes on to our own, unchanged, and the last line
 * is remembered. A thread of its own does it, because whoever reads our output may stop for as long
 * as it likes, and nobody who guards a lease can wait for that. The tap must stay where it is: its
 * thread is left alone with it when the output is never read.
 */
#ifndef LEASEHOLD_PROCESS_TEE_H
#define LEASEHOLD_PROCESS_TEE_H

#include "base/last_line.h"

#include <pthread.h>
#include <stdbool.h>

struct tee {
    int from, into; /* the pipe; `into` is the command's standard output */
    int stop, over; /* told to the thread, and by it */
    bool stopped, joined;
    pthread_t thread;
    /* the thread's, until it has ended */
    struct last_line line;
    int trouble; /* why our output took no more; 0: it did, or nobody reads it any more */
};

/* 0 or −errno; then there is nothing to undo. Signals must be blocked: they are not the thread's.
 */
int tee_open(struct tee *tee);
/* The command has the pipe: its end is to be seen. */
void tee_close_pipe(struct tee *tee);
/* The command has ended: what is in the pipe by now is all. */
void tee_stop(struct tee *tee);
/* Has everything gone on? `over` is readable then. */
bool tee_is_done(struct tee *tee);

#endif
