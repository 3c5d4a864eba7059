/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The in-memory store: a hash table of records, one revision counter for all keys, replies within
 * the call. It must not read any clock but the given one, so that equal requests give equal
 * replies: simulation and exploration run on it. Single-threaded; nothing survives the process.
 */
#include "base/check.h"
#include "base/hash.h"
#include "base/heap.h"
#include "core/mutant.h"
#include "store/admin.h"
#include "store/condition.h"
#include "store/expiry.h"
#include "store/watchers.h"
#include "wire/store_url.h"
#include "wire/url_redact.h"

#include <stdlib.h>
#include <string.h>

enum {
    MEMORY_MAGIC = 0x3e3017,
    BUCKETS_FIRST = 16,
    IDS_MAX = 1000000, /* by default: memory:?ids=1000000 */
    EXPIRE_AT_ONCE = 4,
    RECHECK_MS = 60000, /* of a record that waits for a watermark */
};

struct memory_entry {
    struct memory_entry *next; /* in its bucket */
    uint64_t hash;
    struct stamp written;
    struct heap_node end; /* when the record may be removed */
    size_t length, room;
    char *bytes; /* behind the key, or allocated for a record that became longer */
    char key[];
};

struct memory {
    uint32_t magic;
    struct store_clock clock;
    int64_t now_ms;    /* when the current request was submitted */
    uint64_t revision; /* of the whole store: it also grows with deletes */
    uint16_t epoch;
    size_t count, bucket_count;
    struct memory_entry **buckets;
    struct heap ends;
    size_t id_count, id_most;
    uint64_t refused; /* new ids, for lack of room */
    struct watchers watchers;
    struct record scratch;
    char encoded[RECORD_MAX + 1];
};

static struct memory_entry **memory_find(struct memory *memory, const char *key, uint64_t hash)
{
    struct memory_entry **at = &memory->buckets[hash & (memory->bucket_count - 1)];
    while (*at != NULL && ((*at)->hash != hash || strcmp((*at)->key, key) != 0))
        at = &(*at)->next;
    return at;
}

/* Doubles the table when it is half full: an entry that is not there costs one access to memory,
 * and every other entry of its chain another one. If out of memory, longer chains are acceptable.
 */
static void memory_grow(struct memory *memory)
{
    size_t count = memory->bucket_count * 2;
    struct memory_entry **buckets = calloc(count, sizeof(struct memory_entry *));
    if (buckets == NULL)
        return;
    for (size_t i = 0; i < memory->bucket_count; i++) {
        while (memory->buckets[i] != NULL) {
            struct memory_entry *entry = memory->buckets[i];
            memory->buckets[i] = entry->next;
            entry->next = buckets[entry->hash & (count - 1)];
            buckets[entry->hash & (count - 1)] = entry;
        }
    }
    free(memory->buckets);
    memory->buckets = buckets;
    memory->bucket_count = count;
}

static char *entry_room(struct memory_entry *entry)
{
    return entry->key + strlen(entry->key) + 1;
}

static void free_entry(struct memory_entry *entry)
{
    if (entry->bytes != entry_room(entry))
        free(entry->bytes);
    free(entry);
}

/* With room for a record of that length. */
static struct memory_entry *new_entry(const char *key, uint64_t hash, size_t length)
{
    size_t size = strlen(key) + 1;
    struct memory_entry *entry = malloc(sizeof *entry + size + length);
    if (entry == NULL)
        return NULL;
    *entry = (struct memory_entry){.hash = hash, .room = length};
    memcpy(entry->key, key, size);
    entry->bytes = entry->key + size;
    heap_node_init(&entry->end);
    return entry;
}

static bool is_id(const char *key)
{
    return text_begins(key, ONCE_PREFIX);
}

static struct store_reply memory_reply(const struct memory *memory, enum reply_status result,
                                       const struct memory_entry *entry)
{
    struct store_reply reply = {
        .result = result, .present = entry != NULL, .now_ms = memory->now_ms};
    if (entry != NULL) {
        reply.written = entry->written;
        reply.bytes = entry->bytes;
        reply.length = entry->length;
    }
    return reply;
}

