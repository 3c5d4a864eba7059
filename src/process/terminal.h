/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controlling terminal, and which process group is in front there. SIGTTOU must be blocked by
 * whoever passes it on from the background.
 */
#ifndef LEASEHOLD_PROCESS_TERMINAL_H
#define LEASEHOLD_PROCESS_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

/* −1 when there is none. */
int terminal_open(void);
bool terminal_is_foreground(int terminal, pid_t group);
void terminal_set_foreground(int terminal, pid_t group);
/* Is one end of a pipe where this program reads or writes? Then others of the same job may need
 * the terminal. */
bool terminal_is_shared(void);

#endif
