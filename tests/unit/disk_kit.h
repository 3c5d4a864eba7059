/* SPDX-License-Identifier: Apache-2.0 */
/* A folder for each test of the real disk, and other users and processes to share it with. */
#ifndef LEASEHOLD_TESTS_DISK_KIT_H
#define LEASEHOLD_TESTS_DISK_KIT_H

#include "disk/disk.h"

#include <sys/types.h>

enum { KIT_USER = 12345, KIT_OTHER_USER = 12346, KIT_GROUP = 23456 };

int kit_make_folder(void **state);
int kit_drop_folder(void **state); /* with its content */
/* The path of a name in it; valid until the fourth call after this one. */
const char *kit_path(const char *name);

/* The disk of "f" in the folder; fails the test when it is refused. */
void kit_open(struct disk *out);
/* True if the path is refused, and the text contains the reason. */
bool kit_refuses(const char *path, const char *text);

/*
 * Runs the function in a child process, as that user and group (−1: unchanged), and waits for it.
 * Asserts of cmocka do not work in children: the function returns true on success, else prints why.
 */
bool kit_in_child(bool (*act)(void), int user, int group);
/* Also prints the location; for such functions. */
#define KIT_EXPECT(condition)                                                       \
    do {                                                                            \
        if (!(condition)) {                                                         \
            (void)fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #condition); \
            return false;                                                           \
        }                                                                           \
    } while (0)

/* Only root can become another user or enter another namespace; other users skip these cases. */
bool kit_is_root(void);

#endif