/* Each watcher gets the current record: an earlier callback may have changed it. */
static void memory_notify_watchers(struct memory *memory, const char *key)
{
    uint64_t hash = hash_string(key);
    for (struct watchers_walk walk = watchers_walk(&memory->watchers, key); watchers_next(&walk);) {
        struct store_reply reply = memory_reply(memory, REPLY_OK, *memory_find(memory, key, hash));
        watchers_deliver(&walk, &reply);
    }
}

/* False if out of memory. */
static bool entry_make_room(struct memory_entry *entry, size_t length)
{
    if (length <= entry->room)
        return true;
    char *bytes = malloc(length);
    if (bytes == NULL)
        return false;
    if (entry->bytes != entry_room(entry))
        free(entry->bytes);
    entry->bytes = bytes;
    entry->room = length;
    return true;
}

/* The entry of the key, with room for a record of that length; NULL if out of memory. */
static struct memory_entry *entry_at(struct memory *memory, struct memory_entry **at,
                                     const char *key, uint64_t hash, size_t length)
{
    struct memory_entry *entry = *at;
    if (entry != NULL)
        return entry_make_room(entry, length) ? entry : NULL;
    *at = entry = new_entry(key, hash, length);
    if (entry != NULL && is_id(key))
        memory->id_count++;
    if (entry != NULL && ++memory->count > memory->bucket_count / 2)
        memory_grow(memory);
    return entry;
}

/* False if out of memory; nothing changed. */
static bool memory_put(struct memory *memory, struct memory_entry **at,
                       const struct store_request *request, uint64_t hash)
{
    struct memory_entry *entry = entry_at(memory, at, request->key, hash, request->length);
    if (entry == NULL)
        return false;
    memcpy(entry->bytes, request->bytes, request->length);
    entry->length = request->length;
    entry->written = (struct stamp){.revision = ++memory->revision,
                                    .time_ms = memory->now_ms,
                                    .epoch = MUTANT(EPOCH_FORGOTTEN) ? 0 : memory->epoch};
    heap_set(&memory->ends, &entry->end,
             request->retention_ms > 0 ? entry->written.time_ms + request->retention_ms
                                       : HEAP_NEVER);
    return true;
}

static void memory_remove(struct memory *memory, struct memory_entry **at)
{
    struct memory_entry *entry = *at;
    *at = entry->next;
    heap_set(&memory->ends, &entry->end, HEAP_NEVER);
    memory->count--;
    memory->id_count -= is_id(entry->key) ? 1 : 0;
    memory->revision++;
    free_entry(entry);
}

static struct stored_record memory_stored_record(const struct memory *memory,
                                                 const struct memory_entry *entry)
{
    struct stored_record stored = {.now_ms = memory->now_ms};
    if (entry != NULL) {
        stored.bytes = entry->bytes;
        stored.length = entry->length;
        stored.written = entry->written;
    }
    return stored;
}

static struct stored_record memory_find_record(void *owner, const char *key)
{
    struct memory *memory = owner;
    return memory_stored_record(memory, *memory_find(memory, key, hash_string(key)));
}

/* Removes a few expired records at each write, the oldest first, never all at once. */
static void memory_expire_some(struct memory *memory)
{
    int64_t now_ms = memory->now_ms;
    bool evicts = MUTANT(ID_EVICTED) && memory->id_count >= memory->id_most;
    if (evicts && memory->ends.top != NULL)
        now_ms = memory->ends.top->at;
    for (int i = 0; i < EXPIRE_AT_ONCE && heap_first(&memory->ends) <= now_ms; i++) {
        char *node = (char *)memory->ends.top;
        ASSERT(node != NULL); /* a node before HEAP_NEVER exists */
        struct memory_entry *entry =
            (struct memory_entry *)(node - offsetof(struct memory_entry, end));
        struct memory_entry **at = memory_find(memory, entry->key, entry->hash);
        ASSERT(*at == entry);
        struct stored_record stored = memory_stored_record(memory, entry);
        if (expiry_awaits_watermark(&stored, memory_find_record, memory, &memory->scratch))
            heap_set(&memory->ends, &entry->end, now_ms + RECHECK_MS);
        else
            memory_remove(memory, at);
    }
}

