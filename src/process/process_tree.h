/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descendants of this process. process_tree_adopt() makes it the parent of orphaned
 * descendants, so it has children as long as any descendant exists. A process is checked again
 * once its pidfd is open, so that a reused pid is never signalled.
 */
#ifndef LEASEHOLD_PROCESS_PROCESS_TREE_H
#define LEASEHOLD_PROCESS_PROCESS_TREE_H

#include <stdbool.h>
#include <sys/types.h>

bool process_tree_adopt(void);
/* True if this process has children already, from a program that ran in it before an exec. */
bool process_tree_has_children(void);
/* Kills every descendant, in any process group or session. Does not reap them. */
void process_tree_kill(void);
/* True if a process of this group is alive. Zombies do not count. */
bool process_group_alive(pid_t group);

#endif
