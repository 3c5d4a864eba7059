/* SPDX-License-Identifier: Apache-2.0 */
/* See aside.h. */
#include "aside.h"

#include "store/beside.h"

static const struct store_driver *inner;

struct aside {
    struct beside *beside;
};

static bool open_aside(void *state, const char *url, const struct store_site *site,
                       struct text *why)
{
    struct aside *aside = state;
    aside->beside = beside_new(inner, url, site, why);
    return aside->beside != NULL;
}

static void close_aside(void *state)
{
    struct aside *aside = state;
    beside_free(&aside->beside);
}

static void submit(void *state, const struct store_request *request, store_done *done, void *caller)
{
    struct aside *aside = state;
    beside_submit(aside->beside, request, done, caller);
}

static void step(void *state)
{
    struct aside *aside = state;
    beside_step(aside->beside);
}

static int fd_of(void *state)
{
    const struct aside *aside = state;
    return beside_fd(aside->beside);
}

static int liveness(void *state)
{
    const struct aside *aside = state;
    return beside_liveness(aside->beside);
}

const struct store_driver *aside_driver(const struct store_driver *driver)
{
    static struct store_driver aside;
    inner = driver;
    aside = (struct store_driver){.scheme = driver->scheme,
                                  .ttl_least_ms = driver->ttl_least_ms,
                                  .capabilities = driver->capabilities,
                                  .state_size = sizeof(struct aside),
                                  .open = open_aside,
                                  .close = close_aside,
                                  .submit = submit,
                                  .step = step,
                                  .fd = fd_of,
                                  .liveness = driver->liveness != NULL ? liveness : NULL,
                                  .margin_ms = driver->margin_ms};
    return &aside;
}