/* At the cap no record that is still needed is removed: new ids are refused. */
static bool memory_has_room(struct memory *memory, const struct store_request *request,
                            const struct memory_entry *entry)
{
    if (entry != NULL || !is_id(request->key) || memory->id_count < memory->id_most)
        return true;
    memory->refused++;
    return false;
}

static void memory_reply_full(struct memory *memory, store_done *done, void *caller)
{
    char buffer[128];
    struct text why;
    struct store_reply reply = memory_reply(memory, REPLY_FULL, NULL);
    text_init(&why, buffer, sizeof buffer);
    text_add(&why, "memory: keeps ");
    text_add_u64(&why, memory->id_count);
    text_add(&why, " ids, the maximum; refused so far: ");
    text_add_u64(&why, memory->refused);
    reply.why = buffer;
    done(caller, &reply);
}

static void memory_swap(struct memory *memory, const struct store_request *request,
                        store_done *done, void *caller)
{
    memory_expire_some(memory);
    bool watched = memory->watchers.count > 0;
    uint64_t hash = hash_string(request->key);
    struct memory_entry **at = memory_find(memory, request->key, hash);
    struct stored_record stored = memory_stored_record(memory, *at);
    struct store_request write = *request;
    bool holds = condition_holds(request, &stored, &memory->scratch);
    if (holds && !memory_has_room(memory, request, *at)) {
        memory_reply_full(memory, done, caller);
        return;
    }
    if (holds && request->condition.kind == IF_GRANT) {
        write.bytes = memory->encoded;
        write.length = condition_renewal(request, &stored, &memory->scratch, memory->encoded,
                                         sizeof memory->encoded);
        write.retention_ms = record_retention_ms(&memory->scratch);
    }
    enum reply_status result = !holds                                 ? REPLY_CONFLICT
                               : memory_put(memory, at, &write, hash) ? REPLY_OK
                                                                      : REPLY_TROUBLE;
    struct store_reply reply =
        memory_reply(memory, result, *memory_find(memory, request->key, hash));
    done(caller, &reply);
    if (watched && result == REPLY_OK)
        memory_notify_watchers(memory, request->key);
}

static void memory_delete(struct memory *memory, const struct store_request *request,
                          store_done *done, void *caller)
{
    bool watched = memory->watchers.count > 0;
    struct memory_entry **at = memory_find(memory, request->key, hash_string(request->key));
    struct stored_record stored = memory_stored_record(memory, *at);
    bool holds = condition_holds(request, &stored, &memory->scratch);
    if (holds && *at != NULL)
        memory_remove(memory, at);
    struct store_reply reply =
        memory_reply(memory, holds ? REPLY_OK : REPLY_CONFLICT, holds ? NULL : *at);
    done(caller, &reply);
    if (watched && holds)
        memory_notify_watchers(memory, request->key);
}

static void memory_list(struct memory *memory, const struct store_request *request,
                        store_done *done, void *caller)
{
    size_t prefix_length = strlen(request->key);
    for (size_t i = 0; i < memory->bucket_count; i++) {
        for (const struct memory_entry *entry = memory->buckets[i]; entry != NULL;
             entry = entry->next) {
            if (strncmp(entry->key, request->key, prefix_length) != 0)
                continue;
            struct store_reply reply = memory_reply(memory, REPLY_OK, entry);
            reply.more = true;
            reply.key = entry->key;
            done(caller, &reply);
        }
    }
    struct store_reply last = memory_reply(memory, REPLY_OK, NULL);
    done(caller, &last);
}

static void memory_watch(struct memory *memory, const struct store_request *request,
                         store_done *done, void *caller)
{
    struct store_reply reply = memory_reply(memory, REPLY_OK, NULL);
    (void)watchers_add(&memory->watchers, request->key, done, caller);
    watchers_confirm(&memory->watchers, &reply);
}

static void memory_run(struct memory *memory, const struct store_request *request, store_done *done,
                       void *caller)
{
    struct store_reply reply;
    switch (request->verb) {
    case VERB_STORE_READ:
        reply = memory_reply(memory, REPLY_OK,
                             *memory_find(memory, request->key, hash_string(request->key)));
        done(caller, &reply);
        return;
    case VERB_STORE_SWAP:
        memory_swap(memory, request, done, caller);
        return;
    case VERB_STORE_DELETE:
        memory_delete(memory, request, done, caller);
        return;
    case VERB_STORE_LIST:
        memory_list(memory, request, done, caller);
        return;
    case VERB_STORE_WATCH:
        memory_watch(memory, request, done, caller);
        return;
    case VERB_STORE_HISTORY:
        reply = (struct store_reply){
            .result = REPLY_TROUBLE, .now_ms = memory->now_ms, .why = "memory: keeps no history"};
        done(caller, &reply);
        return;
    }
    UNREACHABLE("every verb is listed");
}

