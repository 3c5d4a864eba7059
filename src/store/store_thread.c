/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See store_thread.h. The thread takes the queued requests, submits them to the driver and steps
 * it. Its replies are copied into reports, which the caller takes from a list under the mutex.
 */
#include "store/store_thread.h"

#include "base/check.h"
#include "store/pending.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { STORE_THREAD_MAGIC = 0xbe51de, REQUESTS_MAX = 4096, UNDELIVERED_MAX = 4096 };

/* A reply with copies of all it points to; or a notification, which has no submission. */
struct thread_report {
    struct list_node node;
    struct submission *submission;
    struct store_reply reply;
};

/* A request, until its last reply is delivered. */
struct submission {
    struct pending base; /* first */
    struct store_thread *thread;
    atomic_bool lacks_memory; /* the report below is in use */
    struct thread_report spare;
};

struct store_thread {
    uint32_t magic;
    const struct store_driver *driver;
    void *state;
    struct store_callbacks callbacks; /* the caller's */
    pthread_t handle;
    int work_fd, caller_fd; /* eventfds: to the thread, to the caller */
    pthread_mutex_t mutex;  /* protects what follows */
    pthread_cond_t drained;
    bool ending;
    bool woken; /* the thread will take the queue */
    size_t undelivered;
    struct pending_set submissions;
    struct list queued, reports; /* for the thread, for the caller */
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

/* In the thread. A caller that takes no replies blocks the store, so that memory stays bounded. */
static void store_thread_report(struct store_thread *thread, struct thread_report *report)
{
    (void)pthread_mutex_lock(&thread->mutex);
    while (thread->undelivered >= UNDELIVERED_MAX && !thread->ending)
        (void)pthread_cond_wait(&thread->drained, &thread->mutex);
    list_append(&thread->reports, &report->node);
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
    char *at = (char *)(report + 1);
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
    if (report == NULL) {
        if (atomic_exchange(&submission->lacks_memory, true))
            return; /* list, watch: out of memory was reported already */
        report = &submission->spare;
        report->reply = out_of_memory;
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
    if (driver->fd != NULL)
        waits[1].fd = driver->fd(thread->state);
    for (;;) {
        (void)poll(waits, 2, /* timeout= */ -1);
        eventfd_drain(thread->work_fd);
        (void)pthread_mutex_lock(&thread->mutex);
        bool ending = thread->ending;
        thread->woken = false;
        struct list queued = list_take_all(&thread->queued);
        (void)pthread_mutex_unlock(&thread->mutex);
        if (ending)
            return NULL;
        for (struct submission *submission; (submission = pending_pop(&queued)) != NULL;)
            driver->submit(thread->state, &submission->base.request, on_store_reply, submission);
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
    *thread = (struct store_thread){
        .magic = STORE_THREAD_MAGIC,
        .driver = driver,
        .state = malloc(driver->state_size),
        .callbacks = *callbacks,
        .submissions = {.size = sizeof(struct submission), .most = REQUESTS_MAX},
        .work_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        .caller_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
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

/* With the submissions whose last reply they are. */
static void free_reports(struct list *reports)
{
    for (struct list_node *node = reports->first, *next; node != NULL; node = next) {
        struct thread_report *report = LIST_ENTRY(node, struct thread_report, node);
        struct submission *submission = report->submission;
        bool last = submission != NULL && !report->reply.more;
        next = node->next;
        if (submission != NULL && report == &submission->spare)
            atomic_store(&submission->lacks_memory, false);
        else
            free(report);
        if (last)
            pending_drop(&submission->base);
    }
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
    free_reports(&thread->reports);
    pending_done(&thread->submissions);
    thread->magic = 0;
    store_thread_destroy(thread);
    *thread_pointer = NULL;
}

void store_thread_queue(struct store_thread *thread, const struct store_request *request,
                        store_done *done, void *caller)
{
    ASSERT(thread->magic == STORE_THREAD_MAGIC);
    (void)pthread_mutex_lock(&thread->mutex);
    struct submission *submission = pending_add(&thread->submissions, request, done, caller);
    if (submission != NULL) {
        submission->thread = thread;
        list_append(&thread->queued, &submission->base.in_queue);
    }
    (void)pthread_mutex_unlock(&thread->mutex);
    if (submission == NULL)
        pending_refuse(done, caller);
}

/* Once per batch: the thread takes the whole queue, which is empty until the next request. */
void store_thread_wake(struct store_thread *thread)
{
    (void)pthread_mutex_lock(&thread->mutex);
    bool wakes = thread->queued.first != NULL && !thread->woken;
    thread->woken = thread->woken || wakes;
    (void)pthread_mutex_unlock(&thread->mutex);
    if (wakes)
        eventfd_signal(thread->work_fd);
}

void store_thread_submit(struct store_thread *thread, const struct store_request *request,
                         store_done *done, void *caller)
{
    store_thread_queue(thread, request, done, caller);
    store_thread_wake(thread);
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
    struct list reports = thread->reports;
    thread->reports = (struct list){0};
    thread->undelivered = 0;
    eventfd_drain(thread->caller_fd);
    (void)pthread_cond_signal(&thread->drained);
    (void)pthread_mutex_unlock(&thread->mutex);
    for (struct list_node *node = reports.first; node != NULL; node = node->next) {
        const struct thread_report *report = LIST_ENTRY(node, struct thread_report, node);
        const struct submission *submission = report->submission;
        if (submission != NULL)
            submission->base.done(submission->base.caller, &report->reply);
        else if (thread->callbacks.notice != NULL)
            thread->callbacks.notice(thread->callbacks.owner, report->reply.key,
                                     report->reply.present ? &report->reply : NULL);
    }
    (void)pthread_mutex_lock(&thread->mutex);
    free_reports(&reports);
    (void)pthread_mutex_unlock(&thread->mutex);
}
