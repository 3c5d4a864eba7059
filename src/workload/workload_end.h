/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Has a Kubernetes object ended, how, and when? Told by conditions in the words of kubectl wait,
 * separated by commas, any of which is enough:
 *   condition=NAME[=STATUS]   an entry of status.conditions; STATUS is True unless said
 *   .path.to.member[=VALUE]   a member of the object: has this value, or is there at all
 * No I/O, no clock.
 */
#ifndef LEASEHOLD_WORKLOAD_WORKLOAD_END_H
#define LEASEHOLD_WORKLOAD_WORKLOAD_END_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* What holds for Jobs, Pods, Tekton's runs and most custom resources. */
#define END_DONE_DEFAULT                                                                        \
    "condition=Complete,condition=Completed,condition=Succeeded,.status.phase=Succeeded,"       \
    ".status.phase=Completed,.status.phase=Complete,.status.phase=Done,.status.completionTime," \
    ".status.completedAt,.status.finishedAt"
#define END_FAILED_DEFAULT                                                                 \
    "condition=Failed,condition=Succeeded=False,.status.phase=Failed,.status.phase=Error," \
    ".status.phase=Cancelled,.status.phase=TimedOut"
#define END_TIME_DEFAULT ".status.completionTime,.status.completedAt,.status.finishedAt"

struct end_rules {
    const char *done_when, *failed_when, *ended_at; /* NULL: the usual; ended_at: paths only */
};

enum end_state { END_RUNS, END_DONE, END_FAILED };

/* NULL, or what is wrong with it. */
const char *end_rules_broken(const struct end_rules *rules);

/* Failed is looked for first. */
enum end_state end_state_of(const struct end_rules *rules, const json_t *object);
/*
 * When it ended, in milliseconds since 1970, by whoever wrote the status: the paths, the time of
 * the condition that told it, the last container of a Pod; else when the API server was last told
 * anything about the object. Never before it was created. For objects that have ended.
 */
int64_t end_time_of(const struct end_rules *rules, const json_t *object);
/* Of a Pod that failed the exit status of the first container that did; otherwise 1. */
int end_status_of(const json_t *object);

#endif
