/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See loop.h. A net for descriptors and the clock; on it an eventfd for tasks of other threads, and
 * the mutex that makes its owner the loop's thread.
 */
#include "io/loop.h"

#include "base/check.h"
#include "io/host.h"
#include "io/net.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { LOOP_MAGIC = 0x1009 };

struct listening {
    struct loop *loop;
    struct net_watch watch;
    void (*readable)(void *owner);
    void *owner;
};

struct loop {
    uint32_t magic;
    struct loop_site site;
    struct net *net;
    struct net_timer timer;
    struct net_late turned;
    int bell;
    atomic_bool stopped;
    pthread_mutex_t turn; /* whose it is, that is the loop's thread */
    size_t listening_count;
    struct listening listening[LOOP_LISTENS_MAX];
    pthread_mutex_t mutex; /* of the tasks */
    struct loop_task *first, **last;
};

static void look_at_clock(struct loop *loop)
{
    if (loop->timer.at_ms == LOOP_NEVER || host_boot_ms() < loop->timer.at_ms)
        return;
    net_call_at(loop->net, &loop->timer, NET_NEVER);
    loop->site.due(loop->site.owner);
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
    uint64_t count;
    while (read(loop->bell, &count, sizeof count) < 0 && errno == EINTR) {
    }
    loop_catch_up(loop);
}

/* Deadlines come before every descriptor; the net looks at its own times after them. */
static void on_ready(void *owner, unsigned what)
{
    const struct listening *listening = owner;
    (void)what;
    look_at_clock(listening->loop);
    listening->readable(listening->owner);
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

struct loop *loop_new(const struct loop_site *site)
{
    struct loop *loop = calloc(1, sizeof *loop);
    if (loop == NULL)
        return NULL;
    loop->magic = LOOP_MAGIC;
    loop->site = *site;
    loop->timer = (struct net_timer){.at_ms = NET_NEVER, .due = site->due, .owner = site->owner};
    loop->turned = (struct net_late){.run = site->turned, .owner = site->owner};
    loop->last = &loop->first;
    loop->net = net_new();
    loop->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    (void)pthread_mutex_init(&loop->mutex, NULL);
    (void)pthread_mutex_init(&loop->turn, NULL);
    if (loop->net == NULL || loop->bell < 0 || !loop_listen(loop, loop->bell, run_tasks, loop)) {
        loop_free(&loop);
        return NULL;
    }
    if (!site->lazy)
        net_set_exact(loop->net);
    return loop;
}

void loop_free(struct loop **loop_pointer)
{
    struct loop *loop = *loop_pointer;
    if (loop == NULL)
        return;
    ASSERT(loop->magic == LOOP_MAGIC);
    for (size_t i = 0; i < loop->listening_count; i++)
        (void)net_want(loop->net, &loop->listening[i].watch, 0);
    if (loop->net != NULL)
        net_call_at(loop->net, &loop->timer, NET_NEVER);
    net_free(&loop->net);
    if (loop->bell >= 0)
        (void)close(loop->bell);
    (void)pthread_mutex_destroy(&loop->turn);
    (void)pthread_mutex_destroy(&loop->mutex);
    loop->magic = 0;
    free(loop);
    *loop_pointer = NULL;
}

void loop_wake_at(struct loop *loop, int64_t at_ms)
{
    ASSERT(loop->magic == LOOP_MAGIC);
    net_call_at(loop->net, &loop->timer, at_ms);
}

bool loop_listen(struct loop *loop, int file, void (*readable)(void *owner), void *owner)
{
    ASSERT(loop->magic == LOOP_MAGIC);
    if (loop->listening_count == LOOP_LISTENS_MAX)
        return false;
    struct listening *listening = &loop->listening[loop->listening_count];
    *listening = (struct listening){.loop = loop,
                                    .watch = {.file = file, .ready = on_ready, .owner = listening},
                                    .readable = readable,
                                    .owner = owner};
    if (!net_want(loop->net, &listening->watch, NET_READ))
        return false;
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
    net_wait(loop->net, wait ? -1 : 0);
    loop_enter(loop);
    if (loop->site.turned != NULL)
        net_put_off(loop->net, &loop->turned);
    net_step(loop->net);
    loop_leave(loop);
}

int loop_fd(const struct loop *loop)
{
    ASSERT(loop->magic == LOOP_MAGIC);
    return net_fd(loop->net);
}
