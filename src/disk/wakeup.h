/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wake-ups between processes of one host: each waiter has a FIFO in the store's folder, named after
 * its session. Delivery is best effort: a full FIFO drops messages, and the waiter's fallback poll
 * covers the loss. Must not block.
 */
#ifndef LEASEHOLD_DISK_WAKEUP_H
#define LEASEHOLD_DISK_WAKEUP_H

#include "disk/disk.h"

enum { WAKEUP_PAYLOAD = 512 };

struct wakeup {
    void *disk; /* the owner in its table; NULL: not a real disk, so there are no wake-ups */
    int folder; /* the disk owns it */
    int file;   /* readable when a message arrived; −1: the FIFO could not be made */
    char name[288];
};

/* Makes our FIFO. If that fails (no space, no permission), sending still works. */
void wakeup_init(struct wakeup *wakeup, const struct disk *disk, uint64_t session);
void wakeup_done(struct wakeup *wakeup); /* removes it; call before disk_done() */

/* Sends a text of at most WAKEUP_PAYLOAD bytes. Removes a FIFO that has no reader. */
void wakeup_send(const struct disk *disk, uint64_t session, const char *payload);
/* Removes the FIFO of a dead session; wakeup_sweep() removes those of all dead sessions. */
void wakeup_remove(const struct disk *disk, uint64_t session);
void wakeup_sweep(const struct disk *disk, bool (*lives)(void *owner, uint64_t session),
                  void *owner);
/* Reads the next message, NUL-terminated; false if there is none. Skips messages that are malformed
 * or do not fit in `size`. */
bool wakeup_next(struct wakeup *wakeup, char *payload, size_t size);

#endif
