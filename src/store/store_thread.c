/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See store_thread.h. Two queues under one mutex: requests for the thread, and reports from it.
 * Once the thread runs, only it may touch the store.
 */
#include "store/store_thread.h"

#include "base/check.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { STORE_THREAD_MAGIC = 0xbe51de, REQUESTS_MAX = 1024, UNDELIVERED_MAX = 4096 };

/* A request, until its last reply is delivered. */
struct submission {
    struct submission *next, *before;
    struct store_thread *thread;
    struct store_request request;
    store_done *done;
    void *caller;
    struct thread_report *spare; /* reports that memory ran out */
};

/* A reply with copies of all it points to; or a notification, which has no submission. */
struct thread_report {
    struct thread_report *next;
    struct submission *submission;
    struct store_reply reply;
    char bytes[];
};

struct store_thread {
    uint32_t magic;
    const struct store_driver *driver;
    void *state;
    struct store_callbacks callbacks; /* the caller's */
    pthread_t handle;
    pthread_mutex_t mutex;
    pthread_cond_t drained;
    int work_fd, caller_fd; /* eventfds: to the thread, to the caller */
    bool ending;
    size_t submission_count, undelivered;
    struct submission *submissions[REQUESTS_MAX]; /* not yet taken by the thread */
    struct submission *all;
    struct thread_report *first, **last;
};

static void eventfd_signal(int fd)
{
    uint64_t one = 1;
    while (write(fd, &one, sizeof one) < 0 && errno == EINTR) {
    }
}

static void eventfd_drain(int fd)
{
    uint64_t count;
    while (read(fd, &count, sizeof count) < 0 && errno == EINTR) {
    }
}

static void submission_free(struct submission *submission)
{
    free(submission->spare);
    free(submission);
}

/* Under the mutex. */
static void submission_remove(struct store_thread *thread, struct submission *submission)
{
    if (submission->next != NULL)
        submission->next->before = submission->before;
    if (submission->before != NULL)
        submission->before->next = submission->next;
    else
        thread->all = submission->next;
    submission_free(submission);
}

/* In the thread. A caller that takes no replies blocks the store, so that memory stays bounded. */
static void store_thread_report(struct store_thread *thread, struct thread_report *report)
{
    (void)pthread_mutex_lock(&thread->mutex);
    while (thread->undelivered >= UNDELIVERED_MAX && !thread->ending)
        (void)pthread_cond_wait(&thread->drained, &thread->mutex);
    *thread->last = report;
    thread->last = &report->next;
    if (thread->undelivered++ == 0)
        eventfd_signal(thread->caller_fd);
    (void)pthread_mutex_unlock(&thread->mutex);
}

static void *copy_field(char **at, const void *from, size_t length)
{
    void *kept = *at;
    if (length > 0)
        memcpy(kept, from, length);
    *at += (length + 7) / 8 * 8;
    return kept;
}

/* NULL when out of memory. */
static struct thread_report *thread_report_copy(const struct store_reply *reply)
{
    size_t key = reply->key != NULL ? strlen(reply->key) + 1 : 0;
    size_t why = reply->why != NULL ? strlen(reply->why) + 1 : 0;
    size_t dead = reply->dead_count * sizeof *reply->dead_sessions;
    size_t ended = reply->ended_count * sizeof *reply->ended_tokens;
    size_t length = reply->present ? reply->length : 0;
    struct thread_report *report =
        malloc(sizeof *report + key + why + dead + ended + length + 5 * sizeof(uint64_t));
    if (report == NULL)
        return NULL;
    char *at = report->bytes;
    report->next = NULL;
    report->submission = NULL;
    report->reply = *reply;
    report->reply.dead_sessions = copy_field(&at, reply->dead_sessions, dead);
    report->reply.ended_tokens = copy_field(&at, reply->ended_tokens, ended);
    report->reply.bytes = copy_field(&at, reply->bytes, length);
    report->reply.key = key > 0 ? copy_field(&at, reply->key, key) : NULL;
    report->reply.why = why > 0 ? copy_field(&at, reply->why, why) : NULL;
    return report;
}

static const struct store_reply out_of_memory = {
    .result = REPLY_TROUBLE, .now_ms = TIME_UNKNOWN, .why = "out of memory"};

static void on_store_reply(void *caller, const struct store_reply *reply)
{
    struct submission *submission = caller;
    struct thread_report *report = thread_report_copy(reply);
    if (submission->spare == NULL) /* list, watch: for the next reply */
        submission->spare = thread_report_copy(&out_of_memory);
    if (report == NULL && submission->spare == NULL)
        return; /* out of memory was reported already */
    if (report == NULL) {
        report = submission->spare;
        submission->spare = NULL;
        report->reply.more = reply->more;
    }
    report->submission = submission;
    store_thread_report(submission->thread, report);
}

static void on_store_notice(void *owner, const char *key, const struct store_reply *current)
{
    struct store_reply reply = current != NULL ? *current : (struct store_reply){0};
    reply.key = key;
    struct thread_report *report = thread_report_copy(&reply);
    if (report != NULL)
        store_thread_report(owner, report);
}

static void *store_thread_main(void *argument)
{
    struct store_thread *thread = argument;
    const struct store_driver *driver = thread->driver;
    struct pollfd waits[2] = {{.fd = thread->work_fd, .events = POLLIN},
                              {.fd = -1, .events = POLLIN}};
    struct submission *submissions[REQUESTS_MAX];
    if (driver->fd != NULL)
        waits[1].fd = driver->fd(thread->state);
    for (;;) {
        (void)poll(waits, 2, /* timeout= */ -1);
        eventfd_drain(thread->work_fd);
        (void)pthread_mutex_lock(&thread->mutex);
        size_t count = thread->submission_count;
        bool ending = thread->ending;
        memcpy(submissions, thread->submissions, count * sizeof(struct submission *));
        thread->submission_count = 0;
        (void)pthread_mutex_unlock(&thread->mutex);
        if (ending)
            return NULL;
        for (size_t i = 0; i < count; i++)
            driver->submit(thread->state, &submissions[i]->request, on_store_reply, submissions[i]);
        if (driver->step != NULL)
            driver->step(thread->state);
    }
}

