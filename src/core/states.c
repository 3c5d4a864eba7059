/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of a lease and the moves between them. lease_move() checks this table, then the
 * invariant of the new state. Nothing else may change a lease's state.
 *
 *            start                 granted                    a third of the TTL
 *   IDLE ───────────► ASKING ─────────────────────► HELD ◄──────────────────────► RENEWING
 *     │               ▲ │  ▲                        ▲ │                             │
 *     │    place gone │ │  │ takes over, passes on  │ │ let go                      │
 *     │               │ ▼  │                        │ │                             │
 *     │              WAITING ───────► OFFERED ──────┘ ├─────────────────────────────┤
 *     │ other verb      │    offer    │   accepted    │     deadline, broken, gone  │
 *     ▼                 │             │               │                             ▼
 *   ERRAND              ├─────────────┘               │            let go         LOST
 *     │                 │ let go, end of the wait     ▼ ◄───────────────────────────┘
 *     │                 ▼                         RELEASING
 *     │              LEAVING                          │
 *     │                 │ written out                 │ given back, or not ours any more
 *     └─────────────────┴──────► ENDED ◄──────────────┘
 *
 * ASKING, WAITING and OFFERED also end at once: busy, cooling, mismatch, denied, unavailable.
 */
#include "core/lease_inside.h"

#include "base/check.h"

#define TO(state) (1U << LEASE_##state)

static const struct {
    const char *name;
    unsigned next;
} states[] = {
    [LEASE_IDLE] = {"idle", TO(ASKING) | TO(ERRAND)},
    [LEASE_ASKING] = {"asking", TO(WAITING) | TO(OFFERED) | TO(HELD) | TO(LEAVING) | TO(ENDED)},
    [LEASE_WAITING] = {"waiting", TO(ASKING) | TO(OFFERED) | TO(HELD) | TO(LEAVING) | TO(ENDED)},
    [LEASE_OFFERED] = {"offered", TO(ASKING) | TO(WAITING) | TO(HELD) | TO(LEAVING) | TO(ENDED)},
    [LEASE_HELD] = {"held", TO(RENEWING) | TO(RELEASING) | TO(LOST)},
    [LEASE_RENEWING] = {"renewing", TO(HELD) | TO(RELEASING) | TO(LOST)},
    [LEASE_LOST] = {"lost", TO(RELEASING)},
    [LEASE_RELEASING] = {"releasing", TO(ENDED)},
    [LEASE_LEAVING] = {"leaving", TO(ENDED)},
    [LEASE_ERRAND] = {"errand", TO(ENDED)},
    [LEASE_ENDED] = {"ended", 0},
};

const char *lease_state_name(enum lease_state state)
{
    return states[state].name;
}

static bool invariant_holds(const struct lease *lease)
{
    const struct lease *l = lease;
    switch (l->state) {
    case LEASE_HELD:
        return l->token != 0 && !l->in_flight && l->now_ms < l->deadline_ms &&
               l->start_ms < l->deadline_ms && l->deadline_ms <= l->kill_at_ms;
    case LEASE_RENEWING:
        return l->token != 0 && l->deadline_ms <= l->kill_at_ms;
    case LEASE_LOST:
        return l->token != 0 && !l->in_flight;
    case LEASE_RELEASING:
        return l->token != 0 && l->give_up_at_ms != NEVER;
    case LEASE_WAITING:
        return l->options->request.waits && l->token == 0;
    case LEASE_LEAVING:
        return l->token == 0 && l->give_up_at_ms != NEVER;
    case LEASE_ENDED:
        return !l->in_flight;
    case LEASE_IDLE:
    case LEASE_ASKING:
    case LEASE_OFFERED:
    case LEASE_ERRAND:
        return l->token == 0;
    }
    UNREACHABLE("every state is listed");
}

void lease_move(struct lease *lease, enum lease_state to)
{
    if (lease->state == to)
        return;
    ASSERT((states[lease->state].next & (1U << to)) != 0);
    lease->state = to;
    ASSERT(invariant_holds(lease));
}
