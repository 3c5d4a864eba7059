/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files are byte arrays, names a table. A file without a name stays in the array: open descriptors
 * keep it, and a power loss may bring the name back. File numbers are the same on a disk and on its
 * copies, so that events can be replayed on an earlier copy.
 */
#include "fake_disk.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_due(struct fake_disk *disk)
{
    disk->calls++;
    return disk->calls == disk->fail_at ||
           (disk->for_good && disk->fail_at > 0 && disk->calls > disk->fail_at);
}

static bool fails(struct fake_disk *disk)
{
    return is_due(disk) && disk->error != 0;
}

static struct fake_event *record(struct fake_disk *disk, enum fake_kind kind, int file)
{
    static struct fake_event ignored;
    if (!disk->recording)
        return &ignored;
    ASSERT(disk->event_count < FAKE_EVENTS);
    struct fake_event *event = &disk->events[disk->event_count++];
    *event = (struct fake_event){.kind = kind, .file = file};
    return event;
}

/* Names. */

static int find_name(const struct fake_disk *disk, const char *suffix)
{
    for (size_t i = 0; i < disk->name_count; i++)
        if (strcmp(disk->names[i].name, suffix) == 0)
            return disk->names[i].file;
    return -1;
}

static bool has_name(const struct fake_disk *disk, int file)
{
    for (size_t i = 0; i < disk->name_count; i++)
        if (disk->names[i].file == file)
            return true;
    return false;
}

static void remove_name(struct fake_disk *disk, const char *suffix)
{
    for (size_t i = disk->name_count; i-- > 0;)
        if (strcmp(disk->names[i].name, suffix) == 0)
            disk->names[i] = disk->names[--disk->name_count];
}

/* Any other file of that name loses it, and the file loses its old one. */
static void set_name(struct fake_disk *disk, const char *suffix, int file)
{
    remove_name(disk, suffix);
    for (size_t i = disk->name_count; i-- > 0;)
        if (disk->names[i].file == file)
            disk->names[i] = disk->names[--disk->name_count];
    text_copy(disk->names[disk->name_count].name, FAKE_NAME, suffix);
    disk->names[disk->name_count++].file = file;
}

struct fake_file *fake_disk_file(struct fake_disk *disk, const char *suffix)
{
    int file = find_name(disk, suffix);
    return file >= 0 ? &disk->files[file] : NULL;
}

void fake_disk_remove(struct fake_disk *disk, const char *suffix)
{
    remove_name(disk, suffix);
}

/* The calls. */

static int index_of(const struct fake_disk *disk, int opened)
{
    int file = -1;
    if (opened >= 0 && opened < FAKE_OPEN)
        file = disk->open[opened] - 1;
    ASSERT(file >= 0); /* otherwise a descriptor that is not open was used */
    return file;
}

static int make_file(struct fake_disk *disk, const char *suffix)
{
    ASSERT(disk->file_count < FAKE_FILES);
    int file = (int)disk->file_count++;
    disk->files[file] = fake_file_new();
    disk->files[file].unsynced = disk->is_unsynced(suffix);
    set_name(disk, suffix, file);
    text_copy(record(disk, FAKE_NAMED, file)->name, FAKE_NAME, suffix);
    return file;
}

static int open_file(void *owner, const char *suffix, enum disk_how how)
{
    struct fake_disk *disk = owner;
    int file = find_name(disk, suffix);
    int slot = 0;
    if (fails(disk))
        return -disk->error;
    if (file < 0 && how == DISK_OPEN)
        return -ENOENT;
    while (slot < FAKE_OPEN && disk->open[slot] != 0)
        slot++;
    ASSERT(slot < FAKE_OPEN);
    if (file >= 0 && how == DISK_EMPTY) {
        remove_name(disk, suffix);
        text_copy(record(disk, FAKE_UNNAMED, file)->name, FAKE_NAME, suffix);
        file = -1;
    }
    if (file < 0)
        file = make_file(disk, suffix);
    disk->open[slot] = file + 1;
    return slot;
}

