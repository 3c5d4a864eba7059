/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptors of one disk. A lock lives as long as any copy of its descriptor, so a forked
 * child, which gets copies of all, closes them before it does anything else. From then on the set
 * says `forked`, and its numbers, which may soon be other files, must not be used.
 *
 * What a child shall keep on purpose is a dup() of the caller's own. Not covered: a child made
 * without fork(), until it calls exec.
 */
#ifndef LEASEHOLD_DISK_DESCRIPTORS_H
#define LEASEHOLD_DISK_DESCRIPTORS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { DESCRIPTORS_MOST = 64 };

struct descriptors {
    struct descriptors *next;
    int files[DESCRIPTORS_MOST];
    size_t count;
    atomic_bool forked;
};

/* False when out of memory. */
bool descriptors_init(struct descriptors *set);
void descriptors_done(struct descriptors *set); /* closes what is still open */

bool descriptors_are_forked(const struct descriptors *set);
/* Opens `name` in a folder (or AT_FDCWD), never through a symbolic link and never for exec.
 * −errno when it failed, −EMFILE also when the set is full, −EOWNERDEAD in a forked child. */
int descriptors_open(struct descriptors *set, int folder, const char *name, int flags, mode_t mode);
void descriptors_close(struct descriptors *set, int file);

#endif
