/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The embedded store: a log that all processes of a host share. A step takes the lock, reads,
 * writes what the conditions allow, unlocks, syncs once for all requests, then replies and wakes
 * the named sessions. Must not decide: condition.c evaluates conditions, the core judges leases.
 */
#include "base/check.h"
#include "store/file/file_internal.h"
#include "store/expiry.h"
#include "wire/record_codec.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static int64_t file_timeout_ms(const struct file *file)
{
    return file->callbacks.timeout_ms > 0 ? file->callbacks.timeout_ms : TIMEOUT_MS;
}

int64_t file_deadline_of(const struct file *file)
{
    return file->disk.boot_ms(file->disk.owner) + file_timeout_ms(file);
}

const char *file_explain(struct file *file, enum log_result result)
{
    struct text text;
    text_init(&text, file->why, sizeof file->why);
    text_add(&text, "file:");
    text_add(&text, file->path);
    text_add(&text, ": ");
    log_explain(file->log, result, &text);
    return file->why;
}

void file_epoll_add(const struct file *file, int source)
{
    struct epoll_event event = {.events = EPOLLIN};
    if (file->events >= 0 && source >= 0)
        (void)epoll_ctl(file->events, EPOLL_CTL_ADD, source, &event);
}

/* ---- replies ---- */

/* Decodes the record of a reply into `scratch`; NULL if there is none. */
static struct record *file_decode(struct file *file, const struct store_reply *reply)
{
    struct codec_error error;
    struct record *record = &file->scratch;
    if (!reply->present || record_decode(reply->bytes, reply->length, record, &error) != DECODE_OK)
        return NULL;
    record_resolve(record, &reply->written);
    return record;
}

/* Dead sessions in a record. A grant whose session we cannot check counts as alive. */
static size_t find_dead(struct file *file, const struct record *record, uint64_t *out)
{
    size_t count = 0;
    for (size_t i = 0; i < record->grant_count; i++) {
        const struct grant *grant = &record->grants[i];
        if (grant->renewed.revision >= log_foreign_before(file->log) &&
            !log_session_lives(file->log, grant->session))
            out[count++] = grant->session;
    }
    for (size_t i = 0; i < record->waiter_count; i++)
        if (!log_session_lives(file->log, record->waiters[i].session))
            out[count++] = record->waiters[i].session;
    for (size_t i = 0; i < count; i++)
        wakeup_remove(&file->disk, out[i]);
    return count;
}

void file_fill_reply(struct file *file, const struct log_record *record, uint64_t *dead,
                     struct store_reply *reply)
{
    reply->present = record->type == LOG_PUT;
    reply->written = record->written;
    reply->bytes = record->bytes;
    reply->length = record->length;
    const struct record *decoded = dead != NULL ? file_decode(file, reply) : NULL;
    reply->dead_sessions = dead;
    reply->dead_count = decoded != NULL ? find_dead(file, decoded, dead) : 0;
}

/* One reply of several. */
static void reply_record(struct file *file, struct file_job *job, const struct log_record *record,
                         const char *key)
{
    uint64_t dead[DEAD_MAX];
    bool past = job->base.request.verb == VERB_STORE_HISTORY;
    struct store_reply reply = {
        .result = REPLY_OK, .more = true, .key = key, .now_ms = job->now_ms};
    file_fill_reply(file, record, past ? NULL : dead, &reply);
    pending_reply(&job->base, &reply);
}

/* The last reply of several. */
static void reply_end(struct file *file, struct file_job *job, enum log_result result)
{
    if (result != LOG_OK)
        pending_fail(&job->base, REPLY_TROUBLE, file_explain(file, result));
    else
        pending_reply(&job->base, &(struct store_reply){.result = REPLY_OK, .now_ms = job->now_ms});
}

