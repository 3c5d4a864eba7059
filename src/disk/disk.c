/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See disk.h. The real disk: system calls on files of one folder, each checked after it was opened.
 * A process forked from the one that opened the disk gets −EOWNERDEAD from every call, because the
 * descriptors it inherited are closed, and their numbers may refer to other files.
 */
#include "disk/disk_internal.h"

#include "process/host.h"
#include "process/block_signal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { OPEN_TRIES = 16 };

static bool is_forked(const struct real_disk *disk)
{
    return descriptors_are_forked(&disk->descriptors);
}

bool disk_name(const struct real_disk *disk, const char *suffix, char *out_name)
{
    struct text text;
    text_init(&text, out_name, DISK_NAME);
    TEXT_JOIN(&text, disk->name, suffix);
    return !text.cut;
}

/* 0 if we may write to the file, or −errno. Refuses hard links: another user may have linked a file
 * here that does not belong to the store. */
static int check_status(const struct real_disk *disk, const struct stat *status)
{
    if (S_ISLNK(status->st_mode))
        return -ELOOP;
    if (!S_ISREG(status->st_mode))
        return -EINVAL;
    if (status->st_nlink > 1)
        return -EMLINK;
    return folder_admits(&disk->folder, status) ? 0 : -EPERM;
}

/* Must not request timestamps: after a query, the next write updates them with full resolution, and
 * some file systems then write the inode on every sync. */
static int stat_file(int folder, const char *name, int flags, struct stat *out)
{
    struct statx status;
    unsigned what = STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_UID | STATX_GID;
    if (statx(folder, name, flags, what, &status) != 0)
        return -errno;
    *out = (struct stat){.st_mode = status.stx_mode,
                         .st_nlink = status.stx_nlink,
                         .st_uid = status.stx_uid,
                         .st_gid = status.stx_gid};
    return 0;
}

/* −ENOENT also if the file was unlinked meanwhile. */
static int open_existing(struct real_disk *disk, const char *name)
{
    struct stat status = {0};
    int file = descriptors_open(&disk->descriptors, disk->folder.file, name, O_RDWR, /* mode= */ 0);
    if (file < 0)
        return file;
    int result = stat_file(file, "", AT_EMPTY_PATH, &status);
    if (result == 0)
        result = check_status(disk, &status);
    if (result == 0 && status.st_nlink == 0)
        result = -ENOENT;
    if (result == 0)
        return file;
    descriptors_close(&disk->descriptors, file);
    return result;
}

/*
 * −EEXIST if another process was faster. The umask may remove permissions that the group needs, and
 * only fchmod() on the new file restores them: so a shared file gets its name last.
 */
static int make_new(struct real_disk *disk, const char *name)
{
    char early[DISK_NAME];
    uint64_t number = 0;
    int folder = disk->folder.file;
    mode_t mode = folder_mode(&disk->folder);
    if (getrandom(&number, sizeof number, /* flags= */ 0) != (ssize_t)sizeof number)
        return -EIO;
    struct text text;
    text_init(&text, early, sizeof early);
    text_add(&text, disk->folder.shared ? disk->name : name);
    if (disk->folder.shared) {
        text_add(&text, ".new-");
        text_add_hex(&text, number);
    }
    int file = descriptors_open(&disk->descriptors, folder, early, O_RDWR | O_CREAT | O_EXCL, mode);
    if (file < 0)
        return file;
    bool made = fchmod(file, mode) == 0;
    if (made && disk->folder.shared)
        made = renameat2(folder, early, folder, name, RENAME_NOREPLACE) == 0;
    if (made)
        return file;
    int result = -errno;
    (void)unlinkat(folder, early, /* flags= */ 0);
    descriptors_close(&disk->descriptors, file);
    return result;
}

static int disk_open_file(void *owner, const char *suffix, enum disk_how how)
{
    struct real_disk *disk = owner;
    char name[DISK_NAME];
    if (is_forked(disk))
        return -EOWNERDEAD;
    if (!disk_name(disk, suffix, name))
        return -ENAMETOOLONG;
    /* Other processes may create and unlink the file at the same time. */
    int file = -EEXIST;
    for (int tries = 0; tries < OPEN_TRIES && file == -EEXIST; tries++) {
        if (how == DISK_EMPTY) {
            if (unlinkat(disk->folder.file, name, /* flags= */ 0) != 0 && errno != ENOENT)
                return -errno;
        } else {
            file = open_existing(disk, name);
            if (file != -ENOENT || how == DISK_OPEN)
                return file;
        }
        file = make_new(disk, name);
    }
    return file;
}

