/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A checksum of 64 bits against accidents, never against malice, and the hash of our tables. Every
 * step is reversible, so whatever changes within one aligned word of eight bytes is always seen.
 * It can be carried on: give the checksum of what came before.
 */
#ifndef LEASEHOLD_BASE_CHECKSUM_H
#define LEASEHOLD_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

uint64_t checksum(uint64_t before, const void *bytes, size_t length);

#endif
