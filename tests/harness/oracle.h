/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariants of every run. The oracle sees the store's record before and after each write, and
 * every notification of an actor. It is written against docs/guarantees.md, not against the code:
 * it never calls decide().
 */
#ifndef LEASEHOLD_TESTS_ORACLE_H
#define LEASEHOLD_TESTS_ORACLE_H

#include "world.h"

/* Keeps the first violation, which ends the run. */
void oracle_fail(struct world *world, const struct actor *actor, const char *rule,
                 const char *detail);

/* A write that changed the record from world->before to world->after. */
struct change {
    const struct actor *writer;
    uint32_t number; /* the writer's lease, possibly an earlier one */
    enum verb verb;
    bool now;          /* of a break */
    uint64_t revision; /* stamp_order() of the write; 0: it deleted the record */
};
void oracle_changed(struct world *world, const struct change *change);
void oracle_told(struct world *world, struct actor *actor, const struct lease_output *out);
/* The acquisition with this request id; 0: none. */
void oracle_name(struct world *world, const char *request, uint32_t number);
uint32_t oracle_number(struct world *world, const char *request);
uint32_t oracle_order(const struct acquisition *own, uint64_t token);
/* The actor was granted or has renewed. */
void oracle_deadline(struct world *world, const struct actor *actor);
/* The guarded resource is written with the token of the `order`-th grant. */
void oracle_guarded_write(struct world *world, struct key_truth *key, uint64_t token,
                          uint32_t order);
/* No conflicting holder may be inside at the same time; `actor` has just entered or woken up. */
void oracle_alone(struct world *world, const struct actor *actor);

/* oracle_once.c: the same for ids and watermarks, and the outcomes of their requests. */
void oracle_once_changed(struct world *world, const struct change *change, struct key_truth *key);
void oracle_once_told(struct world *world, const struct actor *actor);
void oracle_once_held(struct world *world, const struct actor *actor);
void oracle_once_ended(struct world *world, const struct actor *actor, enum outcome outcome);

#endif
