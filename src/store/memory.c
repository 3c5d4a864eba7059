/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The in-memory store: a table of records, one count of revisions for all keys, answers given
 * within the call. It reads no clock but the one it was given, so the same requests give the same
 * answers: simulation and exploration run on it. One thread; nothing survives the process.
 */
#include "base/check.h"
#include "base/heap.h"
#include "core/mutant.h"
#include "store/condition.h"
#include "store/forget.h"

#include <stdlib.h>
#include <string.h>

enum {
    MEMORY_MAGIC = 0x3e3017,
    WATCHES_MAX = 64,
    BUCKETS_FIRST = 16,
    IDS_MAX = 1000000, /* by default: memory:?ids=1000000 */
    FORGET_AT_ONCE = 4,
    LOOK_AGAIN_MS = 60000, /* at what waits for a watermark */
};

struct entry {
    struct entry *next; /* in its bucket */
    uint64_t hash;
    struct stamp written;
    struct heap_node end; /* when it may be forgotten */
    size_t length;
    char *key;
    char *bytes;
};

struct watch {
    char *prefix;
    store_done *done;
    void *caller;
};

struct memory {
    uint32_t magic;
    struct store_clock clock;
    uint64_t revision; /* of the whole store: it also grows over deletes */
    size_t count, bucket_count;
    struct entry **buckets;
    struct heap ends;
    size_t id_count, id_most;
    uint64_t refused; /* ids, for lack of room */
    size_t watch_count;
    struct watch watches[WATCHES_MAX];
    struct record scratch;
    char encoded[RECORD_MAX + 1];
};

static uint64_t hash_of(const char *key)
{
    uint64_t hash = 0xcbf29ce484222325U;
    for (; *key != '\0'; key++)
        hash = (hash ^ (unsigned char)*key) * 0x100000001b3U;
    return hash ^ (hash >> 29);
}

static struct entry **find(struct memory *memory, const char *key, uint64_t hash)
{
    struct entry **at = &memory->buckets[hash & (memory->bucket_count - 1)];
    while (*at != NULL && ((*at)->hash != hash || strcmp((*at)->key, key) != 0))
        at = &(*at)->next;
    return at;
}

/* Doubles the table when it is full; when memory is short, longer chains are good enough. */
static void grow(struct memory *memory)
{
    size_t count = memory->bucket_count * 2;
    struct entry **buckets = calloc(count, sizeof(struct entry *));
    if (buckets == NULL)
        return;
    for (size_t i = 0; i < memory->bucket_count; i++) {
        while (memory->buckets[i] != NULL) {
            struct entry *entry = memory->buckets[i];
            memory->buckets[i] = entry->next;
            entry->next = buckets[entry->hash & (count - 1)];
            buckets[entry->hash & (count - 1)] = entry;
        }
    }
    free(memory->buckets);
    memory->buckets = buckets;
    memory->bucket_count = count;
}

static void free_entry(struct entry *entry)
{
    if (entry != NULL) {
        free(entry->bytes);
        free(entry->key);
    }
    free(entry);
}

static struct entry *new_entry(const char *key, uint64_t hash)
{
    struct entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL || (entry->key = strdup(key)) == NULL) {
        free_entry(entry);
        return NULL;
    }
    entry->hash = hash;
    heap_node_init(&entry->end);
    return entry;
}

static bool is_id(const char *key)
{
    return strncmp(key, ONCE_PREFIX, sizeof ONCE_PREFIX - 1) == 0;
}

static struct store_answer describe(const struct memory *memory, enum answer result,
                                    const struct entry *entry)
{
    struct store_answer answer = {.result = result,
                                  .present = entry != NULL,
                                  .now_ms = memory->clock.now_ms(memory->clock.owner)};
    if (entry != NULL) {
        answer.written = entry->written;
        answer.bytes = entry->bytes;
        answer.length = entry->length;
    }
    return answer;
}

/* Each is told what stands by then: a callback before it may have asked for more. */
static void tell_watchers(struct memory *memory, const char *key)
{
    uint64_t hash = hash_of(key);
    for (size_t i = 0; i < memory->watch_count; i++) {
        const struct watch *watcher = &memory->watches[i];
        if (strncmp(key, watcher->prefix, strlen(watcher->prefix)) != 0)
            continue;
        struct store_answer answer = describe(memory, ANSWER_OK, *find(memory, key, hash));
        answer.more = true;
        answer.key = key;
        watcher->done(watcher->caller, &answer);
    }
}

/* The entry under the key, made and linked when there is none; NULL when memory is short. */
static struct entry *entry_at(struct memory *memory, struct entry **at, const char *key,
                              uint64_t hash)
{
    if (*at != NULL)
        return *at;
    struct entry *entry = new_entry(key, hash);
    *at = entry;
    if (entry != NULL && is_id(key))
        memory->id_count++;
    if (entry != NULL && ++memory->count > memory->bucket_count)
        grow(memory);
    return entry;
}

