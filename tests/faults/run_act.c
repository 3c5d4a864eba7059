/* SPDX-License-Identifier: Apache-2.0 */
/* See run_act.h. */
#include "run_act.h"

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

static void add_child(struct act *act, size_t number)
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
    known_note(&act->processes[number], pid);
}

int act_play(size_t number)
{
    struct board *board = kit_find_board(sizeof *board);
    const char *token = getenv("LEASEHOLD_TOKEN");
    if (token == NULL || number >= ACTS_MAX)
        return 1;
    struct act *act = &board->acts[number];
    unsigned beside = 0;
    for (size_t i = 0; number > 0 && i < ACT_PROCESSES; i++)
        beside += known_lives(&board->acts[number - 1].processes[i]) ? 1 : 0;
    atomic_store(&act->beside, beside);
    atomic_store(&act->token, strtoull(token, NULL, 10));
    atomic_store(&act->began_us, rig_now_us());
    if (atomic_load(&board->closes))
        for (int file = 3; file < 64; file++)
            (void)close(file);
    known_note(&act->processes[0], getpid());
    for (size_t i = 1; i < ACT_PROCESSES; i++)
        add_child(act, i);
    atomic_store(&act->ready, true);
    for (;;)
        (void)pause();
}

pid_t act_start(const char *program, const char *own, size_t number, const char *ttl)
{
    char digits[24];
    const char *words[] = {"leasehold", "run", "key",       "--ttl", ttl,
                           "--",        own,   "--command", digits,  NULL};
    (void)snprintf(digits, sizeof digits, "%zu", number);
    return kit_start(program, words);
}

bool act_begins_within(struct act *act, int64_t limit_ms)
{
    int64_t end_ms = live_now_ms() + limit_ms;
    while (!atomic_load(&act->ready)) {
        if (live_now_ms() >= end_ms)
            return false;
        rig_pause_us(200);
    }
    return true;
}

bool act_is_in_line(pid_t front)
{
    int64_t end_ms = live_now_ms() + ACT_PATIENCE_MS;
    while (!kit_is_in_line(kit_guardian(front), "key")) {
        if (live_now_ms() >= end_ms)
            return false;
        rig_pause_us(500);
    }
    return true;
}

bool act_is_gone(const struct act *act)
{
    for (size_t i = 0; i < ACT_PROCESSES; i++)
        if (known_lives(&act->processes[i]))
            return false;
    return true;
}

void act_end(const struct act *act, size_t first)
{
    for (size_t i = first; i < ACT_PROCESSES; i++)
        if (known_lives(&act->processes[i]))
            (void)kill(atomic_load(&act->processes[i].pid), SIGKILL);
}
