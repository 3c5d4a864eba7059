/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that work under a lease: `run` and `once ID -- CMD` are two ways of it. run.c checks
 * what was asked for and stays as the process that the user started; guarded.c goes on in the
 * guardian, has the way take what is to be held, works the command, and has the way end it;
 * nested.c knows what is held above.
 */
#ifndef LEASEHOLD_FACE_CLI_RUN_H
#define LEASEHOLD_FACE_CLI_RUN_H

#include "face/cli/cli.h"
#include "runtime/guardian.h"

enum on_lost { LOST_TERM, LOST_KILL, LOST_WARN };
enum { LIST_SIZE = LH_KEYS_MAX * LH_KEY_SIZE };

/* What the guardian does. */
struct work {
    struct visit *visit;
    struct guardian *guardian;
    struct lh_lease *lease;
    int told_by;        /* the end of the command's pipe that closes when the lock is lost */
    int64_t kill_at_ms; /* all must be dead soon after, or the next one is let in beside it */
    int64_t began_ms;
    bool lost, lost_running, acted;
    struct lh_report loss;
    struct tap tap; /* of a way that taps */
    char keys[LIST_SIZE], tokens[LH_KEYS_MAX * 21];
};

struct way {
    /* Takes it, into work->lease; NULL there: the status says why, and it was said. A loss is told
     * to work_lost() with the work. */
    int (*take)(struct work *work);
    /* The command has ended with that status: gives back what is held, and tells. The status. */
    int (*finish)(struct work *work, int status);
    bool taps; /* its last line of output is wanted */
};

/* In the process that the user started; visit->words are the keys, in order. The exit status, and
 * it was said why. */
int run_command(struct visit *visit, const struct way *way);
/* The same in the guardian; the store is main()'s to close. */
int run_guarded(struct visit *visit, struct guardian *guardian, const char *path,
                const struct way *way);
void work_lost(void *user, struct lh_lease *lease, const struct lh_report *report);

/* Does a command that this one runs within hold one of its keys? Then it says so: the status. */
int nested_refuse(struct visit *visit);
/* For the runs within the command. False when memory is short. */
bool nested_tell(const struct visit *visit, const struct lh_lease *lease);

#endif
