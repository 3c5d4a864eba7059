/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes below this one. Who calls process_tree_adopt() becomes the parent of all that its
 * descendants leave behind, so it has children for as long as any of them is there. What the kernel
 * says about a process is looked at again once it is pinned, so that nobody is hit who only got an
 * old number.
 */
#ifndef LEASEHOLD_PROCESS_PROCESS_TREE_H
#define LEASEHOLD_PROCESS_PROCESS_TREE_H

#include <stdbool.h>
#include <sys/types.h>

bool process_tree_adopt(void);
/* Does this process have a child already, of whatever ran in it before? */
bool process_tree_has_children(void);
/* Kills every descendant, in whatever group or session it is. They are still to be collected. */
void process_tree_kill(void);
/* Is a process of this group at work? Dead ones that nobody collected do not count. */
bool process_group_alive(pid_t group);

#endif
