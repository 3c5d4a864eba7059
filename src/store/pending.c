/* SPDX-License-Identifier: Apache-2.0 */
/* See pending.h. A request leaves its set before its last reply, so a callback cannot end it again;
 * a set that was closed keeps no memory. */
#include "store/pending.h"

#include "base/check.h"
#include "process/host.h"

#include <stdlib.h>
#include <string.h>

enum { SPARE_MAX = 512 };

static struct pending *pending_first(const struct pending_set *set)
{
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a freed request is in no list */
    return LIST_ENTRY(set->all.first, struct pending, in_all);
}

/* ---- deadlines ---- */

static void pending_on_timer(void *owner);

/* Later deadlines only ever follow, so the timer is rarely set. */
static void pending_set_timer(struct pending_set *set)
{
    struct poller_timer *timer = &set->timer;
    const struct pending *first = pending_first(set);
    if (timer->due == NULL)
        *timer =
            (struct poller_timer){.at_ms = POLLER_NEVER, .due = pending_on_timer, .owner = set};
    if (first != NULL && timer->at_ms > first->deadline_ms)
        poller_call_at(set->poller, timer, first->deadline_ms);
}

static void pending_on_timer(void *owner)
{
    struct pending_set *set = owner;
    struct pending *first = pending_first(set);
    if (first != NULL && first->deadline_ms <= host_boot_ms())
        set->overdue(set->owner, first);
    pending_set_timer(set);
}

/* All requests have the same timeout, so appending keeps the order of deadlines. */
static void pending_append(struct pending *pending)
{
    struct pending_set *set = pending->set;
    list_append(&set->all, &pending->in_all);
    if (set->timeout_ms > 0)
        pending->deadline_ms = host_boot_ms() + set->timeout_ms;
    if (set->overdue != NULL)
        pending_set_timer(set);
}

void pending_extend(struct pending *pending)
{
    list_remove(&pending->set->all, &pending->in_all);
    pending_append(pending);
}

/* ---- memory ---- */

static struct pending *pending_new(struct pending_set *set)
{
    struct pending *pending = LIST_ENTRY(list_pop(&set->spare), struct pending, in_all);
    if (pending == NULL)
        return calloc(1, set->size);
    set->spare_count--;
    return memset(pending, 0, set->size);
}

static void pending_free(struct pending_set *set, struct pending *pending)
{
    if (set->clear != NULL)
        set->clear(pending);
    if (set->most == 0 || set->spare_count == SPARE_MAX) { /* 0: closed */
        free(pending);
        return;
    }
    list_prepend(&set->spare, &pending->in_all);
    set->spare_count++;
}

void pending_done(struct pending_set *set)
{
    set->most = set->count = 0;
    for (struct list_node *node; (node = list_pop(&set->all)) != NULL;)
        pending_free(set, LIST_ENTRY(node, struct pending, in_all));
    for (struct list_node *node; (node = list_pop(&set->spare)) != NULL;)
        free(LIST_ENTRY(node, struct pending, in_all));
    if (set->timer.due != NULL)
        poller_call_at(set->poller, &set->timer, POLLER_NEVER);
    set->timer.due = NULL;
}

/* ---- begin and end ---- */

static bool has_prefix(const struct store_request *request)
{
    return request->verb == VERB_STORE_LIST || request->verb == VERB_STORE_WATCH;
}

static struct pending *pending_last_of(const struct pending_set *set,
                                       const struct store_request *request)
{
    struct pending *last = NULL;
    for (struct list_node *node = set->all.first; node != NULL; node = node->next) {
        struct pending *other = LIST_ENTRY(node, struct pending, in_all);
        if ((last == NULL || other->number > last->number) && !has_prefix(&other->request) &&
            strcmp(other->request.key, request->key) == 0)
            last = other;
    }
    return last;
}

void *pending_add(struct pending_set *set, const struct store_request *request, store_done *done,
                  void *caller)
{
    struct pending *pending = set->count < set->most ? pending_new(set) : NULL;
    if (pending == NULL)
        return NULL;
    pending->set = set;
    pending->number = ++set->last_number;
    if (set->by_key && !has_prefix(request))
        pending->behind = pending_last_of(set, request);
    pending->request = *request;
    pending->done = done;
    pending->caller = caller;
    set->count++;
    pending_append(pending);
    return pending;
}

void pending_refuse(store_done *done, void *caller)
{
    done(caller, &(struct store_reply){.result = REPLY_TROUBLE,
                                       .now_ms = TIME_UNKNOWN,
                                       .why = "too many requests at once, or out of memory"});
}

/* Removes it from its set, which is returned. */
static struct pending_set *pending_remove(struct pending *pending)
{
    struct pending_set *set = pending->set;
    ASSERT(pending->number != 0); /* exactly one last reply */
    pending->number = 0;
    list_remove(&set->all, &pending->in_all);
    set->count--;
    for (struct list_node *node = set->all.first; set->by_key && node != NULL; node = node->next) {
        struct pending *other = LIST_ENTRY(node, struct pending, in_all);
        other->behind = other->behind == pending ? pending->behind : other->behind;
    }
    return set;
}

void pending_reply(struct pending *pending, const struct store_reply *reply)
{
    struct pending_set *set = reply->more ? NULL : pending_remove(pending);
    pending->done(pending->caller, reply);
    if (set != NULL)
        pending_free(set, pending);
}

void pending_fail(struct pending *pending, enum reply_status result, const char *why)
{
    pending_reply(pending,
                  &(struct store_reply){.result = result, .now_ms = TIME_UNKNOWN, .why = why});
}

void pending_fail_all(struct pending_set *set, enum reply_status result, const char *why)
{
    uint64_t last = set->last_number;
    for (struct pending *first; (first = pending_first(set)) != NULL && first->number <= last;)
        pending_fail(first, result, why);
}

void pending_drop(struct pending *pending)
{
    pending_free(pending_remove(pending), pending);
}

struct watcher *pending_watch(struct pending *pending, struct watchers *watchers)
{
    const char *prefix = pending->request.key;
    store_done *done = pending->done;
    void *caller = pending->caller;
    pending_drop(pending);
    return watchers_add(watchers, prefix, done, caller);
}
