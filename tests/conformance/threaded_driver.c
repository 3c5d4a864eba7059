/* SPDX-License-Identifier: Apache-2.0 */
/* See threaded_driver.h. */
#include "threaded_driver.h"

#include "store/store_thread.h"

static const struct store_driver *inner;

struct threaded {
    struct store_thread *store_thread;
};

static bool threaded_open(void *state, const char *url, const struct store_callbacks *site,
                          struct text *why)
{
    struct threaded *threaded = state;
    threaded->store_thread = store_thread_new(inner, url, site, why);
    return threaded->store_thread != NULL;
}

static void threaded_close(void *state)
{
    struct threaded *threaded = state;
    store_thread_free(&threaded->store_thread);
}

static void submit(void *state, const struct store_request *request, store_done *done, void *caller)
{
    struct threaded *threaded = state;
    store_thread_submit(threaded->store_thread, request, done, caller);
}

static void step(void *state)
{
    struct threaded *threaded = state;
    store_thread_step(threaded->store_thread);
}

static int fd_of(void *state)
{
    const struct threaded *threaded = state;
    return store_thread_fd(threaded->store_thread);
}

static int liveness(void *state)
{
    const struct threaded *threaded = state;
    return store_thread_liveness(threaded->store_thread);
}

const struct store_driver *threaded_driver(const struct store_driver *driver)
{
    static struct store_driver threaded;
    inner = driver;
    threaded = (struct store_driver){.scheme = driver->scheme,
                                     .facts = driver->facts,
                                     .facts_at = driver->facts_at,
                                     .capabilities = driver->capabilities,
                                     .state_size = sizeof(struct threaded),
                                     .open = threaded_open,
                                     .close = threaded_close,
                                     .submit = submit,
                                     .step = step,
                                     .fd = fd_of,
                                     .liveness = driver->liveness != NULL ? liveness : NULL,
                                     .epoch = driver->epoch};
    return &threaded;
}
