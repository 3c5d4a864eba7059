/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this driver share, and nobody else looks at. */
#ifndef LEASEHOLD_STORE_FILE_FILE_INTERNAL_H
#define LEASEHOLD_STORE_FILE_FILE_INTERNAL_H

#include "disk/wakeup.h"
#include "store/log/log.h"
#include "store/store.h"

#include <pthread.h>

enum {
    FILE_MAGIC = 0xf11e,
    JOBS_MAX = 1024,
    BATCH_BYTES_MAX = 1 << 20, /* bytes of records in one turn */
    WATCHES_MAX = 64,
    HISTORY_MOST = 100,
    WHY_MOST = 512,
    TIMEOUT_MS = 10000,       /* when the site does not say */
    RENEWAL = 1024,           /* about; a longer one takes of the reserve */
    MAINTAIN_RETRY_MS = 1000, /* after it failed, as on a full disk */
};

struct file_job {
    struct store_request request;
    store_done *done;
    void *caller;
    enum reply_status result;
    int64_t now_ms;           /* when it was looked at: later, a renewal may have come */
    bool wrote;               /* then it knows who was alive */
    struct log_record record; /* what stands, or stood at a conflict */
    char *bytes;              /* of it, ours */
    uint64_t *live;           /* list: where all that stands is, ours */
    size_t live_count;
    uint64_t after; /* watch: what follows this revision is told, also in the same turn */
};

struct file_watch {
    char *prefix;
    uint64_t after; /* this revision */
    store_done *done;
    void *caller;
};

enum maintenance { MAINTENANCE_RUNNING, MAINTENANCE_DONE, MAINTENANCE_FAILED };

struct file {
    uint32_t magic;
    pid_t process;
    struct store_callbacks callbacks;
    struct disk disk;
    struct log_options options;
    struct log *log;
    struct wakeup wakeup;
    int alive; /* the open file that keeps our session */
    int events, changes;
    size_t job_count;
    struct file_job jobs[JOBS_MAX], running[JOBS_MAX];
    size_t watch_count;
    struct file_watch watches[WATCHES_MAX];
    uint64_t began;             /* where the log ended when this turn began */
    uint64_t notified;          /* the revision up to which watchers were told … */
    struct log_reader followed; /* … and where that is; its file is a descriptor of our own */
    bool maintaining;
    _Atomic int maintenance; /* enum tended */
    int64_t maintain_after_ms;
    pthread_t maintenance_thread;
    char *path; /* of the URL, ours */
    struct record scratch;
    char encoded[RECORD_MAX + 1];
    char why[WHY_MOST];
};

/* file_driver.c */
int64_t file_deadline_of(const struct file *file);
const char *file_explain(struct file *file, enum log_result result);
void file_epoll_add(const struct file *file, int source);
/* Answers to a job: with what it has, with a record, with trouble. */
void file_reply(struct file *file, const struct file_job *job, struct store_reply *reply);
void file_reply_record(struct file *file, const struct file_job *job,
                       const struct log_record *record, struct store_reply *reply);
void file_reply_trouble(const struct file_job *job, const char *why);

/* file_watch.c */
void file_watch(struct file *file, const struct file_job *job);
void file_notify_watchers(struct file *file);
void file_stop_following(struct file *file);

#endif