/* The caller's key is invalid after the reply, and watchers come later. */
static void memory_run_watched(struct memory *memory, const struct store_request *submitted,
                               store_done *done, void *caller)
{
    struct store_request request = *submitted;
    char key[KEY_MAX + 1];
    text_copy(key, sizeof key, submitted->key);
    request.key = key;
    memory_run(memory, &request, done, caller);
}

static void memory_submit(void *state, const struct store_request *request, store_done *done,
                          void *caller)
{
    struct memory *memory = state;
    ASSERT(memory->magic == MEMORY_MAGIC);
    memory->now_ms = memory->clock.now_ms(memory->clock.owner);
    if (memory->watchers.count > 0)
        memory_run_watched(memory, request, done, caller);
    else
        memory_run(memory, request, done, caller);
}

static const struct url_option options[] = {
    URL_OPTION(struct memory, id_most, "ids", .kind = URL_NUMBER, .least = 1, .most = SIZE_MAX,
               .rule = "ids is the maximum number of ids, as in memory:?ids=1000"),
};
static const struct url_form form = {.options = options, .option_count = 1};

static bool memory_open(void *state, const char *url, const struct store_callbacks *callbacks,
                        struct text *why)
{
    struct memory *memory = state;
    struct url_parts parts;
    memset(memory, 0, offsetof(struct memory, scratch));
    memory->id_most = IDS_MAX;
    url_split(url, /* users= */ false, &parts);
    if (!url_read_options(parts.query, &form, &parts.given, memory, why))
        return false;
    memory->buckets = calloc(BUCKETS_FIRST, sizeof(struct memory_entry *));
    if (memory->buckets == NULL) {
        text_add(why, "out of memory");
        return false;
    }
    memory->bucket_count = BUCKETS_FIRST;
    memory->clock = callbacks->clock;
    memory->magic = MEMORY_MAGIC;
    return true;
}

static void memory_close(void *state)
{
    struct memory *memory = state;
    for (size_t i = 0; i < memory->bucket_count; i++) {
        while (memory->buckets[i] != NULL) {
            struct memory_entry *entry = memory->buckets[i];
            memory->buckets[i] = entry->next;
            free_entry(entry);
        }
    }
    watchers_done(&memory->watchers);
    free(memory->buckets);
    memory->magic = 0;
}

uint64_t memory_raise_revision(void *state, uint64_t at_least)
{
    struct memory *memory = state;
    ASSERT(memory->magic == MEMORY_MAGIC);
    if (memory->revision < at_least)
        memory->revision = at_least;
    return memory->revision;
}

void memory_raise_epoch(void *state, uint64_t lost)
{
    struct memory *memory = state;
    ASSERT(memory->magic == MEMORY_MAGIC && memory->epoch < EPOCH_MAX && lost <= memory->revision);
    memory->epoch++;
    memory->revision -= lost;
}

static void memory_diagnose(const char *url, const struct diagnosis *diagnosis)
{
    char shown[256];
    struct text text;
    text_init(&text, shown, sizeof shown);
    url_redact(url, &text);
    diagnosis_report(diagnosis, FINDING_WARNING, "store", "name a file: store to share locks",
                     "%s is private to each process and is lost when it exits", shown);
}

const struct store_driver memory_driver = {
    .scheme = "memory",
    .capabilities = STORE_WATCHES | STORE_TIME | STORE_ONE_CLOCK | STORE_TESTS_GRANT |
                    STORE_RENEWS_GRANT | STORE_DELETES,
    .state_size = sizeof(struct memory),
    .facts = {STORE_USUAL_FACTS(WAITERS_MAX), .answer_ms = 1, .ttl_least_ms = 10},
    .open = memory_open,
    .close = memory_close,
    .submit = memory_submit,
    .diagnose = memory_diagnose,
};
