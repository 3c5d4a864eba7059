/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a user's path into a folder without symbolic links and a file name in it. Follows a
 * link only if root or this user owns it, because the owner of a link decides where we write. Must
 * not open anything; the caller must open the result without following links.
 */
#ifndef LEASEHOLD_DISK_RESOLVE_PATH_H
#define LEASEHOLD_DISK_RESOLVE_PATH_H

#include "base/text.h"

#include <limits.h>

enum { RESOLVED_NAME_MAX = 200 }; /* leaves room for suffixes below the limit of 255 */

struct resolved_path {
    char folder[PATH_MAX]; /* absolute */
    char name[RESOLVED_NAME_MAX + 1];
};

bool resolve_path(struct resolved_path *out, const char *path, struct text *why);

/* Adds the path, the message and the text of the errno (0: none) to `why`. Always false, for the
 * caller to return. */
bool path_refuse(struct text *why, const char *path, const char *message, int error);

#endif
