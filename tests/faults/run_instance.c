/* SPDX-License-Identifier: Apache-2.0 */
/* See run_instance.h. */
#include "run_instance.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void sleep_deaf(void)
{
    for (int signal = 1; signal < 32; signal++)
        if (signal != SIGCHLD)
            (void)sigaction(signal, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    for (;;)
        (void)pause();
}

static void add_child(struct instance *instance, size_t number)
{
    pid_t pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0) {
        if (number == 3)
            (void)setsid();
        if (number >= 2)
            sleep_deaf();
        for (;;)
            (void)pause();
    }
    process_ref_set(&instance->processes[number], pid);
}

int instance_main(size_t number)
{
    struct board *board = kit_find_board(sizeof *board);
    const char *token = getenv("LEASEHOLD_TOKEN");
    if (token == NULL || number >= INSTANCES_MAX)
        return 1;
    struct instance *instance = &board->instances[number];
    unsigned overlapping = 0;
    for (size_t i = 0; number > 0 && i < INSTANCE_PROCESSES; i++)
        overlapping += process_ref_alive(&board->instances[number - 1].processes[i]) ? 1 : 0;
    atomic_store(&instance->overlapping, overlapping);
    atomic_store(&instance->token, strtoull(token, NULL, 10));
    atomic_store(&instance->began_us, fixture_now_us());
    if (atomic_load(&board->closes))
        for (int file = 3; file < 64; file++)
            (void)close(file);
    process_ref_set(&instance->processes[0], getpid());
    for (size_t i = 1; i < INSTANCE_PROCESSES; i++)
        add_child(instance, i);
    atomic_store(&instance->ready, true);
    for (;;)
        (void)pause();
}

pid_t instance_start(const char *program, const char *own, size_t number, const char *ttl)
{
    char digits[24];
    const char *args[] = {"leasehold", "run", "key",       "--ttl", ttl,
                          "--",        own,   "--command", digits,  NULL};
    (void)snprintf(digits, sizeof digits, "%zu", number);
    return kit_start(program, args);
}

bool instance_starts_within(struct instance *instance, int64_t limit_ms)
{
    int64_t end_ms = live_now_ms() + limit_ms;
    while (!atomic_load(&instance->ready)) {
        if (live_now_ms() >= end_ms)
            return false;
        fixture_pause_us(200);
    }
    return true;
}

bool instance_is_queued(pid_t foreground)
{
    int64_t end_ms = live_now_ms() + INSTANCE_TIMEOUT_MS;
    while (!kit_is_queued(kit_supervisor(foreground), "key")) {
        if (live_now_ms() >= end_ms)
            return false;
        fixture_pause_us(500);
    }
    return true;
}

bool instance_is_gone(const struct instance *instance)
{
    for (size_t i = 0; i < INSTANCE_PROCESSES; i++)
        if (process_ref_alive(&instance->processes[i]))
            return false;
    return true;
}

void instance_kill(const struct instance *instance, size_t first)
{
    for (size_t i = first; i < INSTANCE_PROCESSES; i++)
        if (process_ref_alive(&instance->processes[i]))
            (void)kill(atomic_load(&instance->processes[i].pid), SIGKILL);
}
