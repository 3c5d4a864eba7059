/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sequential lock that histories are compared with: one key, one operation at a time, with
 * the answer it gave. Its rules are those written at struct linear_op.
 * It must not search, nor know other operations of the history.
 */
#ifndef LEASEHOLD_TESTS_LINEAR_MODEL_H
#define LEASEHOLD_TESTS_LINEAR_MODEL_H

#include "linear_state.h"

/*
 * Lets the operation take effect. False when the lock could not have answered so; the state is
 * then spoilt and must be thrown away.
 */
bool linear_model_step(struct linear_step *step, struct linear_state *state);

#endif
