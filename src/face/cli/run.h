/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two halves of `leasehold run`: run.c checks what was asked for and stays as the process that
 * the user started; guarded.c goes on in the guardian, takes the keys and works the command;
 * nested.c knows what is held above.
 */
#ifndef LEASEHOLD_FACE_CLI_RUN_H
#define LEASEHOLD_FACE_CLI_RUN_H

#include "face/cli/cli.h"
#include "runtime/guardian.h"

enum on_lost { LOST_TERM, LOST_KILL, LOST_WARN };

/* In the guardian. The exit status, and it was said why; the store is main()'s to close. */
int run_guarded(struct visit *visit, struct guardian *guardian, const char *path);

/* Does a command that this one runs within hold one of its keys? Then it says so: the status. */
int nested_refuse(struct visit *visit);
/* For the runs within the command. False when memory is short. */
bool nested_tell(const struct visit *visit, const struct lh_lease *lease);

#endif
