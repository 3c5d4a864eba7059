/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See guard.h. A key's token stands in the log as decimal digits; a mark under a name that no key
 * can have tells a guard from a store of locks. Each key has a byte of the lock file, so that keys
 * do not wait for each other, and the log's own lock is never held for long.
 */
#include "store/guard.h"

#include "io/session.h"

#include <errno.h>
#include <string.h>

enum { PATIENCE_MS = 10000, DIGITS_MOST = 20 };

static const char mark_name[] = "\001guard", mark[] = "1";

/* ---- words ---- */

/* What helps a store does harm here: an older copy has not seen the latest tokens. */
static enum guard_result warn(enum log_result result, struct text *why)
{
    if (result == LOG_DAMAGED || result == LOG_REMOVED)
        text_add(why, "; an older copy would let older writers in");
    return result == LOG_OK ? GUARD_IN : GUARD_TROUBLE;
}

static enum guard_result explain(const struct guard *guard, enum log_result result,
                                 struct text *why)
{
    if (result == LOG_FULL) /* the log's words are about locks */
        text_add(why, "there is no room on the disk");
    else if (result != LOG_OK)
        log_explain(guard->log, result, why);
    return warn(result, why);
}

static enum guard_result refuse(struct text *why, const char *words)
{
    text_add(why, words);
    return GUARD_TROUBLE;
}

/* ---- tokens ---- */

/* False when it is no number that we wrote. */
static bool read_token(const struct log_record *record, uint64_t *out)
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

static int64_t soon(const struct guard *guard)
{
    const struct disk *disk = guard->options.disk;
    return disk->boot_ms(disk->owner) + PATIENCE_MS;
}

/* Under the append lock. */
static enum guard_result compare(struct guard *guard, const char *key, uint64_t token, bool record,
                                 uint64_t *out_highest, struct text *why)
{
    struct log_record found;
    struct stamp written;
    enum log_result result = log_find(guard->log, key, strlen(key), &found);
    uint64_t highest = 0;
    if (result != LOG_OK)
        return explain(guard, result, why);
    if (found.type == LOG_PUT && !read_token(&found, &highest))
        return refuse(why, "what stands there under the key is no token; this is no guard");
    if (record && highest < token) {
        char digits[DIGITS_MOST + 1];
        struct text text;
        text_init(&text, digits, sizeof digits);
        text_add_u64(&text, token);
        result = log_append(guard->log, key, found.offset, digits, text.length, /* urgent= */ true,
                            &written);
    }
    *out_highest = highest;
    return explain(guard, result, why);
}

/* Nobody is told what is not on the disk. */
static enum guard_result take_turn(struct guard *guard, const char *key, uint64_t token,
                                   bool record, uint64_t *out_highest, struct text *why)
{
    uint64_t need = record ? log_record_size(strlen(key), DIGITS_MOST) : 0, highest = 0;
    enum log_result result = log_begin(guard->log, need, soon(guard));
    if (result != LOG_OK)
        return explain(guard, result, why);
    enum guard_result compared = compare(guard, key, token, record, &highest, why);
    result = log_end(guard->log);
    if (compared != GUARD_IN)
        return compared;
    if (result == LOG_OK)
        result = log_sync(guard->log, soon(guard));
    if (result != LOG_OK)
        return explain(guard, result, why);
    *out_highest = highest;
    return highest > token ? GUARD_STALE : GUARD_IN;
}

enum guard_result guard_enter(struct guard *guard, const char *key, uint64_t token,
                              int64_t deadline_ms, uint64_t *out_highest, struct text *why)
{
    const struct disk *disk = guard->options.disk;
    uint64_t number = log_file_hash(key, strlen(key));
    int held = session_await(disk, ".lock", number, /* deadline_ms= */ 0);
    if (held == -ETIMEDOUT) {
        /* Who is too late already need not wait to hear it. */
        enum guard_result result =
            take_turn(guard, key, token, /* record= */ false, out_highest, why);
        if (result != GUARD_IN)
            return result;
        held = session_await(disk, ".lock", number, deadline_ms);
    }
    if (held == -ETIMEDOUT)
        return GUARD_HELD;
    if (held < 0)
        return refuse(why, "the lock file cannot be used");
    enum guard_result result = take_turn(guard, key, token, /* record= */ true, out_highest, why);
    if (result == GUARD_IN)
        guard->held = held;
    else
        disk->close(disk->owner, held);
    return result;
}

/* ---- the log ---- */

/* A log without any key, ever: it was made, but its maker had no time to mark it. */
static bool is_blank(struct guard *guard)
{
    struct log_reader reader;
    struct log_record record;
    enum log_reading reading = LOG_READ_BAD;
    if (log_read_all(guard->log, &reader)) {
        do
            reading = log_reader_next(&reader, &record);
        while (reading == LOG_READ_OK && record.key_length == 0);
    }
    log_reader_done(&reader);
    return reading == LOG_READ_NOTHING;
}

/* Under the append lock. A store of locks must never be taken for a guard. */
static enum guard_result find_mark(struct guard *guard, struct text *why)
{
    struct log_record found;
    struct stamp written;
    enum log_result result = log_find(guard->log, mark_name, sizeof mark_name - 1, &found);
    if (result != LOG_OK)
        return explain(guard, result, why);
    if (found.type == LOG_PUT)
        return found.length == sizeof mark - 1 && memcmp(found.bytes, mark, found.length) == 0
                   ? GUARD_IN
                   : refuse(why, "a newer leasehold made this guard; use that version");
    if (!is_blank(guard))
        return refuse(why, "this is a store of locks and no guard; it was left alone, choose "
                           "another path");
    result = log_append(guard->log, mark_name, /* previous= */ 0, mark, sizeof mark - 1,
                        /* urgent= */ true, &written);
    return explain(guard, result, why);
}

enum guard_result guard_open(struct guard *out, const struct disk *disk, const struct host_ids *ids,
                             struct text *why)
{
    struct guard guard = {
        .options =
            {.disk = disk, .ids = *ids, .segment = 1 << 16, .reserve = 1 << 12, .slots = 256},
        .held = -1,
    };
    enum log_result opened = log_open(&guard.options, soon(&guard), &guard.log, why);
    if (opened != LOG_OK)
        return warn(opened, why);
    enum log_result begun =
        log_begin(guard.log, log_record_size(sizeof mark_name, sizeof mark), soon(&guard));
    enum guard_result result = explain(&guard, begun, why);
    if (begun == LOG_OK) {
        result = find_mark(&guard, why);
        enum log_result ended = log_end(guard.log);
        if (result == GUARD_IN)
            result = explain(&guard, ended, why);
    }
    if (result == GUARD_IN)
        *out = guard;
    else
        log_close(&guard.log);
    return result;
}

void guard_close(struct guard *guard)
{
    const struct disk *disk = guard->options.disk;
    if (guard->held >= 0)
        disk->close(disk->owner, guard->held);
    guard->held = -1;
    log_close(&guard->log);
}

void guard_tend(struct guard *guard)
{
    if (log_wants_tending(guard->log))
        (void)log_tend(guard->log, PATIENCE_MS);
}
