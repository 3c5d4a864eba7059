/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The visited states of the search: entries one after the other in one array, those of a key linked
 * from the newest to the oldest, the keys found by open addressing. Entries are never removed; the
 * end of the search frees them all. This file must not interpret the words.
 */
#include "linear_memo.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* An entry: these three words, then key, spent and bounds. */
enum { AT_HASH, AT_KEY_COUNT, AT_OLDER, ENTRY_HEAD };

#define FIRST_SLOTS 256
#define FIRST_WORDS 4096

void linear_memo_init(struct linear_memo *memo, size_t max_count)
{
    *memo = (struct linear_memo){.max_count = max_count};
}

void linear_memo_done(struct linear_memo *memo)
{
    free(memo->words);
    free(memo->slots);
    *memo = (struct linear_memo){0};
}

static uint64_t hash_words(const uint64_t *words, size_t count)
{
    uint64_t hash = count;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}

/* Uses at most half of the slots, so that a lookup always ends. */
static bool grow_slots(struct linear_memo *memo)
{
    if ((memo->used_slots + 1) * 2 <= memo->slot_count) {
        return true;
    }
    size_t slot_count = memo->slot_count == 0 ? FIRST_SLOTS : memo->slot_count * 2;
    size_t *slots = calloc(slot_count, sizeof(*slots));
    if (slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < memo->slot_count; i++) {
        if (memo->slots[i] == 0) {
            continue;
        }
        size_t slot = (size_t)memo->words[memo->slots[i] - 1 + AT_HASH] & (slot_count - 1);
        while (slots[slot] != 0) {
            slot = (slot + 1) & (slot_count - 1);
        }
        slots[slot] = memo->slots[i];
    }
    free(memo->slots);
    memo->slots = slots;
    memo->slot_count = slot_count;
    return true;
}

static bool grow_words(struct linear_memo *memo, size_t more)
{
    size_t room = memo->word_room == 0 ? FIRST_WORDS : memo->word_room;
    while (room - memo->word_count < more) {
        room *= 2;
    }
    if (room == memo->word_room) {
        return true;
    }
    uint64_t *words = realloc(memo->words, room * sizeof(*words));
    if (words == NULL) {
        return false;
    }
    memo->words = words;
    memo->word_room = room;
    return true;
}

/* The slot of the key, or the empty one where it belongs. */
static size_t find_slot(const struct linear_memo *memo, uint64_t hash,
                        const struct linear_memo_item *item)
{
    size_t slot = (size_t)hash & (memo->slot_count - 1);
    for (; memo->slots[slot] != 0; slot = (slot + 1) & (memo->slot_count - 1)) {
        const uint64_t *entry = &memo->words[memo->slots[slot] - 1];
        if (entry[AT_HASH] == hash && entry[AT_KEY_COUNT] == item->key_count &&
            memcmp(entry + ENTRY_HEAD, item->key, item->key_count * sizeof(*item->key)) == 0) {
            break;
        }
    }
    return slot;
}

static bool leaves_as_much_open(const uint64_t *entry, const struct linear_memo_item *item)
{
    const uint64_t *spent = entry + ENTRY_HEAD + item->key_count;
    const uint64_t *bounds = spent + item->spent_count;
    for (size_t i = 0; i < item->spent_count; i++) {
        if ((spent[i] & ~item->spent[i]) != 0) {
            return false;
        }
    }
    for (size_t i = 0; i < item->bound_count; i++) {
        if (bounds[i] > item->bounds[i]) {
            return false;
        }
    }
    return true;
}

static void append(struct linear_memo *memo, const uint64_t *words, size_t count)
{
    memcpy(&memo->words[memo->word_count], words, count * sizeof(*words));
    memo->word_count += count;
}

enum linear_memo_answer linear_memo_add(struct linear_memo *memo,
                                        const struct linear_memo_item *item)
{
    size_t size = ENTRY_HEAD + item->key_count + item->spent_count + item->bound_count;
    if (!grow_slots(memo) || !grow_words(memo, size)) {
        return LINEAR_MEMO_FULL;
    }
    uint64_t hash = hash_words(item->key, item->key_count);
    size_t slot = find_slot(memo, hash, item);
    for (size_t at = memo->slots[slot]; at != 0; at = (size_t)memo->words[at - 1 + AT_OLDER]) {
        if (leaves_as_much_open(&memo->words[at - 1], item)) {
            return LINEAR_MEMO_SEEN;
        }
    }
    if (memo->count == memo->max_count) {
        return LINEAR_MEMO_FULL;
    }
    const uint64_t head[ENTRY_HEAD] = {
        [AT_HASH] = hash,
        [AT_KEY_COUNT] = item->key_count,
        [AT_OLDER] = memo->slots[slot],
    };
    memo->used_slots += memo->slots[slot] == 0 ? 1 : 0;
    memo->slots[slot] = memo->word_count + 1;
    append(memo, head, ENTRY_HEAD);
    append(memo, item->key, item->key_count);
    append(memo, item->spent, item->spent_count);
    append(memo, item->bounds, item->bound_count);
    memo->count++;
    return LINEAR_MEMO_NEW;
}
