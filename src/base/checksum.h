/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A 64-bit checksum against accidental corruption, not against malice; also the hash function of
 * our tables. Every step is reversible, so any change within one aligned 8-byte word is detected.
 * To continue a checksum, pass the previous one as `before`.
 */
#ifndef LEASEHOLD_BASE_CHECKSUM_H
#define LEASEHOLD_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

uint64_t checksum(uint64_t before, const void *bytes, size_t length);

#endif
