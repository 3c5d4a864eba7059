/* SPDX-License-Identifier: Apache-2.0 */
/* See overlap_checker.h. */
#include "overlap_checker.h"

#include "live.h"

#include <errno.h>
#include <stdlib.h>

static void make_robust(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t kind;
    bool made = pthread_mutexattr_init(&kind) == 0 &&
                pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED) == 0 &&
                pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST) == 0 &&
                pthread_mutex_init(mutex, &kind) == 0;
    if (!made)
        abort();
    (void)pthread_mutexattr_destroy(&kind);
}

void checker_init(struct overlap_checker *overlap_checker, struct life *lives)
{
    overlap_checker->lives = lives;
    for (size_t i = 0; i < CHECKER_KEYS; i++)
        make_robust(&overlap_checker->keys[i].fenced.mutex);
}

void keep_longest(_Atomic int64_t *longest, int64_t length)
{
    int64_t before = atomic_load(longest);
    bool kept = false;
    while (length > before && !kept)
        kept = atomic_compare_exchange_weak(longest, &before, length);
}

/* Another process was inside on entry: killed, expired, or a violation. */
static void judge_takeover(struct overlap_checker *overlap_checker, const struct life *other,
                           int64_t now_ms)
{
    struct checker_counts *counts = &overlap_checker->counts;
    if (atomic_load(&other->killed)) {
        int64_t killed_at_ms = atomic_load(&other->killed_at_ms);
        int64_t ends_ms = atomic_load(&other->ends_ms);
        if (atomic_load(&other->bound)) {
            atomic_fetch_add(&counts->after_death_bound, 1);
            if (killed_at_ms > 0)
                keep_longest(&counts->longest_bound_ms, now_ms - killed_at_ms);
        } else {
            atomic_fetch_add(&counts->after_death_unbound, 1);
            atomic_fetch_add(&counts->early, now_ms < ends_ms ? 1 : 0);
            keep_longest(&counts->earliest_ms, ends_ms - now_ms);
            keep_longest(&counts->longest_unbound_ms, now_ms - ends_ms);
        }
    } else if (now_ms >= atomic_load(&other->deadline_ms)) {
        atomic_fetch_add(&counts->late, 1);
    } else {
        atomic_fetch_add(&counts->overlaps, 1);
    }
}

void checker_enter(struct overlap_checker *overlap_checker, uint64_t life, size_t key,
                   uint64_t token)
{
    struct watched_key *watched = &overlap_checker->keys[key];
    uint64_t other = atomic_exchange(&watched->owner, life);
    int64_t now_ms = live_now_ms();
    atomic_fetch_add(&overlap_checker->counts.entries, 1);
    if (other != 0)
        judge_takeover(overlap_checker, &overlap_checker->lives[other], now_ms);
    uint64_t before = atomic_load(&watched->token);
    bool highest = false;
    while (token > before && !highest)
        highest = atomic_compare_exchange_weak(&watched->token, &before, token);
    /* A process that enters after its own deadline was notified of the loss: no violation. */
    bool counts = now_ms < atomic_load(&overlap_checker->lives[life].deadline_ms);
    if (!highest && counts)
        atomic_fetch_add(&overlap_checker->counts.old_tokens, 1);
}

void checker_leave(struct overlap_checker *overlap_checker, uint64_t life, size_t key)
{
    uint64_t inside = life;
    (void)atomic_compare_exchange_strong(&overlap_checker->keys[key].owner, &inside, 0);
}

static void take(struct fenced *fenced)
{
    int result = pthread_mutex_lock(&fenced->mutex);
    if (result == EOWNERDEAD) /* the word was changed, or was not: both are consistent */
        result = pthread_mutex_consistent(&fenced->mutex);
    if (result != 0)
        abort();
}

static bool admits(struct overlap_checker *overlap_checker, struct fenced *fenced, uint64_t token)
{
    if (token < fenced->token) {
        atomic_fetch_add(&overlap_checker->counts.stale_refused, 1);
        return false;
    }
    fenced->token = token;
    return true;
}

bool fenced_read(struct overlap_checker *overlap_checker, size_t key, uint64_t token,
                 uint64_t *out_value)
{
    struct fenced *fenced = &overlap_checker->keys[key].fenced;
    take(fenced);
    bool admitted = admits(overlap_checker, fenced, token);
    if (admitted)
        *out_value = fenced->value;
    (void)pthread_mutex_unlock(&fenced->mutex);
    return admitted;
}

bool fenced_write(struct overlap_checker *overlap_checker, size_t key, uint64_t token,
                  uint64_t read)
{
    struct fenced *fenced = &overlap_checker->keys[key].fenced;
    take(fenced);
    bool admitted = admits(overlap_checker, fenced, token);
    if (admitted) {
        atomic_fetch_add(&overlap_checker->counts.writes, 1);
        atomic_fetch_add(&overlap_checker->counts.updates_lost, fenced->value != read ? 1 : 0);
        fenced->value = read + 1;
    }
    (void)pthread_mutex_unlock(&fenced->mutex);
    return admitted;
}
