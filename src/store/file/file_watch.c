/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches: reports every change of a key from the log itself, once it is synced. inotify only
 * signals that there is something to read; without it the caller's fallback poll finds the change.
 */
#include "store/file/file_internal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

/* Follows the current file, from its beginning; each compaction makes another one. */
static void file_follow(struct file *file)
{
    char path[64];
    struct text text;
    struct log_reader *reader = &file->followed;
    int copy = fcntl(log_descriptor(file->log), F_DUPFD_CLOEXEC, 0);
    if (reader->file >= 0)
        (void)close(reader->file);
    reader->file = copy;
    reader->generation = log_generation(file->log);
    reader->at = LOG_START;
    reader->filled = 0;
    text_init(&text, path, sizeof path);
    text_add(&text, "/proc/self/fd/");
    text_add_i64(&text, log_descriptor(file->log));
    if (file->changes >= 0) /* if inotify watches run out, the fallback poll remains */
        (void)inotify_add_watch(file->changes, path, IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF);
}

static bool begin_following(struct file *file, uint64_t after)
{
    bool fine = log_reader_open(file->log, &file->followed);
    file->followed.file = -1; /* the log's descriptor is not ours to close, even on failure */
    if (!fine)
        return false;
    file->notified = after;
    file->changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    file_epoll_add(file, file->changes);
    file_follow(file);
    file->followed.at = file->began;
    return file->followed.file >= 0;
}

void file_stop_following(struct file *file)
{
    log_reader_done(&file->followed);
    if (file->followed.file >= 0)
        (void)close(file->followed.file);
    if (file->changes >= 0)
        (void)close(file->changes);
    file->followed.file = file->changes = -1;
}

void file_watch(struct file *file, struct file_job *job)
{
    struct store_reply reply = {.result = REPLY_OK, .now_ms = job->now_ms};
    uint64_t after = job->after;
    struct watcher *watcher = NULL;
    if (file->watchers.count > 0 || begin_following(file, after))
        watcher = pending_watch(&job->base, &file->watchers);
    else
        pending_fail(&job->base, REPLY_TROUBLE, "out of memory or descriptors");
    if (watcher != NULL)
        watcher->after = after;
    else if (file->watchers.count == 0)
        file_stop_following(file);
    watchers_confirm(&file->watchers, &reply);
}

static void notify_change(struct file *file, const struct log_record *record, int64_t now_ms)
{
    char key[KEY_MAX + 1];
    memcpy(key, record->key, record->key_length);
    key[record->key_length] = '\0';
    for (struct watchers_walk walk = watchers_walk(&file->watchers, key); watchers_next(&walk);) {
        uint64_t dead[DEAD_MAX];
        struct store_reply reply = {.result = REPLY_OK, .now_ms = now_ms};
        if (record->written.revision <= walk.at->after)
            continue;
        file_fill_reply(file, record, dead, &reply);
        watchers_deliver(&walk, &reply);
    }
}

static void notify_changes(struct file *file, uint64_t limit, int64_t now_ms)
{
    struct log_record record;
    struct log_reader *reader = &file->followed;
    reader->limit = limit;
    while (log_reader_next(reader, &record) == LOG_READ_OK && record.type != LOG_SEAL) {
        if (record.key_length == 0 || record.written.revision <= file->notified)
            continue;
        file->notified = record.written.revision;
        notify_change(file, &record, now_ms);
    }
}

static void file_end_watches(struct file *file, const char *why)
{
    file_stop_following(file);
    watchers_end(&file->watchers, &(struct store_reply){
                                      .result = REPLY_TROUBLE, .now_ms = TIME_UNKNOWN, .why = why});
}

/* Reports changes since the last call: first those of the file we followed, up to its LOG_SEAL,
 * then those of the next one. */
void file_notify_watchers(struct file *file)
{
    int64_t deadline_ms = file_deadline_of(file);
    for (bool again = true; again && file->watchers.count > 0;) {
        enum log_result result = log_begin(file->log, /* need= */ 0, deadline_ms);
        int64_t now_ms = log_now_ms(file->log);
        if (result == LOG_OK)
            result = log_end(file->log);
        if (result == LOG_OK)
            result = log_sync(file->log, deadline_ms);
        if (result == LOG_REMOVED || result == LOG_DAMAGED || result == LOG_UNKNOWN ||
            result == LOG_PAGE || result == LOG_INDEX)
            file_end_watches(file, file_explain(file, result));
        if (result != LOG_OK)
            return; /* the next change or fallback poll retries */
        uint64_t before = file->followed.generation, number = log_generation(file->log);
        again = before != number;
        if (!again)
            notify_changes(file, log_seen(file->log), now_ms);
        else if (!log_is_poisoned(file->log, before))
            notify_changes(file, /* limit= */ UINT64_MAX, now_ms);
        if (again)
            file_follow(file);
        if (number > before + 1 || file->followed.file < 0)
            file_end_watches(file, "changes may have been missed: list, and watch again");
    }
}
