/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A checksum of 64 bits against accidents, never against malice: every burst of up to 64 flipped
 * bits is seen. It can be carried on: crc64(crc64(0, a), b) is that of a followed by b.
 */
#ifndef LEASEHOLD_BASE_CRC64_H
#define LEASEHOLD_BASE_CRC64_H

#include <stddef.h>
#include <stdint.h>

uint64_t crc64(uint64_t before, const void *bytes, size_t length);

#endif
