/* SPDX-License-Identifier: Apache-2.0 */
/* Removes objects of k8s-run that are past their cooldown or time limit. Blocks. */
#ifndef LEASEHOLD_WORKLOAD_WORKLOAD_COLLECT_H
#define LEASEHOLD_WORKLOAD_WORKLOAD_COLLECT_H

#include "http/kube_api.h"
#include "store/admin.h"
#include "workload/workload_end.h"

/*
 * `kind` is as in kubectl ("jobs.batch"). Removes objects past their cooldown or time limit, and
 * deleted ones that only our finalizer keeps. `rate`: removals per minute at most; 0: count only.
 */
void workload_collect(struct kube_api *kube, const char *kind, const struct end_rules *rules,
                      unsigned rate, struct collection *out);

#endif