/* The reply to a request about one key. A waiter then watches the sessions ahead of it. */
static void reply_single(struct file *file, struct file_job *job)
{
    uint64_t dead[DEAD_MAX];
    struct store_reply reply = {.result = job->result, .now_ms = job->now_ms};
    file_fill_reply(file, &job->record, /* dead= */ NULL, &reply);
    bool decodes = !job->wrote || job->base.request.summary.queued;
    struct record *record = decodes ? file_decode(file, &reply) : NULL;
    bool renewed = job->wrote && job->base.request.condition.kind == IF_GRANT;
    if (!renewed)
        file_ahead_update(file, job->base.request.key, record);
    reply.dead_sessions = dead;
    reply.dead_count = record != NULL ? find_dead(file, record, dead) : 0;
    pending_reply(&job->base, &reply);
}

/* ---- requests, under the lock ---- */

static bool is_urgent(const struct store_request *request)
{
    return request->verb == VERB_STORE_DELETE || request->condition.kind == IF_GRANT ||
           request->condition.token != 0;
}

/* True if this write grants or offers to a dead session: its writer had an outdated record. */
static bool gives_to_dead(const struct file *file, const struct store_request *request)
{
    for (size_t i = 0; i < request->given_count; i++)
        if (!log_session_lives(file->log, request->wake[i]))
            return true;
    return false;
}

static enum log_result file_write_record(struct file *file, struct file_job *job,
                                         const struct stored_record *stored)
{
    const struct store_request *request = &job->base.request;
    const char *bytes = request->bytes;
    size_t length = request->verb == VERB_STORE_SWAP ? request->length : 0;
    if (request->verb == VERB_STORE_SWAP && request->condition.kind == IF_GRANT) {
        length =
            condition_renewal(request, stored, &file->scratch, file->encoded, sizeof file->encoded);
        bytes = file->encoded;
    }
    struct stamp written;
    enum log_result result = log_append(file->log, request->key, job->record.offset, bytes, length,
                                        is_urgent(request), &written);
    if (result != LOG_OK)
        return result;
    job->result = REPLY_OK;
    job->now_ms = written.time_ms;
    job->wrote = true;
    job->record = (struct log_record){.type = length > 0 ? LOG_PUT : LOG_ERASE,
                                      .bytes = bytes,
                                      .length = length,
                                      .written = written};
    return LOG_OK;
}

static enum log_result check_and_write(struct file *file, struct file_job *job)
{
    const struct store_request *request = &job->base.request;
    struct log_record *record = &job->record;
    bool writes = request->verb == VERB_STORE_SWAP || request->verb == VERB_STORE_DELETE;
    job->result = writes ? REPLY_CONFLICT : REPLY_OK;
    job->now_ms = log_now_ms(file->log);
    job->after = log_revision(file->log);
    if (request->verb == VERB_STORE_LIST)
        return log_live(file->log, &job->live, &job->live_count);
    enum log_result result = log_find(file->log, request->key, strlen(request->key), record);
    if (result != LOG_OK)
        return result;
    struct stored_record stored = {.bytes = record->type == LOG_PUT ? record->bytes : NULL,
                                   .length = record->length,
                                   .written = record->written,
                                   .now_ms = job->now_ms};
    if (writes && condition_holds(request, &stored, &file->scratch) &&
        !gives_to_dead(file, request))
        result = file_write_record(file, job, &stored);
    /* The log's bytes are valid only until its next call. */
    if (result == LOG_OK && record->type == LOG_PUT && record->bytes != request->bytes) {
        job->bytes = malloc(record->length);
        if (job->bytes == NULL)
            return LOG_MEMORY;
        memcpy(job->bytes, record->bytes, record->length);
        record->bytes = job->bytes;
    }
    return result;
}

/* ---- replies, after the sync ---- */

