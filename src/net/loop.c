/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See loop.h. A poller for descriptors and the deadline, an eventfd that wakes it,
 * and a mutex: its owner acts as the loop's thread. The eventfd is watched by edges: each write is
 * reported once, and its counter, which cannot overflow in practice, is never read.
 */
#include "net/loop.h"

#include "base/check.h"
#include "process/host.h"
#include "net/poller.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { LOOP_MAGIC = 0x1009 };

struct loop_listener {
    struct loop *loop;
    struct poller_watch watch;
    void (*readable)(void *owner);
    void *owner;
};

struct loop {
    uint32_t magic;
    struct loop_callbacks callbacks;
    struct poller *poller;
    struct poller_timer timer;
    struct poller_deferred after_step;
    int wake_fd;
    atomic_bool stopped;
    pthread_mutex_t thread_mutex; /* its owner acts as the loop's thread */
    size_t listener_count;
    struct loop_listener listeners[LOOP_LISTENERS_MAX];
};

static void loop_check_deadline(struct loop *loop)
{
    if (loop->timer.at_ms == LOOP_NEVER || host_boot_ms() < loop->timer.at_ms)
        return;
    poller_call_at(loop->poller, &loop->timer, POLLER_NEVER);
    loop->callbacks.due(loop->callbacks.owner);
}

static void loop_on_wake(void *owner)
{
    const struct loop *loop = owner;
    loop->callbacks.woken(loop->callbacks.owner);
}

/* The deadline comes before every descriptor; the poller runs its timers only after them. */
static void loop_on_ready(void *owner, unsigned what)
{
    const struct loop_listener *listener = owner;
    (void)what;
    loop_check_deadline(listener->loop);
    listener->readable(listener->owner);
}

void loop_enter(struct loop *loop)
{
    (void)pthread_mutex_lock(&loop->thread_mutex);
}

void loop_leave(struct loop *loop)
{
    (void)pthread_mutex_unlock(&loop->thread_mutex);
}

void loop_wake(const struct loop *loop)
{
    uint64_t one = 1;
    while (write(loop->wake_fd, &one, sizeof one) < 0 && errno == EINTR) {
    }
}

static bool loop_watch(struct loop *loop, int file, unsigned wants, void (*readable)(void *owner),
                       void *owner)
{
    ASSERT(loop->magic == LOOP_MAGIC);
    if (loop->listener_count == LOOP_LISTENERS_MAX)
        return false;
    struct loop_listener *listener = &loop->listeners[loop->listener_count];
    *listener =
        (struct loop_listener){.loop = loop,
                               .watch = {.file = file, .ready = loop_on_ready, .owner = listener},
                               .readable = readable,
                               .owner = owner};
    if (!poller_watch(loop->poller, &listener->watch, wants))
        return false;
    loop->listener_count++;
    return true;
}

struct loop *loop_new(const struct loop_callbacks *callbacks)
{
    struct loop *loop = calloc(1, sizeof *loop);
    if (loop == NULL)
        return NULL;
    loop->magic = LOOP_MAGIC;
    loop->callbacks = *callbacks;
    loop->timer = (struct poller_timer){
        .at_ms = POLLER_NEVER, .due = callbacks->due, .owner = callbacks->owner};
    loop->after_step =
        (struct poller_deferred){.run = callbacks->after_step, .owner = callbacks->owner};
    loop->poller = poller_new();
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    (void)pthread_mutex_init(&loop->thread_mutex, NULL);
    if (loop->poller == NULL || loop->wake_fd < 0 ||
        !loop_watch(loop, loop->wake_fd, POLLER_READ | POLLER_EDGE, loop_on_wake, loop)) {
        loop_free(&loop);
        return NULL;
    }
    return loop;
}

void loop_free(struct loop **loop_pointer)
{
    struct loop *loop = *loop_pointer;
    if (loop == NULL)
        return;
    ASSERT(loop->magic == LOOP_MAGIC);
    for (size_t i = 0; i < loop->listener_count; i++)
        (void)poller_watch(loop->poller, &loop->listeners[i].watch, 0);
    if (loop->poller != NULL)
        poller_call_at(loop->poller, &loop->timer, POLLER_NEVER);
    poller_free(&loop->poller);
    if (loop->wake_fd >= 0)
        (void)close(loop->wake_fd);
    (void)pthread_mutex_destroy(&loop->thread_mutex);
    loop->magic = 0;
    free(loop);
    *loop_pointer = NULL;
}

void loop_wake_at(struct loop *loop, int64_t at_ms)
{
    ASSERT(loop->magic == LOOP_MAGIC);
    poller_call_at(loop->poller, &loop->timer, at_ms);
}

bool loop_listen(struct loop *loop, int file, void (*readable)(void *owner), void *owner)
{
    return loop_watch(loop, file, POLLER_READ, readable, owner);
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
    loop_wake(loop);
}

void loop_step(struct loop *loop, bool wait)
{
    ASSERT(loop->magic == LOOP_MAGIC);
    poller_wait(loop->poller, wait ? -1 : 0);
    loop_enter(loop);
    if (loop->callbacks.after_step != NULL)
        poller_defer(loop->poller, &loop->after_step);
    poller_step(loop->poller);
    loop_leave(loop);
}

int loop_fd(const struct loop *loop)
{
    ASSERT(loop->magic == LOOP_MAGIC);
    return poller_fd(loop->poller);
}
