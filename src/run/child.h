/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command that runs under a lease, as seen by its parent: it runs, is asked to end, is killed,
 * and is done when none of its processes is left. The parent must have called process_tree_adopt()
 * and have no other children. Must not depend on leases. Times are those of host_boot_ms().
 *
 *     running ──(it exits)──► draining ──(its group is gone)──► done
 *        │                       │
 *        └─────(terminate)───────┴──► terminating ──(kill time, or group gone)──► killed ──► done
 */
#ifndef LEASEHOLD_RUN_CHILD_H
#define LEASEHOLD_RUN_CHILD_H

#include "process/program.h"

#include <stdbool.h>
#include <stdint.h>

#define CHILD_NEVER INT64_MAX

enum child_state {
    CHILD_RUNNING,
    CHILD_DRAINING,    /* it exited; other processes of its group have not */
    CHILD_TERMINATING, /* its group received SIGTERM */
    CHILD_KILLED,      /* all its descendants received SIGKILL */
    CHILD_DONE,
};

struct child {
    enum child_state state;
    pid_t group;
    bool reaped;
    int wait_status; /* once it is reaped */
    int stopped_by;  /* 0: it is not stopped */
    int64_t due_ms;  /* when child_tick() must be called */
};

/* Finds a program as a shell does. 0, or ENOENT, EACCES and the like. */
int child_find_program(const char *name, char *out_path, size_t size);
/* 0 or −errno; then there is no child. */
int child_spawn(struct child *child, const struct program *program);
void child_signal(const struct child *child, int signal);
/* Sends SIGTERM to the group; processes left at the kill time are killed. */
void child_terminate(struct child *child, int64_t kill_at_ms);
void child_kill(struct child *child, int64_t now_ms);
/* After SIGCHLD: reaps children and updates the state. */
void child_reap(struct child *child, int64_t now_ms);
void child_tick(struct child *child, int64_t now_ms);
/* As in a shell: 128 plus the signal for a killed command. */
int child_exit_status(const struct child *child);

#endif
