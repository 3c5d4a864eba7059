/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See wakeup.h. A message is a two-byte length and a text, written atomically (PIPE_BUF). All users
 * with write access to the folder can send, so messages are untrusted: a malformed one empties the
 * FIFO.
 */
#include "disk/wakeup.h"

#include "base/check.h"
#include "disk/disk_internal.h"
#include "process/block_signal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    NAME_MOST = 288,
    READS_MOST = 256
}; /* in one call, so that a flood of messages cannot keep the reader busy */

static const char wake_mark[] = ".wake-";
static const char unopened_mark[] = ".new";

struct message {
    uint16_t length;
    char payload[WAKEUP_PAYLOAD];
};
_Static_assert(sizeof(struct message) <= PIPE_BUF, "or writes would mix");

static void wakeup_make_name(char *out, size_t size, const struct real_disk *disk, uint64_t session)
{
    struct text text;
    text_init(&text, out, size);
    TEXT_JOIN(&text, disk->name, wake_mark);
    text_add_hex(&text, session);
    ASSERT(!text.cut);
}

/* True for a FIFO with an owner that folder_admits() accepts. */
static bool is_trusted_fifo(const struct real_disk *disk, int file)
{
    struct stat status;
    return fstat(file, &status) == 0 && S_ISFIFO(status.st_mode) &&
           folder_admits(&disk->folder, &status);
}

void wakeup_init(struct wakeup *wakeup, const struct disk *disk, uint64_t session)
{
    struct real_disk *real = disk_real(disk);
    *wakeup = (struct wakeup){.disk = real, .folder = -1, .file = -1};
    if (real == NULL)
        return;
    mode_t mode = folder_mode(&real->folder);
    wakeup->folder = real->folder.file;
    wakeup_make_name(wakeup->name, sizeof wakeup->name, real, session);
    char unopened[sizeof wakeup->name + sizeof unopened_mark];
    (void)snprintf(unopened, sizeof unopened, "%s%s", wakeup->name, unopened_mark);
    (void)unlinkat(wakeup->folder, unopened, /* flags= */ 0); /* left by a killed process */
    if (mkfifoat(wakeup->folder, unopened, mode) != 0)
        return;
    /* Also for writing: otherwise a read returns end of file while no sender has it open. */
    int file = descriptors_open(&real->descriptors, wakeup->folder, unopened, O_RDWR | O_NONBLOCK,
                                /* mode= */ 0);
    /* A sender removes a FIFO that has no reader, so ours gets its name after it is open. */
    if (file >= 0 && is_trusted_fifo(real, file) && fchmod(file, mode) == 0 &&
        renameat(wakeup->folder, unopened, wakeup->folder, wakeup->name) == 0) {
        wakeup->file = file;
        return;
    }
    if (file >= 0)
        descriptors_close(&real->descriptors, file);
    (void)unlinkat(wakeup->folder, unopened, /* flags= */ 0);
}

/* In a forked child the FIFO belongs to the parent, and the number may be another file. */
static bool wakeup_is_open(const struct wakeup *wakeup)
{
    const struct real_disk *real = wakeup->disk;
    return wakeup->file >= 0 && !descriptors_are_forked(&real->descriptors);
}

void wakeup_done(struct wakeup *wakeup)
{
    struct real_disk *real = wakeup->disk;
    if (wakeup_is_open(wakeup)) {
        (void)unlinkat(wakeup->folder, wakeup->name, /* flags= */ 0);
        descriptors_close(&real->descriptors, wakeup->file);
    }
    *wakeup = (struct wakeup){.folder = -1, .file = -1};
}

void wakeup_send(const struct disk *disk, uint64_t session, const char *payload)
{
    struct message message;
    struct block_signal block_signal;
    char name[NAME_MOST];
    const struct real_disk *real = disk_real(disk);
    size_t length = strlen(payload);
    ASSERT(length <= sizeof message.payload);
    if (real == NULL)
        return;
    message.length = (uint16_t)length;
    memcpy(message.payload, payload, length);
    wakeup_make_name(name, sizeof name, real, session);
    int file =
        openat(real->folder.file, name, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
    bool unread = file < 0 && errno == ENXIO;
    if (file >= 0 && is_trusted_fifo(real, file)) {
        block_signal_begin(&block_signal, SIGPIPE);
        unread = write(file, &message, sizeof message.length + length) < 0 && errno == EPIPE;
        block_signal_end(&block_signal, unread);
    }
    if (file >= 0)
        (void)close(file);
    if (unread)
        (void)unlinkat(real->folder.file, name, /* flags= */ 0);
}

void wakeup_remove(const struct disk *disk, uint64_t session)
{
    char name[NAME_MOST];
    const struct real_disk *real = disk_real(disk);
    if (real == NULL)
        return;
    wakeup_make_name(name, sizeof name, real, session);
    (void)unlinkat(real->folder.file, name, /* flags= */ 0);
}

/* The session in the name of a FIFO of this store; 0 for any other name. */
static uint64_t session_in(const struct real_disk *disk, const char *name)
{
    char own[NAME_MOST];
    size_t length = strlen(disk->name) + strlen(wake_mark);
    if (strlen(name) <= length)
        return 0;
    uint64_t session = strtoull(name + length, NULL, 16);
    wakeup_make_name(own, sizeof own, disk, session);
    size_t own_length = strlen(own);
    bool ours = strncmp(own, name, own_length) == 0 &&
                (name[own_length] == '\0' || strcmp(name + own_length, unopened_mark) == 0);
    return ours ? session : 0;
}

/* Skips the other files of the folder, which can be many. */
static int may_be_ours(const struct dirent *entry)
{
    return strstr(entry->d_name, wake_mark) != NULL;
}

void wakeup_sweep(const struct disk *disk, bool (*lives)(void *owner, uint64_t session),
                  void *owner)
{
    const struct real_disk *real = disk_real(disk);
    struct dirent **found = NULL;
    int count = real == NULL ? 0 : scandirat(real->folder.file, ".", &found, may_be_ours, NULL);
    for (int i = 0; i < count; i++) {
        uint64_t session = session_in(real, found[i]->d_name);
        if (session != 0 && !lives(owner, session))
            (void)unlinkat(real->folder.file, found[i]->d_name, /* flags= */ 0);
        free(found[i]);
    }
    free((void *)found);
}

/* Writes are atomic, so the next message after this begins with a length again. */
static void wakeup_drain(int file)
{
    char bytes[PIPE_BUF];
    for (int i = 0; i < READS_MOST; i++)
        if (read(file, bytes, sizeof bytes) <= 0)
            return;
}

bool wakeup_next(struct wakeup *wakeup, char *payload, size_t size)
{
    struct message message;
    if (!wakeup_is_open(wakeup))
        return false;
    for (int i = 0; i < READS_MOST; i++) {
        ssize_t count = read(wakeup->file, &message.length, sizeof message.length);
        if (count < 0)
            return false;
        size_t length = message.length;
        if (count != (ssize_t)sizeof message.length || length > sizeof message.payload ||
            (length > 0 && read(wakeup->file, message.payload, length) != (ssize_t)length)) {
            wakeup_drain(wakeup->file);
            return false;
        }
        if (length < size && memchr(message.payload, '\0', length) == NULL) {
            memcpy(payload, message.payload, length);
            payload[length] = '\0';
            return true;
        }
    }
    return false;
}
