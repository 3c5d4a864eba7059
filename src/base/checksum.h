/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A checksum of 64 bits against accidents, never against malice. Every step is reversible, so a
 * change within one aligned word of eight bytes is always detected. It can be continued: pass the
 * checksum of the preceding bytes. Files contain it, so it never changes; tables use base/hash.h.
 */
#ifndef LEASEHOLD_BASE_CHECKSUM_H
#define LEASEHOLD_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

uint64_t checksum(uint64_t before, const void *bytes, size_t length);

#endif
