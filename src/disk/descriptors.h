/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptors of one disk. A lock lives as long as any copy of its descriptor, so a forked
 * child closes its copies before it does anything else. From then on the set is `forked`, and its
 * numbers must not be used, because they may refer to other files.
 *
 * A descriptor that a child must keep is a dup() made by the caller. Not covered: a child made
 * without fork(), until it calls exec.
 */
#ifndef LEASEHOLD_DISK_DESCRIPTORS_H
#define LEASEHOLD_DISK_DESCRIPTORS_H

#include "base/list.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { DESCRIPTORS_MOST = 64 };

struct descriptors {
    struct list_node node;
    int files[DESCRIPTORS_MOST];
    size_t count;
    atomic_bool forked;
};

/* False when out of memory. */
bool descriptors_init(struct descriptors *set);
void descriptors_done(struct descriptors *set); /* closes the files that are still open */

bool descriptors_are_forked(const struct descriptors *set);
/* Opens `name` in a folder (or AT_FDCWD) without following symbolic links, close-on-exec.
 * −errno on failure, −EMFILE also if the set is full, −EOWNERDEAD in a forked child. */
int descriptors_open(struct descriptors *set, int folder, const char *name, int flags, mode_t mode);
void descriptors_close(struct descriptors *set, int file);

#endif
