/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of this host that have a byte of a file locked, as /proc shows them. For people
 * only: nothing is decided by it. A process of another user is visible to root alone.
 */
#ifndef LEASEHOLD_PROCESS_LOCK_OWNERS_H
#define LEASEHOLD_PROCESS_LOCK_OWNERS_H

#include <stddef.h>
#include <stdint.h>

/* Writes at most `size` process ids, the smallest first, and returns how many. The byte must be
 * a number that no other file has locked: files are not compared. */
size_t lock_owners(uint64_t byte, int *out, size_t size);

#endif
