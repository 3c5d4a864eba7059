/* SPDX-License-Identifier: Apache-2.0 */
/* See watchers.h. A walk notices by the counter `ends` that its current watcher is gone. */
#include "store/watchers.h"

#include <stdlib.h>
#include <string.h>

struct watcher *watchers_add(struct watchers *watchers, const char *prefix, store_done *done,
                             void *caller)
{
    size_t length = strlen(prefix);
    struct watcher *watcher =
        watchers->count < WATCHERS_MAX ? malloc(sizeof *watcher + length + 1) : NULL;
    if (watcher == NULL) {
        done(caller, &(struct store_reply){.result = REPLY_TROUBLE,
                                           .now_ms = TIME_UNKNOWN,
                                           .why = "too many watches, or out of memory"});
        return NULL;
    }
    *watcher = (struct watcher){.done = done, .caller = caller, .length = length};
    memcpy(watcher->prefix, prefix, length + 1);
    list_append(&watchers->all, &watcher->node);
    watchers->count++;
    return watcher;
}

/* The next one, whatever its prefix. */
static bool watchers_step(struct watchers_walk *walk)
{
    if (walk->left == 0 || walk->ends != walk->watchers->ends)
        return false;
    struct list_node *node = walk->at != NULL ? walk->at->node.next : walk->watchers->all.first;
    walk->at = LIST_ENTRY(node, struct watcher, node);
    walk->left--;
    return true;
}

struct watchers_walk watchers_walk(struct watchers *watchers, const char *key)
{
    return (struct watchers_walk){
        .watchers = watchers, .key = key, .left = watchers->count, .ends = watchers->ends};
}

bool watchers_next(struct watchers_walk *walk)
{
    while (watchers_step(walk))
        if (walk->at->confirmed && strncmp(walk->key, walk->at->prefix, walk->at->length) == 0)
            return true;
    return false;
}

void watchers_deliver(const struct watchers_walk *walk, struct store_reply *reply)
{
    reply->more = true;
    reply->key = walk->key;
    walk->at->done(walk->at->caller, reply);
}

void watchers_confirm(struct watchers *watchers, const struct store_reply *reply)
{
    struct store_reply confirmation = *reply;
    confirmation.more = true;
    for (struct watchers_walk walk = watchers_walk(watchers, /* key= */ NULL);
         watchers_step(&walk);) {
        bool fresh = !walk.at->confirmed;
        walk.at->confirmed = true;
        if (fresh)
            walk.at->done(walk.at->caller, &confirmation);
    }
}

static struct watcher *watchers_pop(struct watchers *watchers)
{
    struct watcher *watcher = LIST_ENTRY(list_pop(&watchers->all), struct watcher, node);
    if (watcher != NULL)
        watchers->count--;
    return watcher;
}

void watchers_end(struct watchers *watchers, const struct store_reply *last)
{
    uint64_t ends = ++watchers->ends;
    for (size_t left = watchers->count; left > 0 && watchers->ends == ends; left--) {
        struct watcher *watcher = watchers_pop(watchers);
        store_done *done = watcher->done;
        void *caller = watcher->caller;
        free(watcher);
        done(caller, last);
    }
}

void watchers_done(struct watchers *watchers)
{
    watchers->ends++;
    for (struct watcher *watcher; (watcher = watchers_pop(watchers)) != NULL;)
        free(watcher);
}