static void disk_close_file(void *owner, int file)
{
    struct real_disk *disk = owner;
    descriptors_close(&disk->descriptors, file);
}

/* Requests only the given field, never timestamps; see stat_file(). */
static int statx_file(void *owner, int file, unsigned what, struct statx *out)
{
    if (is_forked(owner))
        return -EOWNERDEAD;
    return statx(file, "", AT_EMPTY_PATH, what, out) != 0 ? -errno : 0;
}

static int64_t size_of(void *owner, int file)
{
    struct statx status;
    int result = statx_file(owner, file, STATX_SIZE, &status);
    return result < 0 ? result : (int64_t)status.stx_size;
}

static int64_t disk_read_some(void *owner, int file, void *bytes, size_t length, uint64_t offset)
{
    if (is_forked(owner))
        return -EOWNERDEAD;
    ssize_t count = pread(file, bytes, length, (off_t)offset);
    return count < 0 ? -errno : count;
}

/* The blocked signal of a batch; see begin_writes(). */
static _Thread_local bool batch_begun, batch_raised;
static _Thread_local struct block_signal batch_block;

static void begin_writes(void *owner)
{
    (void)owner;
    batch_begun = true;
    batch_raised = false;
    block_signal_begin(&batch_block, SIGXFSZ);
}

static void end_writes(void *owner)
{
    (void)owner;
    block_signal_end(&batch_block, batch_raised);
    batch_begun = false;
}

static int64_t disk_write_some(void *owner, int file, const void *bytes, size_t length,
                               uint64_t offset)
{
    struct block_signal block_signal;
    bool alone = !batch_begun;
    if (is_forked(owner))
        return -EOWNERDEAD;
    if (alone)
        block_signal_begin(&block_signal, SIGXFSZ);
    ssize_t count = pwrite(file, bytes, length, (off_t)offset);
    bool raised = count < 0 && errno == EFBIG;
    if (alone)
        block_signal_end(&block_signal, raised);
    batch_raised = batch_raised || raised;
    return count < 0 ? -errno : count;
}

static int sync_file(void *owner, int file)
{
    if (is_forked(owner))
        return -EOWNERDEAD;
    return fdatasync(file) != 0 ? -errno : 0;
}

static int sync_folder(void *owner)
{
    const struct real_disk *disk = owner;
    if (is_forked(disk))
        return -EOWNERDEAD;
    return fsync(disk->folder.file) != 0 ? -errno : 0;
}

static int rename_file(void *owner, const char *from_suffix, const char *to_suffix)
{
    const struct real_disk *disk = owner;
    char from[DISK_NAME], to[DISK_NAME];
    if (is_forked(disk))
        return -EOWNERDEAD;
    if (!disk_name(disk, from_suffix, from) || !disk_name(disk, to_suffix, to))
        return -ENAMETOOLONG;
    return renameat(disk->folder.file, from, disk->folder.file, to) != 0 ? -errno : 0;
}

static struct flock lock_of(uint64_t byte, short type)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};
}

static int lock_byte(void *owner, int file, uint64_t byte)
{
    struct flock lock = lock_of(byte, F_WRLCK);
    if (is_forked(owner))
        return -EOWNERDEAD;
    if (fcntl(file, F_OFD_SETLK, &lock) == 0)
        return 0;
    return errno == EACCES ? -EAGAIN : -errno;
}

static void unlock_byte(void *owner, int file, uint64_t byte)
{
    struct flock lock = lock_of(byte, F_UNLCK);
    if (!is_forked(owner))
        (void)fcntl(file, F_OFD_SETLK, &lock);
}

static int query_lock(void *owner, int file, struct flock *lock)
{
    if (is_forked(owner))
        return -EOWNERDEAD;
    return fcntl(file, F_OFD_GETLK, lock) != 0 ? -errno : lock->l_type != F_UNLCK;
}

/* Asks for a read lock, with which only write locks conflict; see session_watch.h. */
static int is_locked(void *owner, int file, uint64_t byte)
{
    struct flock lock = lock_of(byte, F_RDLCK);
    return query_lock(owner, file, &lock);
}

