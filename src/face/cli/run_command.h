/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that run under a lease: `run`, `once ID -- CMD` and `claim` are its modes. cmd_run.c
 * checks the arguments and remains the foreground process, which the user started. run_supervised.c
 * runs in the supervisor: it acquires through the mode, runs the command and finishes through the
 * mode. nested.c detects keys that an enclosing run holds.
 */
#ifndef LEASEHOLD_FACE_CLI_RUN_COMMAND_H
#define LEASEHOLD_FACE_CLI_RUN_COMMAND_H

#include "face/cli/cli.h"
#include "run/supervisor.h"

enum on_lost { LOST_TERM, LOST_KILL, LOST_WARN };
enum { LIST_SIZE = LH_KEYS_MAX * LH_KEY_SIZE };

/* The state of the supervisor. */
struct run_state {
    struct context *context;
    struct supervisor *supervisor;
    struct lh_lease *lease;
    int lost_pipe;      /* write end of the command's pipe, closed when the lock is lost */
    int64_t kill_at_ms; /* all processes are killed then, before the lease can expire */
    int64_t began_ms;
    bool lost, lost_running, loss_handled;
    bool timed_out; /* ended by --max-hold */
    struct lh_report loss;
    struct tee tee; /* of a mode with tees_output */
    char keys[LIST_SIZE], tokens[LH_KEYS_MAX * 21];
};

struct run_mode {
    /* Acquires run->lease, with run_on_lost() as on_lost. If it stays NULL: the exit status, after
     * printing why. */
    int (*acquire)(struct run_state *run);
    /* Releases run->lease after the command ended with `status`, and reports. The exit status. */
    int (*finish)(struct run_state *run, int status);
    bool tees_output; /* the mode reads the last line of output */
    /* True: acquire and run again, after the command ended with `status`. NULL: run once. */
    bool (*repeats)(struct run_state *run, int status);
};

/* Called in the process that the user started; context->args are the sorted keys, or none if the
 * mode finds its key. Returns the exit
 * status, after printing any error. */
int run_command(struct context *context, const struct run_mode *mode);
/* Continues in the supervisor. main() closes the store. */
int run_supervised(struct context *context, struct supervisor *supervisor, const char *path,
                   const struct run_mode *mode);
void run_on_lost(void *user, struct lh_lease *lease, const struct lh_report *report);

/* Sets the holder name to host:PID, with the pid of the process that users know, unless a name is
 * given. `buffer` must outlive the context. */
void run_set_holder(struct context *context, pid_t pid, char *buffer, size_t size);
/* Makes context->program of -c. EXIT_DONE, or a usage error that was printed. */
int run_use_shell(struct context *context);
extern const struct option option_on_lost, option_kill_grace;
/* The choices of --on-lost, by enum on_lost. */
extern const char *const run_lost_names[];

/* acquire_pid.c: leasehold acquire --pid. */
int acquire_pid(struct context *context);

/* EXIT_DONE, or the status of busy, after printing it, if an enclosing run holds any key. */
int nested_check(struct context *context);
/* Exports the held keys to runs within the command. False if out of memory. */
bool nested_export(const struct context *context, const struct lh_lease *lease);

#endif
