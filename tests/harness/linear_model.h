/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sequential lock that histories are compared with: one key, one operation at a time, with its
 * result. Its rules are those at struct linear_op. It must not search, nor use other operations of
 * the history.
 */
#ifndef LEASEHOLD_TESTS_LINEAR_MODEL_H
#define LEASEHOLD_TESTS_LINEAR_MODEL_H

#include "linear_state.h"

/*
 * Applies the operation. False if the lock could not have given that result; the state is then
 * undefined and must be discarded.
 */
bool linear_model_step(struct linear_step *step, struct linear_state *state);

#endif
