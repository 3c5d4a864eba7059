/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leader election with the library, as peers/leader_election.go does it with client-go:
 * leader URL KEY TTL_MS NAME FILE. While it leads it writes a line into a shared file every few
 * milliseconds: its name and the time, read before lh_held(). It ends when it no longer leads, or
 * on SIGTERM, which releases the lock.
 */
#include "leasehold.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;

static void on_stop(int number)
{
    (void)number;
    stopped = 1;
}

static long long wall_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void pause_ms(long length)
{
    const struct timespec span = {.tv_nsec = length * 1000000};
    (void)nanosleep(&span, NULL);
}

/* One write per line, so that the lines of several processes do not mix. */
static void lead(const struct lh_lease *lease, const char *name, int file)
{
    while (!stopped) {
        long long at_ms = wall_ms();
        if (!lh_held(lease) || dprintf(file, "%s %lld\n", name, at_ms) < 0)
            return;
        pause_ms(5);
    }
}

int main(int argc, char **argv)
{
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    struct lh_acquire_options wish = LH_ACQUIRE_OPTIONS_INIT;
    struct lh_client *client = NULL;
    struct lh_lease *lease = NULL;
    struct lh_report report = LH_REPORT_INIT;
    enum lh_outcome outcome = LH_UNAVAILABLE;
    if (argc != 6)
        return 64;
    int file = open(argv[5], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    (void)signal(SIGTERM, on_stop);
    options.holder = argv[4];
    wish.ttl_ms = strtol(argv[3], NULL, 10);
    wish.wait_ms = 1000; /* then it checks for SIGTERM */
    while (!stopped && outcome != LH_OK) {
        if (client == NULL)
            outcome = lh_open(argv[1], &options, &client, &report);
        if (client != NULL)
            outcome = lh_acquire(client, argv[2], &wish, &lease, &report);
        if (outcome != LH_OK)
            pause_ms(20);
    }
    if (lease != NULL) {
        lead(lease, argv[4], file);
        outcome = lh_held(lease) ? LH_OK : LH_LOST;
        (void)lh_release(&lease, &report);
    }
    lh_close(&client);
    return outcome == LH_LOST ? 76 : 0;
}
