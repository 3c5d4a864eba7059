/* SPDX-License-Identifier: Apache-2.0 */
/* See signals.h. Signals are blocked except in ppoll(), so that none comes just before a sleep. */
#include "face/cli/signals.h"

#include <poll.h>
#include <stddef.h>
#include <time.h>

static const int caught_signals[SIGNALS_COUNT] = {SIGHUP, SIGINT, SIGTERM};
static volatile sig_atomic_t caught;
static sigset_t outermost; /* the mask before the first of nested signals_begin() */
static int depth;

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
    (void)sigprocmask(SIG_BLOCK, &ends, &signals->mask);
    if (depth++ == 0)
        outermost = signals->mask;
    signals->outside = outermost;
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
    (void)sigprocmask(SIG_SETMASK, &signals->mask, NULL);
    depth--;
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

bool signals_wait_also(const struct signals *signals, struct lh_client *client, int also,
                       int64_t length_ms)
{
    struct pollfd waits[] = {{.fd = client != NULL ? lh_fd(client) : -1, .events = POLLIN},
                             {.fd = also, .events = POLLIN}};
    struct timespec length = {.tv_sec = length_ms / 1000, .tv_nsec = length_ms % 1000 * 1000000};
    int ready = ppoll(waits, sizeof waits / sizeof waits[0], length_ms >= 0 ? &length : NULL,
                      &signals->outside);
    return ready > 0 && waits[1].revents != 0;
}

void signals_wait(const struct signals *signals, struct lh_client *client, int64_t length_ms)
{
    (void)signals_wait_also(signals, client, /* also= */ -1, length_ms);
}
