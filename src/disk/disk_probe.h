/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a file and its folder, to explain why a store cannot be used. Must not change or
 * open anything; the only judgement is whether the file system is trusted.
 */
#ifndef LEASEHOLD_DISK_DISK_PROBE_H
#define LEASEHOLD_DISK_DISK_PROBE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct disk_probe {
    char folder[PATH_MAX];
    int folder_error; /* an errno; 0: it exists */
    bool can_be_made; /* a missing folder: it can be created in `above`, which exists … */
    int above_error;  /* … or cannot, for this errno */
    char above[PATH_MAX];
    bool file_is_there; /* a file of any type */
    bool file_system_trusted;
    const char *file_system; /* NULL: an unknown type */
    uint64_t file_system_type;
    uint64_t room; /* bytes available to this user */
};

void disk_probe_read(struct disk_probe *out, const char *path);

/* The state of a process as in /proc, such as 'T' for stopped, and its name; 0: none exists. */
char process_state(uint32_t pid, char *out_name, size_t size);

#endif
