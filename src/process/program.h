/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs: found before anything else is done, and started without a shell in between, in a
 * process group of their own. Knows nothing about leases.
 */
#ifndef LEASEHOLD_PROCESS_PROGRAM_H
#define LEASEHOLD_PROCESS_PROGRAM_H

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

/* Where a shell would find it. 0, or ENOENT, EACCES and the like. */
int program_find(const char *name, char *out_path, size_t size);

struct program {
    const char *path;
    char *const *argv;
    char *const *environment;
    int out;               /* its standard output; 0: ours */
    const sigset_t *mask;  /* the signals that it begins with */
    int terminal;          /* its group comes to the front there … */
    pid_t foreground_from; /* … if this one is in front now; −1: never */
    _Atomic pid_t *group;  /* where its process group is told, before it can do anything */
};

/*
 * Its pid, which is its group too, or −errno. It is killed when the calling thread ends. The
 * terminal's signals that a background process gets must be blocked.
 */
pid_t program_start(const struct program *program);

#endif
