/* SPDX-License-Identifier: Apache-2.0 */
/* Removes Leases and workload objects that are no longer needed, for `leasehold collect`. Blocks.
 */
#include "process/host.h"
#include "store/k8s/k8s_internal.h"

#include <poll.h>
#include <stdlib.h>

static int64_t no_time(void *owner)
{
    (void)owner;
    return 0;
}

struct k8s *k8s_admin_open(const char *url, int64_t timeout_ms, struct text *why)
{
    struct k8s *k8s = calloc(1, sizeof *k8s);
    struct store_callbacks callbacks = {.clock = {.now_ms = no_time},
                                        .session = (uint64_t)host_boot_ms(),
                                        .timeout_ms = timeout_ms};
    if (k8s == NULL)
        text_add(why, "out of memory");
    else if (k8s_driver.open(k8s, url, &callbacks, why))
        return k8s;
    free(k8s);
    return NULL;
}

void k8s_admin_close(struct k8s *k8s)
{
    k8s_driver.close(k8s);
    free(k8s);
}

struct k8s_admin_round {
    struct collection *out;
    bool over;
};

static void k8s_admin_on_end(void *user, const struct collection *tally)
{
    struct k8s_admin_round *round = user;
    *round->out = *tally;
    round->over = true;
}

void k8s_admin_collect(struct k8s *k8s, unsigned rate, struct collection *out)
{
    struct k8s_admin_round round = {.out = out};
    struct pollfd file = {.fd = poller_fd(k8s->kube.poller), .events = POLLIN};
    collector_begin(&k8s->collector, rate, k8s_admin_on_end, &round);
    while (!round.over) {
        (void)poll(&file, 1, /* timeout= */ -1);
        poller_step(k8s->kube.poller);
    }
}

/* Leases first, then the objects of a kind. */
bool k8s_collect(const char *url, const struct collect_options *options, struct collection *out,
                 struct text *why)
{
    struct k8s *k8s = k8s_admin_open(url, options->timeout_ms, why);
    if (k8s == NULL)
        return false;
    k8s_admin_collect(k8s, options->rate, out);
    if (options->kind != NULL && out->why[0] == '\0') {
        unsigned left = out->left, removed = out->removed, taken = out->taken;
        options->collect_objects(&k8s->kube, options, out);
        out->left += left;
        out->removed += removed;
        out->taken += taken;
    }
    k8s_admin_close(k8s);
    return true;
}
