/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The embedded store: a log that all processes of a host share. A step takes the lock, looks,
 * writes what may be written, lets go, syncs once for all of it, and only then answers and wakes
 * those named. Decides nothing: conditions are looked at by condition.c, leases by the core.
 */
#include "base/check.h"
#include "store/file/file_inside.h"
#include "store/forget.h"
#include "wire/record_codec.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static int64_t patience_of(const struct file *file)
{
    return file->site.patience_ms > 0 ? file->site.patience_ms : PATIENCE_MS;
}

int64_t file_deadline_of(const struct file *file)
{
    return file->disk.boot_ms(file->disk.owner) + patience_of(file);
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

void file_listen_to(const struct file *file, int source)
{
    struct epoll_event event = {.events = EPOLLIN};
    if (file->events >= 0 && source >= 0)
        (void)epoll_ctl(file->events, EPOLL_CTL_ADD, source, &event);
}

/* Answers. */

/* Processes named in a record that are no more; a grant from where we cannot see lives on. */
static size_t find_dead(struct file *file, const struct store_answer *answer, uint64_t *out)
{
    size_t count = 0;
    struct codec_error error;
    struct record *record = &file->scratch;
    if (!answer->present ||
        record_decode(answer->bytes, answer->length, record, &error) != DECODE_OK)
        return 0;
    record_resolve(record, &answer->written);
    for (size_t i = 0; i < record->grant_count; i++) {
        const struct grant *grant = &record->grants[i];
        if (grant->renewed.revision >= log_foreign_before(file->log) &&
            !log_session_lives(file->log, grant->session))
            out[count++] = grant->session;
    }
    for (size_t i = 0; i < record->place_count; i++)
        if (!log_session_lives(file->log, record->places[i].session))
            out[count++] = record->places[i].session;
    for (size_t i = 0; i < count; i++)
        wakeup_forget(&file->disk, out[i]);
    return count;
}

void file_tell(struct file *file, const struct job *job, struct store_answer *answer)
{
    uint64_t dead[GRANTS_MAX + PLACES_MAX];
    answer->now_ms = job->now_ms;
    answer->dead_sessions = dead;
    bool past = job->wrote || job->request.verb == VERB_STORE_HISTORY;
    answer->dead_count = past ? 0 : find_dead(file, answer, dead);
    job->done(job->caller, answer);
}

void file_tell_record(struct file *file, const struct job *job, const struct log_record *record,
                      struct store_answer *answer)
{
    answer->present = record->type == LOG_PUT;
    answer->written = record->written;
    answer->bytes = record->bytes;
    answer->length = record->length;
    file_tell(file, job, answer);
}

void file_tell_trouble(const struct job *job, const char *why)
{
    struct store_answer answer = {.result = ANSWER_TROUBLE, .now_ms = TIME_UNKNOWN, .why = why};
    job->done(job->caller, &answer);
}

/* Under the lock: one request each. */

static bool is_urgent(const struct store_request *request)
{
    return request->verb == VERB_STORE_DELETE || request->condition.kind == IF_GRANT ||
           request->condition.token != 0;
}

/* Would this write let somebody in who is dead? Its writer knew an older copy. */
static bool names_dead(struct file *file, const struct store_request *request)
{
    struct codec_error error;
    struct record *record = &file->scratch;
    if (request->poke_count == 0 || request->length == 0 ||
        record_decode(request->bytes, request->length, record, &error) != DECODE_OK)
        return false;
    for (size_t i = 0; i < record->grant_count; i++) {
        const struct grant *grant = &record->grants[i];
        if (grant->granted.revision == THIS_WRITE && grant->session != request->session &&
            !log_session_lives(file->log, grant->session))
            return true;
    }
    for (size_t i = 0; i < record->place_count; i++) {
        const struct place *place = &record->places[i];
        if (place->offered && place->offer.revision == THIS_WRITE &&
            !log_session_lives(file->log, place->session))
            return true;
    }
    return false;
}

static enum log_result write_record(struct file *file, struct job *job,
                                    const struct standing *standing)
{
    const struct store_request *request = &job->request;
    const char *bytes = request->bytes;
    size_t length = request->verb == VERB_STORE_SWAP ? request->length : 0;
    if (request->verb == VERB_STORE_SWAP && request->condition.kind == IF_GRANT) {
        length = condition_renewal(request, standing, &file->scratch, file->encoded,
                                   sizeof file->encoded);
        bytes = file->encoded;
    }
    struct stamp written;
    enum log_result result = log_append(file->log, request->key, job->record.offset, bytes, length,
                                        is_urgent(request), &written);
    if (result != LOG_OK)
        return result;
    job->result = ANSWER_OK;
    job->now_ms = written.time_ms;
    job->wrote = true;
    job->record = (struct log_record){.type = length > 0 ? LOG_PUT : LOG_ERASE,
                                      .bytes = bytes,
                                      .length = length,
                                      .written = written};
    return LOG_OK;
}

static enum log_result look_and_write(struct file *file, struct job *job)
{
    const struct store_request *request = &job->request;
    struct log_record *record = &job->record;
    job->now_ms = log_now_ms(file->log);
    job->after = log_revision(file->log);
    if (request->verb == VERB_STORE_LIST)
        return log_live(file->log, &job->live, &job->live_count);
    enum log_result result = log_find(file->log, request->key, strlen(request->key), record);
    if (result != LOG_OK)
        return result;
    struct standing standing = {.bytes = record->type == LOG_PUT ? record->bytes : NULL,
                                .length = record->length,
                                .written = record->written,
                                .now_ms = job->now_ms};
    bool writes = request->verb == VERB_STORE_SWAP || request->verb == VERB_STORE_DELETE;
    job->result = writes ? ANSWER_CONFLICT : ANSWER_OK;
    if (writes && condition_holds(request, &standing, &file->scratch) && !names_dead(file, request))
        result = write_record(file, job, &standing);
    /* What the log gave stays only until its next call. */
    if (result == LOG_OK && record->type == LOG_PUT && record->bytes != request->bytes) {
        job->bytes = malloc(record->length);
        if (job->bytes == NULL)
            return LOG_MEMORY;
        memcpy(job->bytes, record->bytes, record->length);
        record->bytes = job->bytes;
    }
    return result;
}

/* After the sync. */

static void tell_list(struct file *file, const struct job *job)
{
    char key[KEY_MAX + 1];
    struct log_record record;
    size_t prefix = strlen(job->request.key);
    for (size_t i = 0; i < job->live_count; i++) {
        enum log_result result = log_look_back(file->log, job->live[i], &record);
        if (result != LOG_OK) {
            file_tell_trouble(job, file_explain(file, result));
            return;
        }
        if (record.key_length < prefix || memcmp(record.key, job->request.key, prefix) != 0)
            continue;
        memcpy(key, record.key, record.key_length);
        key[record.key_length] = '\0';
        struct store_answer answer = {.result = ANSWER_OK, .more = true, .key = key};
        file_tell_record(file, job, &record, &answer);
    }
    struct store_answer last = {.result = ANSWER_OK};
    file_tell(file, job, &last);
}

static void tell_history(struct file *file, const struct job *job)
{
    struct log_record record = job->record;
    record.bytes = job->bytes;
    enum log_result result = LOG_OK;
    for (int i = 0; i < HISTORY_MOST && record.offset != 0 && result == LOG_OK; i++) {
        struct store_answer answer = {.result = ANSWER_OK, .more = true, .key = job->request.key};
        uint64_t previous = record.previous;
        file_tell_record(file, job, &record, &answer);
        record.offset = previous;
        if (previous != 0)
            result = log_look_back(file->log, previous, &record);
    }
    if (result != LOG_OK) {
        file_tell_trouble(job, file_explain(file, result));
        return;
    }
    struct store_answer last = {.result = ANSWER_OK};
    file_tell(file, job, &last);
}

static void answer_job(struct file *file, const struct job *job)
{
    struct store_answer answer = {.result = job->result};
    switch (job->request.verb) {
    case VERB_STORE_LIST:
        tell_list(file, job);
        return;
    case VERB_STORE_HISTORY:
        tell_history(file, job);
        return;
    case VERB_STORE_WATCH:
        file_watch(file, job);
        return;
    default: /* the request is gone with its answer */
        for (size_t i = 0; i < job->request.poke_count && job->result == ANSWER_OK; i++)
            wakeup_send(&file->disk, job->request.poke[i], job->request.key);
        file_tell_record(file, job, &job->record, &answer);
    }
}

/*
 * Who takes a place has to be woken, and that is such a write; and who holds for so long that it
 * renews, should an operator break it. A short holder is spared the work: its first renewal, or its
 * end, comes soon enough.
 */
static void prepare(struct file *file, const struct job *job)
{
    enum condition_kind kind = job->request.condition.kind;
    bool waits = kind == IF_REVISION, stays = kind == IF_GRANT && job->request.bound;
    if (job->request.verb != VERB_STORE_SWAP || !(waits || stays) || file->wakeup.file >= 0)
        return;
    wakeup_init(&file->wakeup, &file->disk, file->site.session);
    file_listen_to(file, file->wakeup.file);
}

/* One lock, one write, one sync, then the answers. */
static void take_turn(struct file *file, struct job *jobs, size_t count, uint64_t need)
{
    int64_t deadline_ms = file_deadline_of(file);
    enum log_result results[JOBS_MAX] = {LOG_OK};
    for (size_t i = 0; i < count; i++)
        prepare(file, &jobs[i]);
    enum log_result all = log_begin(file->log, need, deadline_ms);
    file->began = log_seen(file->log);
    for (size_t i = 0; i < count && all == LOG_OK; i++)
        results[i] = look_and_write(file, &jobs[i]);
    if (all == LOG_OK)
        all = log_end(file->log);
    if (all == LOG_OK)
        all = log_sync(file->log, deadline_ms);
    for (size_t i = 0; i < count; i++) {
        enum log_result result = all != LOG_OK ? all : results[i];
        if (result != LOG_OK)
            file_tell_trouble(&jobs[i], file_explain(file, result));
        else
            answer_job(file, &jobs[i]);
        free(jobs[i].bytes);
        free(jobs[i].live);
    }
}

static bool lives(void *owner, uint64_t session)
{
    return log_session_lives(owner, session);
}

static struct standing find_safe(void *owner, const char *key)
{
    struct log_record record;
    if (log_peek(owner, key, &record) != LOG_OK || record.type != LOG_PUT)
        return (struct standing){0};
    return (struct standing){
        .bytes = record.bytes, .length = record.length, .written = record.written};
}

/* What nobody needs any more does not go into the next generation. */
static bool forgets(void *owner, struct log *log, const struct log_record *record)
{
    struct standing standing = {.bytes = record->type == LOG_PUT ? record->bytes : NULL,
                                .length = record->length,
                                .written = record->written,
                                .now_ms = log_now_ms(log)};
    return forget_may(&standing, find_safe, log, owner);
}

/* Growing and compacting, beside everything else, with a handle of its own. */
static void *tend(void *state)
{
    struct file *file = state;
    struct log *log;
    char unsaid[WHY_MOST];
    struct text why;
    text_init(&why, unsaid, sizeof unsaid);
    struct log_options options = file->options;
    struct record *scratch = malloc(sizeof *scratch);
    if (scratch != NULL) {
        options.forget = forgets;
        options.forget_owner = scratch;
    }
    /* What fails here fails again, with words, for whoever needs the room. */
    enum log_result result = log_open(&options, file_deadline_of(file), &log, &why);
    if (result == LOG_OK) {
        wakeup_sweep(&file->disk, lives, log);
        result = log_tend(log, patience_of(file));
        log_close(&log);
    }
    free(scratch);
    atomic_store(&file->tended, result == LOG_OK ? TENDED : TENDED_IN_VAIN);
    return NULL;
}

static void start_tending(struct file *file)
{
    sigset_t all, before;
    int64_t now_ms = file->disk.boot_ms(file->disk.owner);
    int tended = atomic_load(&file->tended);
    if (file->tending && tended != TENDING) {
        file->tending = pthread_join(file->tender, NULL) != 0;
        file->tend_after_ms = tended == TENDED ? 0 : now_ms + TEND_AGAIN_MS;
    }
    if (file->tending || now_ms < file->tend_after_ms || !log_wants_tending(file->log))
        return;
    atomic_store(&file->tended, TENDING);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    file->tending = pthread_create(&file->tender, NULL, tend, file) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* The seam. */

static void submit(void *state, const struct store_request *request, store_done *done, void *caller)
{
    struct file *file = state;
    ASSERT(file->magic == FILE_MAGIC);
    struct job job = {.request = *request, .done = done, .caller = caller};
    if (file->job_count == JOBS_MAX)
        file_tell_trouble(&job, "too many requests at once");
    else
        file->jobs[file->job_count++] = job;
}

static uint64_t weight_of(const struct store_request *request)
{
    bool writes = request->verb == VERB_STORE_SWAP || request->verb == VERB_STORE_DELETE;
    size_t length = request->condition.kind == IF_GRANT ? RENEWAL : request->length;
    return writes ? log_record_size(strlen(request->key), length) : 0;
}

static void run_jobs(struct file *file)
{
    /* Callbacks may submit: theirs are for the next step. */
    size_t count = file->job_count, from = 0;
    struct job *jobs = file->running;
    memcpy(jobs, file->jobs, count * sizeof *jobs);
    file->job_count = 0;
    while (from < count) {
        uint64_t need = weight_of(&jobs[from].request);
        size_t up_to = from + 1;
        for (; up_to < count && need < TURN_MOST; up_to++)
            need += weight_of(&jobs[up_to].request);
        take_turn(file, jobs + from, up_to - from, need);
        from = up_to;
    }
}

static void step(void *state)
{
    char buffer[4096];
    struct file *file = state;
    ASSERT(file->magic == FILE_MAGIC);
    if (file->process != getpid()) {
        for (size_t i = 0; i < file->job_count; i++)
            file_tell_trouble(&file->jobs[i], "the process was forked; open the store again");
        file->job_count = 0;
        return;
    }
    while (wakeup_next(&file->wakeup, buffer, sizeof buffer))
        if (file->site.notice != NULL)
            file->site.notice(file->site.owner, buffer, /* stands= */ NULL);
    while (file->watch_count > 0 && read(file->changes, buffer, sizeof buffer) > 0) {
    }
    run_jobs(file);
    file_tell_watchers(file);
    start_tending(file);
}

static int fd(void *state)
{
    const struct file *file = state;
    return file->events;
}

static int liveness(void *state)
{
    const struct file *file = state;
    return file->alive < 0 ? -1 : fcntl(file->alive, F_DUPFD_CLOEXEC, 0);
}

static void close_file(void *state)
{
    struct file *file = state;
    ASSERT(file->magic == FILE_MAGIC);
    if (file->tending && file->process == getpid())
        (void)pthread_join(file->tender, NULL);
    for (size_t i = 0; i < file->watch_count; i++)
        free(file->watches[i].prefix);
    if (file->alive >= 0)
        file->disk.close(file->disk.owner, file->alive);
    file_end_following(file);
    wakeup_done(&file->wakeup);
    if (file->events >= 0)
        (void)close(file->events);
    log_close(&file->log);
    disk_done(&file->disk);
    free(file->path);
    file->magic = 0;
}

static bool open_file(void *state, const char *url, const struct store_site *site, struct text *why)
{
    struct file *file = state;
    const char *path = strchr(url, ':') + 1;
    path += strncmp(path, "//", 2) == 0 ? 2 : 0;
    memset(file, 0, offsetof(struct file, scratch));
    if (*path == '\0') {
        text_add(why, "file: needs a path, such as file:/var/lib/leasehold/locks.log");
        return false;
    }
    file->options = (struct log_options)LOG_OPTIONS_DEFAULT;
    file->options.disk = &file->disk;
    file->process = getpid();
    file->site = *site;
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
    file->magic = FILE_MAGIC;
    file->alive = site->session != 0 ? log_session_keep(file->log, site->session) : -1;
    file->events = epoll_create1(EPOLL_CLOEXEC);
    file->changes = file->followed.file = file->wakeup.file = -1;
    if (file->events < 0 || (file->alive < 0 && site->session != 0)) {
        text_add(why, "cannot keep the session alive, which another process has, or no descriptor");
        close_file(file);
        return false;
    }
    text_clear(why);
    if (log_cuts(file->log) > 0) {
        text_add(why, url);
        text_add(why, ": a torn tail was cut, of a crash or power loss; nothing answered is lost");
    }
    return true;
}

const struct store_driver file_driver = {
    .scheme = "file",
    .capabilities = STORE_DURABLE | STORE_WATCHES | STORE_TIME | STORE_ONE_CLOCK | STORE_SESSIONS |
                    STORE_TESTS_GRANT | STORE_DELETES | STORE_HISTORY | STORE_TOKENS_RESTART,
    .state_size = sizeof(struct file),
    .descriptors = 6,
    .ttl_least_ms = 100,
    .open = open_file,
    .close = close_file,
    .submit = submit,
    .step = step,
    .waits = true,
    .fd = fd,
    .liveness = liveness,
};
