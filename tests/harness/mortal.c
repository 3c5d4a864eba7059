/* SPDX-License-Identifier: Apache-2.0 */
/* Wraps the calls of a fake disk; see mortal.h. */
#include "mortal.h"

#include <errno.h>
#include <string.h>

static struct mortal *running;

static unsigned char *shared_page(const struct mortal *mortal)
{
    struct fake_file *file = fake_disk_file(mortal->disk, ".lock");
    return file != NULL ? file->page : NULL;
}

static void die(struct mortal *mortal)
{
    const unsigned char *page = shared_page(mortal);
    if (page != NULL)
        memcpy(mortal->page, page, DISK_PAGE);
    for (int i = 0; i < FAKE_OPEN; i++)
        if (mortal->open[i])
            mortal->disk->table.close(mortal->disk, i);
    memset(mortal->open, 0, sizeof mortal->open);
    mortal->dead = true;
}

void mortal_bury(struct mortal *mortal)
{
    unsigned char *page = shared_page(mortal);
    if (mortal->dead && page != NULL)
        memcpy(page, mortal->page, DISK_PAGE);
}

void mortal_step(void)
{
    struct mortal *mortal = running;
    if (mortal == NULL || mortal->dead || ++mortal->steps != mortal->stop_at)
        return;
    if (mortal->meanwhile == NULL)
        die(mortal);
    else
        mortal->meanwhile(mortal->owner);
    running = mortal;
}

/* A call begins; false when whoever makes it is dead. */
static bool lives(struct mortal *mortal)
{
    running = mortal;
    mortal_step();
    return !mortal->dead;
}

static int open_file(void *owner, const char *suffix, enum disk_how how)
{
    struct mortal *mortal = owner;
    int file = lives(mortal) ? mortal->disk->table.open(mortal->disk, suffix, how) : -EIO;
    if (file >= 0)
        mortal->open[file] = true;
    return file;
}

static void close_file(void *owner, int file)
{
    struct mortal *mortal = owner;
    if (!lives(mortal))
        return;
    mortal->open[file] = false;
    mortal->disk->table.close(mortal->disk, file);
}

static int64_t size_of(void *owner, int file)
{
    struct mortal *mortal = owner;
    return lives(mortal) ? mortal->disk->table.size(mortal->disk, file) : -EIO;
}

static int64_t read_some(void *owner, int file, void *bytes, size_t length, uint64_t offset)
{
    struct mortal *mortal = owner;
    return lives(mortal) ? mortal->disk->table.read(mortal->disk, file, bytes, length, offset)
                         : -EIO;
}

/* Whoever is killed may have written a part; but not of a word. */
static int64_t write_some(void *owner, int file, const void *bytes, size_t length, uint64_t offset)
{
    struct mortal *mortal = owner;
    if (mortal->halves && length > sizeof(uint64_t))
        length /= 2;
    return lives(mortal) ? mortal->disk->table.write(mortal->disk, file, bytes, length, offset)
                         : -EIO;
}

static int sync_file(void *owner, int file)
{
    struct mortal *mortal = owner;
    int error = lives(mortal) ? mortal->disk->table.sync(mortal->disk, file) : -EIO;
    if (error != 0 && mortal->dies_of_sync && !mortal->dead)
        die(mortal);
    return error;
}

static int sync_folder(void *owner)
{
    struct mortal *mortal = owner;
    return lives(mortal) ? mortal->disk->table.sync_folder(mortal->disk) : -EIO;
}

static int rename_file(void *owner, const char *from_suffix, const char *to_suffix)
{
    struct mortal *mortal = owner;
    return lives(mortal) ? mortal->disk->table.rename(mortal->disk, from_suffix, to_suffix) : -EIO;
}

static int lock_byte(void *owner, int file, uint64_t byte)
{
    struct mortal *mortal = owner;
    return lives(mortal) ? mortal->disk->table.lock(mortal->disk, file, byte) : -EIO;
}

static void unlock_byte(void *owner, int file, uint64_t byte)
{
    struct mortal *mortal = owner;
    if (lives(mortal))
        mortal->disk->table.unlock(mortal->disk, file, byte);
}

static int is_locked(void *owner, int file, uint64_t byte)
{
    struct mortal *mortal = owner;
    return lives(mortal) ? mortal->disk->table.is_locked(mortal->disk, file, byte) : -EIO;
}

static int is_any_locked(void *owner, int file, uint64_t first)
{
    struct mortal *mortal = owner;
    return lives(mortal) ? mortal->disk->table.is_any_locked(mortal->disk, file, first) : -EIO;
}

static int is_linked(void *owner, int file)
{
    struct mortal *mortal = owner;
    return lives(mortal) ? mortal->disk->table.is_linked(mortal->disk, file) : -EIO;
}

static void *share_page(void *owner, int file)
{
    struct mortal *mortal = owner;
    return lives(mortal) ? mortal->disk->table.share(mortal->disk, file) : NULL;
}

static void unshare_page(void *owner, void *page)
{
    (void)owner;
    (void)page;
}

static void wait_for(void *owner, _Atomic uint32_t *word, uint32_t value, int64_t microseconds)
{
    struct mortal *mortal = owner;
    mortal->disk->table.wait(mortal->disk, word, value, microseconds);
}

static void wake(void *owner, _Atomic uint32_t *word, bool all)
{
    struct mortal *mortal = owner;
    if (lives(mortal))
        mortal->disk->table.wake(mortal->disk, word, all);
}

static void around_writes(void *owner)
{
    (void)owner;
}

static int64_t boot_ms(void *owner)
{
    const struct mortal *mortal = owner;
    return mortal->disk->boot_ms;
}

static int64_t wall_ms(void *owner)
{
    const struct mortal *mortal = owner;
    return mortal->disk->wall_ms;
}

void mortal_init(struct mortal *mortal, struct fake_disk *disk)
{
    *mortal = (struct mortal){.disk = disk};
    mortal->table = (struct disk){
        .owner = mortal,
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
