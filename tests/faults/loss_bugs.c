/* SPDX-License-Identifier: Apache-2.0 */
/* Faulty disks, each wrong in one way: see power_loss.h. Each behaves as a disk under a buggy log.
 */
#include "power_loss.h"

#include "base/check.h"

#include <errno.h>
#include <string.h>

enum loss_bug loss_bug;

const char *const loss_bug_texts[BUG_COUNT] = {
#define LOSS_BUG_TEXT(name, text) text,
    LOSS_BUGS(LOSS_BUG_TEXT)
#undef LOSS_BUG_TEXT
};

static struct disk honest;

static bool has_name(const struct fake_disk *disk, int opened, const char *suffix)
{
    for (size_t i = 0; i < disk->name_count; i++)
        if (disk->names[i].file == disk->open[opened] - 1)
            return strcmp(disk->names[i].name, suffix) == 0;
    return false;
}

static int sync_but_not_new(void *owner, int opened)
{
    return has_name(owner, opened, ".new") ? 0 : honest.sync(owner, opened);
}

static int sync_again(void *owner, int opened)
{
    int error = honest.sync(owner, opened);
    return error == -EIO ? 0 : error;
}

static int no_folder_sync(void *owner)
{
    (void)owner;
    return 0;
}

static int64_t write_no_zeros(void *owner, int opened, const void *bytes, size_t length,
                              uint64_t offset)
{
    const unsigned char *at = bytes;
    size_t i = 0;
    while (i < length && at[i] == 0)
        i++;
    if (i == length && offset >= LOG_START && has_name(owner, opened, ""))
        return (int64_t)length;
    return honest.write(owner, opened, bytes, length, offset);
}

void loss_bug_into(struct fake_disk *disk, bool recovering)
{
    honest = disk->table;
    if (loss_bug == BUG_RENAME_FIRST)
        disk->table.sync = sync_but_not_new;
    if (loss_bug == BUG_SYNC_AGAIN)
        disk->table.sync = sync_again;
    if (loss_bug == BUG_NO_FOLDER_SYNC)
        disk->table.sync_folder = no_folder_sync;
    if (loss_bug == BUG_NOTHING_ZEROED && recovering)
        disk->table.write = write_no_zeros;
}
