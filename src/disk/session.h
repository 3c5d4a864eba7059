/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session liveness: a process keeps one byte of the lock file locked for each of its sessions, on a
 * separate open file. The kernel unlocks it when the last process that has the file open is gone,
 * however it ended; so a command that inherits the descriptor keeps the session alive.
 */
#ifndef LEASEHOLD_DISK_SESSION_H
#define LEASEHOLD_DISK_SESSION_H

#include "disk/disk.h"

/* The byte of the lock file that is locked for the session. */
uint64_t session_byte(uint64_t session);
/* Returns the open file, or −errno; −EAGAIN if another process keeps that session. */
int session_keep(const struct disk *disk, const char *suffix, uint64_t session);
/* Likewise, but waits for it; −ETIMEDOUT if the disk's clock reaches the deadline first. */
int session_await(const struct disk *disk, const char *suffix, uint64_t session,
                  int64_t deadline_ms);
/* True also if the lock cannot be queried. `file` is any other open file of the same name. */
bool session_lives(const struct disk *disk, int file, uint64_t session);
/* 1 if a process keeps any session of that file, 0 if none does, or −errno. */
int session_any_lives(const struct disk *disk, int file);
/* The processes that keep the session alive, as far as this user may see them; for people only.
 * Returns how many it has written, at most `size`. Reads /proc, which takes milliseconds. */
size_t session_processes(uint64_t session, int *out, size_t size);

#endif
