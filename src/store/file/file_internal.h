/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the file driver; not for use elsewhere. */
#ifndef LEASEHOLD_STORE_FILE_FILE_INTERNAL_H
#define LEASEHOLD_STORE_FILE_FILE_INTERNAL_H

#include "disk/session_watch.h"
#include "store/log/log.h"
#include "store/pending.h"

#include <pthread.h>

enum {
    FILE_MAGIC = 0xf11e,
    JOBS_MAX = 4096,
    BATCH_BYTES_MAX = 1 << 20, /* bytes of records in one batch */
    HISTORY_MOST = 100,
    WHY_MOST = 512,
    TIMEOUT_MS = 10000,       /* if the callbacks set none */
    RENEWAL = 1024,           /* typical size; a larger renewal uses the reserve */
    MAINTAIN_RETRY_MS = 1000, /* after a failure, such as a full disk */
    DEAD_MAX = GRANTS_MAX + WAITERS_MAX,
    AHEAD_MAX = 4, /* sessions watched at a time, each by a thread */
};

struct file_job {
    struct pending base; /* first */
    enum log_result logged;
    enum reply_status result;
    int64_t now_ms;           /* when the record was read: a renewal may follow */
    bool wrote;               /* then the reply reports dead sessions to a waiter only */
    struct log_record record; /* the current record, or that of the conflict */
    char *bytes;              /* of the record; owned */
    uint64_t *live;           /* list: offsets of all current records; owned */
    size_t live_count;
    uint64_t after; /* watch: reports changes after this revision, also those of the same batch */
};

/* A session whose end may let us in, and the key that we wait for. */
struct file_ahead {
    uint64_t session; /* 0: unused */
    bool notified;    /* since the record was read last */
    char key[KEY_MAX + 1];
    struct session_watch watch;
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
    struct file_ahead ahead[AHEAD_MAX];
    int ahead_file; /* for their locks; −1: not opened yet */
    int alive;      /* the open file whose lock marks our session as alive */
    int events, changes;
    struct pending_set pending;
    struct list queued; /* for the next step */
    struct watchers watchers;
    uint64_t began;             /* the end of the log at the start of this batch */
    uint64_t notified;          /* the last revision that watchers were notified of … */
    struct log_reader followed; /* … and its position; its file is a descriptor of our own */
    bool maintaining;
    _Atomic int maintenance; /* enum maintenance */
    int64_t maintain_after_ms;
    pthread_t maintenance_thread;
    char *path; /* of the URL; owned */
    struct record scratch;
    char encoded[RECORD_MAX + 1];
    char why[WHY_MOST];
};

/* file_driver.c */
/* The path of a file: URL; empty when the URL has none. */
const char *file_url_path(const char *url);
int64_t file_deadline_of(const struct file *file);
const char *file_explain(struct file *file, enum log_result result);
void file_epoll_add(const struct file *file, int source);
/* Fills the reply with a record and the dead sessions in it; `dead` has DEAD_MAX elements. */
void file_fill_reply(struct file *file, const struct log_record *record, uint64_t *dead,
                     struct store_reply *reply);

/* file_ahead.c */
/* The record of a key was read or written; NULL: we do not wait for it. */
void file_ahead_update(struct file *file, const char *key, struct record *record);
/* Notifies the caller of a key, as another process requests, or for each session that has ended. */
void file_notify(struct file *file, const char *key);
void file_ahead_notify(struct file *file);
void file_ahead_done(struct file *file);

/* file_diagnose.c */
void file_diagnose(const char *url, const struct diagnosis *diagnosis);

/* file_epoch.c */
enum reply_status file_epoch(const char *url, const struct epoch_options *options,
                             struct epoch_state *out, struct text *why);

/* file_watch.c */
void file_watch(struct file *file, struct file_job *job);
void file_notify_watchers(struct file *file);
void file_stop_following(struct file *file);

#endif
