/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4), for names that every client must compute alike, and for secrets: no branch
 * and no index depends on the bytes, and none is left on the stack. Pure. */
#ifndef LEASEHOLD_BASE_SHA256_H
#define LEASEHOLD_BASE_SHA256_H

#include <stddef.h>

enum { SHA256_HEX = 64 };

/* As 64 lower-case hex digits and a NUL. */
void sha256_hex(const void *bytes, size_t length, char out[SHA256_HEX + 1]);

#endif
