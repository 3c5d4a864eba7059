/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search behind linear_check, for the history of a single key. Its operations must have been
 * checked: one key, at least one and at most LINEAR_KEY_OPS_MAX, sorted by call, none cached. It
 * must not write a report: it returns its findings.
 */
#ifndef LEASEHOLD_TESTS_LINEAR_SEARCH_H
#define LEASEHOLD_TESTS_LINEAR_SEARCH_H

#include "linear.h"

struct linear_finding {
    enum linear_verdict verdict;
    size_t states;
    const struct linear_op *stuck; /* refused: the operation after the longest legal prefix */
    size_t placed;                 /* refused: operations in that prefix */
    char why[128];
};

void linear_search(const struct linear_op *const *ops, size_t count,
                   const struct linear_options *options, struct linear_finding *out);

#endif
