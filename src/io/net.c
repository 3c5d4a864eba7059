/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See net.h. An epoll, and a timerfd on the clock that runs in suspend, set to the earliest of all
 * times. The epoll's own descriptor can be watched by another loop.
 */
#include "io/net.h"

#include "base/check.h"
#include "io/host.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { NET_MAGIC = 0x4e37, BATCH = 64 };

struct net {
    uint32_t magic;
    int epoll, timer;
    size_t watching;
    struct heap times;
    int64_t armed_ms; /* what the timerfd is set to; may be earlier than the first time */
    int64_t now_ms;   /* of the step that calls those whose time has come */
    bool exact, stepping, calling;
    struct net_late *first, *last; /* what is put off */
    /* What the kernel told and nobody has been called for yet. */
    struct epoll_event batch[BATCH];
    int batch_next, batch_count;
    bool waited; /* the batch is of net_wait(), for the next step */
};

static void arm(struct net *net)
{
    struct itimerspec when = {0};
    int64_t first_ms = heap_first(&net->times);
    bool early_enough = !net->exact && net->armed_ms <= first_ms;
    if (net->stepping || net->armed_ms == first_ms || early_enough)
        return;
    if (first_ms != NET_NEVER) {
        /* A length, not a point in time: the clock of a time namespace may stand elsewhere. */
        int64_t length_ms = first_ms - host_boot_ms();
        when.it_value.tv_sec = length_ms > 0 ? length_ms / 1000 : 0;
        when.it_value.tv_nsec = length_ms > 0 ? length_ms % 1000 * 1000000 : 1;
    }
    int result = timerfd_settime(net->timer, /* flags= */ 0, &when, NULL);
    ASSERT(result == 0);
    net->armed_ms = first_ms;
}

struct net *net_new(void)
{
    struct net *net = calloc(1, sizeof *net);
    struct epoll_event interest = {.events = EPOLLIN};
    if (net == NULL)
        return NULL;
    net->magic = NET_MAGIC;
    net->armed_ms = NET_NEVER;
    net->epoll = epoll_create1(EPOLL_CLOEXEC);
    net->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (net->epoll < 0 || net->timer < 0 ||
        epoll_ctl(net->epoll, EPOLL_CTL_ADD, net->timer, &interest) != 0)
        net_free(&net);
    return net;
}

void net_free(struct net **net_pointer)
{
    struct net *net = *net_pointer;
    if (net == NULL)
        return;
    ASSERT(net->magic == NET_MAGIC && !net->stepping);
    ASSERT(net->watching == 0 && net->times.top == NULL && net->first == NULL);
    if (net->timer >= 0)
        (void)close(net->timer);
    if (net->epoll >= 0)
        (void)close(net->epoll);
    net->magic = 0;
    free(net);
    *net_pointer = NULL;
}

void net_set_exact(struct net *net)
{
    net->exact = true;
}

int net_fd(const struct net *net)
{
    ASSERT(net->magic == NET_MAGIC);
    return net->epoll;
}

bool net_rest(int file, int most_ms)
{
    struct epoll_event event; /* stays to be looked at by the step */
    return epoll_wait(file, &event, /* maxevents= */ 1, most_ms) > 0;
}

/* ---- descriptors ---- */

static void forget_told(struct net *net, const struct net_watch *watch)
{
    for (int i = net->batch_next; i < net->batch_count; i++) {
        if (net->batch[i].data.ptr == watch)
            net->batch[i].events = 0;
    }
}

bool net_want(struct net *net, struct net_watch *watch, unsigned wants)
{
    struct epoll_event interest = {.data.ptr = watch};
    ASSERT(net->magic == NET_MAGIC && (watch->net == NULL || watch->net == net));
    watch->net = net;
    if (watch->wants == wants)
        return true;
    interest.events = ((wants & NET_READ) != 0 ? EPOLLIN | EPOLLRDHUP : 0U) |
                      ((wants & NET_WRITE) != 0 ? EPOLLOUT : 0U);
    if (wants == 0) {
        forget_told(net, watch);
        (void)epoll_ctl(net->epoll, EPOLL_CTL_DEL, watch->file, &interest);
        net->watching--;
    } else if (watch->wants == 0) {
        if (epoll_ctl(net->epoll, EPOLL_CTL_ADD, watch->file, &interest) != 0)
            return false;
        net->watching++;
    } else if (epoll_ctl(net->epoll, EPOLL_CTL_MOD, watch->file, &interest) != 0) {
        return false;
    }
    watch->wants = wants;
    return true;
}

