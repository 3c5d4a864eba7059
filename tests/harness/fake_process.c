/* SPDX-License-Identifier: Apache-2.0 */
/* Wraps the calls of a fake disk; see fake_process.h. */
#include "fake_process.h"

#include <errno.h>
#include <string.h>

static struct fake_process *running;

static unsigned char *shared_page(const struct fake_process *fake_process)
{
    struct fake_file *file = fake_disk_file(fake_process->disk, ".lock");
    return file != NULL ? file->page : NULL;
}

static void crash(struct fake_process *fake_process)
{
    const unsigned char *page = shared_page(fake_process);
    if (page != NULL)
        memcpy(fake_process->page, page, DISK_PAGE);
    for (int i = 0; i < FAKE_OPEN; i++)
        if (fake_process->open[i])
            fake_process->disk->table.close(fake_process->disk, i);
    memset(fake_process->open, 0, sizeof fake_process->open);
    fake_process->dead = true;
}

void fake_process_discard(struct fake_process *fake_process)
{
    unsigned char *page = shared_page(fake_process);
    if (fake_process->dead && page != NULL)
        memcpy(page, fake_process->page, DISK_PAGE);
}

void crash_point(void)
{
    struct fake_process *fake_process = running;
    if (fake_process == NULL || fake_process->dead ||
        ++fake_process->steps != fake_process->stop_at)
        return;
    if (fake_process->meanwhile == NULL)
        crash(fake_process);
    else
        fake_process->meanwhile(fake_process->owner);
    running = fake_process;
}

/* Every call begins here; false if the process is dead. */
static bool is_alive(struct fake_process *fake_process)
{
    running = fake_process;
    crash_point();
    return !fake_process->dead;
}

static int open_file(void *owner, const char *suffix, enum disk_how how)
{
    struct fake_process *fake_process = owner;
    int file = is_alive(fake_process)
                   ? fake_process->disk->table.open(fake_process->disk, suffix, how)
                   : -EIO;
    if (file >= 0)
        fake_process->open[file] = true;
    return file;
}

static void close_file(void *owner, int file)
{
    struct fake_process *fake_process = owner;
    if (!is_alive(fake_process))
        return;
    fake_process->open[file] = false;
    fake_process->disk->table.close(fake_process->disk, file);
}

static int64_t size_of(void *owner, int file)
{
    struct fake_process *fake_process = owner;
    return is_alive(fake_process) ? fake_process->disk->table.size(fake_process->disk, file) : -EIO;
}

static int64_t read_some(void *owner, int file, void *bytes, size_t length, uint64_t offset)
{
    struct fake_process *fake_process = owner;
    return is_alive(fake_process)
               ? fake_process->disk->table.read(fake_process->disk, file, bytes, length, offset)
               : -EIO;
}

/* A killed process may have written a part, but no part of a word. */
static int64_t write_some(void *owner, int file, const void *bytes, size_t length, uint64_t offset)
{
    struct fake_process *fake_process = owner;
    if (fake_process->halves && length > sizeof(uint64_t))
        length /= 2;
    return is_alive(fake_process)
               ? fake_process->disk->table.write(fake_process->disk, file, bytes, length, offset)
               : -EIO;
}

static int sync_file(void *owner, int file)
{
    struct fake_process *fake_process = owner;
    int error =
        is_alive(fake_process) ? fake_process->disk->table.sync(fake_process->disk, file) : -EIO;
    if (error != 0 && fake_process->crashes_on_sync && !fake_process->dead)
        crash(fake_process);
    return error;
}

static int sync_folder(void *owner)
{
    struct fake_process *fake_process = owner;
    return is_alive(fake_process) ? fake_process->disk->table.sync_folder(fake_process->disk)
                                  : -EIO;
}

static int rename_file(void *owner, const char *from_suffix, const char *to_suffix)
{
    struct fake_process *fake_process = owner;
    return is_alive(fake_process)
               ? fake_process->disk->table.rename(fake_process->disk, from_suffix, to_suffix)
               : -EIO;
}

static int lock_byte(void *owner, int file, uint64_t byte)
{
    struct fake_process *fake_process = owner;
    return is_alive(fake_process) ? fake_process->disk->table.lock(fake_process->disk, file, byte)
                                  : -EIO;
}

static void unlock_byte(void *owner, int file, uint64_t byte)
{
    struct fake_process *fake_process = owner;
    if (is_alive(fake_process))
        fake_process->disk->table.unlock(fake_process->disk, file, byte);
}

static int is_locked(void *owner, int file, uint64_t byte)
{
    struct fake_process *fake_process = owner;
    return is_alive(fake_process)
               ? fake_process->disk->table.is_locked(fake_process->disk, file, byte)
               : -EIO;
}

static int is_any_locked(void *owner, int file, uint64_t first)
{
    struct fake_process *fake_process = owner;
    return is_alive(fake_process)
               ? fake_process->disk->table.is_any_locked(fake_process->disk, file, first)
               : -EIO;
}

static int is_linked(void *owner, int file)
{
    struct fake_process *fake_process = owner;
    return is_alive(fake_process) ? fake_process->disk->table.is_linked(fake_process->disk, file)
                                  : -EIO;
}

static void *share_page(void *owner, int file)
{
    struct fake_process *fake_process = owner;
    return is_alive(fake_process) ? fake_process->disk->table.share(fake_process->disk, file)
                                  : NULL;
}

static void unshare_page(void *owner, void *page)
{
    (void)owner;
    (void)page;
}

static void wait_for(void *owner, _Atomic uint32_t *word, uint32_t value, int64_t microseconds)
{
    struct fake_process *fake_process = owner;
    fake_process->disk->table.wait(fake_process->disk, word, value, microseconds);
}

static void wake(void *owner, _Atomic uint32_t *word, bool all)
{
    struct fake_process *fake_process = owner;
    if (is_alive(fake_process))
        fake_process->disk->table.wake(fake_process->disk, word, all);
}

static void around_writes(void *owner)
{
    (void)owner;
}

static int64_t boot_ms(void *owner)
{
    const struct fake_process *fake_process = owner;
    return fake_process->disk->boot_ms;
}

static int64_t wall_ms(void *owner)
{
    const struct fake_process *fake_process = owner;
    return fake_process->disk->wall_ms;
}

void fake_process_init(struct fake_process *fake_process, struct fake_disk *disk)
{
    *fake_process = (struct fake_process){.disk = disk};
    fake_process->table = (struct disk){
        .owner = fake_process,
        .open = open_file,
        .close = close_file,
        .size = size_of,
        .read = read_some,
        .write = write_some,
        .begin_writes = around_writes,
        .end_writes = around_writes,
        .sync = sync_file,
        .sync_folder = sync_folder,
        .rename = rename_file,
        .lock = lock_byte,
        .unlock = unlock_byte,
        .is_locked = is_locked,
        .is_any_locked = is_any_locked,
        .is_linked = is_linked,
        .share = share_page,
        .unshare = unshare_page,
        .wait = wait_for,
        .wake = wake,
        .boot_ms = boot_ms,
        .wall_ms = wall_ms,
    };
}
