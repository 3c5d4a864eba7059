/* SPDX-License-Identifier: Apache-2.0 */
/* See signals.h. Signals are blocked except in ppoll(), so that none comes just before a sleep. */
#include "face/cli/signals.h"

#include <poll.h>
#include <stddef.h>
#include <time.h>

static const int caught_signals[SIGNALS_COUNT] = {SIGHUP, SIGINT, SIGTERM};
static volatile sig_atomic_t caught;

static void on_signal(int number)
{
    caught = number;
}

void signals_begin(struct signals *signals)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t ends;
    (void)sigemptyset(&ends);
    for (size_t i = 0; i < SIGNALS_COUNT; i++)
        (void)sigaddset(&ends, caught_signals[i]);
    (void)sigprocmask(SIG_BLOCK, &ends, &signals->outside);
    for (size_t i = 0; i < SIGNALS_COUNT; i++) {
        (void)sigaction(caught_signals[i], NULL, &signals->before[i]);
        if (signals->before[i].sa_handler != SIG_IGN)
            (void)sigaction(caught_signals[i], &action, NULL);
    }
}

void signals_end(const struct signals *signals)
{
    for (size_t i = 0; i < SIGNALS_COUNT; i++)
        (void)sigaction(caught_signals[i], &signals->before[i], NULL);
    (void)sigprocmask(SIG_SETMASK, &signals->outside, NULL);
}

int signals_caught(void)
{
    return (int)caught;
}

int signals_consume(void)
{
    int number = (int)caught;
    caught = 0;
    return number;
}

void signals_wait(const struct signals *signals, struct lh_client *client, int64_t length_ms)
{
    struct pollfd source = {.fd = client != NULL ? lh_fd(client) : -1, .events = POLLIN};
    struct timespec length = {.tv_sec = length_ms / 1000, .tv_nsec = length_ms % 1000 * 1000000};
    (void)ppoll(&source, 1, length_ms >= 0 ? &length : NULL, &signals->outside);
}
