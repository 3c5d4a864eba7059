/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of a lease and their transitions. lease_move() checks this table, then the invariant
 * of the new state. No other code may change the state of a lease.
 *
 *            start                 granted                    a third of the TTL
 *   IDLE ───────────► ACQUIRING ──────────────────► HELD ◄──────────────────────► RENEWING
 *     │               ▲ │  ▲                        ▲ │                             │
 *     │    entry gone │ │  │ lease or offer lapsed  │ │ release                     │
 *     │               │ ▼  │                        │ │                             │
 *     │              WAITING ───────► OFFERED ──────┘ ├─────────────────────────────┤
 *     │ other verb      │    offer    │   accepted    │     deadline, broken, gone  │
 *     ▼                 │             │               │                             ▼
 *   OPERATION           ├─────────────┘               │           release         LOST
 *     │                 │ release, end of the wait    ▼ ◄───────────────────────────┘
 *     │                 ▼                         RELEASING
 *     │              LEAVING                          │
 *     │                 │ removed                     │ released, or the grant is gone
 *     └─────────────────┴──────► ENDED ◄──────────────┘
 *
 * ACQUIRING, WAITING and OFFERED also end at once: busy, cooling, mismatch, denied, unavailable. A
 * grant whose reply arrives after its end goes through LEAVING, too, and back to ACQUIRING after a
 * pause.
 */
#include "core/lease_internal.h"

#include "base/check.h"

#define TO(state) (1U << LEASE_##state)

static const struct {
    const char *name;
    unsigned next;
} states[] = {
    [LEASE_IDLE] = {"idle", TO(ACQUIRING) | TO(OPERATION)},
    [LEASE_ACQUIRING] = {"acquiring",
                         TO(WAITING) | TO(OFFERED) | TO(HELD) | TO(LEAVING) | TO(ENDED)},
    [LEASE_WAITING] = {"waiting", TO(ACQUIRING) | TO(OFFERED) | TO(HELD) | TO(LEAVING) | TO(ENDED)},
    [LEASE_OFFERED] = {"offered", TO(ACQUIRING) | TO(WAITING) | TO(HELD) | TO(LEAVING) | TO(ENDED)},
    [LEASE_HELD] = {"held", TO(RENEWING) | TO(RELEASING) | TO(LOST)},
    [LEASE_RENEWING] = {"renewing", TO(HELD) | TO(RELEASING) | TO(LOST)},
    [LEASE_LOST] = {"lost", TO(RELEASING)},
    [LEASE_RELEASING] = {"releasing", TO(ENDED)},
    [LEASE_LEAVING] = {"leaving", TO(ACQUIRING) | TO(ENDED)},
    [LEASE_OPERATION] = {"operation", TO(ENDED)},
    [LEASE_ENDED] = {"ended", 0},
};

const char *lease_state_name(enum lease_state state)
{
    return states[state].name;
}

static void check_invariant(const struct lease *l)
{
    switch (l->state) {
    case LEASE_HELD:
        ASSERT(l->token != 0 && !l->in_flight);
        ASSERT(l->start_ms < l->deadline_ms && l->deadline_ms <= l->kill_at_ms);
        ASSERT(l->now_ms < l->deadline_ms);
        return;
    case LEASE_RENEWING:
        ASSERT(l->token != 0 && l->deadline_ms <= l->kill_at_ms);
        return;
    case LEASE_LOST:
        ASSERT(l->token != 0 && !l->in_flight);
        return;
    case LEASE_RELEASING:
        ASSERT(l->token != 0 && l->give_up_at_ms != NEVER);
        return;
    case LEASE_WAITING:
        ASSERT(l->options->request.waits && l->token == 0);
        return;
    case LEASE_LEAVING:
        ASSERT(l->token == 0 && l->give_up_at_ms != NEVER);
        return;
    case LEASE_ENDED:
        ASSERT(!l->in_flight);
        return;
    case LEASE_IDLE:
    case LEASE_ACQUIRING:
    case LEASE_OFFERED:
    case LEASE_OPERATION:
        ASSERT(l->token == 0);
        return;
    }
    UNREACHABLE("every state is listed");
}

void lease_move(struct lease *lease, enum lease_state to)
{
    if (lease->state == to)
        return;
    ASSERT((states[lease->state].next & (1U << to)) != 0);
    lease->state = to;
    check_invariant(lease);
}
