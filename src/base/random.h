/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small seeded generator (splitmix64): the same seed gives the same numbers on every machine.
 * For jitter and for simulation; never for secrets.
 */
#ifndef LEASEHOLD_BASE_RANDOM_H
#define LEASEHOLD_BASE_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_next(struct random *random)
{
    uint64_t z = (random->state += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

/* A number from 0 to below − 1; 0 if `below` is 0. */
static inline uint64_t random_below(struct random *random, uint64_t below)
{
    uint64_t number = random_next(random);
    return below == 0 ? 0 : number % below;
}

#endif
