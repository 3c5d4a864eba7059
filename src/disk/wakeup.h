/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How one process of the host wakes another: a FIFO of the waiter's in the store's folder, named
 * after its session. Nobody is told who does not read; a full FIFO loses what comes, and the
 * waiter's fallback look makes up for it.
 */
#ifndef LEASEHOLD_DISK_WAKEUP_H
#define LEASEHOLD_DISK_WAKEUP_H

#include "disk/disk.h"

enum { WAKEUP_PAYLOAD = 512 };

struct wakeup {
    void *disk; /* the owner of its table; NULL when it is no real one: then nobody wakes anybody */
    int folder; /* of the disk; not ours */
    int file;   /* readable when somebody woke us; −1 when it could not be made */
    char name[288];
};

/* Makes ours; without it (no room, no rights) one can still wake others. */
void wakeup_init(struct wakeup *wakeup, const struct disk *disk, uint64_t session);
void wakeup_done(struct wakeup *wakeup); /* and removes it; before the disk is done */

/* At most WAKEUP_PAYLOAD bytes of words. A FIFO that nobody reads any more is removed. */
void wakeup_send(const struct disk *disk, uint64_t session, const char *payload);
/* Removes what a process left that is known to be dead; what all left who are. */
void wakeup_remove(const struct disk *disk, uint64_t session);
void wakeup_sweep(const struct disk *disk, bool (*lives)(void *owner, uint64_t session),
                  void *owner);
/* The next words that came, with a NUL; false when there are none. What is no message of ours, or
 * has no room in `size`, is passed over. */
bool wakeup_next(struct wakeup *wakeup, char *payload, size_t size);

#endif