static void call_ready(const struct epoll_event *event)
{
    const struct net_watch *watch = event->data.ptr;
    unsigned what = ((event->events & EPOLLIN) != 0 ? NET_READ : 0U) |
                    ((event->events & EPOLLOUT) != 0 ? NET_WRITE : 0U);
    /* The next call of whoever wanted anything brings out what is wrong. */
    if ((event->events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) != 0)
        what = NET_READ | NET_WRITE;
    what &= watch->wants;
    if (what != 0)
        watch->ready(watch->owner, what);
}

void net_wait(struct net *net, int most_ms)
{
    net->batch_next = 0;
    net->batch_count = epoll_wait(net->epoll, net->batch, BATCH, most_ms);
    net->waited = true;
}

static void look_at_files(struct net *net)
{
    uint64_t count;
    if (!net->waited)
        net_wait(net, /* most_ms= */ 0);
    net->waited = false;
    while (net->batch_next < net->batch_count) {
        struct epoll_event event = net->batch[net->batch_next++];
        if (event.data.ptr != NULL) {
            if (event.events != 0)
                call_ready(&event);
        } else if (read(net->timer, &count, sizeof count) > 0) {
            net->armed_ms = NET_NEVER;
        }
    }
}

/* ---- times ---- */

void net_call_at(struct net *net, struct net_timer *timer, int64_t at_ms)
{
    ASSERT(net->magic == NET_MAGIC && (timer->net == NULL || timer->net == net));
    if (timer->net == NULL)
        heap_node_init(&timer->node);
    timer->net = net;
    /* Who asks for now, whenever it is called, does not keep the others waiting. */
    if (net->calling && at_ms <= net->now_ms)
        at_ms = net->now_ms + 1;
    timer->at_ms = at_ms;
    heap_set(&net->times, &timer->node, at_ms);
    arm(net);
}

static void look_at_clock(struct net *net)
{
    net->now_ms = host_boot_ms();
    net->calling = true;
    while (net->times.top != NULL && net->times.top->at <= net->now_ms) {
        struct net_timer *timer =
            (struct net_timer *)((char *)net->times.top - offsetof(struct net_timer, node));
        timer->at_ms = NET_NEVER;
        heap_set(&net->times, &timer->node, NET_NEVER);
        timer->due(timer->owner);
    }
    net->calling = false;
}

/* ---- the end of a step ---- */

void net_put_off(struct net *net, struct net_late *late)
{
    ASSERT(net->magic == NET_MAGIC && (late->net == NULL || late->net == net));
    if (late->waits)
        return;
    late->net = net;
    late->waits = true;
    late->next = NULL;
    late->before = net->last;
    if (net->last != NULL)
        net->last->next = late;
    else
        net->first = late;
    net->last = late;
}

void net_forget_late(struct net_late *late)
{
    if (!late->waits)
        return;
    if (late->next != NULL)
        late->next->before = late->before;
    else
        late->net->last = late->before;
    if (late->before != NULL)
        late->before->next = late->next;
    else
        late->net->first = late->next;
    late->waits = false;
}

void net_catch_up(struct net *net)
{
    while (net->first != NULL) {
        struct net_late *late = net->first;
        net_forget_late(late);
        late->run(late->owner);
    }
}

void net_step(struct net *net)
{
    ASSERT(net->magic == NET_MAGIC && !net->stepping);
    net->stepping = true;
    look_at_files(net);
    look_at_clock(net);
    net_catch_up(net);
    net->stepping = false;
    arm(net);
}