static int is_any_locked(void *owner, int file, uint64_t first)
{
    struct flock lock = lock_of(first, F_RDLCK);
    lock.l_len = 0; /* all bytes that follow */
    return query_lock(owner, file, &lock);
}

static int is_linked(void *owner, int file)
{
    struct statx status;
    int result = statx_file(owner, file, STATX_NLINK, &status);
    return result < 0 ? result : status.stx_nlink > 0;
}

/* Access to a page beyond the end of the file would raise SIGBUS. */
static void *share_page(void *owner, int file)
{
    if (size_of(owner, file) < DISK_PAGE)
        return NULL;
    void *page = mmap(NULL, DISK_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, /* offset= */ 0);
    if (page == MAP_FAILED)
        return NULL;
    return page;
}

static void unshare_page(void *owner, void *page)
{
    (void)owner;
    (void)munmap(page, DISK_PAGE);
}

static void disk_wait(void *owner, _Atomic uint32_t *word, uint32_t value, int64_t microseconds)
{
    struct timespec length = {.tv_sec = microseconds / 1000000,
                              .tv_nsec = microseconds % 1000000 * 1000};
    if (!is_forked(owner))
        (void)syscall(SYS_futex, word, FUTEX_WAIT, value, &length, NULL, 0);
}

static void disk_wake(void *owner, _Atomic uint32_t *word, bool all)
{
    if (!is_forked(owner))
        (void)syscall(SYS_futex, word, FUTEX_WAKE, all ? INT_MAX : 1, NULL, NULL, 0);
}

static int64_t disk_boot_ms(void *owner)
{
    (void)owner;
    return host_boot_ms();
}

static int64_t disk_wall_ms(void *owner)
{
    (void)owner;
    return host_wall_ms();
}

static const struct disk real = {
    .open = disk_open_file,
    .close = disk_close_file,
    .size = size_of,
    .read = disk_read_some,
    .write = disk_write_some,
    .begin_writes = begin_writes,
    .end_writes = end_writes,
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
    .wait = disk_wait,
    .wake = disk_wake,
    .boot_ms = disk_boot_ms,
    .wall_ms = disk_wall_ms,
};

struct real_disk *disk_real(const struct disk *disk)
{
    return disk->open == real.open && !is_forked(disk->owner) ? disk->owner : NULL;
}

/* Reports early, as a text, the error that opening the file would return as a number. */
static bool check_file(const struct real_disk *disk, const char *path, struct text *why)
{
    struct stat status = {0};
    int error = stat_file(disk->folder.file, disk->name, AT_SYMLINK_NOFOLLOW, &status);
    if (error != 0)
        return error == -ENOENT || path_refuse(why, path, "cannot stat the file", -error);
    switch (check_status(disk, &status)) {
    case 0:
        return true;
    case -ELOOP:
        return path_refuse(why, path, "a symbolic link; name the file itself", /* error= */ 0);
    case -EINVAL:
        return path_refuse(why, path, "not a regular file", /* error= */ 0);
    case -EMLINK:
        return path_refuse(why, path, "the file has a second name (hard link)", /* error= */ 0);
    default:
        return path_refuse(why, path, "the file belongs to another user", /* error= */ 0);
    }
}

static void real_disk_free(struct real_disk *disk)
{
    descriptors_done(&disk->descriptors);
    free(disk);
}

bool disk_open(struct disk *out, const char *path, struct text *why)
{
    struct resolved_path resolved;
    if (!resolve_path(&resolved, path, why))
        return false;
    struct real_disk *disk = calloc(1, sizeof *disk);
    if (disk == NULL || !descriptors_init(&disk->descriptors)) {
        free(disk);
        return path_refuse(why, path, "out of memory", /* error= */ 0);
    }
    text_copy(disk->name, sizeof disk->name, resolved.name);
    if (folder_open(&disk->folder, &disk->descriptors, resolved.folder, why) &&
        check_file(disk, path, why)) {
        *out = real;
        out->owner = disk;
        return true;
    }
    real_disk_free(disk);
    return false;
}

void disk_done(struct disk *disk)
{
    real_disk_free(disk->owner);
    *disk = (struct disk){0};
}
