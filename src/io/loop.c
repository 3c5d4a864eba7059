/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See loop.h. libevent carries the descriptors; the clock is a timerfd of our own, because
 * libevent's timers stand still in suspend. A second epoll holds the same descriptors and is what
 * foreign loops poll: libevent does not tell its own.
 */
#include "io/loop.h"

#include "base/check.h"
#include "io/host.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { LOOP_MAGIC = 0x1009 };

struct listening {
    struct loop *loop;
    struct event *event;
    void (*readable)(void *owner);
    void *owner;
};

struct loop {
    uint32_t magic;
    struct loop_site site;
    struct event_base *base;
    int timer, bell, outer;
    int64_t wake_at_ms, armed_ms; /* the timer may be set to an earlier time */
    bool inside;                  /* a step, which sets the timer at its end */
    atomic_bool stopped;
    pthread_mutex_t turn; /* whose it is, that is the loop's thread */
    size_t listening_count;
    struct listening listening[LOOP_LISTENS_MAX];
    pthread_mutex_t mutex; /* of the tasks */
    struct loop_task *first, **last;
};

static void look_at_clock(struct loop *loop)
{
    if (loop->wake_at_ms == LOOP_NEVER || host_boot_ms() < loop->wake_at_ms)
        return;
    loop->wake_at_ms = LOOP_NEVER;
    loop->site.due(loop->site.owner);
}

static void drain(int file)
{
    uint64_t count;
    while (read(file, &count, sizeof count) < 0 && errno == EINTR) {
    }
}

/* Whose time has come was called already. The timer may have fired a moment early, rounded to
 * milliseconds: the end of the step sets it anew. */
static void on_timer(void *owner)
{
    struct loop *loop = owner;
    drain(loop->timer);
    loop->armed_ms = LOOP_NEVER;
}

/* Only what was there at the beginning: who posts in a task does not keep the others waiting. */
void loop_catch_up(struct loop *loop)
{
    (void)pthread_mutex_lock(&loop->mutex);
    struct loop_task *task = loop->first;
    loop->first = NULL;
    loop->last = &loop->first;
    (void)pthread_mutex_unlock(&loop->mutex);
    while (task != NULL) {
        struct loop_task *next = task->next; /* the task may be gone once it has run */
        look_at_clock(loop);
        task->run(task);
        task = next;
    }
}

static void run_tasks(void *owner)
{
    struct loop *loop = owner;
    drain(loop->bell);
    loop_catch_up(loop);
}

/* Every wake-up comes through here. */
static void dispatch(evutil_socket_t file, short what, void *argument)
{
    const struct listening *listening = argument;
    (void)file;
    (void)what;
    loop_enter(listening->loop);
    listening->loop->inside = true;
    look_at_clock(listening->loop);
    listening->readable(listening->owner);
    listening->loop->inside = false;
    loop_leave(listening->loop);
}

void loop_enter(struct loop *loop)
{
    (void)pthread_mutex_lock(&loop->turn);
}

void loop_leave(struct loop *loop)
{
    (void)pthread_mutex_unlock(&loop->turn);
}

static void ring(const struct loop *loop)
{
    uint64_t one = 1;
    while (write(loop->bell, &one, sizeof one) < 0 && errno == EINTR) {
    }
}

static struct event_base *new_base(void)
{
    struct event_config *config = event_config_new();
    struct event_base *base = NULL;
    if (config != NULL &&
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV) == 0)
        base = event_base_new_with_config(config);
    if (config != NULL)
        event_config_free(config);
    return base;
}

static void close_descriptors(const struct loop *loop)
{
    const int files[] = {loop->timer, loop->bell, loop->outer};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (files[i] >= 0)
            (void)close(files[i]);
    }
}

struct loop *loop_new(const struct loop_site *site)
{
    struct loop *loop = calloc(1, sizeof *loop);
    if (loop == NULL)
        return NULL;
    loop->magic = LOOP_MAGIC;
    loop->site = *site;
    loop->wake_at_ms = loop->armed_ms = LOOP_NEVER;
    loop->last = &loop->first;
    loop->base = new_base();
    loop->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    loop->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    loop->outer = epoll_create1(EPOLL_CLOEXEC);
    (void)pthread_mutex_init(&loop->mutex, NULL);
    (void)pthread_mutex_init(&loop->turn, NULL);
    bool fine = loop->base != NULL && loop->timer >= 0 && loop->bell >= 0 && loop->outer >= 0 &&
                loop_listen(loop, loop->timer, on_timer, loop) &&
                loop_listen(loop, loop->bell, run_tasks, loop);
    if (!fine)
        loop_free(&loop);
    return loop;
}

