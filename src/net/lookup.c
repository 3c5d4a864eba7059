/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See lookup.h. The thread and the waiter share a lookup; the last reference frees it. The thread
 * is detached, because a hanging getaddrinfo() cannot be cancelled, and no caller may wait for it.
 */
#include "net/lookup.h"

#include "base/check.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { LOOKUP_MAGIC = 0x100c, PORT_SHOWN = 8 };

struct lookup {
    uint32_t magic;
    atomic_int refs;
    char *host;
    char port[PORT_SHOWN];
    int wake_fd;
    /* The thread's until `finished`, then the waiter's. */
    atomic_bool finished;
    int error, reason;
    struct addrinfo *addresses;
    /* The waiter's. */
    struct poller_watch watch;
    lookup_done *done;
    void *owner;
};

static atomic_int running;

static const struct addrinfo any_stream = {
    .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};

static void lookup_unref(struct lookup *lookup)
{
    if (atomic_fetch_sub(&lookup->refs, 1) > 1)
        return;
    if (lookup->addresses != NULL)
        freeaddrinfo(lookup->addresses);
    if (lookup->wake_fd >= 0)
        (void)close(lookup->wake_fd);
    free(lookup->host);
    lookup->magic = 0;
    free(lookup);
}

static void *lookup_thread(void *argument)
{
    struct lookup *lookup = argument;
    uint64_t one = 1;
    lookup->error = getaddrinfo(lookup->host, lookup->port, &any_stream, &lookup->addresses);
    lookup->reason = errno;
    if (lookup->error != 0)
        lookup->addresses = NULL;
    atomic_fetch_sub(&running, 1);
    atomic_store(&lookup->finished, true);
    while (write(lookup->wake_fd, &one, sizeof one) < 0 && errno == EINTR) {
    }
    lookup_unref(lookup);
    return NULL;
}

static void lookup_on_finished(void *owner, unsigned what)
{
    struct lookup *lookup = owner;
    (void)what;
    if (!atomic_load(&lookup->finished))
        return;
    struct addrinfo *addresses = lookup->addresses;
    lookup->addresses = NULL;
    (void)poller_watch(lookup->watch.poller, &lookup->watch, 0);
    lookup->done(lookup->owner, lookup->error, lookup->reason, addresses);
}

/* Blocks all signals: the application's handlers must not run in our thread. */
static bool lookup_start_thread(struct lookup *lookup)
{
    sigset_t all, before;
    pthread_t thread;
    if (atomic_fetch_add(&running, 1) >= LOOKUPS_MOST) {
        atomic_fetch_sub(&running, 1);
        return false;
    }
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    atomic_fetch_add(&lookup->refs, 1);
    bool runs = pthread_create(&thread, NULL, lookup_thread, lookup) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (runs) {
        (void)pthread_detach(thread);
        return true;
    }
    atomic_fetch_sub(&lookup->refs, 1);
    atomic_fetch_sub(&running, 1);
    return false;
}

struct lookup *lookup_new(struct poller *poller, const char *host, uint16_t port, lookup_done *done,
                          void *owner)
{
    struct lookup *lookup = calloc(1, sizeof *lookup);
    if (lookup == NULL)
        return NULL;
    lookup->magic = LOOKUP_MAGIC;
    atomic_init(&lookup->refs, 1);
    lookup->done = done;
    lookup->owner = owner;
    lookup->host = strdup(host);
    (void)snprintf(lookup->port, sizeof lookup->port, "%u", (unsigned)port);
    lookup->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    lookup->watch = (struct poller_watch){
        .file = lookup->wake_fd, .ready = lookup_on_finished, .owner = lookup};
    if (lookup->host == NULL || lookup->wake_fd < 0 ||
        !poller_watch(poller, &lookup->watch, POLLER_READ) || !lookup_start_thread(lookup))
        lookup_free(&lookup);
    return lookup;
}

void lookup_free(struct lookup **lookup_pointer)
{
    struct lookup *lookup = *lookup_pointer;
    if (lookup == NULL)
        return;
    ASSERT(lookup->magic == LOOKUP_MAGIC);
    if (lookup->watch.poller != NULL)
        (void)poller_watch(lookup->watch.poller, &lookup->watch, 0);
    lookup_unref(lookup);
    *lookup_pointer = NULL;
}

struct addrinfo *lookup_address(const char *host, uint16_t port)
{
    struct addrinfo hints = any_stream, *addresses = NULL;
    char port_text[PORT_SHOWN];
    hints.ai_flags |= AI_NUMERICHOST;
    (void)snprintf(port_text, sizeof port_text, "%u", (unsigned)port);
    return getaddrinfo(host, port_text, &hints, &addresses) == 0 ? addresses : NULL;
}
