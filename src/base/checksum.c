/* SPDX-License-Identifier: Apache-2.0 */
/* Reads 8-byte words, little-endian on every machine; the last one is padded with zeros. */
#include "base/checksum.h"

#include <string.h>

static const uint64_t odd = 0x9e3779b97f4a7c15U; /* 2^64 divided by the golden ratio */

static uint64_t checksum_mix(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * odd;
    return sum ^ (sum >> 32);
}

static uint64_t word_at(const unsigned char *at)
{
    return at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24 |
           (uint64_t)at[4] << 32 | (uint64_t)at[5] << 40 | (uint64_t)at[6] << 48 |
           (uint64_t)at[7] << 56;
}

uint64_t checksum(uint64_t before, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    unsigned char last[8] = {0};
    uint64_t sum = checksum_mix(before, length + 1); /* so that trailing zeros count */
    for (; length >= sizeof last; at += sizeof last, length -= sizeof last)
        sum = checksum_mix(sum, word_at(at));
    if (length > 0)
        memcpy(last, at, length);
    return checksum_mix(checksum_mix(sum, word_at(last)), odd);
}