static void reply_list(struct file *file, struct file_job *job)
{
    char key[KEY_MAX + 1];
    struct log_record record;
    size_t prefix = strlen(job->base.request.key);
    enum log_result result = LOG_OK;
    for (size_t i = 0; i < job->live_count && result == LOG_OK; i++) {
        result = log_read_at(file->log, job->live[i], &record);
        if (result != LOG_OK || record.key_length < prefix ||
            memcmp(record.key, job->base.request.key, prefix) != 0)
            continue;
        memcpy(key, record.key, record.key_length);
        key[record.key_length] = '\0';
        reply_record(file, job, &record, key);
    }
    reply_end(file, job, result);
}

static void reply_history(struct file *file, struct file_job *job)
{
    struct log_record record = job->record;
    record.bytes = job->bytes;
    enum log_result result = LOG_OK;
    for (int i = 0; i < HISTORY_MOST && record.offset != 0 && result == LOG_OK; i++) {
        uint64_t previous = record.previous;
        reply_record(file, job, &record, job->base.request.key);
        record.offset = previous;
        if (previous != 0)
            result = log_read_at(file->log, previous, &record);
    }
    reply_end(file, job, result);
}

static void reply_job(struct file *file, struct file_job *job)
{
    const struct store_request *request = &job->base.request;
    switch (request->verb) {
    case VERB_STORE_LIST:
        reply_list(file, job);
        return;
    case VERB_STORE_HISTORY:
        reply_history(file, job);
        return;
    case VERB_STORE_WATCH:
        file_watch(file, job);
        return;
    default: /* the request is invalid after its reply */
        for (size_t i = 0; i < request->wake_count && job->result == REPLY_OK; i++)
            wakeup_send(&file->disk, request->wake[i], request->key);
        reply_single(file, job);
    }
}

/*
 * A waiter must be woken, and queueing is a write under IF_REVISION. A holder that renews must be
 * woken if an operator breaks its lease. A short holder skips the cost: it renews or releases soon
 * enough.
 */
static void prepare_wakeup(struct file *file, const struct store_request *request)
{
    enum condition_kind kind = request->condition.kind;
    bool waits = kind == IF_REVISION, stays = kind == IF_GRANT && request->bound;
    if (request->verb != VERB_STORE_SWAP || !(waits || stays) || file->wakeup.file >= 0)
        return;
    wakeup_init(&file->wakeup, &file->disk, file->callbacks.session);
    file_epoll_add(file, file->wakeup.file);
}

/* One lock, one write, one sync, then the replies. */
static void run_batch(struct file *file, struct list batch, uint64_t need)
{
    int64_t deadline_ms = file_deadline_of(file);
    enum log_result all = log_begin(file->log, need, deadline_ms);
    file->began = log_seen(file->log);
    for (struct list_node *node = batch.first; node != NULL && all == LOG_OK; node = node->next) {
        struct file_job *job = (void *)LIST_ENTRY(node, struct pending, in_queue);
        job->logged = check_and_write(file, job);
    }
    if (all == LOG_OK)
        all = log_end(file->log);
    if (all == LOG_OK)
        all = log_sync(file->log, deadline_ms);
    for (struct file_job *job; (job = pending_pop(&batch)) != NULL;) {
        enum log_result result = all != LOG_OK ? all : job->logged;
        if (result != LOG_OK)
            reply_end(file, job, result);
        else
            reply_job(file, job);
    }
}

static bool session_is_alive(void *owner, uint64_t session)
{
    return log_session_lives(owner, session);
}

static struct stored_record find_synced(void *owner, const char *key)
{
    struct log_record record;
    if (log_find_synced(owner, key, &record) != LOG_OK || record.type != LOG_PUT)
        return (struct stored_record){0};
    return (struct stored_record){
        .bytes = record.bytes, .length = record.length, .written = record.written};
}

/* Records that are no longer needed are not copied into the next generation. */
static bool file_may_drop(void *owner, struct log *log, const struct log_record *record)
{
    struct stored_record stored = {.bytes = record->type == LOG_PUT ? record->bytes : NULL,
                                   .length = record->length,
                                   .written = record->written,
                                   .now_ms = log_now_ms(log)};
    return expiry_is_due(&stored, find_synced, log, owner);
}

