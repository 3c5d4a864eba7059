/* SPDX-License-Identifier: Apache-2.0 */
/* Removes Leases and workload objects that are no longer needed, for `leasehold collect`. Blocks.
 */
#include "process/host.h"
#include "store/k8s/k8s_internal.h"

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

/* Leases first, then the objects of a kind. */
bool k8s_collect(const char *url, const struct collect_options *options, struct collection *out,
                 struct text *why)
{
    struct k8s *k8s = k8s_admin_open(url, options->timeout_ms, why);
    if (k8s == NULL)
        return false;
    collector_run(&k8s->collector, options->rate, out);
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
