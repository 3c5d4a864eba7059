/* SPDX-License-Identifier: Apache-2.0 */
/* See supervisor.h. */
#include "run/supervisor.h"

#include "base/check.h"
#include "process/process_tree.h"
#include "process/host.h"

#include <errno.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Before the command starts, the foreground process forwards signals by kill(). The wait for a
 * lease handles them, or this file does. */
static const int end_signals[] = {SIGHUP, SIGINT, SIGTERM};
enum { END_SIGNALS = sizeof end_signals / sizeof end_signals[0] };

static volatile sig_atomic_t caught_signal;

static void on_end_signal(int signal)
{
    caught_signal = signal;
}

static void supervisor_set_signals(sigset_t *blocked)
{
    struct sigaction before, action = {.sa_handler = on_end_signal};
    (void)sigfillset(blocked);
    for (size_t i = 0; i < END_SIGNALS; i++) {
        (void)sigdelset(blocked, end_signals[i]);
        (void)sigaction(end_signals[i], NULL, &before);
        if (before.sa_handler != SIG_IGN)
            (void)sigaction(end_signals[i], &action, NULL);
    }
    (void)sigprocmask(SIG_SETMASK, blocked, NULL);
}

int64_t supervisor_now_ms(void)
{
    return host_boot_ms();
}

int supervisor_init(struct supervisor *supervisor)
{
    sigset_t blocked, child;
    supervisor_set_signals(&blocked);
    (void)sigemptyset(&child);
    (void)sigaddset(&child, SIGCHLD);
    supervisor->timer_ms = CHILD_NEVER;
    supervisor->wake_at_ms = CHILD_NEVER;
    supervisor->timer = -1;
    supervisor->signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (supervisor->signals < 0)
        return -errno;
    /* A separate group: signals to the user's job must not stop or kill us. */
    if (setpgid(/* pid= */ 0, /* pgid= */ 0) == 0 && process_tree_adopt() &&
        prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == supervisor->foreground)
        return 0;
    int error = errno != 0 ? errno : EOWNERDEAD;
    (void)close(supervisor->signals);
    return -error;
}

static void supervisor_forward_signal(struct supervisor *supervisor, int signal)
{
    if (supervisor->started && !supervisor_command_ended(supervisor)) {
        supervisor->continued = signal == SIGCONT;
        child_signal(&supervisor->child, signal);
    } else if (signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGTERM) {
        supervisor->end_signal = signal;
    }
}

static void receive_from_foreground(struct supervisor *supervisor)
{
    struct channel_message message;
    int nothing = -1, got;
    while ((got = channel_receive(&supervisor->channel, &message, &nothing)) > 0)
        if (message.kind == CHANNEL_SIGNAL)
            supervisor_forward_signal(supervisor, message.value);
    if (got != 0)
        return;
    supervisor->foreground_is_gone = true;
    channel_close(&supervisor->channel);
    if (supervisor->started)
        child_kill(&supervisor->child, host_boot_ms());
}

bool supervisor_is_wanted(struct supervisor *supervisor)
{
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    receive_from_foreground(supervisor);
    if (caught_signal != 0)
        supervisor->end_signal = caught_signal;
    return supervisor->end_signal == 0 && !supervisor->foreground_is_gone;
}

int supervisor_start(struct supervisor *supervisor, const char *path, char *const *argv,
                     char *const *environment, int alive)
{
    struct channel_page *page = supervisor->channel.page;
    struct program program = {.path = path,
                              .argv = argv,
                              .environment = environment,
                              .out = supervisor->tee != NULL ? supervisor->tee->into : 0,
                              .mask = &supervisor->mask,
                              .terminal = supervisor->terminal,
                              .foreground_from =
                                  supervisor->terminal >= 0 ? supervisor->foreground_group : -1,
                              .group = &page->group};
    /* The first step of the command may stop this process: the foreground must know before. */
    (void)channel_send(&supervisor->channel, CHANNEL_STARTING, /* value= */ 0, alive);
    int error = child_spawn(&supervisor->child, &program);
    if (supervisor->tee != NULL)
        tee_close_pipe(supervisor->tee);
    if (error != 0) {
        atomic_store(&page->group, 0);
        return error;
    }
    supervisor->started = true;
    (void)channel_send(&supervisor->channel, CHANNEL_STARTED, supervisor->child.group,
                       /* file= */ -1);
    return 0;
}

