/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a program in PATH and starts it without a shell, in its own process group. Separate calls,
 * so that a wrong name fails before any other work. Must not depend on leases.
 */
#ifndef LEASEHOLD_PROCESS_PROGRAM_H
#define LEASEHOLD_PROCESS_PROGRAM_H

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

/* Searches as a shell does. Returns 0, or ENOENT, EACCES or another errno. */
int program_find(const char *name, char *out_path, size_t size);

struct program {
    const char *path;
    char *const *argv;
    char *const *environment;
    int out;               /* its standard output; 0: ours */
    const sigset_t *mask;  /* its initial signal mask */
    int terminal;          /* its group becomes the foreground group here … */
    pid_t foreground_from; /* … if this group is the foreground group now; −1: never */
    _Atomic pid_t *group;  /* receives its process group before the program runs */
};

/*
 * Returns its pid, which is also its group, or −errno. The kernel kills it when the calling thread
 * ends. The caller must block the terminal's signals to background processes (SIGTTOU).
 */
pid_t program_start(const struct program *program);

#endif
