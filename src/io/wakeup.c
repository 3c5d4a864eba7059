/* SPDX-License-Identifier: Apache-2.0 */
/* See wakeup.h. A message is two bytes of length and the words, written at once. */
#include "io/wakeup.h"

#include "io/disk_inside.h"
#include "io/hush.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS_MOST = 512 };

static bool name_of(const struct disk *disk, uint64_t session, char *out, size_t size)
{
    struct text name;
    const struct real_disk *real = disk_inside(disk);
    if (real == NULL)
        return false;
    text_init(&name, out, size);
    text_add(&name, real->name);
    text_add(&name, ".wake-");
    text_add_hex(&name, session);
    return !name.cut;
}

void wakeup_init(struct wakeup *wakeup, const struct disk *disk, uint64_t session)
{
    *wakeup = (struct wakeup){.file = -1, .folder = -1};
    struct real_disk *real = disk_inside(disk);
    if (real == NULL || !name_of(disk, session, wakeup->name, sizeof wakeup->name))
        return;
    wakeup->folder = real->folder.file;
    (void)unlinkat(wakeup->folder, wakeup->name, 0);
    if (mkfifoat(wakeup->folder, wakeup->name, folder_mode(&real->folder)) == 0)
        wakeup->file = openat(wakeup->folder, wakeup->name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

void wakeup_done(struct wakeup *wakeup)
{
    if (wakeup->file < 0)
        return;
    (void)unlinkat(wakeup->folder, wakeup->name, 0);
    (void)close(wakeup->file);
    wakeup->file = -1;
}

void wakeup_send(const struct wakeup *wakeup, const struct disk *disk, uint64_t session,
                 const char *words)
{
    char name[sizeof wakeup->name];
    unsigned char message[2 + WORDS_MOST];
    size_t length = strlen(words);
    struct stat status;
    struct hush hush;
    if (length > WORDS_MOST || !name_of(disk, session, name, sizeof name))
        return;
    int folder = disk_inside(disk)->folder.file;
    int file = openat(folder, name, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return;
    message[0] = (unsigned char)length;
    message[1] = (unsigned char)(length >> 8);
    memcpy(message + 2, words, length);
    hush_begin(&hush, SIGPIPE);
    bool sent = fstat(file, &status) == 0 && S_ISFIFO(status.st_mode) &&
                write(file, message, 2 + length) > 0;
    hush_end(&hush, !sent);
    (void)close(file);
}

bool wakeup_next(struct wakeup *wakeup, char *words, size_t size)
{
    unsigned char head[2];
    if (wakeup->file < 0 || read(wakeup->file, head, sizeof head) != sizeof head)
        return false;
    size_t length = head[0] | (size_t)head[1] << 8;
    if (length >= size || read(wakeup->file, words, length) != (ssize_t)length)
        return false;
    words[length] = '\0';
    return true;
}
