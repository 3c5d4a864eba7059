/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clients, the store's capabilities and the bounds of each exploration: the narrow bound is for
 * every test run, the wide one for the proof. A bound is explored completely, or the run fails.
 */
#include "explore.h"

#define WRITER .key = "k", .mode = MODE_EXCLUSIVE
#define READER .key = "k", .mode = MODE_SHARED
#define SLOT   .key = "k", .mode = MODE_SLOT
#define WAITS  .waits = true, .wait_ms = WAIT_WITHOUT_LIMIT

/* Stores as their drivers describe them. */
#define USUAL                                                                                     \
    .waiters_max = WAITERS_MAX, .reply_timeout_ms = 250, .offer_grace_ms = 1000, .poll_ms = 5000, \
    .ttl_ms = 3000
#define BY_REVISION                      \
    {                                    \
        .judge = JUDGE_STORE_TIME, USUAL \
    }
#define BY_TOKEN                                              \
    {                                                         \
        .judge = JUDGE_STORE_TIME, .tests_grant = true, USUAL \
    }
#define TAKEOVER                                                                  \
    {                                                                             \
        .judge = JUDGE_STORE_TIME, .tests_grant = true, USUAL, .takeover_ms = 150 \
    }
#define ONE_CLOCK                                                                \
    {                                                                            \
        .judge = JUDGE_STORE_TIME, .tests_grant = true, .one_clock = true, USUAL \
    }
#define OBSERVED                       \
    {                                  \
        .judge = JUDGE_OBSERVED, USUAL \
    }
#define SESSIONS                      \
    {                                 \
        .judge = JUDGE_SESSION, USUAL \
    }
#define SESSIONS_BY_TOKEN                                  \
    {                                                      \
        .judge = JUDGE_SESSION, .tests_grant = true, USUAL \
    }

/* Replies take a second, and nothing notifies. */
#define SLOW                                                                                    \
    {                                                                                           \
        .judge = JUDGE_STORE_TIME, .waiters_max = 32, .answer_ms = 1000,                        \
        .reply_timeout_ms = 10000, .offer_grace_ms = 150000, .poll_ms = 60000, .ttl_ms = 300000 \
    }
/* A queue of one. */
#define SHORT_QUEUE                                                                                \
    {                                                                                              \
        .judge = JUDGE_STORE_TIME, .tests_grant = true, .waiters_max = 1, .reply_timeout_ms = 250, \
        .offer_grace_ms = 1000, .poll_ms = 5000, .ttl_ms = 3000                                    \
    }

