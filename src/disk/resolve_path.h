/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a path as somebody wrote it to one without symbolic links, for a folder and a name in it.
 * Links are followed only where root or we made them: whoever owns a link decides where we write.
 * Says what it saw and opens nothing; the result is to be opened so that no link is followed.
 */
#ifndef LEASEHOLD_DISK_RESOLVE_PATH_H
#define LEASEHOLD_DISK_RESOLVE_PATH_H

#include "base/text.h"

#include <limits.h>

enum { RESOLVED_NAME_MAX = 200 }; /* leaves room for suffixes below the 255 of the file systems */

struct resolved_path {
    char folder[PATH_MAX]; /* absolute */
    char name[RESOLVED_NAME_MAX + 1];
};

bool resolve_path(struct resolved_path *out, const char *path, struct text *why);

/* The path, the words and what the system says about the error (0: nothing); false, for the caller
 * to return in turn. */
bool path_refuse(struct text *why, const char *path, const char *message, int error);

#endif
