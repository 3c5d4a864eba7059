/* SPDX-License-Identifier: Apache-2.0 */
/* What the real disk and its wake-ups share; nobody outside this room includes it. */
#ifndef LEASEHOLD_DISK_DISK_INTERNAL_H
#define LEASEHOLD_DISK_DISK_INTERNAL_H

#include "disk/disk.h"
#include "disk/folder.h"
#include "disk/resolve_path.h"

enum { DISK_NAME = 256 }; /* a file's whole name, with its NUL */

struct real_disk {
    struct descriptors descriptors;
    struct folder folder;
    char name[RESOLVED_NAME_MAX + 1];
};

/* NULL when it is another kind of disk, or when this process was forked from the one it is of. */
struct real_disk *disk_real(const struct disk *disk);
/* The name with its suffix; false when that is too long. */
bool disk_name(const struct real_disk *disk, const char *suffix, char *out_name);

#endif
