/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A secret in a file (password, token) that other programs may replace. The file is read again if
 * it changed, at least once a minute, and after a server refused the secret. The secret must not be
 * printed, and is wiped when it is freed.
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
void secret_free(struct secret **secret); /* accepts NULL */
/* The file's first line, valid until the next call. If the file is unusable: the previous secret,
 * until a server refuses that one; then NULL, with the reason in `why`. */
const char *secret_now(struct secret *secret, int64_t now_ms, struct text *why);
/* The server refused it: the next secret_now() reads the file even if it did not change. */
void secret_refused(struct secret *secret);

#endif