void loop_free(struct loop **loop_pointer)
{
    struct loop *loop = *loop_pointer;
    if (loop == NULL)
        return;
    ASSERT(loop->magic == LOOP_MAGIC);
    for (size_t i = 0; i < loop->listening_count; i++)
        event_free(loop->listening[i].event);
    if (loop->base != NULL)
        event_base_free(loop->base);
    close_descriptors(loop);
    (void)pthread_mutex_destroy(&loop->turn);
    (void)pthread_mutex_destroy(&loop->mutex);
    loop->magic = 0;
    free(loop);
    *loop_pointer = NULL;
}

static void arm(struct loop *loop)
{
    struct itimerspec when = {0};
    int64_t at_ms = loop->wake_at_ms;
    bool early_enough = loop->site.lazy && loop->armed_ms <= at_ms && loop->armed_ms != LOOP_NEVER;
    if (loop->armed_ms == at_ms || early_enough)
        return;
    loop->armed_ms = at_ms;
    if (at_ms != LOOP_NEVER) {
        /* A length, not a point in time: the clock of a time namespace may stand elsewhere. */
        int64_t length_ms = at_ms - host_boot_ms();
        when.it_value.tv_sec = length_ms > 0 ? length_ms / 1000 : 0;
        when.it_value.tv_nsec = length_ms > 0 ? length_ms % 1000 * 1000000 : 1;
    }
    int result = timerfd_settime(loop->timer, /* flags= */ 0, &when, NULL);
    ASSERT(result == 0);
}

void loop_wake_at(struct loop *loop, int64_t at_ms)
{
    ASSERT(loop->magic == LOOP_MAGIC);
    loop->wake_at_ms = at_ms;
    if (!loop->inside)
        arm(loop);
}

bool loop_listen(struct loop *loop, int file, void (*readable)(void *owner), void *owner)
{
    ASSERT(loop->magic == LOOP_MAGIC);
    if (loop->listening_count == LOOP_LISTENS_MAX)
        return false;
    struct listening *listening = &loop->listening[loop->listening_count];
    struct epoll_event interest = {.events = EPOLLIN};
    *listening = (struct listening){.loop = loop, .readable = readable, .owner = owner};
    listening->event = event_new(loop->base, file, EV_READ | EV_PERSIST, dispatch, listening);
    if (listening->event == NULL)
        return false;
    if (event_add(listening->event, NULL) != 0 ||
        epoll_ctl(loop->outer, EPOLL_CTL_ADD, file, &interest) != 0) {
        event_free(listening->event);
        return false;
    }
    loop->listening_count++;
    return true;
}

void loop_post(struct loop *loop, struct loop_task *task)
{
    ASSERT(loop->magic == LOOP_MAGIC);
    task->next = NULL;
    (void)pthread_mutex_lock(&loop->mutex);
    bool was_empty = loop->first == NULL;
    *loop->last = task;
    loop->last = &task->next;
    /* Under the mutex: once the task has run, its poster may end the loop. */
    if (was_empty)
        ring(loop);
    (void)pthread_mutex_unlock(&loop->mutex);
}

void loop_run(struct loop *loop)
{
    ASSERT(loop->magic == LOOP_MAGIC);
    while (!atomic_load(&loop->stopped))
        loop_step(loop, /* wait= */ true);
}

void loop_stop(struct loop *loop)
{
    ASSERT(loop->magic == LOOP_MAGIC);
    atomic_store(&loop->stopped, true);
    ring(loop);
}

void loop_step(struct loop *loop, bool wait)
{
    ASSERT(loop->magic == LOOP_MAGIC);
    (void)event_base_loop(loop->base, wait ? EVLOOP_ONCE : EVLOOP_NONBLOCK | EVLOOP_ONCE);
    /* What the step brought up is done now, and not after another look at the descriptors. */
    loop_enter(loop);
    loop->inside = true;
    look_at_clock(loop);
    if (loop->site.turned != NULL)
        loop->site.turned(loop->site.owner);
    loop->inside = false;
    arm(loop);
    loop_leave(loop);
}

int loop_fd(const struct loop *loop)
{
    ASSERT(loop->magic == LOOP_MAGIC);
    return loop->outer;
}
