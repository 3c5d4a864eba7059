/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by disk.c, session_watch.c and wakeup.c; no other file may include it. */
#ifndef LEASEHOLD_DISK_DISK_INTERNAL_H
#define LEASEHOLD_DISK_DISK_INTERNAL_H

#include "disk/disk.h"
#include "disk/folder.h"
#include "disk/resolve_path.h"

enum { DISK_NAME = 256 }; /* a file's full name, with its NUL */

struct real_disk {
    struct descriptors descriptors;
    struct folder folder;
    char name[RESOLVED_NAME_MAX + 1];
};

/* NULL if it is not a real disk, or if this process was forked from the one that opened it. */
struct real_disk *disk_real(const struct disk *disk);
/* Builds the name with its suffix; false if that is too long. */
bool disk_name(const struct real_disk *disk, const char *suffix, char *out_name);

#endif
