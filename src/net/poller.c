/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See poller.h. An epoll, and a timerfd on CLOCK_BOOTTIME, which includes suspend, set to the
 * earliest timer. Another loop can watch the epoll's own descriptor.
 */
#include "net/poller.h"

#include "base/check.h"
#include "process/host.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { POLLER_MAGIC = 0x4e37, BATCH = 64, LATER_MAX = 4 };

struct poller {
    uint32_t magic;
    int epoll, timer;
    size_t watching;
    struct heap times;
    int64_t armed_ms; /* the time of the timerfd; may be earlier than the first timer */
    unsigned later;   /* times that the first timer became a later one since the timerfd fired */
    int64_t now_ms;   /* when the current step began to run timers */
    bool stepping, calling;
    struct list deferred; /* run at the end of the step */
    /* Events from the kernel whose callbacks have not run yet. */
    struct epoll_event batch[BATCH];
    int batch_next, batch_count;
    unsigned burst; /* 0: none */
    bool waited;    /* poller_wait() has filled the batch for the next step */
    char *scratch;  /* allocated when first used */
};

/* A busy poller leaves a timer that was postponed, and wakes once for nothing, instead of setting
 * the timerfd at every request. An idle one sets it, and sleeps. */
static void poller_arm_timer(struct poller *poller)
{
    int64_t first_ms = heap_first(&poller->times);
    if (poller->stepping || poller->armed_ms == first_ms)
        return;
    if (poller->armed_ms < first_ms && ++poller->later > LATER_MAX)
        return;
    host_set_timer(poller->timer, first_ms);
    poller->armed_ms = first_ms;
}

struct poller *poller_new(void)
{
    struct poller *poller = calloc(1, sizeof *poller);
    struct epoll_event interest = {.events = EPOLLIN};
    if (poller == NULL)
        return NULL;
    poller->magic = POLLER_MAGIC;
    poller->armed_ms = POLLER_NEVER;
    poller->epoll = epoll_create1(EPOLL_CLOEXEC);
    poller->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (poller->epoll < 0 || poller->timer < 0 ||
        epoll_ctl(poller->epoll, EPOLL_CTL_ADD, poller->timer, &interest) != 0)
        poller_free(&poller);
    return poller;
}

void poller_free(struct poller **poller_pointer)
{
    struct poller *poller = *poller_pointer;
    if (poller == NULL)
        return;
    ASSERT(poller->magic == POLLER_MAGIC && !poller->stepping);
    ASSERT(poller->watching == 0 && poller->times.top == NULL && poller->deferred.first == NULL);
    if (poller->timer >= 0)
        (void)close(poller->timer);
    if (poller->epoll >= 0)
        (void)close(poller->epoll);
    poller->magic = 0;
    free(poller->scratch);
    free(poller);
    *poller_pointer = NULL;
}

void poller_set_burst(struct poller *poller, unsigned watches)
{
    poller->burst = watches;
}

int poller_fd(const struct poller *poller)
{
    ASSERT(poller->magic == POLLER_MAGIC);
    return poller->epoll;
}

bool poller_wait_fd(int file, int most_ms)
{
    struct epoll_event event; /* remains pending for the step */
    return epoll_wait(file, &event, /* maxevents= */ 1, most_ms) > 0;
}

/* ---- descriptors ---- */

static void discard_events(struct poller *poller, const struct poller_watch *watch)
{
    for (int i = poller->batch_next; i < poller->batch_count; i++) {
        if (poller->batch[i].data.ptr == watch)
            poller->batch[i].events = 0;
    }
}

bool poller_watch(struct poller *poller, struct poller_watch *watch, unsigned wants)
{
    struct epoll_event interest = {.data.ptr = watch};
    ASSERT(poller->magic == POLLER_MAGIC && (watch->poller == NULL || watch->poller == poller));
    watch->poller = poller;
    if (watch->wants == wants)
        return true;
    interest.events = ((wants & POLLER_READ) != 0 ? EPOLLIN | EPOLLRDHUP : 0U) |
                      ((wants & POLLER_HANGUP) != 0 ? EPOLLRDHUP : 0U) |
                      ((wants & POLLER_WRITE) != 0 ? EPOLLOUT : 0U) |
                      ((wants & POLLER_EDGE) != 0 ? EPOLLET : 0U);
    if (wants == 0) {
        discard_events(poller, watch);
        (void)epoll_ctl(poller->epoll, EPOLL_CTL_DEL, watch->file, &interest);
        poller->watching--;
    } else if (watch->wants == 0) {
        if (epoll_ctl(poller->epoll, EPOLL_CTL_ADD, watch->file, &interest) != 0)
            return false;
        poller->watching++;
    } else if (epoll_ctl(poller->epoll, EPOLL_CTL_MOD, watch->file, &interest) != 0) {
        return false;
    }
    watch->wants = wants;
    return true;
}

