/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that work under a lease: `run` and `once ID -- CMD` are two ways of it. cmd_run.c checks
 * what was asked for and stays as the process that the user started; run_supervised.c goes on in
 * the guardian, has the way take what is to be held, works the command, and has the way end it;
 * nested.c knows what is held above.
 */
#ifndef LEASEHOLD_FACE_CLI_RUN_COMMAND_H
#define LEASEHOLD_FACE_CLI_RUN_COMMAND_H

#include "face/cli/cli.h"
#include "run/supervisor.h"

enum on_lost { LOST_TERM, LOST_KILL, LOST_WARN };
enum { LIST_SIZE = LH_KEYS_MAX * LH_KEY_SIZE };

/* What the guardian does. */
struct run_state {
    struct context *context;
    struct supervisor *supervisor;
    struct lh_lease *lease;
    int lost_pipe;      /* the end of the command's pipe that closes when the lock is lost */
    int64_t kill_at_ms; /* all must be dead soon after, or the next one is let in beside it */
    int64_t began_ms;
    bool lost, lost_running, loss_handled;
    struct lh_report loss;
    struct tee tee; /* of a way that taps */
    char keys[LIST_SIZE], tokens[LH_KEYS_MAX * 21];
};

struct run_mode {
    /* Takes it, into work->lease; NULL there: the status says why, and it was said. A loss is told
     * to run_on_lost() with the work. */
    int (*acquire)(struct run_state *run);
    /* The command has ended with that status: gives back what is held, and tells. The status. */
    int (*finish)(struct run_state *run, int status);
    bool tees_output; /* its last line of output is wanted */
};

/* In the process that the user started; visit->words are the keys, in order. The exit status, and
 * it was said why. */
int run_command(struct context *context, const struct run_mode *mode);
/* The same in the guardian; the store is main()'s to close. */
int run_supervised(struct context *context, struct supervisor *supervisor, const char *path,
                   const struct run_mode *mode);
void run_on_lost(void *user, struct lh_lease *lease, const struct lh_report *report);

/* Does a command that this one runs within hold one of its keys? Then it says so: the status. */
int nested_check(struct context *context);
/* For the runs within the command. False when out of memory. */
bool nested_export(const struct context *context, const struct lh_lease *lease);

#endif
