/* SPDX-License-Identifier: Apache-2.0 */
/* A folder for each test of the real disk, and other users and processes to share it with. */
#ifndef LEASEHOLD_TESTS_DISK_KIT_H
#define LEASEHOLD_TESTS_DISK_KIT_H

#include "disk/disk.h"

#include <sys/types.h>

enum { KIT_USER = 12345, KIT_OTHER_USER = 12346, KIT_GROUP = 23456 };

int kit_make_folder(void **state);
int kit_drop_folder(void **state); /* with all that is in it */
/* The path of a name in it; valid until the fourth call after this one. */
const char *kit_path(const char *name);

/* The disk of "f" in the folder; fails the test when it is refused. */
void kit_open(struct disk *out);
/* Is the path refused, and do the words say so? */
bool kit_refuses(const char *path, const char *text);

/*
 * Runs the act in a child process, as that user and group (−1: as we are), and waits for it.
 * Asserts of cmocka are not for children: an act says true when all was well, else prints why.
 */
bool kit_in_child(bool (*act)(void), int user, int group);
/* Also prints where; for acts. */
#define KIT_EXPECT(condition)                                                       \
    do {                                                                            \
        if (!(condition)) {                                                         \
            (void)fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #condition); \
            return false;                                                           \
        }                                                                           \
    } while (0)

/* Only root becomes another user or enters another namespace; for anybody else what needs that is
 * no case. */
bool kit_is_root(void);

#endif
