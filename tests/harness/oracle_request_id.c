/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariant of rule 9 for request ids: a grant belongs to the holder that requested it. Asks
 * the shipped rules what another holder with the same id would get, on a copy of each record with a
 * new grant; changes nothing.
 */
#include "world_internal.h"

#include <string.h>

static struct record repeated; /* large: kept off the stack */

static void check_repeated(struct world *world, const struct change *change,
                           const struct grant *grant)
{
    struct view view = {.at = stamp_of_order(change->revision, world->now_ms),
                        .facts = &world->rules.facts,
                        .age_ms = -1};
    struct request request = {.verb = VERB_ACQUIRE,
                              .kind = world->after.kind,
                              .key = world->after.key,
                              .holder = "another",
                              .request = grant->request,
                              .session = grant->session,
                              .mode = grant->mode,
                              .limit = world->after.limit,
                              .ttl_ms = grant->ttl_ms,
                              .bound = grant->bound};
    record_copy(&repeated, &world->after);
    struct verdict verdict = rules_decide(&repeated, &request, &view);
    if (verdict.kind != VERDICT_MISMATCH || verdict.write)
        oracle_fail(world, change->writer, "rule 9", "another holder may use its request id");
}

void oracle_request_ids(struct world *world, const struct change *change)
{
    for (size_t i = 0; i < world->after.grant_count; i++) {
        const struct grant *grant = &world->after.grants[i];
        bool is_new = stamp_order(&grant->granted) == change->revision;
        if (is_new && !grant->dead && !grant->over)
            check_repeated(world, change, grant);
    }
}