/* Grows and compacts in a separate thread, with a log handle of its own. */
static void *file_maintain(void *state)
{
    struct file *file = state;
    struct log *log;
    char unsaid[WHY_MOST];
    struct text why;
    text_init(&why, unsaid, sizeof unsaid);
    struct log_options options = file->options;
    struct record *scratch = malloc(sizeof *scratch);
    if (scratch != NULL) {
        options.may_drop = file_may_drop;
        options.drop_owner = scratch;
    }
    /* A failure is not reported: it recurs in the next call that needs the room. */
    enum log_result result = log_open(&options, file_deadline_of(file), &log, &why);
    if (result == LOG_OK) {
        wakeup_sweep(&file->disk, session_is_alive, log);
        result = log_maintain(log, file_timeout_ms(file));
        log_close(&log);
    }
    free(scratch);
    atomic_store(&file->maintenance, result == LOG_OK ? MAINTENANCE_DONE : MAINTENANCE_FAILED);
    return NULL;
}

static void start_maintenance(struct file *file)
{
    sigset_t all, before;
    int64_t now_ms = file->disk.boot_ms(file->disk.owner);
    int maintenance = atomic_load(&file->maintenance);
    if (file->maintaining && maintenance != MAINTENANCE_RUNNING) {
        file->maintaining = pthread_join(file->maintenance_thread, NULL) != 0;
        file->maintain_after_ms = maintenance == MAINTENANCE_DONE ? 0 : now_ms + MAINTAIN_RETRY_MS;
    }
    if (file->maintaining || now_ms < file->maintain_after_ms || !log_needs_maintenance(file->log))
        return;
    atomic_store(&file->maintenance, MAINTENANCE_RUNNING);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    file->maintaining = pthread_create(&file->maintenance_thread, NULL, file_maintain, file) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- the driver interface ---- */

static void file_submit(void *state, const struct store_request *request, store_done *done,
                        void *caller)
{
    struct file *file = state;
    ASSERT(file->magic == FILE_MAGIC);
    struct file_job *job = pending_add(&file->pending, request, done, caller);
    if (job != NULL)
        list_append(&file->queued, &job->base.in_queue);
    else
        pending_refuse(done, caller);
}

static void file_job_clear(struct pending *pending)
{
    struct file_job *job = (struct file_job *)pending;
    free(job->bytes);
    free(job->live);
}

static uint64_t request_size(const struct store_request *request)
{
    bool writes = request->verb == VERB_STORE_SWAP || request->verb == VERB_STORE_DELETE;
    size_t length = request->condition.kind == IF_GRANT ? RENEWAL : request->length;
    return writes ? log_record_size(strlen(request->key), length) : 0;
}

/* Requests that a callback submits belong to the next step. */
static void run_jobs(struct file *file)
{
    struct list queued = list_take_all(&file->queued);
    while (queued.first != NULL) {
        struct list batch = {0};
        uint64_t need = 0;
        while (queued.first != NULL && need < BATCH_BYTES_MAX) {
            struct file_job *job = pending_pop(&queued);
            prepare_wakeup(file, &job->base.request);
            need += request_size(&job->base.request);
            list_append(&batch, &job->base.in_queue);
        }
        run_batch(file, batch, need);
    }
}

static void file_step(void *state)
{
    char buffer[4096];
    struct file *file = state;
    ASSERT(file->magic == FILE_MAGIC);
    if (file->process != getpid()) {
        file->queued = (struct list){0};
        pending_fail_all(&file->pending, REPLY_TROUBLE,
                         "the process was forked; open the store again");
        return;
    }
    while (wakeup_next(&file->wakeup, buffer, sizeof buffer))
        if (buffer[0] != '\0') /* else the thread of a watch sent it */
            file_notify(file, buffer);
    while (file->watchers.count > 0 && read(file->changes, buffer, sizeof buffer) > 0) {
    }
    run_jobs(file);
    file_ahead_notify(file);
    file_notify_watchers(file);
    start_maintenance(file);
}

static int file_fd(void *state)
{
    const struct file *file = state;
    return file->events;
}

static int file_liveness(void *state)
{
    const struct file *file = state;
    return file->alive < 0 ? -1 : fcntl(file->alive, F_DUPFD_CLOEXEC, 0);
}

static void file_close(void *state)
{
    struct file *file = state;
    ASSERT(file->magic == FILE_MAGIC);
    if (file->maintaining && file->process == getpid())
        (void)pthread_join(file->maintenance_thread, NULL);
    pending_done(&file->pending);
    watchers_done(&file->watchers);
    file_ahead_done(file);
    if (file->alive >= 0)
        file->disk.close(file->disk.owner, file->alive);
    file_stop_following(file);
    wakeup_done(&file->wakeup);
    if (file->events >= 0)
        (void)close(file->events);
    log_close(&file->log);
    disk_done(&file->disk);
    free(file->path);
    file->magic = 0;
}

const char *file_url_path(const char *url)
{
    const char *path = strchr(url, ':') + 1;
    return strncmp(path, "//", 2) == 0 ? path + 2 : path;
}

static bool file_open(void *state, const char *url, const struct store_callbacks *callbacks,
                      struct text *why)
{
    struct file *file = state;
    const char *path = file_url_path(url);
    memset(file, 0, offsetof(struct file, scratch));
    if (*path == '\0') {
        text_add(why, "file: needs a path, such as file:/var/lib/leasehold/locks.log");
        return false;
    }
    file->options = (struct log_options)LOG_OPTIONS_DEFAULT;
    file->options.disk = &file->disk;
    file->process = getpid();
    file->callbacks = *callbacks;
    file->path = strdup(path);
    if (file->path == NULL || !host_read(&file->options.ids, why) ||
        !disk_open(&file->disk, path, why)) {
        free(file->path);
        return false;
    }
    enum log_result result = log_open(&file->options, file_deadline_of(file), &file->log, why);
    if (result != LOG_OK) {
        disk_done(&file->disk);
        free(file->path);
        return false;
    }
    file->pending = (struct pending_set){
        .size = sizeof(struct file_job), .most = JOBS_MAX, .clear = file_job_clear};
    file->magic = FILE_MAGIC;
    file->alive = callbacks->session != 0 ? log_session_keep(file->log, callbacks->session) : -1;
    file->events = epoll_create1(EPOLL_CLOEXEC);
    file->changes = file->followed.file = file->wakeup.file = file->ahead_file = -1;
    if (file->events < 0 || (file->alive < 0 && callbacks->session != 0)) {
        text_add(why, "cannot register the session: another process has it, or no descriptor");
        file_close(file);
        return false;
    }
    text_clear(why);
    if (log_cuts(file->log) > 0) {
        text_add(why, url);
        text_add(why, ": a torn tail was cut (crash or power loss); no acknowledged write is lost");
    }
    return true;
}

const struct store_driver file_driver = {
    .scheme = "file",
    .capabilities = STORE_DURABLE | STORE_WATCHES | STORE_TIME | STORE_ONE_CLOCK | STORE_SESSIONS |
                    STORE_TESTS_GRANT | STORE_RENEWS_GRANT | STORE_DELETES | STORE_HISTORY |
                    STORE_TOKENS_RESTART | STORE_EPOCH,
    .state_size = sizeof(struct file),
    .descriptors = 6,
    .facts = {STORE_USUAL_FACTS(WAITERS_MAX), .answer_ms = 10, .ttl_least_ms = 100},
    .open = file_open,
    .close = file_close,
    .submit = file_submit,
    .step = file_step,
    .waits = true,
    .fd = file_fd,
    .liveness = file_liveness,
    .diagnose = file_diagnose,
    .epoch = file_epoch,
};
