/* SPDX-License-Identifier: Apache-2.0 */
/* See knowledge.h. Entries stand in the order of their use; those in use lose only their copy. */
#include "runtime/knowledge.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

enum { NAMED_MAX = GRANTS_MAX + PLACES_MAX /* all that a record can name */ };

static size_t words_for(size_t bytes)
{
    return (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
}

static size_t at_most(size_t count, size_t most)
{
    return count < most ? count : most;
}

static const uint64_t *keep_numbers(uint64_t **at, const uint64_t *numbers, size_t count)
{
    uint64_t *kept = *at;
    if (count > 0)
        memcpy(kept, numbers, count * sizeof *numbers);
    *at += count;
    return kept;
}

struct heard *heard_new(const struct store_answer *answer)
{
    size_t dead = at_most(answer->dead_count, NAMED_MAX);
    size_t ended = at_most(answer->ended_count, NAMED_MAX);
    size_t length = answer->present ? answer->length : 0;
    size_t size = sizeof(struct heard) + (dead + ended + words_for(length)) * sizeof(uint64_t);
    struct heard *heard = malloc(size);
    if (heard == NULL)
        return NULL;
    uint64_t *at = heard->words;
    heard->size = size;
    heard->answer = *answer;
    heard->answer.key = heard->answer.why = NULL;
    heard->answer.dead_sessions = keep_numbers(&at, answer->dead_sessions, dead);
    heard->answer.dead_count = dead;
    heard->answer.ended_tokens = keep_numbers(&at, answer->ended_tokens, ended);
    heard->answer.ended_count = ended;
    heard->answer.bytes = (const char *)at;
    heard->answer.length = length;
    if (length > 0)
        memcpy(at, answer->bytes, length);
    return heard;
}

bool knowledge_init(struct knowledge *knowledge)
{
    *knowledge = (struct knowledge){0};
    return table_init(&knowledge->table);
}

static size_t weight_of(const struct known *known)
{
    size_t heard = known->heard != NULL ? known->heard->size : 0;
    size_t seen = known->sights != NULL ? known->sights->count * sizeof(struct sight) : 0;
    return sizeof *known + strlen(known->key) + 1 + heard + seen;
}

static void unlist(struct knowledge *knowledge, struct known *known)
{
    if (!known->listed)
        return;
    if (known->newer != NULL)
        known->newer->older = known->older;
    else
        knowledge->newest = known->older;
    if (known->older != NULL)
        known->older->newer = known->newer;
    else
        knowledge->oldest = known->newer;
    known->newer = known->older = NULL;
    known->listed = false;
    knowledge->bytes -= known->weight;
}

static void list(struct knowledge *knowledge, struct known *known)
{
    unlist(knowledge, known);
    known->older = knowledge->newest;
    if (known->older != NULL)
        known->older->newer = known;
    else
        knowledge->oldest = known;
    knowledge->newest = known;
    known->listed = true;
    known->weight = weight_of(known);
    knowledge->bytes += known->weight;
}

static void drop_copy(struct knowledge *knowledge, struct known *known)
{
    knowledge->copies -= known->heard != NULL ? 1 : 0;
    free(known->heard);
    known->heard = NULL;
}

static void free_known(struct knowledge *knowledge, struct known *known)
{
    unlist(knowledge, known);
    drop_copy(knowledge, known);
    table_remove(&knowledge->table, &known->node);
    free(known->sights);
    free(known);
}

static void shrink(struct knowledge *knowledge)
{
    struct known *known;
    while (knowledge->bytes > KNOWN_BYTES_MAX && (known = knowledge->oldest) != NULL) {
        if (known->users == 0) {
            free_known(knowledge, known);
        } else { /* its sights may be all that ends a wait: they stay */
            unlist(knowledge, known);
            drop_copy(knowledge, known);
        }
    }
}

struct known *knowledge_find(const struct knowledge *knowledge, const char *key)
{
    return (struct known *)table_find(&knowledge->table, key);
}

struct known *knowledge_use(struct knowledge *knowledge, const char *key)
{
    struct known *known = knowledge_find(knowledge, key);
    size_t size = strlen(key) + 1;
    if (known == NULL) {
        known = calloc(1, sizeof *known + size);
        if (known == NULL)
            return NULL;
        memcpy(known->key, key, size);
        table_put(&knowledge->table, &known->node, known->key);
    }
    known->users++;
    return known;
}

void knowledge_return(struct knowledge *knowledge, struct known *known)
{
    ASSERT(known->users > 0);
    known->users--;
    bool worth_keeping = known->heard != NULL || known->sights != NULL;
    if (known->users == 0 && !worth_keeping) {
        free_known(knowledge, known);
        return;
    }
    list(knowledge, known);
    shrink(knowledge);
}

void knowledge_hear(struct knowledge *knowledge, struct known *known, struct heard *heard)
{
    unlist(knowledge, known);
    drop_copy(knowledge, known);
    known->heard = heard;
    if (heard != NULL) {
        knowledge->copies++;
        list(knowledge, known);
    }
    shrink(knowledge);
}

void knowledge_load_sights(const struct known *known, struct sighting *out)
{
    const struct kept_sights *kept = known->sights;
    out->offer = kept != NULL ? kept->offer : 0;
    out->offer_since_ms = kept != NULL ? kept->offer_since_ms : 0;
    out->count = kept != NULL ? kept->count : 0;
    if (out->count > 0)
        memcpy(out->sights, kept->sights, out->count * sizeof kept->sights[0]);
}

/* What is not there (a span that never began) is not worth a place. */
static bool is_worth(const struct sight *sight)
{
    return sight->revision != 0;
}

void knowledge_save_sights(struct known *known, const struct sighting *sighting)
{
    size_t count = 0;
    struct kept_sights *kept = known->sights;
    for (size_t i = 0; i < sighting->count; i++)
        count += is_worth(&sighting->sights[i]) ? 1 : 0;
    if (kept == NULL || kept->count != count) {
        free(kept);
        kept = NULL;
        if (count > 0 || sighting->offer != 0)
            kept = malloc(sizeof *kept + count * sizeof kept->sights[0]);
        known->sights = kept;
    }
    if (kept == NULL) /* nothing to keep, or no memory: what is seen is seen anew */
        return;
    kept->offer = sighting->offer;
    kept->offer_since_ms = sighting->offer_since_ms;
    kept->count = 0;
    for (size_t i = 0; i < sighting->count; i++)
        if (is_worth(&sighting->sights[i]))
            kept->sights[kept->count++] = sighting->sights[i];
}

void knowledge_done(struct knowledge *knowledge)
{
    for (size_t i = 0; i < knowledge->table.chain_count; i++)
        while (knowledge->table.chains[i] != NULL)
            free_known(knowledge, (struct known *)knowledge->table.chains[i]);
    table_done(&knowledge->table);
}