static void close_file(void *owner, int opened)
{
    struct fake_disk *disk = owner;
    (void)index_of(disk, opened);
    for (size_t i = disk->lock_count; i-- > 0;)
        if (disk->locks[i].owner == opened)
            disk->locks[i] = disk->locks[--disk->lock_count];
    disk->open[opened] = 0;
}

static int64_t size_of(void *owner, int opened)
{
    struct fake_disk *disk = owner;
    const struct fake_file *file = &disk->files[index_of(disk, opened)];
    return fails(disk) ? -disk->error : (int64_t)file->size;
}

static int64_t read_some(void *owner, int opened, void *bytes, size_t length, uint64_t offset)
{
    struct fake_disk *disk = owner;
    const struct fake_file *file = &disk->files[index_of(disk, opened)];
    bool due = is_due(disk);
    if (due && disk->error != 0)
        return -disk->error;
    if (due && length > 1)
        length /= 2;
    return (int64_t)fake_file_get(file, bytes, length, offset);
}

static int64_t write_some(void *owner, int opened, const void *bytes, size_t length,
                          uint64_t offset)
{
    struct fake_disk *disk = owner;
    int file = index_of(disk, opened);
    bool due = is_due(disk);
    if (due && disk->error != 0)
        return -disk->error;
    if ((due || disk->short_writes) && length > 1)
        length /= 2;
    uint64_t most = disk->full ? disk->files[file].size : disk->size_limit;
    if ((disk->full || most != 0) && offset + length > most) {
        if (offset >= most)
            return -ENOSPC;
        length = (size_t)(most - offset);
    }
    if (disk->recording && length > 0) {
        struct fake_event *event = record(disk, FAKE_WRITE, file);
        event->bytes = malloc(length);
        if (event->bytes == NULL)
            abort();
        memcpy(event->bytes, bytes, length);
        event->offset = offset;
        event->length = length;
    }
    fake_file_put(&disk->files[file], bytes, length, offset);
    return (int64_t)length;
}

static void nothing(void *owner)
{
    (void)owner;
}

static int sync_file(void *owner, int opened)
{
    struct fake_disk *disk = owner;
    int error = fails(disk) ? -disk->error : 0;
    if (++disk->syncs == disk->fail_sync_at)
        error = -EIO;
    (void)record(disk, error != 0 ? FAKE_SYNC_FAILED : FAKE_SYNC, index_of(disk, opened));
    return error;
}

static int sync_folder(void *owner)
{
    struct fake_disk *disk = owner;
    bool failed = fails(disk);
    (void)record(disk, failed ? FAKE_SYNC_FAILED : FAKE_SYNC_FOLDER, /* file= */ -1);
    return failed ? -disk->error : 0;
}

static int rename_file(void *owner, const char *from_suffix, const char *to_suffix)
{
    struct fake_disk *disk = owner;
    int file = find_name(disk, from_suffix);
    if (fails(disk))
        return -disk->error;
    if (file < 0)
        return -ENOENT;
    ASSERT(disk->files[file].unsynced == disk->is_unsynced(to_suffix));
    set_name(disk, to_suffix, file);
    text_copy(record(disk, FAKE_NAMED, file)->name, FAKE_NAME, to_suffix);
    return 0;
}

/* The index of that byte's lock, or lock_count. */
static size_t find_lock(const struct fake_disk *disk, int file, uint64_t byte)
{
    size_t i = 0;
    while (i < disk->lock_count && (disk->locks[i].file != file || disk->locks[i].byte != byte))
        i++;
    return i;
}

static int lock_byte(void *owner, int opened, uint64_t byte)
{
    struct fake_disk *disk = owner;
    int file = index_of(disk, opened);
    size_t at = find_lock(disk, file, byte);
    if (fails(disk))
        return -disk->error;
    if (at < disk->lock_count)
        return disk->locks[at].owner == opened ? 0 : -EAGAIN;
    ASSERT(disk->lock_count < FAKE_LOCKS);
    at = disk->lock_count++;
    disk->locks[at].file = file;
    disk->locks[at].byte = byte;
    disk->locks[at].owner = opened;
    return 0;
}