/* False when memory is short: nothing changed. */
static bool put(struct memory *memory, struct entry **at, const struct store_request *request,
                uint64_t hash)
{
    char *bytes = malloc(request->length);
    struct entry *entry = bytes != NULL ? entry_at(memory, at, request->key, hash) : NULL;
    if (entry == NULL) {
        free(bytes);
        return false;
    }
    memcpy(bytes, request->bytes, request->length);
    free(entry->bytes);
    entry->bytes = bytes;
    entry->length = request->length;
    entry->written = (struct stamp){.revision = ++memory->revision,
                                    .time_ms = memory->clock.now_ms(memory->clock.owner)};
    heap_set(&memory->ends, &entry->end,
             request->lives_ms > 0 ? entry->written.time_ms + request->lives_ms : HEAP_NEVER);
    return true;
}

static void take_out(struct memory *memory, struct entry **at)
{
    struct entry *entry = *at;
    *at = entry->next;
    heap_set(&memory->ends, &entry->end, HEAP_NEVER);
    memory->count--;
    memory->id_count -= is_id(entry->key) ? 1 : 0;
    memory->revision++;
    free_entry(entry);
}

static struct standing standing_of(const struct memory *memory, const struct entry *entry)
{
    struct standing standing = {.now_ms = memory->clock.now_ms(memory->clock.owner)};
    if (entry != NULL) {
        standing.bytes = entry->bytes;
        standing.length = entry->length;
        standing.written = entry->written;
    }
    return standing;
}

static struct standing find_standing(void *owner, const char *key)
{
    struct memory *memory = owner;
    return standing_of(memory, *find(memory, key, hash_of(key)));
}

/* A few at each write, those that ended first: never a sweep of everything. */
static void forget_some(struct memory *memory)
{
    int64_t now_ms = memory->clock.now_ms(memory->clock.owner);
    bool evicts = MUTANT(ID_EVICTED) && memory->id_count >= memory->id_most;
    if (evicts && memory->ends.top != NULL)
        now_ms = memory->ends.top->at;
    for (int i = 0; i < FORGET_AT_ONCE && heap_first(&memory->ends) <= now_ms; i++) {
        char *node = (char *)memory->ends.top;
        ASSERT(node != NULL); /* what comes before NEVER is there */
        struct entry *entry = (struct entry *)(node - offsetof(struct entry, end));
        struct entry **at = find(memory, entry->key, entry->hash);
        ASSERT(*at == entry);
        struct standing standing = standing_of(memory, entry);
        if (forget_awaits(&standing, find_standing, memory, &memory->scratch))
            heap_set(&memory->ends, &entry->end, now_ms + LOOK_AGAIN_MS);
        else
            take_out(memory, at);
    }
}

/* At the cap nothing is forgotten that is still needed: whoever comes with a new id is refused. */
static bool has_room(struct memory *memory, const struct store_request *request,
                     const struct entry *entry)
{
    if (entry != NULL || !is_id(request->key) || memory->id_count < memory->id_most)
        return true;
    memory->refused++;
    return false;
}

static void refuse(struct memory *memory, store_done *done, void *caller)
{
    char words[128];
    struct text why;
    struct store_answer answer = describe(memory, ANSWER_FULL, NULL);
    text_init(&why, words, sizeof words);
    text_add(&why, "memory: keeps ");
    text_add_u64(&why, memory->id_count);
    text_add(&why, " ids, as many as it may; refused so far: ");
    text_add_u64(&why, memory->refused);
    answer.why = words;
    done(caller, &answer);
}

static void swap(struct memory *memory, const struct store_request *request, store_done *done,
                 void *caller)
{
    forget_some(memory);
    uint64_t hash = hash_of(request->key);
    struct entry **at = find(memory, request->key, hash);
    struct standing standing = standing_of(memory, *at);
    struct store_request write = *request;
    bool holds = condition_holds(request, &standing, &memory->scratch);
    if (holds && !has_room(memory, request, *at)) {
        refuse(memory, done, caller);
        return;
    }
    if (holds && request->condition.kind == IF_GRANT) {
        write.bytes = memory->encoded;
        write.length = condition_renewal(request, &standing, &memory->scratch, memory->encoded,
                                         sizeof memory->encoded);
        write.lives_ms = record_lives_ms(&memory->scratch);
    }
    enum answer result = !holds                          ? ANSWER_CONFLICT
                         : put(memory, at, &write, hash) ? ANSWER_OK
                                                         : ANSWER_TROUBLE;
    struct store_answer answer = describe(memory, result, *find(memory, request->key, hash));
    done(caller, &answer);
    if (result == ANSWER_OK)
        tell_watchers(memory, request->key);
}

static void erase(struct memory *memory, const struct store_request *request, store_done *done,
                  void *caller)
{
    struct entry **at = find(memory, request->key, hash_of(request->key));
    struct standing standing = standing_of(memory, *at);
    bool holds = condition_holds(request, &standing, &memory->scratch);
    if (holds && *at != NULL)
        take_out(memory, at);
    struct store_answer answer =
        describe(memory, holds ? ANSWER_OK : ANSWER_CONFLICT, holds ? NULL : *at);
    done(caller, &answer);
    if (holds)
        tell_watchers(memory, request->key);
}

