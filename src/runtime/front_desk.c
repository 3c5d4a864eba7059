/* SPDX-License-Identifier: Apache-2.0 */
/* See front_desk.h: what callers see, the tick, and the claims themselves. */
#include "runtime/front_desk.h"

#include "base/check.h"
#include "runtime/front_desk_inside.h"
#include "runtime/options.h"

#include <stdlib.h>
#include <string.h>

enum { DESK_MAGIC = 0xde5c001, CLAIM_MAGIC = 0xc1a1301, CLAIMS_MAX = 1 << 20, ROUNDS_MAX = 64 };

static int64_t now_of(const struct front_desk *desk)
{
    return desk->site.now_ms(desk->site.owner);
}

static void executor_wants(void *owner, int64_t at_ms)
{
    struct front_desk *desk = owner;
    desk->executor_at_ms = at_ms;
    if (!desk->ticking)
        desk->site.wake_at(desk->site.owner, at_ms);
}

static int64_t pass_now(void *owner)
{
    return now_of(owner);
}

static void pass_submit(void *owner, const struct store_request *request, store_done *done,
                        void *caller)
{
    const struct front_desk *desk = owner;
    desk->site.submit(desk->site.owner, request, done, caller);
}

static void pass_step(void *owner, const struct executor_step *step)
{
    const struct front_desk *desk = owner;
    desk->site.watcher(desk->site.owner, step);
}

static void pass_failure(void *owner, const struct executor_failure *failure)
{
    const struct front_desk *desk = owner;
    desk->site.failed(desk->site.owner, failure);
}

struct front_desk *front_desk_new(const struct executor_site *site)
{
    struct front_desk *desk = calloc(1, sizeof *desk);
    if (desk == NULL)
        return NULL;
    struct executor_site inner = *site;
    inner.now_ms = pass_now;
    inner.submit = pass_submit;
    inner.wake_at = executor_wants;
    if (site->watcher != NULL)
        inner.watcher = pass_step;
    if (site->failed != NULL)
        inner.failed = pass_failure;
    inner.owner = desk;
    desk->magic = DESK_MAGIC;
    desk->site = *site;
    desk->executor_at_ms = NEVER;
    desk->executor = executor_new(&inner);
    if (desk->executor != NULL && table_init(&desk->keys))
        return desk;
    executor_free(&desk->executor);
    free(desk);
    return NULL;
}

struct executor *front_desk_executor(struct front_desk *desk)
{
    return desk != NULL ? desk->executor : NULL;
}

/* Keys. */

static struct desk_key *use_key(struct front_desk *desk, const char *key)
{
    struct desk_key *found = (struct desk_key *)table_find(&desk->keys, key);
    size_t size = strlen(key) + 1;
    if (found == NULL) {
        found = calloc(1, sizeof *found + size);
        if (found == NULL)
            return NULL;
        memcpy(found->key, key, size);
        found->desk = desk;
        table_put(&desk->keys, &found->node, found->key);
    }
    found->users++;
    return found;
}

void desk_key_return(struct desk_key *key)
{
    ASSERT(key->users > 0);
    if (--key->users > 0)
        return;
    ASSERT(key->bids == NULL && key->first == NULL);
    table_remove(&key->desk->keys, &key->node);
    free(key);
}

/* Claims. */

static void stop_wishing(struct claim *claim)
{
    struct front_desk *desk = claim->desk;
    if (claim->wishes == 0)
        return;
    if (claim->next_wishing != NULL)
        claim->next_wishing->before_wishing = claim->before_wishing;
    else
        desk->last_wishing = claim->before_wishing;
    if (claim->before_wishing != NULL)
        claim->before_wishing->next_wishing = claim->next_wishing;
    else
        desk->first_wishing = claim->next_wishing;
    claim->next_wishing = claim->before_wishing = NULL;
    claim->wishes = 0;
    desk->wishing--;
}

static void wish(struct claim *claim, enum claim_wish what)
{
    struct front_desk *desk = claim->desk;
    ASSERT(claim->magic == CLAIM_MAGIC);
    bool first = desk->first_wishing == NULL;
    if (claim->wishes == 0) {
        claim->before_wishing = desk->last_wishing;
        if (desk->last_wishing != NULL)
            desk->last_wishing->next_wishing = claim;
        else
            desk->first_wishing = claim;
        desk->last_wishing = claim;
        desk->wishing++;
    }
    claim->wishes |= (unsigned)what;
    if (first && !desk->ticking)
        desk->site.wake_at(desk->site.owner, now_of(desk));
}

static void free_claim(struct claim *claim)
{
    struct front_desk *desk = claim->desk;
    stop_wishing(claim);
    heap_set(&desk->give_ups, &claim->give_up, HEAP_NEVER);
    if (claim->next_of_all != NULL)
        claim->next_of_all->before_of_all = claim->before_of_all;
    if (claim->before_of_all != NULL)
        claim->before_of_all->next_of_all = claim->next_of_all;
    else
        desk->claims = claim->next_of_all;
    desk->counts.claims--;
    claim->magic = 0;
    free(claim);
}

void claim_tell(struct claim *claim, const struct task_news *news)
{
    if (!claim->silent)
        claim->caller.told(claim->caller.owner, claim, news);
}

void claim_end(struct claim *claim, const struct task_news *news)
{
    struct desk_key *key = claim->key;
    claim_tell(claim, news);
    free_claim(claim);
    desk_key_return(key);
}

void claim_end_with(struct claim *claim, enum outcome outcome, const char *why)
{
    claim_end(claim, &(struct task_news){.event = TASK_ENDED, .outcome = outcome, .why = why});
}

