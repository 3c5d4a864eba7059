/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of a disk, opened without following links, and checked. It must be on a file system
 * whose locks and syncs are trusted. No other user may change names in it, except the group of a
 * shared folder (setgid and group-writable).
 */
#ifndef LEASEHOLD_DISK_FOLDER_H
#define LEASEHOLD_DISK_FOLDER_H

#include "base/text.h"
#include "disk/descriptors.h"

#include <sys/stat.h>

struct folder {
    int file;
    bool shared; /* by its group */
    gid_t group;
};

/* `path` comes from resolve_path(). The set owns the descriptor. */
bool folder_open(struct folder *out, struct descriptors *set, const char *path, struct text *why);

/* The name of a file system type, and whether it is trusted; NULL: an unknown type. */
const char *folder_file_system(uint32_t type, bool *out_trusted);

/* The mode of a new file in it. */
mode_t folder_mode(const struct folder *folder);
/* True if this user owns the file, or if it has the group of a shared folder. */
bool folder_admits(const struct folder *folder, const struct stat *status);

#endif
