/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local layer: contenders for a key inside one process queue here, and one of them at a time
 * asks the store. A grant of the process goes from one caller to the next without a write, with a
 * growing token, at most HAND_OVERS_MAX times in a row and only while nobody outside is known to be
 * next in line. Everything that is not such a hand-over is the executor's.
 *
 * As in executor.h everything is told in front_desk_tick() only, from where anything may be called
 * but that and front_desk_free(); one thread at a time. A key that nobody wants costs nothing.
 */
#ifndef LEASEHOLD_RUNTIME_FRONT_DESK_H
#define LEASEHOLD_RUNTIME_FRONT_DESK_H

#include "runtime/executor.h"

enum { HAND_OVERS_MAX = 8 /* below GRANT_STEP: they count in the token's n */ };

struct front_desk;
struct claim; /* one caller's wish for a key; gone once it was told TASK_ENDED */

struct claim_caller {
    void (*told)(void *owner, struct claim *claim, const struct task_news *news);
    void *owner;
};

/* NULL when memory is short. The desk has an executor of its own on this site. */
struct front_desk *front_desk_new(const struct executor_site *site);
/* As executor_free(). */
void front_desk_free(struct front_desk **desk);
/* For errands, notices and counts; front_desk_tick() ticks it. */
struct executor *front_desk_executor(struct front_desk *desk);

/*
 * The options are as in executor_start(), with VERB_ASK. A claim without a request id of its own
 * may be served by a grant that another caller of the process asked for, as long as both want the
 * same: bound, holder, TTL, lock-delay, no meta. Who does not wait hears `busy` at once while the
 * process itself holds the key in its way; otherwise the store is asked.
 * NULL when memory is short.
 */
struct claim *front_desk_ask(struct front_desk *desk, const struct lease_options *options,
                             const struct claim_caller *caller);
/*
 * For a grant that stands in the store already, made by this process under the request id of the
 * options: the claim holds it once it is found there, and nobody else is let in before. It can be
 * handed over as if it had no request id.
 */
struct claim *front_desk_adopt(struct front_desk *desk, const struct lease_options *options,
                               const struct claim_caller *caller);
/* Is anybody at this key? */
bool front_desk_knows(const struct front_desk *desk, const char *key);
/* See executor_let_go(), executor_cancel() and executor_forget(). */
void front_desk_let_go(struct claim *claim);
/* Of a claim that holds: when it lets go, no cooldown begins. */
void front_desk_drop_cooldown(struct claim *claim);
void front_desk_cancel(struct claim *claim);
void front_desk_forget(struct claim *claim);
void front_desk_tick(struct front_desk *desk);

/* Held at this moment by this very claim. */
bool front_desk_holds(const struct claim *claim);

struct front_desk_counts {
    uint64_t claims, hand_overs, known_busy;
    uint64_t waiting, keys; /* at this moment */
};

struct front_desk_counts front_desk_counts(const struct front_desk *desk);

#endif
