/* SPDX-License-Identifier: Apache-2.0 */
/* Retry loops around the calls of any disk; see disk.h. */
#include "disk/disk.h"

#include <errno.h>

/* With a word, an unlock wakes us, and polls only detect a killed owner. Without one we only poll,
 * often at first, because the owner is just creating the shared page. */
enum {
    WOKEN_FIRST_US = 1000,
    WOKEN_MOST_US = 10000,
    ALONE_FIRST_US = 50,
    ALONE_MOST_US = 5000,
};

int disk_write(const struct disk *disk, int file, const void *bytes, size_t length, uint64_t offset)
{
    const char *at = bytes;
    while (length > 0) {
        int64_t count = disk->write(disk->owner, file, at, length, offset);
        if (count == -EINTR)
            continue;
        if (count <= 0)
            return count == 0 ? -EIO : (int)count;
        at += count;
        offset += (uint64_t)count;
        length -= (size_t)count;
    }
    return 0;
}

int64_t disk_read(const struct disk *disk, int file, void *bytes, size_t length, uint64_t offset)
{
    char *at = bytes;
    size_t done = 0;
    while (done < length) {
        int64_t count = disk->read(disk->owner, file, at + done, length - done, offset + done);
        if (count == -EINTR)
            continue;
        if (count < 0)
            return count;
        if (count == 0)
            break;
        done += (size_t)count;
    }
    return (int64_t)done;
}

int disk_lock(const struct disk *disk, int file, uint64_t byte, _Atomic uint32_t *word,
              int64_t deadline_ms)
{
    _Atomic uint32_t nobody = 0; /* never changes: wait() only sleeps */
    int64_t most_us = word != NULL ? WOKEN_MOST_US : ALONE_MOST_US;
    int64_t step_us = word != NULL ? WOKEN_FIRST_US : ALONE_FIRST_US;
    if (word == NULL)
        word = &nobody;
    for (;;) {
        /* Read the word first: an unlock after the attempt changes it, and we do not sleep. */
        uint32_t value = atomic_load(word);
        int result = disk->lock(disk->owner, file, byte);
        if (result != -EAGAIN && result != -EINTR)
            return result;
        int64_t now_ms = disk->boot_ms(disk->owner);
        if (now_ms >= deadline_ms)
            return -ETIMEDOUT;
        int64_t left_ms = deadline_ms - now_ms;
        disk->wait(disk->owner, word, value, left_ms < step_us / 1000 ? left_ms * 1000 : step_us);
        step_us = step_us * 2 < most_us ? step_us * 2 : most_us;
    }
}

void disk_unlock(const struct disk *disk, int file, uint64_t byte, _Atomic uint32_t *word)
{
    disk->unlock(disk->owner, file, byte);
    if (word == NULL)
        return;
    (void)atomic_fetch_add(word, 1);
    disk->wake(disk->owner, word, /* all= */ false);
}
