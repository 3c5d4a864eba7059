/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of a disk: opened without following a link, and judged. It must be on a file system
 * whose locks and syncs we trust, and nobody else may change names in it, but for the group of a
 * folder that is made for sharing (setgid and writable for the group).
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

/* `path` is a route's. The descriptor is the set's. */
bool folder_open(struct folder *out, struct descriptors *set, const char *path, struct text *why);

/* What kind of file system it is by its type, and whether we trust it; NULL: one without a name. */
const char *folder_file_system(uint32_t type, bool *out_trusted);

/* The rights of a new file in it. */
mode_t folder_mode(const struct folder *folder);
/* Does the file belong to somebody we share it with? */
bool folder_admits(const struct folder *folder, const struct stat *status);

#endif
