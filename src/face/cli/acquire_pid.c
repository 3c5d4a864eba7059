/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold acquire --pid: a process in the background holds the keys while another process lives.
 * The foreground process waits for the grant and exits; the background process acquires, prints the
 * tokens, detaches, and renews until the other process has ended or the lock is lost.
 */
#include "face/cli/run_command.h"
#include "face/cli/signals.h"

#include "run/background.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

struct pid_holder {
    struct context *context;
    struct background *background;
    struct lh_lease *lease;
    int64_t deadline_ms; /* when the lease is lost unless it is renewed */
    bool lost;
    struct lh_report loss;
};

/* ---- in the foreground ---- */

static int acquire_pid_foreground(const struct context *context,
                                  const struct background *background)
{
    struct signals signals;
    int forwarded = 0, status = 0;
    signals_begin(&signals);
    while (!signals_wait_also(&signals, NULL, background->channel, /* length_ms= */ -1)) {
        int number = signals_consume();
        if (number != 0)
            (void)kill(background->process, number);
        forwarded = number != 0 ? number : forwarded;
    }
    signals_end(&signals);
    bool granted = background_succeeded(background, &status);
    if (forwarded != 0)
        return EXIT_SIGNAL + forwarded; /* it gave the keys back */
    if (granted)
        return EXIT_DONE;
    if (!WIFEXITED(status))
        return output_error(context, LH_FAILED,
                            "the background process was killed; nothing is held, or only until "
                            "its lease ends");
    status = WEXITSTATUS(status);
    if (status != EXIT_DONE && status != BACKGROUND_LATE)
        return status;
    return output_error(context, LH_UNAVAILABLE,
                        "process %lld ended before the store replied; nothing is held, or only "
                        "until its lease ends",
                        (long long)context->settings.pid);
}

/* ---- in the background ---- */

static void pid_on_lost(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct pid_holder *holder = user;
    (void)lease;
    holder->lost = true;
    holder->loss = *report;
    holder->loss.size = sizeof holder->loss;
}

/* True if the lock was lost against the will of the target, which may have released it by its
 * token. A break --now looks the same in the store as such a release. */
static bool pid_lost_by_force(const struct pid_holder *holder)
{
    struct lh_view view = LH_VIEW_INIT;
    return supervisor_now_ms() >= holder->deadline_ms ||
           lh_status(holder->context->client, holder->loss.key, &view, NULL) != LH_OK ||
           view.broken;
}

static void pid_handle_loss(struct pid_holder *holder)
{
    struct context *context = holder->context;
    int64_t how = context->settings.on_lost;
    if (how != LOST_WARN && pid_lost_by_force(holder))
        background_signal_target(holder->background, how == LOST_KILL ? SIGKILL : SIGTERM);
    (void)output_report(context, holder->loss.key, &holder->loss); /* for the status file */
    (void)lh_abandon(&holder->lease, NULL);
}

/* Renews until the target has ended, a signal arrives, or the lock is lost. */
static void pid_hold(struct pid_holder *holder, const struct signals *signals)
{
    struct lh_client *client = holder->context->client;
    bool ended = false;
    while (!ended && !holder->lost && signals_consume() == 0) {
        int64_t left_ms = lh_remaining_ms(holder->lease);
        if (left_ms > 0)
            holder->deadline_ms = supervisor_now_ms() + left_ms;
        ended = signals_wait_also(signals, client, holder->background->target, -1);
        (void)lh_step(client);
    }
    if (holder->lost)
        pid_handle_loss(holder);
    else
        (void)lh_release(&holder->lease, NULL);
}

static int pid_acquire(struct pid_holder *holder, const struct signals *signals)
{
    struct context *context = holder->context;
    struct lh_acquire_options options;
    acquire_fill_options(context, &options);
    options.on_lost = pid_on_lost;
    options.user = holder;
    int status = acquire_keys(context, context->args, context->arg_count, &options, &holder->lease);
    if (status == EXIT_DONE)
        status = output_grants(context, holder->lease);
    if (status == EXIT_DONE && background_detach(holder->background))
        pid_hold(holder, signals);
    if (holder->lease != NULL)
        (void)lh_abandon(&holder->lease, NULL);
    return status;
}

static int acquire_pid_background(struct context *context, struct background *background)
{
    static struct pid_holder holder;
    struct signals signals;
    int error = background_limit(background);
    if (error != 0)
        return output_error(context, LH_FAILED, "cannot start a thread: %s", strerror(-error));
    context->cancel_fd = background->target;
    (void)snprintf(context->cancel_cause, sizeof context->cancel_cause, "process %lld has ended",
                   (long long)context->settings.pid);
    int status = context_open_store_to_acquire(context);
    if (status != EXIT_DONE)
        return status;
    holder.context = context;
    holder.background = background;
    /* From here on a signal gives the keys back first, and a second one changes nothing. */
    signals_begin(&signals);
    return pid_acquire(&holder, &signals);
}

/* ---- the start ---- */

static int pid_refuse(const struct context *context, int error)
{
    long pid = (long)context->settings.pid;
    switch (error) {
    case -ESRCH:
        return usage_error(context,
                           "--pid: there is no process %ld, or it has ended; no lock was "
                           "acquired",
                           pid);
    case -EINVAL: /* older kernels … */
    case -ENOENT: /* … and newer ones */
        return usage_error(context, "--pid: %ld is a thread, not a process; no lock was acquired",
                           pid);
    default:
        return output_error(context, LH_FAILED, "cannot open process %ld: %s", pid,
                            strerror(-error));
    }
}

int acquire_pid(struct context *context)
{
    static struct background background;
    char holder[LH_HOLDER_SIZE];
    int error = background_open(&background, (pid_t)context->settings.pid);
    if (error != 0)
        return pid_refuse(context, error);
    int status = context_prepare_store(context);
    if (status != EXIT_DONE)
        return status;
    run_set_holder(context, (pid_t)context->settings.pid, holder, sizeof holder);
    int role = background_fork(&background);
    if (role < 0)
        return output_error(context, LH_FAILED, "cannot fork the background process: %s",
                            strerror(-role));
    return role == 0 ? acquire_pid_foreground(context, &background)
                     : acquire_pid_background(context, &background);
}
