/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is alive: a process keeps a byte of the lock file locked for each of its sessions, on an
 * open file of its own. The kernel lets go when the last process that has that file open is gone,
 * however it ended; so a command that inherits the descriptor keeps the session alive.
 */
#ifndef LEASEHOLD_DISK_SESSION_H
#define LEASEHOLD_DISK_SESSION_H

#include "disk/disk.h"

/* The open file, or −errno; −EAGAIN when another process keeps that session. */
int session_keep(const struct disk *disk, const char *suffix, uint64_t session);
/* Likewise, but waits for it; −ETIMEDOUT when the disk's clock reaches the deadline first. */
int session_await(const struct disk *disk, const char *suffix, uint64_t session,
                  int64_t deadline_ms);
/* In doubt it does. `file` is any other open file of the same name. */
bool session_lives(const struct disk *disk, int file, uint64_t session);
/* 1 when a process keeps any session of that file, 0 when none does, or −errno. */
int session_any_lives(const struct disk *disk, int file);

#endif
