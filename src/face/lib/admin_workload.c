/* SPDX-License-Identifier: Apache-2.0 */
/* The part of leasehold_admin.h that is about workload objects; drivers call it with their
 * connection.
 */
#include "face/lib/admin_internal.h"

#include "workload/workload_collect.h"

static struct end_rules admin_end_rules(const struct collect_options *options)
{
    return (struct end_rules){.done_when = options->done_when,
                              .failed_when = options->failed_when,
                              .ended_at = options->ended_at};
}

const char *admin_broken_conditions(const struct collect_options *options)
{
    const struct end_rules rules = admin_end_rules(options);
    return end_rules_broken(&rules);
}

void admin_collect_objects(void *connection, const struct collect_options *options,
                           struct collection *out)
{
    const struct end_rules rules = admin_end_rules(options);
    workload_collect(connection, options->kind, &rules, options->rate, out);
}
