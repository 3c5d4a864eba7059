/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LOCK.LIST and LOCK.HISTORY, in pages. The library lists keys in any order, so a page keeps the
 * smallest keys behind the cursor: at most COUNT, and at most 256 KiB. A history is newest first,
 * and its cursor is a revision. What the connection may not read does not exist.
 */
#include "face/daemon/daemon_internal.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_COUNT = 100, PAGE_BYTES = 256 * 1024, PAGE_ENTRY = 4096 };

struct page_entry {
    char key[LH_KEY_SIZE]; /* the cursor behind this entry */
    size_t length;
    char *bytes;
};

struct page {
    size_t most, count, bytes;
    bool ordered; /* by key; otherwise as listed */
    bool more;    /* something behind the last entry was left out */
    bool full, failed;
    uint64_t before; /* of a history: entries below this revision */
    char after[LH_KEY_SIZE];
    struct page_entry entries[]; /* `most` and one more, sorted by key */
};

static void page_free_entries(struct page *page)
{
    for (size_t i = 0; i < page->count; i++)
        free(page->entries[i].bytes);
    page->count = 0;
}

/* NULL: refused already. */
static struct page *page_new(struct daemon_slot *slot, const struct daemon_words *words)
{
    size_t most = (words->given & WORD_COUNT) != 0 ? (size_t)words->count : PAGE_COUNT;
    struct page *page = calloc(1, sizeof *page + (most + 1) * sizeof page->entries[0]);
    slot->raw = (words->given & WORD_RAW) != 0;
    slot->memory = page;
    if (page == NULL) {
        slot_reply_error(slot, "ERR", "failed: out of memory");
        return NULL;
    }
    page->most = most;
    return page;
}

static void page_drop_last(struct page *page)
{
    struct page_entry *last = &page->entries[--page->count];
    page->bytes -= last->length;
    free(last->bytes);
    page->more = true;
}

/* The index before which the key belongs. */
static size_t page_position(const struct page *page, const char *key)
{
    size_t low = 0, high = page->count;
    if (!page->ordered)
        return page->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(page->entries[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void page_insert(struct daemon_slot *slot, struct page *page, const char *cursor,
                        const struct lh_view *view)
{
    size_t at = page_position(page, cursor);
    if (page->more && at == page->count)
        return; /* behind the end of the page */
    size_t record =
        slot->raw ? view_record_shown(view, slot->daemon->record, sizeof slot->daemon->record) : 0;
    size_t size = PAGE_ENTRY + record;
    struct resp_reply reply;
    struct page_entry entry = {.bytes = malloc(size)};
    if (entry.bytes == NULL) {
        page->failed = true;
        return;
    }
    resp_reply_init(&reply, entry.bytes, size, slot_protocol(slot));
    reply_view(&reply, /* outcome= */ NULL, view, slot->raw ? slot->daemon->record : NULL, record);
    entry.length = reply.length;
    char *shrunk = realloc(entry.bytes, reply.length + 1);
    entry.bytes = shrunk != NULL ? shrunk : entry.bytes;
    text_copy(entry.key, sizeof entry.key, cursor);
    memmove(&page->entries[at + 1], &page->entries[at],
            (page->count - at) * sizeof page->entries[0]);
    page->entries[at] = entry;
    page->count++;
    page->bytes += entry.length;
    while (page->count > page->most || (page->bytes > PAGE_BYTES && page->count > 1))
        page_drop_last(page);
}

static void page_on_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct daemon_slot *slot = user;
    struct page *page = slot->memory;
    (void)lease;
    if (report->outcome != LH_OK || page->failed) {
        page_free_entries(page);
        if (page->failed)
            slot_reply_error(slot, "ERR", "failed: out of memory");
        else
            slot_reply_report(slot, report);
        return;
    }
    size_t size = page->bytes + (size_t)2 * LH_KEY_SIZE;
    char *bytes = malloc(size);
    if (bytes == NULL) {
        page_free_entries(page);
        slot_reply_error(slot, "ERR", "failed: out of memory");
        return;
    }
    struct resp_reply reply;
    resp_reply_init(&reply, bytes, size, slot_protocol(slot));
    resp_reply_map(&reply, 3);
    reply_pair(&reply, "outcome", "ok");
    reply_pair(&reply, "next", page->more ? page->entries[page->count - 1].key : NULL);
    resp_reply_text(&reply, page->ordered ? "keys" : "changes");
    resp_reply_array(&reply, page->count);
    for (size_t i = 0; i < page->count; i++)
        resp_reply_raw(&reply, page->entries[i].bytes, page->entries[i].length);
    page_free_entries(page);
    slot_reply(slot, &reply);
    free(bytes);
}

static bool list_on_view(void *user, const struct lh_view *view)
{
    struct daemon_slot *slot = user;
    struct page *page = slot->memory;
    if (slot->connection == NULL)
        return false; /* nobody reads it */
    if (strcmp(view->key, page->after) > 0 &&
        (may(slot->connection->who, MAY_READ, view->key) || MAY_HOLE(LIST)))
        page_insert(slot, page, view->key, view);
    return !page->failed;
}

void verb_list(struct daemon_slot *slot, const struct daemon_args *args,
               const struct daemon_words *words)
{
    struct lh_report report = LH_REPORT_INIT;
    bool has_prefix = args->positional > 0;
    struct page *page = page_new(slot, words);
    if (page == NULL)
        return;
    page->ordered = true;
    if ((words->given & WORD_AFTER) != 0) {
        if (strlen(words->after) >= sizeof page->after) {
            slot_reply_error(slot, "ERR", "the cursor is not one of ours");
            return;
        }
        text_copy(page->after, sizeof page->after, words->after);
    }
    slot_started(slot,
                 lh_list_start(slot->daemon->client, has_prefix ? args->text[1] : "", list_on_view,
                               page_on_done, slot, &report),
                 &report);
}

static bool history_on_view(void *user, const struct lh_view *view)
{
    struct daemon_slot *slot = user;
    struct page *page = slot->memory;
    char cursor[24];
    struct text text;
    if (slot->connection == NULL || page->more)
        return false;
    if (page->before != 0 && view->revision >= page->before)
        return true;
    text_init(&text, cursor, sizeof cursor);
    text_add_u64(&text, view->revision);
    page_insert(slot, page, cursor, view);
    return !page->failed && !page->more;
}

void verb_history(struct daemon_slot *slot, const struct daemon_args *args,
                  const struct daemon_words *words)
{
    struct lh_report report = LH_REPORT_INIT;
    struct page *page = page_new(slot, words);
    if (page == NULL)
        return;
    if ((words->given & WORD_AFTER) != 0 && !words_is_token(words->after, &page->before)) {
        slot_reply_error(slot, "ERR", "the cursor is not one of ours");
        return;
    }
    slot_started(slot,
                 lh_history_start(slot->daemon->client, args->text[1], history_on_view,
                                  page_on_done, slot, &report),
                 &report);
}
