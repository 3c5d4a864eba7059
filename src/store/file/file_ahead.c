/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for the end of the sessions ahead of us. A process that is killed sends no wake-up, so a
 * waiter watches the lock of the live session before it in the queue, the first waiter those of the
 * holders: each death wakes one process. The death of a session that is not watched is found by the
 * fallback poll. Must not decide: the wake-up only makes the core read the record again.
 */
#include "store/file/file_internal.h"

#include <string.h>

static bool is_before(const struct waiter *one, const struct waiter *other)
{
    int64_t one_rank = (int64_t)one->priority + one->passed;
    int64_t other_rank = (int64_t)other->priority + other->passed;
    return one_rank != other_rank ? one_rank > other_rank : one->ticket < other->ticket;
}

/* The last live waiter before ours; 0 if there is none. */
static uint64_t find_waiter_ahead(const struct file *file, const struct record *record,
                                  const struct waiter *ours)
{
    const struct waiter *last = NULL;
    for (size_t i = record->waiter_count; i-- > 0;) {
        const struct waiter *waiter = &record->waiters[i];
        if (waiter != ours && is_before(waiter, ours) &&
            (last == NULL || is_before(last, waiter)) &&
            log_session_lives(file->log, waiter->session))
            last = waiter;
    }
    return last != NULL ? last->session : 0;
}

/* Only bound grants end with their session, and only those that the store can check. */
static bool ends_with_session(const struct file *file, const struct grant *grant)
{
    return grant->bound && grant->session != file->callbacks.session &&
           grant->renewed.revision >= log_foreign_before(file->log) &&
           log_session_lives(file->log, grant->session);
}

static size_t find_ahead(const struct file *file, struct record *record, uint64_t *out)
{
    const struct waiter *ours = record_waiter_by_session(record, file->callbacks.session);
    if (ours == NULL)
        return 0;
    size_t count = 0;
    out[0] = find_waiter_ahead(file, record, ours);
    if (out[0] != 0)
        return 1;
    for (size_t i = 0; i < record->grant_count && count < AHEAD_MAX; i++) {
        uint64_t session = record->grants[i].session;
        size_t at = 0;
        while (at < count && out[at] != session)
            at++;
        if (at == count && ends_with_session(file, &record->grants[i]))
            out[count++] = session;
    }
    return count;
}

static void ahead_unset(struct file_ahead *ahead)
{
    session_watch_set(&ahead->watch, /* session= */ 0);
    ahead->session = 0;
}

static void ahead_set(struct file *file, const char *key, uint64_t session)
{
    for (size_t i = 0; i < AHEAD_MAX; i++) {
        struct file_ahead *ahead = &file->ahead[i];
        if (ahead->session != 0)
            continue;
        ahead->session = session;
        ahead->notified = false;
        text_copy(ahead->key, sizeof ahead->key, key);
        session_watch_set(&ahead->watch, session);
        return;
    }
}

static bool ahead_open(struct file *file)
{
    if (file->ahead_file >= 0)
        return true;
    file->ahead_file = file->disk.open(file->disk.owner, ".lock", DISK_OPEN);
    if (file->ahead_file < 0)
        return false;
    for (size_t i = 0; i < AHEAD_MAX; i++)
        session_watch_init(&file->ahead[i].watch, &file->disk, file->ahead_file,
                           file->callbacks.session);
    return true;
}

void file_ahead_update(struct file *file, const char *key, struct record *record)
{
    uint64_t wanted[AHEAD_MAX];
    bool waits = record != NULL && file->wakeup.file >= 0;
    size_t count = waits ? find_ahead(file, record, wanted) : 0;
    for (size_t i = 0; i < AHEAD_MAX; i++) {
        struct file_ahead *ahead = &file->ahead[i];
        if (ahead->session == 0 || strcmp(ahead->key, key) != 0)
            continue;
        size_t at = 0;
        while (at < count && wanted[at] != ahead->session)
            at++;
        ahead->notified = false;
        if (at == count)
            ahead_unset(ahead);
        else
            wanted[at] = wanted[--count];
    }
    for (size_t i = 0; i < count && ahead_open(file); i++)
        ahead_set(file, key, wanted[i]);
}

void file_notify(struct file *file, const char *key)
{
    for (size_t i = 0; i < AHEAD_MAX; i++)
        if (file->ahead[i].session != 0 && strcmp(file->ahead[i].key, key) == 0)
            file->ahead[i].notified = true;
    if (file->callbacks.notice != NULL)
        file->callbacks.notice(file->callbacks.owner, key, /* current= */ NULL);
}

/* A process that released its lock and ended has sent a wake-up before: one notification is
 * enough until the record was read again. */
void file_ahead_notify(struct file *file)
{
    for (size_t i = 0; i < AHEAD_MAX; i++) {
        struct file_ahead *ahead = &file->ahead[i];
        if (ahead->session == 0 || !session_watch_has_ended(&ahead->watch))
            continue;
        bool notified = ahead->notified;
        ahead_unset(ahead); /* the read that follows watches the next session */
        if (!notified)
            file_notify(file, ahead->key);
    }
}

void file_ahead_done(struct file *file)
{
    for (size_t i = 0; i < AHEAD_MAX; i++)
        session_watch_done(&file->ahead[i].watch);
    if (file->ahead_file >= 0)
        file->disk.close(file->disk.owner, file->ahead_file);
    file->ahead_file = -1;
}