static bool store_thread_start(struct store_thread *thread)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool runs = pthread_create(&thread->handle, NULL, store_thread_main, thread) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return runs;
}

static void store_thread_destroy(struct store_thread *thread)
{
    if (thread->work_fd >= 0)
        (void)close(thread->work_fd);
    if (thread->caller_fd >= 0)
        (void)close(thread->caller_fd);
    (void)pthread_mutex_destroy(&thread->mutex);
    (void)pthread_cond_destroy(&thread->drained);
    free(thread->state);
    free(thread);
}

struct store_thread *store_thread_new(const struct store_driver *driver, const char *url,
                                      const struct store_callbacks *callbacks, struct text *why)
{
    struct store_thread *thread = calloc(1, sizeof *thread);
    if (thread == NULL) {
        text_add(why, "out of memory");
        return NULL;
    }
    struct store_callbacks inner = *callbacks;
    inner.notice = on_store_notice;
    inner.owner = thread;
    *thread = (struct store_thread){.magic = STORE_THREAD_MAGIC,
                                    .driver = driver,
                                    .state = malloc(driver->state_size),
                                    .callbacks = *callbacks,
                                    .work_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                                    .caller_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                                    .last = &thread->first};
    (void)pthread_mutex_init(&thread->mutex, NULL);
    (void)pthread_cond_init(&thread->drained, NULL);
    if (thread->state == NULL || thread->work_fd < 0 || thread->caller_fd < 0)
        text_add(why, "out of memory or descriptors");
    else if (driver->open(thread->state, url, &inner, why)) {
        if (store_thread_start(thread))
            return thread;
        text_add(why, "cannot start a thread");
        driver->close(thread->state);
    }
    store_thread_destroy(thread);
    return NULL;
}

void store_thread_free(struct store_thread **thread_pointer)
{
    struct store_thread *thread = *thread_pointer;
    if (thread == NULL)
        return;
    ASSERT(thread->magic == STORE_THREAD_MAGIC);
    (void)pthread_mutex_lock(&thread->mutex);
    thread->ending = true;
    (void)pthread_cond_broadcast(&thread->drained);
    (void)pthread_mutex_unlock(&thread->mutex);
    eventfd_signal(thread->work_fd);
    (void)pthread_join(thread->handle, NULL);
    thread->driver->close(thread->state);
    while (thread->first != NULL) {
        struct thread_report *report = thread->first;
        thread->first = report->next;
        free(report);
    }
    while (thread->all != NULL) {
        struct submission *submission = thread->all;
        thread->all = submission->next;
        submission_free(submission);
    }
    thread->magic = 0;
    store_thread_destroy(thread);
    *thread_pointer = NULL;
}

void store_thread_submit(struct store_thread *thread, const struct store_request *request,
                         store_done *done, void *caller)
{
    ASSERT(thread->magic == STORE_THREAD_MAGIC);
    struct submission *submission = malloc(sizeof *submission);
    struct thread_report *spare = thread_report_copy(&out_of_memory);
    bool taken = false;
    (void)pthread_mutex_lock(&thread->mutex);
    if (submission != NULL && spare != NULL && thread->submission_count < REQUESTS_MAX) {
        *submission = (struct submission){.next = thread->all,
                                          .thread = thread,
                                          .request = *request,
                                          .done = done,
                                          .caller = caller,
                                          .spare = spare};
        if (thread->all != NULL)
            thread->all->before = submission;
        thread->all = submission;
        thread->submissions[thread->submission_count] = submission;
        taken = true;
        if (thread->submission_count++ == 0)
            eventfd_signal(thread->work_fd);
    }
    (void)pthread_mutex_unlock(&thread->mutex);
    if (taken)
        return;
    struct store_reply reply = {.result = REPLY_TROUBLE,
                                .now_ms = TIME_UNKNOWN,
                                .why = "too many requests at once, or out of memory"};
    free(spare);
    free(submission);
    done(caller, &reply);
}

int store_thread_fd(const struct store_thread *thread)
{
    return thread->caller_fd;
}

int store_thread_liveness(struct store_thread *thread)
{
    return thread->driver->liveness != NULL ? thread->driver->liveness(thread->state) : -1;
}

void store_thread_step(struct store_thread *thread)
{
    ASSERT(thread->magic == STORE_THREAD_MAGIC);
    (void)pthread_mutex_lock(&thread->mutex);
    struct thread_report *report = thread->first, *next;
    thread->first = NULL;
    thread->last = &thread->first;
    thread->undelivered = 0;
    eventfd_drain(thread->caller_fd);
    (void)pthread_cond_signal(&thread->drained);
    (void)pthread_mutex_unlock(&thread->mutex);
    for (; report != NULL; report = next) {
        next = report->next;
        struct submission *submission = report->submission;
        if (submission != NULL)
            submission->done(submission->caller, &report->reply);
        else if (thread->callbacks.notice != NULL)
            thread->callbacks.notice(thread->callbacks.owner, report->reply.key,
                                     report->reply.present ? &report->reply : NULL);
        if (submission != NULL && !report->reply.more) {
            (void)pthread_mutex_lock(&thread->mutex);
            submission_remove(thread, submission);
            (void)pthread_mutex_unlock(&thread->mutex);
        }
        free(report);
    }
}
