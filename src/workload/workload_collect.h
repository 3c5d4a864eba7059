/* SPDX-License-Identifier: Apache-2.0 */
/* Removes objects of k8s-run that are past their cooldown or time limit. Blocks. */
#ifndef LEASEHOLD_WORKLOAD_WORKLOAD_COLLECT_H
#define LEASEHOLD_WORKLOAD_WORKLOAD_COLLECT_H

#include "store/k8s/k8s_probe.h"
#include "workload/workload_end.h"

/*
 * Objects of a kind as kubectl names it ("jobs.batch"): past their cooldown or time limit, or
 * deleted and kept by our finalizer alone. `rate`: removed in a minute at most; 0: only counted.
 */
void workload_collect(struct k8s_probe *probe, const char *kind, const struct end_rules *rules,
                      unsigned rate, struct k8s_collection *out);

#endif
