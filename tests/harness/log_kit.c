/* SPDX-License-Identifier: Apache-2.0 */
/* See log_kit.h. */
#include "log_kit.h"

#include <stdlib.h>
#include <string.h>

struct log_options kit_options(const struct disk *disk, unsigned boot)
{
    struct log_options options = {.disk = disk,
                                  .segment = KIT_SEGMENT,
                                  .reserve = KIT_RESERVE,
                                  .window = KIT_WINDOW,
                                  .slots = KIT_SLOTS};
    options.ids.machine[0] = KIT_MACHINE;
    options.ids.boot[0] = (unsigned char)boot;
    return options;
}

int64_t kit_deadline(const struct disk *disk)
{
    return disk->boot_ms(disk->owner) + KIT_TIMEOUT_MS;
}

struct log *kit_open(const struct disk *disk, unsigned boot, enum log_result *out_result,
                     struct text *why)
{
    struct log *log = NULL;
    char unsaid[256];
    struct text nobody;
    struct log_options options = kit_options(disk, boot);
    text_init(&nobody, unsaid, sizeof unsaid);
    *out_result = log_open(&options, kit_deadline(disk), &log, why != NULL ? why : &nobody);
    return log;
}

enum log_result kit_append(struct log *log, const char *key, const char *value, bool urgent,
                           struct stamp *out_written)
{
    struct log_record before;
    enum log_result result = log_find(log, key, strlen(key), &before);
    if (result != LOG_OK)
        return result;
    return log_append(log, key, before.offset, value, value != NULL ? strlen(value) : 0, urgent,
                      out_written);
}

enum log_result kit_put(const struct disk *disk, struct log *log, const char *key,
                        const char *value, struct stamp *out_written)
{
    uint64_t need = log_record_size(strlen(key), value != NULL ? strlen(value) : 0);
    enum log_result result = log_begin(log, need, kit_deadline(disk));
    if (result != LOG_OK)
        return result;
    result = kit_append(log, key, value, /* urgent= */ false, out_written);
    enum log_result ended = log_end(log);
    return result != LOG_OK ? result : ended;
}

enum log_result kit_sync(const struct disk *disk, struct log *log)
{
    return log_sync(log, kit_deadline(disk));
}

enum log_result kit_tend(struct log *log)
{
    return log_maintain(log, KIT_TIMEOUT_MS);
}

enum log_result kit_make_garbage(const struct disk *disk, struct log *log)
{
    struct stamp written;
    struct log_record before;
    char key[] = "dead-?";
    enum log_result result = log_begin(log, /* need= */ 0, kit_deadline(disk));
    if (result != LOG_OK)
        return result;
    for (int i = 0; i < KIT_DEAD_KEYS && result == LOG_OK; i++) {
        key[sizeof key - 2] = (char)('a' + i);
        result = log_find(log, key, sizeof key - 1, &before);
        if (result == LOG_OK && before.offset == 0)
            result = log_append(log, key, /* previous= */ 0, NULL, 0, /* urgent= */ true, &written);
    }
    enum log_result ended = log_end(log);
    return result != LOG_OK ? result : ended;
}

void kit_read(const struct disk *disk, struct log *log, const char *key, struct kit_value *out)
{
    struct log_record record;
    *out = (struct kit_value){.result = log_begin(log, /* need= */ 0, kit_deadline(disk))};
    if (out->result != LOG_OK)
        return;
    out->result = log_find(log, key, strlen(key), &record);
    if (out->result == LOG_OK && record.type == LOG_PUT) {
        size_t most = sizeof out->value - 1;
        out->revision = record.written.revision;
        out->length = record.length;
        memcpy(out->value, record.bytes, record.length < most ? record.length : most);
    }
    enum log_result ended = log_end(log);
    if (out->result == LOG_OK)
        out->result = ended;
}

bool kit_has(const struct disk *disk, struct log *log, const char *key, const char *value)
{
    struct kit_value seen_value;
    kit_read(disk, log, key, &seen_value);
    if (seen_value.result != LOG_OK || value == NULL || seen_value.revision == 0)
        return seen_value.result == LOG_OK && value == NULL && seen_value.revision == 0;
    return seen_value.length == strlen(value) && strcmp(seen_value.value, value) == 0;
}

/* The record at a listed offset is the one that a lookup of its key finds. */
static bool is_found(struct log *log, uint64_t offset)
{
    char key[KEY_MAX];
    struct log_record record;
    if (log_read_at(log, offset, &record) != LOG_OK || record.type != LOG_PUT)
        return false;
    size_t length = record.key_length;
    memcpy(key, record.key, length);
    return log_find(log, key, length, &record) == LOG_OK && record.offset == offset;
}

bool kit_agrees(const struct disk *disk, struct log *log)
{
    uint64_t *live = NULL;
    size_t count = 0;
    if (log_begin(log, /* need= */ 0, kit_deadline(disk)) != LOG_OK)
        return false;
    bool agrees = log_live(log, &live, &count) == LOG_OK;
    for (size_t i = 0; i < count && agrees; i++)
        agrees = is_found(log, live[i]);
    free(live);
    return log_end(log) == LOG_OK && agrees;
}
