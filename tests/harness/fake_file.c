/* SPDX-License-Identifier: Apache-2.0 */
/* The content of a file of the fake disk: its first page, which never moves, and the rest. */
#include "fake_disk.h"

#include <stdlib.h>
#include <string.h>

static void *allocate(size_t size)
{
    void *memory = calloc(1, size);
    if (memory == NULL)
        abort();
    return memory;
}

static void grow(struct fake_file *file, uint64_t size)
{
    if (size > DISK_PAGE && size - DISK_PAGE > file->room) {
        size_t room = (size_t)(size - DISK_PAGE) * 3 / 2 + 1;
        unsigned char *larger = allocate(room);
        if (file->room > 0)
            memcpy(larger, file->rest, file->room);
        free(file->rest);
        file->rest = larger;
        file->room = room;
    }
    if (size > file->size)
        file->size = size;
}

/* The part of [offset, offset + length) in the first page. */
static size_t part_in_page(size_t length, uint64_t offset)
{
    if (offset >= DISK_PAGE)
        return 0;
    return length < DISK_PAGE - offset ? length : (size_t)(DISK_PAGE - offset);
}

void fake_file_put(struct fake_file *file, const void *bytes, size_t length, uint64_t offset)
{
    size_t front = part_in_page(length, offset);
    if (length == 0)
        return;
    grow(file, offset + length);
    if (front > 0)
        memcpy(file->page + offset, bytes, front);
    if (length > front)
        memcpy(file->rest + (offset + front - DISK_PAGE), (const char *)bytes + front,
               length - front);
}

size_t fake_file_get(const struct fake_file *file, void *bytes, size_t length, uint64_t offset)
{
    if (offset >= file->size)
        return 0;
    size_t count = length < file->size - offset ? length : (size_t)(file->size - offset);
    size_t front = part_in_page(count, offset);
    if (front > 0)
        memcpy(bytes, file->page + offset, front);
    if (count > front)
        memcpy((char *)bytes + front, file->rest + (offset + front - DISK_PAGE), count - front);
    return count;
}

struct fake_file fake_file_new(void)
{
    return (struct fake_file){.page = allocate(DISK_PAGE)};
}

void fake_file_drop(struct fake_file *file)
{
    free(file->page);
    free(file->rest);
    *file = (struct fake_file){0};
}

void fake_file_copy(struct fake_file *to, const struct fake_file *from)
{
    memcpy(to->page, from->page, DISK_PAGE);
    grow(to, from->size);
    to->size = from->size;
    if (from->size > DISK_PAGE)
        memcpy(to->rest, from->rest, from->size - DISK_PAGE);
}
