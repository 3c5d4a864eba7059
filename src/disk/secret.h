/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A secret in a file (password, token) that others replace while we run. It is read anew when the
 * file changed, at least once a minute, and whenever somebody was refused with the one we had.
 * Never printed, and wiped when it goes.
 */
#ifndef LEASEHOLD_DISK_SECRET_H
#define LEASEHOLD_DISK_SECRET_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum { SECRET_MAX = 16 * 1024 };

struct secret;

/* NULL when out of memory. The file is not read yet. */
struct secret *secret_new(const char *path);
void secret_free(struct secret **secret); /* NULL is fine */
/* Its first line without the end of line, until the next call; NULL, and `why` says what is wrong
 * with the file: then the one before stays good until somebody refuses it. */
const char *secret_now(struct secret *secret, int64_t now_ms, struct text *why);
/* The server refused it: the next secret_now() reads the file whatever its times say. */
void secret_refused(struct secret *secret);

#endif
