/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash of tables in memory, eight bytes at a time. Its results differ between machines, so they
 * are never written to a file or sent; base/checksum.h is for that. All bits are good to index by.
 */
#ifndef LEASEHOLD_BASE_HASH_H
#define LEASEHOLD_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t hash_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15U; /* 2^64 divided by the golden ratio */
    return hash ^ hash >> 32;
}

/* Fewer than eight bytes as one word, without a copy of variable length, which costs more than all
 * the rest. Words of different lengths may be equal: hash_bytes() adds the length at its end. */
static inline uint64_t hash_last_word(const char *bytes, size_t length)
{
    const unsigned char *at = (const unsigned char *)bytes;
    uint32_t first, last;
    if (length == 0)
        return 0;
    if (length < sizeof first)
        return at[0] | (uint64_t)at[length / 2] << 8 | (uint64_t)at[length - 1] << 16;
    memcpy(&first, bytes, sizeof first);
    memcpy(&last, bytes + length - sizeof last, sizeof last);
    return first | (uint64_t)last << 32;
}

/* A random seed keeps callers that choose the keys from choosing the chains. The hash can be
 * continued: pass the hash of the preceding bytes as the seed. */
static inline uint64_t hash_bytes(uint64_t seed, const char *bytes, size_t length)
{
    uint64_t hash = seed, total = length, word;
    for (; length >= sizeof word; length -= sizeof word, bytes += sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = hash_mix(hash, word);
    }
    return hash_mix(hash_mix(hash, hash_last_word(bytes, length)), total);
}

static inline uint64_t hash_string(const char *string)
{
    return hash_bytes(/* seed= */ 0, string, strlen(string));
}

#endif