const struct scenario scenarios[] = {
    {
        .name = "revision",
        .summary = "two writers, a store with a clock that compares revisions",
        .clients = 2,
        .parts = {{WRITER, WAITS}, {WRITER, WAITS}},
        .facts = BY_REVISION,
        .test = {.lives = 1, .lost = 1, .doubled = 1, .ticks = 2},
        .proof = {.lives = 1, .lost = 1, .doubled = 1, .ticks = 2, .crashes = 1},
    },
    {
        .name = "token",
        .summary = "two writers, a store that also tests a grant's token",
        .clients = 2,
        .parts = {{WRITER, WAITS}, {WRITER, WAITS}},
        .facts = BY_TOKEN,
        .test = {.lives = 1, .lost = 1, .doubled = 1, .ticks = 2, .crashes = 1},
        .proof = {.lives = 1, .lost = 1, .doubled = 1, .ticks = 3, .crashes = 1},
    },
    {
        .name = "one-clock",
        .summary = "two writers, a release that grants to the next",
        .clients = 2,
        .parts = {{WRITER, WAITS}, {WRITER, WAITS}},
        .facts = ONE_CLOCK,
        .tells_dead = true,
        .test = {.lives = 1, .lost = 1, .doubled = 1, .ticks = 2, .crashes = 1},
        .proof = {.lives = 1, .lost = 1, .doubled = 1, .ticks = 3, .crashes = 1},
    },
    {
        .name = "observed",
        .summary = "two writers, a store without a clock",
        .clients = 2,
        .parts = {{WRITER, WAITS}, {WRITER, WAITS}},
        .facts = OBSERVED,
        .test = {.lives = 1, .lost = 1, .ticks = 2, .crashes = 1},
        .proof = {.lives = 1, .lost = 1, .doubled = 1, .ticks = 2, .crashes = 1},
    },
    {
        .name = "session",
        .summary = "two writers, a store that says which sessions live",
        .clients = 2,
        .parts = {{WRITER, WAITS}, {WRITER, WAITS}},
        .facts = SESSIONS,
        .tells_dead = true,
        .test = {.lives = 1, .lost = 1, .ticks = 2, .crashes = 1},
        .proof = {.lives = 1, .lost = 1, .doubled = 1, .ticks = 2, .crashes = 1},
    },
    {
        .name = "session-unbound",
        .summary = "grants that outlive their processes, until the store says that they are over",
        .clients = 2,
        .parts = {{WRITER, WAITS}, {WRITER}},
        .facts = SESSIONS_BY_TOKEN,
        .tells_dead = true,
        .unbound = true,
        .test = {.lives = 1, .ticks = 2, .crashes = 1},
        .proof = {.lives = 1, .lost = 1, .doubled = 1, .ticks = 2, .crashes = 1},
    },
    {
        .name = "session-memory",
        .summary = "clients act on what they last heard of the living and the dead",
        .clients = 2,
        .parts = {{WRITER, WAITS}, {WRITER, WAITS}},
        .facts = SESSIONS_BY_TOKEN,
        .tells_dead = true,
        .remembers = true,
        .test = {.lives = 1, .lost = 1, .ticks = 1, .crashes = 1},
        .proof = {.lives = 2, .lost = 1, .ticks = 1, .crashes = 1},
    },
    {
        .name = "session-readers",
        .summary = "two readers and a writer, and one of the readers dies",
        .clients = 3,
        .parts = {{READER, WAITS}, {READER, WAITS}, {WRITER, WAITS}},
        .facts = SESSIONS_BY_TOKEN,
        .tells_dead = true,
        .unbound = true,
        .test = {.lives = 1, .ticks = 0, .crashes = 1},
        .proof = {.lives = 1, .ticks = 1, .crashes = 1},
    },
    {
        .name = "pauses",
        .summary = "processes that stand still while the clock runs",
        .clients = 2,
        .parts = {{WRITER, WAITS}, {WRITER, WAITS}},
        .facts = BY_TOKEN,
        .pauses = true,
        .test = {.lives = 1, .lost = 1, .ticks = 2},
        .proof = {.lives = 1, .lost = 1, .ticks = 3},
    },
    {
        .name = "pauses-one-clock",
        .summary = "the same where a release grants to the next",
        .clients = 2,
        .parts = {{WRITER, WAITS}, {WRITER, WAITS}},
        .facts = ONE_CLOCK,
        .pauses = true,
        .test = {.lives = 1, .lost = 1, .ticks = 2},
        .proof = {.lives = 1, .lost = 1, .ticks = 3},
    },
    {
        .name = "same-name",
        .summary = "two processes under one holder's name",
        .clients = 2,
        .parts = {{WRITER, WAITS}, {WRITER}},
        .facts = BY_REVISION,
        .same_name = true,
        .test = {.lives = 2, .ticks = 1, .crashes = 1},
        .proof = {.lives = 2, .lost = 1, .ticks = 2},
    },
    {
        .name = "two-keys",
        .summary = "two keys that the store takes for one",
        .clients = 2,
        .parts = {{.key = "a/b", WAITS}, {.key = "a-b", WAITS}},
        .facts = BY_TOKEN,
        .test = {.lives = 2, .lost = 1, .ticks = 2},
        .proof = {.lives = 2, .lost = 1, .doubled = 1, .ticks = 3},
    },
    {
        .name = "breaks",
        .summary = "an operator breaks the lock",
        .clients = 2,
        .parts = {{WRITER, WAITS}, {WRITER, WAITS}},
        .facts = BY_TOKEN,
        .operation_count = 2,
        .operations = {OPERATION_BREAK, OPERATION_BREAK_NOW},
        .test = {.lives = 1, .lost = 1, .ticks = 1, .operations = 1},
        .proof = {.lives = 1, .ticks = 2, .operations = 1},
    },
    {
        .name = "stale-tokens",
        .summary = "somebody renews and releases by old and by foreign tokens",
        .clients = 2,
        .parts = {{WRITER, WAITS}, {WRITER, WAITS}},
        .facts = BY_TOKEN,
        .same_name = true,
        .operation_count = 2,
        .operations = {OPERATION_RELEASE, OPERATION_RENEW},
        .test = {.lives = 1, .ticks = 2, .operations = 1},
        .proof = {.lives = 1, .lost = 1, .ticks = 2, .crashes = 1, .operations = 1},
    },
    {
        .name = "cooldown",
        .summary = "a release with a cooldown, and an operator who clears it",
        .clients = 2,
        .parts = {{WRITER, WAITS, .cooldown_ms = 2000, .once = true}, {WRITER, WAITS}},
        .facts = BY_TOKEN,
        .operation_count = 1,
        .operations = {OPERATION_CLEAR},
        .test = {.lives = 2, .lost = 1, .ticks = 1, .operations = 1},
        .proof = {.lives = 2, .ticks = 2, .operations = 1},
    },
    {
        .name = "cooldown-observed",
        .summary = "a release with a cooldown, a store without a clock",
        .clients = 2,
        .parts = {{WRITER, WAITS, .cooldown_ms = 2000, .once = true}, {WRITER, WAITS}},
        .facts = OBSERVED,
        .test = {.lives = 2, .ticks = 2},
        .proof = {.lives = 2, .lost = 1, .doubled = 1, .ticks = 2},
    },
    {
        .name = "cooldown-session",
        .summary = "a release with a cooldown whose end only the store knows",
        .clients = 2,
        .parts = {{WRITER, WAITS, .cooldown_ms = 2000, .once = true}, {WRITER, WAITS}},
        .facts = SESSIONS,
        .tells_dead = true,
        .test = {.lives = 2, .ticks = 1},
        .proof = {.lives = 2, .lost = 1, .doubled = 1, .ticks = 2},
    },
    {
        .name = "lock-delay",
        .summary = "a delay after a crash",
        .clients = 2,
        .parts = {{WRITER, WAITS}, {WRITER, WAITS}},
        .facts = BY_REVISION,
        .lock_delay_ms = 1000,
        .test = {.lives = 1, .ticks = 3, .crashes = 1},
        .proof = {.lives = 1, .lost = 1, .ticks = 3, .crashes = 1},
    },
    {
        .name = "lock-delay-session",
        .summary = "a delay after a crash that the store tells",
        .clients = 2,
        .parts = {{WRITER, WAITS}, {WRITER, WAITS}},
        .facts = SESSIONS,
        .tells_dead = true,
        .lock_delay_ms = 1000,
        .test = {.lives = 1, .ticks = 3, .crashes = 1},
        .proof = {.lives = 1, .lost = 1, .ticks = 3, .crashes = 1},
    },
    {
        .name = "give-up",
        .summary = "waiters with a limit, and such that are called off",
        .clients = 2,
        .parts = {{WRITER, WAITS}, {WRITER, .waits = true, .wait_ms = 200}},
        .facts = BY_REVISION,
        .test = {.lives = 1, .lost = 1, .ticks = 2, .cancels = 1},
        .proof = {.lives = 1, .lost = 1, .doubled = 1, .ticks = 2, .cancels = 1},
    },
    {
        .name = "give-up-granted",
        .summary = "a waiter is called off while a release grants to it",
        .clients = 2,
        .parts = {{WRITER, WAITS}, {WRITER, WAITS}},
        .facts = ONE_CLOCK,
        .test = {.lives = 1, .doubled = 1, .ticks = 2, .cancels = 1},
        .proof = {.lives = 1, .lost = 1, .doubled = 1, .ticks = 2, .cancels = 1},
    },
    {
        .name = "no-wait",
        .summary = "two that do not wait and one that does",
        .clients = 3,
        .parts = {{WRITER}, {WRITER}, {WRITER, WAITS}},
        .facts = BY_TOKEN,
        .test = {.lives = 1, .ticks = 2},
        .proof = {.lives = 1, .lost = 1, .doubled = 1, .ticks = 2},
    },
    {
        .name = "blind",
        .summary = "notices that do not carry the record, answers that say trouble",
        .clients = 2,
        .parts = {{WRITER, WAITS}, {WRITER, WAITS}},
        .facts = BY_REVISION,
        .bare_notices = true,
        .troubles = true,
        .test = {.lives = 1, .lost = 1, .ticks = 2},
        .proof = {.lives = 1, .lost = 1, .doubled = 1, .ticks = 2, .crashes = 1},
    },
    {
        .name = "memory",
        .summary = "clients act on what they last heard",
        .clients = 2,
        .parts = {{WRITER, WAITS}, {WRITER, WAITS}},
        .facts = BY_REVISION,
        .remembers = true,
        .test = {.lives = 2, .lost = 1, .ticks = 1, .crashes = 1},
        .proof = {.lives = 2, .lost = 1, .ticks = 2, .crashes = 1},
    },
    {
        .name = "three",
        .summary = "three writers in line",
        .clients = 3,
        .parts = {{WRITER, WAITS}, {WRITER, WAITS}, {WRITER, WAITS}},
        .facts = BY_TOKEN,
        .test = {.lives = 1, .ticks = 1, .crashes = 1},
        .proof = {.lives = 1, .lost = 1, .ticks = 2, .crashes = 1},
    },
    {
        .name = "takeover",
        .summary = "three writers in line; the next one takes over an offer",
        .clients = 3,
        .parts = {{WRITER, WAITS}, {WRITER, WAITS}, {WRITER, WAITS}},
        .facts = TAKEOVER,
        .test = {.lives = 1, .ticks = 1, .crashes = 1},
        .proof = {.lives = 1, .ticks = 2, .crashes = 1},
    },
    {
        .name = "three-observed",
        .summary = "three writers in line, a store without a clock",
        .clients = 3,
        .parts = {{WRITER, WAITS}, {WRITER, WAITS}, {WRITER, WAITS}},
        .facts = OBSERVED,
        .test = {.lives = 1, .ticks = 1, .crashes = 1},
        .proof = {.lives = 1, .lost = 1, .ticks = 1, .crashes = 1},
    },
    {
        .name = "mute",
        .summary = "every notice is lost",
        .clients = 3,
        .parts = {{WRITER, WAITS}, {WRITER, WAITS}, {WRITER, WAITS}},
        .facts = BY_TOKEN,
        .loses_notices = true,
        .test = {.lives = 1, .ticks = 1, .crashes = 1},
        .proof = {.lives = 1, .ticks = 2, .crashes = 1},
    },
    {
        .name = "priorities",
        .summary = "two that go first and one that is passed over",
        .clients = 3,
        .parts = {{WRITER, WAITS, .priority = 1},
                  {WRITER, WAITS, .priority = 1, .once = true},
                  {WRITER, WAITS, .once = true}},
        .facts = BY_TOKEN,
        .test = {.lives = 2, .ticks = 0},
        .proof = {.lives = 2, .ticks = 1, .crashes = 1},
    },
    {
        .name = "readers",
        .summary = "two readers and a writer",
        .clients = 3,
        .parts = {{READER, WAITS}, {READER, WAITS}, {WRITER, WAITS}},
        .facts = BY_TOKEN,
        .test = {.lives = 1, .ticks = 1, .crashes = 1},
        .proof = {.lives = 1, .lost = 1, .ticks = 1, .crashes = 1},
    },
    {
        .name = "slow",
        .summary = "three writers in line, a store whose offers stand for 150 s",
        .clients = 3,
        .parts = {{WRITER, WAITS}, {WRITER, WAITS}, {WRITER, WAITS}},
        .facts = SLOW,
        .loses_notices = true,
        .test = {.lives = 1, .ticks = 1, .crashes = 1},
        .proof = {.lives = 1, .lost = 1, .ticks = 2, .crashes = 1},
    },
    {
        .name = "short-queue",
        .summary = "three writers, a store that admits one waiter",
        .clients = 3,
        .parts = {{WRITER, WAITS}, {WRITER, WAITS}, {WRITER, WAITS}},
        .facts = SHORT_QUEUE,
        .test = {.lives = 1, .ticks = 1, .crashes = 1},
        .proof = {.lives = 1, .lost = 1, .ticks = 1, .crashes = 1},
    },
    {
        .name = "slots",
        .summary = "three for two slots",
        .clients = 3,
        .parts = {{SLOT, WAITS}, {SLOT, WAITS}, {SLOT, WAITS}},
        .limit = 2,
        .facts = BY_TOKEN,
        .test = {.lives = 1, .ticks = 1},
        .proof = {.lives = 1, .lost = 1, .ticks = 1, .crashes = 1},
    },
};

const size_t scenario_count = sizeof scenarios / sizeof scenarios[0];
