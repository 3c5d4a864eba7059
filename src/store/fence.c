/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See fence.h. A key's token is stored in the log as decimal digits. A mark under a name that no
 * key can have distinguishes a fence from a store of locks. Each key has its own byte of the lock
 * file, so that keys do not block each other, and the append lock is never held for long.
 */
#include "store/fence.h"

#include "disk/session.h"

#include <errno.h>
#include <string.h>

enum { TIMEOUT_MS = 10000, DIGITS_MOST = 20 };

static const char mark_name[] = "\001guard", mark[] = "1";

/* ---- errors ---- */

/* The log's advice is wrong here: an older copy lacks the latest tokens. */
static enum fence_result fence_warn(enum log_result result, struct text *why)
{
    if (result == LOG_DAMAGED || result == LOG_REMOVED)
        text_add(why, "; an older copy would admit older writers");
    return result == LOG_OK ? FENCE_OK : FENCE_TROUBLE;
}

static enum fence_result fence_explain(const struct fence *fence, enum log_result result,
                                       struct text *why)
{
    if (result == LOG_FULL) /* the log's message is about locks */
        text_add(why, "there is no room on the disk");
    else if (result != LOG_OK)
        log_explain(fence->log, result, why);
    return fence_warn(result, why);
}

static enum fence_result fence_fail(struct text *why, const char *message)
{
    text_add(why, message);
    return FENCE_TROUBLE;
}

/* ---- tokens ---- */