static void call_ready(const struct epoll_event *event)
{
    const struct poller_watch *watch = event->data.ptr;
    unsigned what = ((event->events & EPOLLIN) != 0 ? POLLER_READ : 0U) |
                    ((event->events & EPOLLOUT) != 0 ? POLLER_WRITE : 0U);
    /* The owner's next read or write returns the error. */
    if ((event->events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) != 0)
        what = POLLER_READ | POLLER_WRITE | POLLER_HANGUP;
    what &= watch->wants;
    if (what != 0)
        watch->ready(watch->owner, what);
}

void poller_wait(struct poller *poller, int most_ms)
{
    poller->batch_next = 0;
    poller->batch_count = epoll_wait(poller->epoll, poller->batch, BATCH, most_ms);
    poller->waited = true;
}

static void poller_run_watches(struct poller *poller)
{
    uint64_t count;
    unsigned handled = 0;
    if (!poller->waited)
        poller_wait(poller, /* most_ms= */ 0);
    poller->waited = false;
    while (poller->batch_next < poller->batch_count) {
        struct epoll_event event = poller->batch[poller->batch_next++];
        if (event.data.ptr != NULL) {
            if (event.events != 0)
                call_ready(&event);
        } else if (read(poller->timer, &count, sizeof count) > 0) {
            poller->armed_ms = POLLER_NEVER;
            poller->later = 0;
        }
        if (poller->burst > 0 && ++handled % poller->burst == 0)
            poller_run_deferred(poller);
    }
}

/* ---- timers ---- */

void poller_call_at(struct poller *poller, struct poller_timer *timer, int64_t at_ms)
{
    ASSERT(poller->magic == POLLER_MAGIC && (timer->poller == NULL || timer->poller == poller));
    if (timer->poller == NULL)
        heap_node_init(&timer->node);
    timer->poller = poller;
    /* A callback that always sets its timer to now must not starve the others. */
    if (poller->calling && at_ms <= poller->now_ms)
        at_ms = poller->now_ms + 1;
    timer->at_ms = at_ms;
    heap_set(&poller->times, &timer->node, at_ms);
    poller_arm_timer(poller);
}

static void poller_run_timers(struct poller *poller)
{
    poller->now_ms = host_boot_ms();
    poller->calling = true;
    while (poller->times.top != NULL && poller->times.top->at <= poller->now_ms) {
        struct poller_timer *timer = (struct poller_timer *)((char *)poller->times.top -
                                                             offsetof(struct poller_timer, node));
        timer->at_ms = POLLER_NEVER;
        heap_set(&poller->times, &timer->node, POLLER_NEVER);
        timer->due(timer->owner);
    }
    poller->calling = false;
}

char *poller_scratch(struct poller *poller)
{
    if (poller->scratch == NULL)
        poller->scratch = malloc(POLLER_SCRATCH);
    return poller->scratch;
}

/* ---- the end of a step ---- */

void poller_defer(struct poller *poller, struct poller_deferred *deferred)
{
    ASSERT(poller->magic == POLLER_MAGIC &&
           (deferred->poller == NULL || deferred->poller == poller));
    if (deferred->queued)
        return;
    deferred->poller = poller;
    deferred->queued = true;
    list_append(&poller->deferred, &deferred->node);
}

void poller_cancel_deferred(struct poller_deferred *deferred)
{
    if (!deferred->queued)
        return;
    list_remove(&deferred->poller->deferred, &deferred->node);
    deferred->queued = false;
}

void poller_run_deferred(struct poller *poller)
{
    while (poller->deferred.first != NULL) {
        struct poller_deferred *deferred =
            LIST_ENTRY(poller->deferred.first, struct poller_deferred, node);
        poller_cancel_deferred(deferred);
        deferred->run(deferred->owner);
    }
}

void poller_step(struct poller *poller)
{
    ASSERT(poller->magic == POLLER_MAGIC && !poller->stepping);
    poller->stepping = true;
    poller_run_watches(poller);
    poller_run_timers(poller);
    poller_run_deferred(poller);
    poller->stepping = false;
    poller_arm_timer(poller);
}