void supervisor_reset(struct supervisor *supervisor)
{
    struct channel_page *page = supervisor->channel.page;
    if (!supervisor->started)
        return;
    for (size_t i = 0; i < CHANNEL_TOKENS_MAX; i++)
        atomic_store(&page->tokens[i], 0);
    atomic_store(&page->killed_by, 0);
    supervisor->child = (struct child){.due_ms = CHILD_NEVER};
    supervisor->started = false;
    supervisor->wake_at_ms = CHILD_NEVER;
    (void)channel_send(&supervisor->channel, CHANNEL_ENDED, /* value= */ 0, /* file= */ -1);
}

bool supervisor_is_paused(const struct supervisor *supervisor)
{
    return atomic_load(&supervisor->channel.page->paused) && !supervisor->foreground_is_gone;
}

void supervisor_set_deadline(const struct supervisor *supervisor, int64_t kill_deadline_ms,
                             int64_t lease_ends_ms)
{
    atomic_store(&supervisor->channel.page->lease_ends_ms, lease_ends_ms);
    atomic_store(&supervisor->channel.page->kill_deadline_ms, kill_deadline_ms);
}

bool supervisor_command_ended(const struct supervisor *supervisor)
{
    return supervisor->started && supervisor->child.state == CHILD_DONE;
}

bool supervisor_is_done(const struct supervisor *supervisor)
{
    bool waited_for =
        supervisor->tee != NULL && supervisor->end_signal == 0 && !supervisor->foreground_is_gone;
    return supervisor_command_ended(supervisor) && (!waited_for || tee_is_done(supervisor->tee));
}

/* The foreground process stops and continues with the command, whatever the cause. */
static void report_stop(struct supervisor *supervisor, int before)
{
    const struct child *child = &supervisor->child;
    if (supervisor->foreground_is_gone || child->stopped_by == before)
        return;
    if (child->stopped_by != 0)
        (void)channel_send(&supervisor->channel, CHANNEL_STOPPED, child->stopped_by,
                           /* file= */ -1);
    else if (!supervisor->continued)
        (void)kill(supervisor->foreground, SIGCONT);
    supervisor->continued = false;
}

static void supervisor_check_child(struct supervisor *supervisor)
{
    struct channel_page *page = supervisor->channel.page;
    struct child *child = &supervisor->child;
    struct signalfd_siginfo info;
    int64_t now_ms = host_boot_ms();
    while (read(supervisor->signals, &info, sizeof info) > 0) {
    }
    if (!supervisor->started)
        return;
    int before = child->stopped_by;
    child_reap(child, now_ms);
    child_tick(child, now_ms);
    report_stop(supervisor, before);
    if (child->state != CHILD_DONE)
        return;
    if (supervisor->tee != NULL)
        tee_stop(supervisor->tee);
    if (WIFSIGNALED(child->wait_status))
        atomic_store(&page->killed_by, WTERMSIG(child->wait_status));
    atomic_store(&page->kill_deadline_ms, CHANNEL_NEVER);
    atomic_store(&page->group, 0);
}

static void supervisor_set_timer(struct supervisor *supervisor)
{
    int64_t due_ms = supervisor->started ? supervisor->child.due_ms : CHILD_NEVER;
    if (supervisor->wake_at_ms < due_ms)
        due_ms = supervisor->wake_at_ms;
    if (due_ms == supervisor->timer_ms)
        return;
    /* Created on demand: most commands never need it. CLOCK_BOOTTIME includes suspend. */
    if (supervisor->timer < 0)
        supervisor->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    ASSERT(supervisor->timer >= 0);
    host_set_timer(supervisor->timer, due_ms);
    supervisor->timer_ms = due_ms;
}

bool supervisor_wait(struct supervisor *supervisor, int also)
{
    supervisor_set_timer(supervisor);
    bool awaits_tee = supervisor->tee != NULL && supervisor_command_ended(supervisor);
    struct pollfd waits[] = {{.fd = supervisor->signals, .events = POLLIN},
                             {.fd = supervisor->timer, .events = POLLIN},
                             {.fd = supervisor->channel.file, .events = POLLIN},
                             {.fd = also, .events = POLLIN},
                             {.fd = awaits_tee ? supervisor->tee->over : -1, .events = POLLIN}};
    if (poll(waits, sizeof waits / sizeof waits[0], /* timeout= */ -1) < 0)
        return false;
    if (waits[1].revents != 0)
        supervisor->timer_ms = 0; /* it expired and must be set again */
    if (waits[2].revents != 0)
        receive_from_foreground(supervisor);
    if (waits[0].revents != 0 || waits[1].revents != 0 || waits[2].revents != 0)
        supervisor_check_child(supervisor);
    return waits[3].revents != 0;
}