/* False if the bytes are not a number that we wrote. */
static bool fence_read_token(const struct log_record *record, uint64_t *out)
{
    uint64_t number = 0;
    if (record->length == 0 || record->length > DIGITS_MOST || record->bytes[0] == '0')
        return false;
    for (size_t i = 0; i < record->length; i++) {
        unsigned digit = (unsigned char)record->bytes[i] - (unsigned)'0';
        if (digit > 9 || number > (UINT64_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *out = number;
    return true;
}

static int64_t fence_deadline_ms(const struct fence *fence)
{
    const struct disk *disk = fence->options.disk;
    return disk->boot_ms(disk->owner) + TIMEOUT_MS;
}

/* Under the append lock. */
static enum fence_result fence_compare(struct fence *fence, const char *key, uint64_t token,
                                       bool record, uint64_t *out_highest, struct text *why)
{
    struct log_record found;
    struct stamp written;
    enum log_result result = log_find(fence->log, key, strlen(key), &found);
    uint64_t highest = 0;
    if (result != LOG_OK)
        return fence_explain(fence, result, why);
    if (found.type == LOG_PUT && !fence_read_token(&found, &highest))
        return fence_fail(why, "the value of the key is not a token, so this is no guard file");
    if (record && highest < token) {
        char digits[DIGITS_MOST + 1];
        struct text text;
        text_init(&text, digits, sizeof digits);
        text_add_u64(&text, token);
        result = log_append(fence->log, key, found.offset, digits, text.length, /* urgent= */ true,
                            &written);
    }
    *out_highest = highest;
    return fence_explain(fence, result, why);
}

/* The result is returned only after it is synced. */
static enum fence_result fence_check(struct fence *fence, const char *key, uint64_t token,
                                     bool record, uint64_t *out_highest, struct text *why)
{
    uint64_t need = record ? log_record_size(strlen(key), DIGITS_MOST) : 0, highest = 0;
    enum log_result result = log_begin(fence->log, need, fence_deadline_ms(fence));
    if (result != LOG_OK)
        return fence_explain(fence, result, why);
    enum fence_result compared = fence_compare(fence, key, token, record, &highest, why);
    result = log_end(fence->log);
    if (compared != FENCE_OK)
        return compared;
    if (result == LOG_OK)
        result = log_sync(fence->log, fence_deadline_ms(fence));
    if (result != LOG_OK)
        return fence_explain(fence, result, why);
    *out_highest = highest;
    return highest > token ? FENCE_STALE : FENCE_OK;
}

enum fence_result fence_enter(struct fence *fence, const char *key, uint64_t token,
                              int64_t deadline_ms, uint64_t *out_highest, struct text *why)
{
    const struct disk *disk = fence->options.disk;
    uint64_t number = log_file_hash(key, strlen(key));
    int held = session_await(disk, ".lock", number, /* deadline_ms= */ 0);
    if (held == -ETIMEDOUT) {
        /* A writer whose token is already stale need not wait. */
        enum fence_result result =
            fence_check(fence, key, token, /* record= */ false, out_highest, why);
        if (result != FENCE_OK)
            return result;
        held = session_await(disk, ".lock", number, deadline_ms);
    }
    if (held == -ETIMEDOUT)
        return FENCE_HELD;
    if (held < 0)
        return fence_fail(why, "cannot use the guard's lock file");
    enum fence_result result = fence_check(fence, key, token, /* record= */ true, out_highest, why);
    if (result == FENCE_OK)
        fence->held = held;
    else
        disk->close(disk->owner, held);
    return result;
}

/* ---- the log ---- */

/* True if the log never had a key: its creator was interrupted before it wrote the mark. */
static bool fence_is_blank(struct fence *fence)
{
    struct log_reader reader;
    struct log_record record;
    enum log_reading reading = LOG_READ_BAD;
    if (log_reader_open(fence->log, &reader)) {
        do
            reading = log_reader_next(&reader, &record);
        while (reading == LOG_READ_OK && record.key_length == 0);
    }
    log_reader_done(&reader);
    return reading == LOG_READ_NOTHING;
}

/* Under the append lock. A store of locks must never be used as a fence. */
static enum fence_result fence_find_mark(struct fence *fence, struct text *why)
{
    struct log_record found;
    struct stamp written;
    enum log_result result = log_find(fence->log, mark_name, sizeof mark_name - 1, &found);
    if (result != LOG_OK)
        return fence_explain(fence, result, why);
    if (found.type == LOG_PUT)
        return found.length == sizeof mark - 1 && memcmp(found.bytes, mark, found.length) == 0
                   ? FENCE_OK
                   : fence_fail(why, "a newer leasehold made this guard file; use that version");
    if (!fence_is_blank(fence))
        return fence_fail(why, "a store of locks is no guard; it was left unchanged, choose "
                               "another path");
    result = log_append(fence->log, mark_name, /* previous= */ 0, mark, sizeof mark - 1,
                        /* urgent= */ true, &written);
    return fence_explain(fence, result, why);
}

enum fence_result fence_open(struct fence *out, const struct disk *disk, const struct host_ids *ids,
                             struct text *why)
{
    struct fence fence = {
        .options =
            {.disk = disk, .ids = *ids, .segment = 1 << 16, .reserve = 1 << 12, .slots = 256},
        .held = -1,
    };
    enum log_result opened = log_open(&fence.options, fence_deadline_ms(&fence), &fence.log, why);
    if (opened != LOG_OK)
        return fence_warn(opened, why);
    enum log_result begun = log_begin(fence.log, log_record_size(sizeof mark_name, sizeof mark),
                                      fence_deadline_ms(&fence));
    enum fence_result result = fence_explain(&fence, begun, why);
    if (begun == LOG_OK) {
        result = fence_find_mark(&fence, why);
        enum log_result ended = log_end(fence.log);
        if (result == FENCE_OK)
            result = fence_explain(&fence, ended, why);
    }
    if (result == FENCE_OK)
        *out = fence;
    else
        log_close(&fence.log);
    return result;
}

void fence_close(struct fence *fence)
{
    const struct disk *disk = fence->options.disk;
    if (fence->held >= 0)
        disk->close(disk->owner, fence->held);
    fence->held = -1;
    log_close(&fence->log);
}

void fence_maintain(struct fence *fence)
{
    if (log_needs_maintenance(fence->log))
        (void)log_maintain(fence->log, TIMEOUT_MS);
}