static void list(struct memory *memory, const struct store_request *request, store_done *done,
                 void *caller)
{
    size_t prefix_length = strlen(request->key);
    for (size_t i = 0; i < memory->bucket_count; i++) {
        for (const struct entry *entry = memory->buckets[i]; entry != NULL; entry = entry->next) {
            if (strncmp(entry->key, request->key, prefix_length) != 0)
                continue;
            struct store_answer answer = describe(memory, ANSWER_OK, entry);
            answer.more = true;
            answer.key = entry->key;
            done(caller, &answer);
        }
    }
    struct store_answer last = describe(memory, ANSWER_OK, NULL);
    done(caller, &last);
}

static void watch(struct memory *memory, const struct store_request *request, store_done *done,
                  void *caller)
{
    char *prefix = memory->watch_count < WATCHES_MAX ? strdup(request->key) : NULL;
    struct store_answer answer =
        describe(memory, prefix != NULL ? ANSWER_OK : ANSWER_TROUBLE, NULL);
    answer.more = prefix != NULL;
    if (prefix != NULL)
        memory->watches[memory->watch_count++] =
            (struct watch){.prefix = prefix, .done = done, .caller = caller};
    done(caller, &answer);
}

static void submit(void *state, const struct store_request *submitted, store_done *done,
                   void *caller)
{
    struct memory *memory = state;
    ASSERT(memory->magic == MEMORY_MAGIC);
    struct store_answer answer;
    struct store_request request = *submitted;
    char
        key[KEY_MAX + 1]; /* the caller's is gone with the answer, and watchers are told after it */
    text_copy(key, sizeof key, submitted->key);
    request.key = key;
    switch (request.verb) {
    case VERB_STORE_READ:
        answer = describe(memory, ANSWER_OK, *find(memory, key, hash_of(key)));
        done(caller, &answer);
        return;
    case VERB_STORE_SWAP:
        swap(memory, &request, done, caller);
        return;
    case VERB_STORE_DELETE:
        erase(memory, &request, done, caller);
        return;
    case VERB_STORE_LIST:
        list(memory, &request, done, caller);
        return;
    case VERB_STORE_WATCH:
        watch(memory, &request, done, caller);
        return;
    case VERB_STORE_HISTORY:
        answer = (struct store_answer){.result = ANSWER_TROUBLE,
                                       .now_ms = memory->clock.now_ms(memory->clock.owner),
                                       .why = "memory: keeps no history"};
        done(caller, &answer);
        return;
    }
    UNREACHABLE("every verb is listed");
}

/* 0 when the URL says something else. */
static size_t id_most_of(const char *url)
{
    static const char option[] = "?ids=";
    const char *at = strchr(url, '?');
    char *end = NULL;
    if (at == NULL)
        return IDS_MAX;
    if (strncmp(at, option, sizeof option - 1) != 0)
        return 0;
    unsigned long long most = strtoull(at + sizeof option - 1, &end, 10);
    return *end == '\0' ? most : 0;
}

static bool open_memory(void *state, const char *url, const struct store_site *site,
                        struct text *why)
{
    struct memory *memory = state;
    memset(memory, 0, offsetof(struct memory, scratch));
    memory->id_most = id_most_of(url);
    if (memory->id_most == 0) {
        text_add(why, "say how many ids it may keep, as in memory:?ids=1000");
        return false;
    }
    memory->buckets = calloc(BUCKETS_FIRST, sizeof(struct entry *));
    if (memory->buckets == NULL) {
        text_add(why, "memory is short");
        return false;
    }
    memory->bucket_count = BUCKETS_FIRST;
    memory->clock = site->clock;
    memory->magic = MEMORY_MAGIC;
    return true;
}

static void close_memory(void *state)
{
    struct memory *memory = state;
    for (size_t i = 0; i < memory->bucket_count; i++) {
        while (memory->buckets[i] != NULL) {
            struct entry *entry = memory->buckets[i];
            memory->buckets[i] = entry->next;
            free_entry(entry);
        }
    }
    for (size_t i = 0; i < memory->watch_count; i++)
        free(memory->watches[i].prefix);
    free(memory->buckets);
    memory->magic = 0;
}

uint64_t memory_raise(void *state, uint64_t at_least)
{
    struct memory *memory = state;
    ASSERT(memory->magic == MEMORY_MAGIC);
    if (memory->revision < at_least)
        memory->revision = at_least;
    return memory->revision;
}

const struct store_driver memory_driver = {
    .scheme = "memory",
    .capabilities =
        STORE_WATCHES | STORE_TIME | STORE_ONE_CLOCK | STORE_TESTS_GRANT | STORE_DELETES,
    .state_size = sizeof(struct memory),
    .ttl_least_ms = 10,
    .open = open_memory,
    .close = close_memory,
    .submit = submit,
};
