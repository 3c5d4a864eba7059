/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controlling terminal and its foreground process group. A process in the background must
 * block SIGTTOU before it changes the foreground group.
 */
#ifndef LEASEHOLD_PROCESS_TERMINAL_H
#define LEASEHOLD_PROCESS_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

/* −1 if there is none. */
int terminal_open(void);
bool terminal_is_foreground(int terminal, pid_t group);
void terminal_set_foreground(int terminal, pid_t group);
/* True if standard input or output is a pipe: then other processes of the job may need the
 * terminal. */
bool terminal_is_shared(void);

#endif
