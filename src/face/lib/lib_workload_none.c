/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces lib_workload.c in a build without Kubernetes: every call returns LH_USAGE. */
#include "face/lib/lib_internal.h"

#include "leasehold_workload.h"

static enum lh_outcome fail_unsupported(struct lh_report *report)
{
    return report_set(report, LH_USAGE, "usage: this leasehold was built without Kubernetes");
}

enum lh_outcome lh_workloads_open(const char *url, const char *manifest,
                                  const struct lh_workloads_options *options,
                                  struct lh_workloads **out, struct lh_report *report)
{
    (void)url;
    (void)manifest;
    (void)options;
    (void)out;
    return fail_unsupported(report);
}

void lh_workloads_close(struct lh_workloads **workloads)
{
    (void)workloads; /* there is none */
}

enum lh_outcome lh_workload_run(struct lh_workloads *workloads, const char *target,
                                const struct lh_workload_options *options, struct lh_workload *out,
                                struct lh_report *report)
{
    (void)workloads;
    (void)target;
    (void)options;
    (void)out;
    return fail_unsupported(report);
}

enum lh_outcome lh_workload_look(struct lh_workloads *workloads, const char *target,
                                 struct lh_workload *out, struct lh_report *report)
{
    (void)workloads;
    (void)target;
    (void)out;
    return fail_unsupported(report);
}

enum lh_outcome lh_workload_remove(struct lh_workloads *workloads, const char *target,
                                   const char *request_id, struct lh_workload *out,
                                   struct lh_report *report)
{
    (void)workloads;
    (void)target;
    (void)request_id;
    (void)out;
    return fail_unsupported(report);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the signature of the other build */
enum lh_outcome lh_workloads_metrics(struct lh_workloads *workloads, const char *prefix, char *out,
                                     /* NOLINTNEXTLINE(readability-non-const-parameter): same */
                                     size_t size, size_t *out_length, struct lh_report *report)
{
    (void)workloads;
    (void)prefix;
    (void)out;
    (void)size;
    (void)out_length;
    return fail_unsupported(report);
}