static void unlock_byte(void *owner, int opened, uint64_t byte)
{
    struct fake_disk *disk = owner;
    size_t at = find_lock(disk, index_of(disk, opened), byte);
    ASSERT(at < disk->lock_count && disk->locks[at].owner == opened);
    disk->locks[at] = disk->locks[--disk->lock_count];
}

static int is_locked(void *owner, int opened, uint64_t byte)
{
    struct fake_disk *disk = owner;
    size_t at = find_lock(disk, index_of(disk, opened), byte);
    if (fails(disk))
        return -disk->error;
    return at < disk->lock_count && disk->locks[at].owner != opened;
}

static int is_any_locked(void *owner, int opened, uint64_t first)
{
    struct fake_disk *disk = owner;
    int file = index_of(disk, opened);
    if (fails(disk))
        return -disk->error;
    for (size_t i = 0; i < disk->lock_count; i++)
        if (disk->locks[i].file == file && disk->locks[i].byte >= first &&
            disk->locks[i].owner != opened)
            return 1;
    return 0;
}

static int is_linked(void *owner, int opened)
{
    struct fake_disk *disk = owner;
    return fails(disk) ? -disk->error : has_name(disk, index_of(disk, opened));
}

static void *share_page(void *owner, int opened)
{
    struct fake_disk *disk = owner;
    const struct fake_file *file = &disk->files[index_of(disk, opened)];
    return fails(disk) || file->size < DISK_PAGE ? NULL : file->page;
}

static void unshare_page(void *owner, void *page)
{
    (void)owner;
    (void)page;
}

static void wait_for(void *owner, _Atomic uint32_t *word, uint32_t value, int64_t microseconds)
{
    struct fake_disk *disk = owner;
    if (atomic_load(word) != value)
        return;
    disk->boot_ms += (microseconds + 999) / 1000;
    disk->wall_ms += (microseconds + 999) / 1000;
}

static void wake(void *owner, _Atomic uint32_t *word, bool all)
{
    struct fake_disk *disk = owner;
    (void)word;
    (void)all;
    disk->wakes++;
}

static int64_t boot_ms(void *owner)
{
    const struct fake_disk *disk = owner;
    return disk->boot_ms;
}

static int64_t wall_ms(void *owner)
{
    const struct fake_disk *disk = owner;
    return disk->wall_ms;
}

/* The disk itself. */

static bool is_never_synced(const char *suffix)
{
    return strcmp(suffix, ".lock") == 0 || strcmp(suffix, ".index") == 0 ||
           strcmp(suffix, ".index.new") == 0 || strcmp(suffix, ".index.mend") == 0;
}

