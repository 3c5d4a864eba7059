/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for admin_workload.c in a library without Kubernetes, where no driver has objects. */
#include "face/lib/admin_internal.h"

void admin_collect_objects(void *connection, const struct collect_options *options,
                           struct collection *out)
{
    (void)connection;
    (void)options;
    *out = (struct collection){0};
}

const char *admin_broken_conditions(const struct collect_options *options)
{
    (void)options;
    return NULL;
}
