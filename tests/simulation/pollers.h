/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A seed with a source of events: pollers read them behind a watermark, handle each under a claim
 * of its id, and move the watermark to the start of their poll; others mark other ids meanwhile.
 * Every actor may die between any two steps. At the end no event is missing.
 */
#ifndef LEASEHOLD_TESTS_SIMULATION_POLLERS_H
#define LEASEHOLD_TESTS_SIMULATION_POLLERS_H

#include "world.h"

bool pollers_has(uint64_t seed);
/* Like script_play(). */
void pollers_play(struct world *world, uint64_t seed, struct counts *counts, FILE *trace);

#endif
