/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts for people: an operation on one line, and why it found no place. Texts that do not fit are
 * truncated. It must not judge anything.
 */
#ifndef LEASEHOLD_TESTS_LINEAR_TEXT_H
#define LEASEHOLD_TESTS_LINEAR_TEXT_H

#include "linear_state.h"

/* "op 7 (client 2, acquire exclusive → ok token 5, 120..140 ms)" */
void linear_text_op(const struct linear_op *op, size_t number, char *out_text, size_t size);

/* Why the step was refused: "held by token 4, which cannot end before 1000 ms". */
void linear_text_reason(const struct linear_step *step, char *out_text, size_t size);

#endif
