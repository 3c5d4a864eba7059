/* SPDX-License-Identifier: Apache-2.0 */
/* Signals of a write kept from the process; see hush.h. */
#include "io/hush.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

void hush_begin(struct hush *hush, int signal)
{
    sigset_t pending;
    (void)sigemptyset(&hush->signal);
    (void)sigaddset(&hush->signal, signal);
    (void)pthread_sigmask(SIG_BLOCK, &hush->signal, &hush->before);
    /* Only what was blocked before can have been pending before. */
    hush->was_pending = sigismember(&hush->before, signal) == 1 && sigpending(&pending) == 0 &&
                        sigismember(&pending, signal) == 1;
}

void hush_end(const struct hush *hush, bool raised)
{
    static const struct timespec at_once = {0};
    int error = errno;
    bool there = raised && !hush->was_pending;
    while (there)
        there = sigtimedwait(&hush->signal, NULL, &at_once) < 0 && errno == EINTR;
    (void)pthread_sigmask(SIG_SETMASK, &hush->before, NULL);
    errno = error;
}
