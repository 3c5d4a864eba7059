/* SPDX-License-Identifier: Apache-2.0 */
/* See block_signal.h. */
#include "process/block_signal.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

void block_signal_begin(struct block_signal *block_signal, int signal)
{
    sigset_t pending;
    (void)sigemptyset(&block_signal->signal);
    (void)sigaddset(&block_signal->signal, signal);
    (void)pthread_sigmask(SIG_BLOCK, &block_signal->signal, &block_signal->before);
    /* Only a signal that was already blocked can already be pending. */
    block_signal->was_pending = sigismember(&block_signal->before, signal) == 1 &&
                                sigpending(&pending) == 0 && sigismember(&pending, signal) == 1;
}

void block_signal_end(const struct block_signal *block_signal, bool raised)
{
    static const struct timespec at_once = {0};
    int error = errno;
    bool there = raised && !block_signal->was_pending;
    while (there)
        there = sigtimedwait(&block_signal->signal, NULL, &at_once) < 0 && errno == EINTR;
    (void)pthread_sigmask(SIG_SETMASK, &block_signal->before, NULL);
    errno = error;
}
