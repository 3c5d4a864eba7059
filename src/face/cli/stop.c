/* SPDX-License-Identifier: Apache-2.0 */
/* See stop.h. Signals are blocked but for the sleep itself, so that none comes just before it. */
#include "face/cli/stop.h"

#include <poll.h>
#include <stddef.h>
#include <time.h>

static const int stop_signals[STOP_SIGNALS] = {SIGHUP, SIGINT, SIGTERM};
static volatile sig_atomic_t caught;

static void on_signal(int number)
{
    caught = number;
}

void stop_begin(struct stop *stop)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t ends;
    (void)sigemptyset(&ends);
    for (size_t i = 0; i < STOP_SIGNALS; i++)
        (void)sigaddset(&ends, stop_signals[i]);
    (void)sigprocmask(SIG_BLOCK, &ends, &stop->outside);
    for (size_t i = 0; i < STOP_SIGNALS; i++) {
        (void)sigaction(stop_signals[i], NULL, &stop->before[i]);
        if (stop->before[i].sa_handler != SIG_IGN)
            (void)sigaction(stop_signals[i], &action, NULL);
    }
}

void stop_end(const struct stop *stop)
{
    for (size_t i = 0; i < STOP_SIGNALS; i++)
        (void)sigaction(stop_signals[i], &stop->before[i], NULL);
    (void)sigprocmask(SIG_SETMASK, &stop->outside, NULL);
}

int stop_caught(void)
{
    return (int)caught;
}

int stop_take(void)
{
    int number = (int)caught;
    caught = 0;
    return number;
}

void stop_sleep(const struct stop *stop, struct lh_client *client, int64_t length_ms)
{
    struct pollfd source = {.fd = client != NULL ? lh_fd(client) : -1, .events = POLLIN};
    struct timespec length = {.tv_sec = length_ms / 1000, .tv_nsec = length_ms % 1000 * 1000000};
    (void)ppoll(&source, 1, length_ms >= 0 ? &length : NULL, &stop->outside);
}