void fake_disk_init(struct fake_disk *disk)
{
    memset(disk, 0, offsetof(struct fake_disk, events));
    disk->is_unsynced = is_never_synced;
    disk->table = (struct disk){
        .owner = disk,
        .open = open_file,
        .close = close_file,
        .size = size_of,
        .read = read_some,
        .write = write_some,
        .begin_writes = nothing,
        .end_writes = nothing,
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

void fake_disk_done(struct fake_disk *disk)
{
    for (size_t i = 0; i < disk->file_count; i++)
        fake_file_drop(&disk->files[i]);
    for (size_t i = 0; i < disk->event_count; i++)
        free(disk->events[i].bytes);
    disk->file_count = disk->event_count = disk->name_count = 0;
}

void fake_disk_note(struct fake_disk *disk, unsigned note)
{
    record(disk, FAKE_NOTE, /* file= */ -1)->note = note;
}

size_t fake_disk_open_files(const struct fake_disk *disk)
{
    size_t count = 0;
    for (int i = 0; i < FAKE_OPEN; i++)
        count += disk->open[i] != 0;
    return count;
}

void fake_disk_copy(struct fake_disk *to, const struct fake_disk *from)
{
    fake_disk_init(to);
    to->boot_ms = from->boot_ms;
    to->wall_ms = from->wall_ms;
    to->is_unsynced = from->is_unsynced;
    to->file_count = from->file_count;
    to->name_count = from->name_count;
    memcpy(to->names, from->names, sizeof to->names);
    for (size_t i = 0; i < from->file_count; i++) {
        to->files[i] = fake_file_new();
        to->files[i].unsynced = from->files[i].unsynced;
        fake_file_copy(&to->files[i], &from->files[i]);
    }
}

/* Power loss. */

/* True if a sync before the moment covers this event. */
static bool is_safe(const struct fake_disk *disk, size_t index, size_t moment)
{
    const struct fake_event *event = &disk->events[index];
    for (size_t i = index + 1; i < moment; i++) {
        const struct fake_event *later = &disk->events[i];
        if (later->file != (event->kind == FAKE_WRITE ? event->file : /* the folder */ -1))
            continue;
        if (later->kind == FAKE_SYNC || later->kind == FAKE_SYNC_FOLDER)
            return true;
        if (later->kind == FAKE_SYNC_FAILED)
            return false;
    }
    return false;
}

size_t fake_disk_pending(const struct fake_disk *disk, size_t moment, int *out)
{
    size_t count = 0;
    for (size_t i = moment; i-- > 0 && count < FAKE_PENDING;) {
        const struct fake_event *event = &disk->events[i];
        bool changes =
            event->kind == FAKE_WRITE || event->kind == FAKE_NAMED || event->kind == FAKE_UNNAMED;
        if (changes && !disk->files[event->file].unsynced && !is_safe(disk, i, moment))
            out[count++] = (int)i;
    }
    for (size_t i = 0; i < count / 2; i++) {
        int swapped = out[i];
        out[i] = out[count - 1 - i];
        out[count - 1 - i] = swapped;
    }
    return count;
}

static void replay_write(struct fake_disk *out, const struct fake_event *event,
                         const struct fake_choice *choice, bool torn)
{
    struct fake_file *file = &out->files[event->file];
    size_t cut = torn ? (size_t)(choice->torn_at - event->offset) : event->length;
    ASSERT(cut <= event->length);
    if (torn && choice->torn_behind)
        fake_file_put(file, event->bytes + cut, event->length - cut, event->offset + cut);
    else
        fake_file_put(file, event->bytes, cut, event->offset);
}

static void replay(struct fake_disk *out, const struct fake_event *event,
                   const struct fake_choice *choice, bool torn)
{
    if (event->kind == FAKE_WRITE)
        replay_write(out, event, choice, torn);
    else if (event->kind == FAKE_NAMED)
        set_name(out, event->name, event->file);
    else if (event->kind == FAKE_UNNAMED)
        remove_name(out, event->name);
}

static void lose_unsynced(struct fake_disk *out, const struct fake_disk *disk,
                          enum fake_unsynced unsynced)
{
    for (size_t i = out->name_count; i-- > 0;) {
        int index = out->names[i].file;
        struct fake_file *file = &out->files[index];
        if (!file->unsynced)
            continue;
        if (unsynced == UNSYNCED_ABSENT)
            out->names[i] = out->names[--out->name_count];
        else if (unsynced == UNSYNCED_LATEST)
            fake_file_copy(file, &disk->files[index]);
        else if (unsynced == UNSYNCED_ZEROS) {
            memset(file->page, 0, DISK_PAGE);
            if (file->room > 0)
                memset(file->rest, 0, file->room);
        }
    }
}

void fake_disk_image(const struct fake_disk *disk, const struct fake_disk *base, size_t moment,
                     const struct fake_choice *choice, struct fake_disk *out)
{
    int pending[FAKE_PENDING];
    size_t count = fake_disk_pending(disk, moment, pending);
    size_t next = 0;
    fake_disk_copy(out, base);
    out->boot_ms = 0;
    out->wall_ms = disk->wall_ms;
    for (size_t i = out->file_count; i < disk->file_count; i++) {
        out->files[i] = fake_file_new();
        out->files[i].unsynced = disk->files[i].unsynced;
    }
    out->file_count = disk->file_count;
    for (size_t i = 0; i < moment; i++) {
        bool torn = false, kept = true;
        if (next < count && pending[next] == (int)i) {
            torn = choice->torn == (int)next;
            kept = torn || (choice->kept >> next & 1) != 0;
            next++;
        }
        if (kept)
            replay(out, &disk->events[i], choice, torn);
    }
    lose_unsynced(out, disk, choice->unsynced);
}
