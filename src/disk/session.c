/* SPDX-License-Identifier: Apache-2.0 */
/* See session.h. */
#include "disk/session.h"

#include "process/lock_owners.h"

/* Far beyond the bytes that serve as locks. */
static const uint64_t first_byte = (uint64_t)1 << 62;

uint64_t session_byte(uint64_t session)
{
    return first_byte | (session & (first_byte - 1));
}

int session_keep(const struct disk *disk, const char *suffix, uint64_t session)
{
    int file = disk->open(disk->owner, suffix, DISK_OPEN);
    int error = file < 0 ? file : disk->lock(disk->owner, file, session_byte(session));
    if (error == 0)
        return file;
    if (file >= 0)
        disk->close(disk->owner, file);
    return error;
}

int session_await(const struct disk *disk, const char *suffix, uint64_t session,
                  int64_t deadline_ms)
{
    int file = disk->open(disk->owner, suffix, DISK_OPEN);
    int error = file < 0
                    ? file
                    : disk_lock(disk, file, session_byte(session), /* word= */ NULL, deadline_ms);
    if (error == 0)
        return file;
    if (file >= 0)
        disk->close(disk->owner, file);
    return error;
}

bool session_lives(const struct disk *disk, int file, uint64_t session)
{
    return disk->is_locked(disk->owner, file, session_byte(session)) != 0;
}

int session_any_lives(const struct disk *disk, int file)
{
    return disk->is_any_locked(disk->owner, file, first_byte);
}

/* A session is a random number, so its byte is not locked in any other file. */
size_t session_processes(uint64_t session, int *out, size_t size)
{
    return lock_owners(session_byte(session), out, size);
}
