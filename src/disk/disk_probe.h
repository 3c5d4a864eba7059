/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be seen of a file and its folder from outside, for whoever explains why a store cannot
 * be used. Changes nothing, opens nothing, judges nothing but the file system's kind.
 */
#ifndef LEASEHOLD_DISK_DISK_PROBE_H
#define LEASEHOLD_DISK_DISK_PROBE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct disk_probe {
    char folder[PATH_MAX];
    int folder_error; /* an errno, 0: it can be looked at */
    bool can_be_made; /* the folder, and those above it that are missing; `above` if not … */
    int above_error;  /* … for this reason */
    char above[PATH_MAX];
    bool file_is_there; /* something has that name */
    bool file_system_trusted;
    const char *file_system; /* NULL: none that we have a name for */
    uint64_t file_system_type;
    uint64_t room; /* bytes that this user may still write */
};

void disk_probe_read(struct disk_probe *out, const char *path);

/* Its state as in /proc, such as 'T' for stopped, and its name; 0: there is none. */
char process_state(uint32_t pid, char *out_name, size_t size);

#endif