struct claim *front_desk_ask(struct front_desk *desk, const struct lease_options *options,
                             const struct claim_caller *caller)
{
    ASSERT(desk->magic == DESK_MAGIC && options->request.verb == VERB_ASK);
    if (desk->counts.claims >= CLAIMS_MAX)
        return NULL;
    struct claim *claim = calloc(1, sizeof *claim + options_size(options));
    struct desk_key *key = claim != NULL ? use_key(desk, options->request.key) : NULL;
    if (key == NULL) {
        free(claim);
        return NULL;
    }
    claim->magic = CLAIM_MAGIC;
    claim->desk = desk;
    claim->caller = *caller;
    claim->key = key;
    heap_node_init(&claim->give_up);
    options_copy(&claim->options, options, key->key, claim->words);
    claim->next_of_all = desk->claims;
    if (desk->claims != NULL)
        desk->claims->before_of_all = claim;
    desk->claims = claim;
    desk->counts.claims++;
    wish(claim, WISHES_ENTRY);
    return claim;
}

struct claim *front_desk_adopt(struct front_desk *desk, const struct lease_options *options,
                               const struct claim_caller *caller)
{
    ASSERT(options->request.request != NULL && !options->request.waits);
    struct claim *claim = front_desk_ask(desk, options, caller);
    if (claim == NULL)
        return NULL;
    stop_wishing(claim);
    claim->adopts = true;
    if (desk_adopt(claim))
        return claim;
    claim->silent = true;
    claim_end_with(claim, OUTCOME_UNAVAILABLE, /* why= */ NULL);
    return NULL;
}

bool front_desk_knows(const struct front_desk *desk, const char *key)
{
    return table_find(&desk->keys, key) != NULL;
}

void front_desk_let_go(struct claim *claim)
{
    wish(claim, WISHES_OUT);
}

void front_desk_drop_cooldown(struct claim *claim)
{
    if (claim->state != CLAIM_HOLDING)
        return;
    claim->options.cooldown_ms = claim->options.request.cooldown_ms = 0;
    executor_drop_cooldown(claim->bid->task);
    claim->bid->starter = NULL; /* it is not what that one asked for any more */
}

void front_desk_cancel(struct claim *claim)
{
    claim->silent = true;
    wish(claim, WISHES_OUT);
}

void front_desk_forget(struct claim *claim)
{
    claim->silent = true;
    wish(claim, WISHES_OBLIVION);
}

bool front_desk_holds(const struct claim *claim)
{
    return claim->state == CLAIM_HOLDING && claim->bid->state == BID_HELD &&
           executor_holds(claim->bid->task);
}

struct front_desk_counts front_desk_counts(const struct front_desk *desk)
{
    struct front_desk_counts counts = desk->counts;
    counts.keys = desk->keys.count;
    return counts;
}

/* The tick. */

static void fulfil(struct claim *claim)
{
    unsigned wishes = claim->wishes;
    stop_wishing(claim);
    bool enters = (wishes & WISHES_ENTRY) != 0, out = (wishes & WISHES_OUT) != 0;
    if ((wishes & WISHES_OBLIVION) != 0)
        desk_forget(claim);
    else if (enters && out)
        claim_end_with(claim, OUTCOME_BUSY, "cancelled");
    else if (enters)
        desk_enter(claim);
    else
        desk_leave(claim, "cancelled");
}

/* Wishes that come up meanwhile are for the next round. */
static void fulfil_all(struct front_desk *desk)
{
    for (size_t left = desk->wishing; left > 0 && desk->first_wishing != NULL; left--)
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): who is freed wishes nothing any more */
        fulfil(desk->first_wishing);
}

static void end_waits(struct front_desk *desk)
{
    int64_t now_ms = now_of(desk);
    while (heap_first(&desk->give_ups) <= now_ms) {
        char *node = (char *)desk->give_ups.top;
        struct claim *claim = (struct claim *)(void *)(node - offsetof(struct claim, give_up));
        heap_set(&desk->give_ups, &claim->give_up, HEAP_NEVER);
        desk_give_up(claim);
    }
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The executor first: holders' deadlines come before anything that callers want. Waits end right
 * after it, when the store was asked for all who came before: a slow tick is not its silence. */
void front_desk_tick(struct front_desk *desk)
{
    ASSERT(desk->magic == DESK_MAGIC && !desk->ticking);
    desk->ticking = true;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        executor_tick(desk->executor);
        end_waits(desk);
        fulfil_all(desk);
        if (desk->executor_at_ms > now_of(desk) && desk->first_wishing == NULL)
            break;
    }
    desk->ticking = false;
    int64_t next_ms = sooner(desk->executor_at_ms, heap_first(&desk->give_ups));
    desk->site.wake_at(desk->site.owner, desk->first_wishing != NULL ? now_of(desk) : next_ms);
}

void front_desk_free(struct front_desk **desk_pointer)
{
    struct front_desk *desk = *desk_pointer;
    if (desk == NULL)
        return;
    ASSERT(desk->magic == DESK_MAGIC && !desk->ticking);
    desk->ticking = desk->closing = true; /* nobody is woken, nothing begins any more */
    while (desk->claims != NULL) {
        struct claim *claim = desk->claims;
        claim->silent = true;
        desk_forget(claim);
    }
    for (size_t i = 0; i < desk->keys.chain_count; i++)
        while (desk->keys.chains[i] != NULL)
            desk_key_drop((struct desk_key *)desk->keys.chains[i]);
    executor_free(&desk->executor);
    table_done(&desk->keys);
    desk->magic = 0;
    free(desk);
    *desk_pointer = NULL;
}
