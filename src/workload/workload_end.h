/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Determines whether a Kubernetes object has ended, how, and when. The rules are conditions in the
 * syntax of kubectl wait, separated by commas; one match is sufficient:
 *   condition=NAME[=STATUS]   an entry of status.conditions; the default STATUS is True
 *   .path.to.member[=VALUE]   a member of the object: has this value, or exists
 * No I/O, no clock.
 */
#ifndef LEASEHOLD_WORKLOAD_WORKLOAD_END_H
#define LEASEHOLD_WORKLOAD_WORKLOAD_END_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* For Jobs, Pods, Tekton's runs and most custom resources. */
#define END_DONE_DEFAULT                                                                        \
    "condition=Complete,condition=Completed,condition=Succeeded,.status.phase=Succeeded,"       \
    ".status.phase=Completed,.status.phase=Complete,.status.phase=Done,.status.completionTime," \
    ".status.completedAt,.status.finishedAt"
#define END_FAILED_DEFAULT                                                                 \
    "condition=Failed,condition=Succeeded=False,.status.phase=Failed,.status.phase=Error," \
    ".status.phase=Cancelled,.status.phase=TimedOut"
#define END_TIME_DEFAULT ".status.completionTime,.status.completedAt,.status.finishedAt"

struct end_rules {
    const char *done_when, *failed_when, *ended_at; /* NULL: the default; ended_at: paths only */
};

enum end_state { END_RUNS, END_DONE, END_FAILED };

/* NULL, or the reason why the rules are invalid. */
const char *end_rules_broken(const struct end_rules *rules);

/* Tests for failure first. */
enum end_state end_state_of(const struct end_rules *rules, const json_t *object);
/*
 * The end time of an ended object, in milliseconds since 1970, by the clock of the status's writer:
 * from the paths, the matched condition, or the last container of a Pod; otherwise the time of the
 * last write to the object. Never before its creation.
 */
int64_t end_time_of(const struct end_rules *rules, const json_t *object);
/* The exit status of the first failed container of a Pod; otherwise 1. */
int end_status_of(const json_t *object);

#endif
