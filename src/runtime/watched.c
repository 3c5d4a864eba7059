/* SPDX-License-Identifier: Apache-2.0 */
/* See watched.h. */
#include "runtime/watched.h"

#include <stdlib.h>
#include <string.h>

bool watched_init(struct watched *watched)
{
    *watched = (struct watched){0};
    return table_init(&watched->table);
}

static void unlist(struct watched *watched, struct watched_copy *copy)
{
    *(copy->newer != NULL ? &copy->newer->older : &watched->newest) = copy->older;
    *(copy->older != NULL ? &copy->older->newer : &watched->oldest) = copy->newer;
}

static void list(struct watched *watched, struct watched_copy *copy)
{
    copy->newer = NULL;
    copy->older = watched->newest;
    *(copy->older != NULL ? &copy->older->newer : &watched->oldest) = copy;
    watched->newest = copy;
}

static void set_heard(struct watched *watched, struct watched_copy *copy, struct heard *heard)
{
    if (copy->heard != NULL)
        watched->bytes -= copy->heard->size;
    free(copy->heard);
    copy->heard = heard;
    if (heard != NULL)
        watched->bytes += heard->size;
}

static void drop(struct watched *watched, struct watched_copy *copy)
{
    set_heard(watched, copy, NULL);
    unlist(watched, copy);
    table_remove(&watched->table, &copy->node);
    free(copy);
}

static void shrink(struct watched *watched)
{
    while (watched->table.count > WATCHED_KEYS_MAX || watched->bytes > WATCHED_BYTES_MAX)
        drop(watched, watched->oldest);
}

void watched_forget(struct watched *watched)
{
    while (watched->oldest != NULL)
        drop(watched, watched->oldest);
}

void watched_done(struct watched *watched)
{
    watched_forget(watched);
    table_done(&watched->table);
}

static struct watched_copy *find(const struct watched *watched, const char *key)
{
    return (struct watched_copy *)table_find(&watched->table, key);
}

const struct watched_copy *watched_find(struct watched *watched, const char *key, int64_t now_ms)
{
    struct watched_copy *copy = find(watched, key);
    if (copy == NULL || copy->heard == NULL || now_ms - copy->heard_at_ms >= WATCHED_MOST_MS)
        return NULL;
    unlist(watched, copy);
    list(watched, copy);
    return copy;
}

uint64_t watched_begin(struct watched *watched, const char *key)
{
    size_t size = strlen(key) + 1;
    struct watched_copy *copy = find(watched, key);
    if (copy != NULL)
        return copy->touched;
    copy = calloc(1, sizeof *copy + size);
    if (copy == NULL)
        return 0;
    memcpy(copy->key, key, size);
    copy->touched = ++watched->count;
    table_put(&watched->table, &copy->node, copy->key);
    list(watched, copy);
    uint64_t begun = copy->touched;
    shrink(watched);
    return begun;
}

/* When memory is short nothing is known any more, rather than something old. */
static void hear(struct watched *watched, struct watched_copy *copy,
                 const struct store_answer *answer, int64_t now_ms)
{
    copy->touched = ++watched->count;
    copy->heard_at_ms = now_ms;
    set_heard(watched, copy, heard_new(answer));
    shrink(watched);
}

void watched_keep(struct watched *watched, const char *key, uint64_t begun,
                  const struct store_answer *answer, int64_t now_ms)
{
    struct watched_copy *copy = find(watched, key);
    if (copy != NULL && copy->touched == begun)
        hear(watched, copy, answer, now_ms);
}

void watched_hear(struct watched *watched, const struct store_answer *answer, int64_t now_ms)
{
    struct watched_copy *copy = find(watched, answer->key);
    if (copy != NULL && copy->heard != NULL)
        hear(watched, copy, answer, now_ms);
    else if (copy != NULL)
        copy->touched = ++watched->count;
}
