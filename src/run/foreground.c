/* SPDX-License-Identifier: Apache-2.0 */
/* See foreground.h. */
#include "run/foreground.h"

#include "process/process_tree.h"
#include "process/host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Signals forwarded to the command, except the first and the last, which are for this process. */
static const int forwarded_signals[] = {SIGCHLD, SIGHUP,  SIGINT,   SIGQUIT, SIGTERM, SIGUSR1,
                                        SIGUSR2, SIGALRM, SIGWINCH, SIGTSTP, SIGCONT, SIGTTOU};

static sigset_t foreground_signal_set(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof forwarded_signals / sizeof forwarded_signals[0]; i++)
        (void)sigaddset(&set, forwarded_signals[i]);
    return set;
}

static bool is_pipe(int file)
{
    struct stat status;
    return fstat(file, &status) == 0 && S_ISFIFO(status.st_mode);
}

/* ---- fork ---- */

static int become_supervisor(struct foreground *foreground, struct supervisor *supervisor,
                             pid_t foreground_pid)
{
    channel_close(&foreground->channel);
    supervisor->foreground = foreground_pid;
    supervisor->foreground_group = foreground->group;
    supervisor->terminal = foreground->shares_terminal ? -1 : foreground->terminal;
    int error = supervisor_init(supervisor);
    return error != 0 ? error : 1;
}

static int become_foreground(struct foreground *foreground, struct supervisor *supervisor,
                             const sigset_t *set)
{
    channel_close(&supervisor->channel);
    foreground->signals = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
    foreground->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return foreground->signals >= 0 && foreground->timer >= 0 && process_tree_adopt() ? 0 : -errno;
}

int foreground_fork(struct foreground *foreground, struct supervisor *supervisor)
{
    sigset_t set = foreground_signal_set();
    pid_t self = getpid();
    *foreground = (struct foreground){.alive = -1, .group = getpgrp()};
    *supervisor = (struct supervisor){.terminal = -1};
    /* If our parent left SIGCHLD ignored, the kernel would discard our children's statuses. */
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigprocmask(SIG_BLOCK, &set, &supervisor->mask);
    foreground->has_children = process_tree_has_children();
    foreground->terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);
    /* With a pipe, other processes of the job may need the terminal. */
    foreground->shares_terminal =
        foreground->terminal >= 0 && (is_pipe(STDIN_FILENO) || is_pipe(STDOUT_FILENO));
    int error = channel_open(&foreground->channel, &supervisor->channel);
    if (error != 0)
        return error;
    foreground->supervisor = fork();
    if (foreground->supervisor == 0)
        return become_supervisor(foreground, supervisor, self);
    return foreground->supervisor > 0 ? become_foreground(foreground, supervisor, &set) : -errno;
}

/* ---- terminal and job control ---- */

/* Ignored since our start, as by nohup. The kernel still queues the signal: it is blocked. */
static bool is_ignored(int signal)
{
    struct sigaction action;
    return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static void foreground_forward_signal(const struct foreground *foreground, int signal)
{
    bool waits = atomic_load(&foreground->channel.page->group) == 0;
    /* A command may stop ignoring a signal; a supervisor that waits for a lease does not. */
    if (waits && is_ignored(signal))
        return;
    (void)channel_send(&foreground->channel, CHANNEL_SIGNAL, signal, /* file= */ -1);
    /* A supervisor that waits for a lease does not read the channel yet. */
    if (waits)
        (void)kill(foreground->supervisor, signal == SIGQUIT ? SIGINT : signal);
}

static bool has_terminal(const struct foreground *foreground, pid_t group)
{
    return foreground->terminal >= 0 && tcgetpgrp(foreground->terminal) == group;
}

/* We may be in the background: SIGTTOU is blocked. */
static void foreground_give_terminal(struct foreground *foreground)
{
    if (foreground->command <= 0 || !has_terminal(foreground, foreground->group))
        return;
    (void)tcsetpgrp(foreground->terminal, foreground->command);
    foreground->had_terminal = true;
}

static void foreground_take_terminal(const struct foreground *foreground)
{
    if (foreground->command > 0 && has_terminal(foreground, foreground->command))
        (void)tcsetpgrp(foreground->terminal, foreground->group);
}

static void foreground_continue(struct foreground *foreground)
{
    if (!foreground->shares_terminal)
        foreground_give_terminal(foreground);
    atomic_store(&foreground->channel.page->paused, false);
    foreground_forward_signal(foreground, SIGCONT);
}

/* Stops the whole job, as the shell expects; without a terminal there is no job, and only this
 * process stops. Returns after SIGCONT. */
static void stop_job(struct foreground *foreground, int signal)
{
    sigset_t one, before, pending;
    foreground_take_terminal(foreground);
    (void)sigemptyset(&one);
    (void)sigaddset(&one, signal);
    (void)kill(foreground->terminal >= 0 ? 0 /* our group */ : getpid(), signal);
    (void)sigprocmask(SIG_UNBLOCK, &one, &before); /* stops here */
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    /* The kernel does not stop an orphaned process group, which no shell could continue. */
    if (sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) != 1)
        foreground_continue(foreground);
}

static void on_command_stopped(struct foreground *foreground, int signal)
{
    bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
    if (foreground->terminal < 0)
        return;
    if (wants_terminal && has_terminal(foreground, foreground->group)) {
        foreground_give_terminal(foreground);
        foreground_forward_signal(foreground, SIGCONT);
        return;
    }
    stop_job(foreground, signal == SIGSTOP ? SIGTSTP : signal);
}

/* ---- events ---- */

static void foreground_set_timer(const struct foreground *foreground)
{
    host_set_timer(foreground->timer, atomic_load(&foreground->channel.page->kill_deadline_ms));
}

static void receive_from_supervisor(struct foreground *foreground)
{
    struct channel_message message;
    int file = -1, got;
    while ((got = channel_receive(&foreground->channel, &message, &file)) > 0) {
        if (message.kind == CHANNEL_STARTING) {
            if (foreground->alive >= 0)
                (void)close(foreground->alive); /* of the command before */
            foreground->alive = file;
            foreground_set_timer(foreground);
        } else if (message.kind == CHANNEL_STARTED) {
            foreground->command = message.value;
            foreground->had_terminal = has_terminal(foreground, foreground->command);
        } else if (message.kind == CHANNEL_STOPPED) {
            on_command_stopped(foreground, message.value);
        } else if (message.kind == CHANNEL_ENDED) {
            foreground_take_terminal(foreground);
            foreground->command = 0;
        }
    }
    if (got == 0)
        channel_close(&foreground->channel);
}

static void foreground_read_signals(struct foreground *foreground)
{
    struct signalfd_siginfo info;
    while (read(foreground->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        int signal = (int)info.ssi_signo;
        if (signal == SIGCONT) {
            foreground_continue(foreground);
        } else if (signal == SIGTSTP && atomic_load(&foreground->channel.page->group) == 0) {
            atomic_store(&foreground->channel.page->paused, true);
            stop_job(foreground, SIGTSTP);
        } else if (signal != SIGCHLD && signal != SIGTTOU) {
            foreground_forward_signal(foreground, signal);
        }
    }
}

static bool is_late(const struct foreground *foreground)
{
    uint64_t count;
    if (read(foreground->timer, &count, sizeof count) < 0)
        return false;
    bool late = host_boot_ms() >= atomic_load(&foreground->channel.page->kill_deadline_ms);
    if (!late)
        foreground_set_timer(foreground); /* the lease was renewed */
    return late;
}

/* ---- the end ---- */

/* Reaps all children; only the command's group if we had others before. True if any is left. */
static bool reap_rest(const struct foreground *foreground, pid_t group)
{
    pid_t whom = foreground->has_children ? -group : -1, pid;
    while ((pid = waitpid(whom, NULL, WNOHANG)) > 0) {
    }
    return pid == 0 || (foreground->has_children && process_group_alive(group));
}

static void kill_rest(struct foreground *foreground)
{
    const struct timespec moment = {.tv_nsec = 20000000};
    sigset_t child;
    (void)sigemptyset(&child);
    (void)sigaddset(&child, SIGCHLD);
    for (;;) {
        pid_t group = atomic_load(&foreground->channel.page->group); /* it may have just started */
        if (group > 0)
            (void)kill(-group, SIGKILL);
        if (!foreground->has_children)
            process_tree_kill();
        if ((foreground->has_children && group <= 0) || !reap_rest(foreground, group))
            return;
        (void)sigtimedwait(&child, NULL, &moment);
    }
}

enum foreground_end foreground_wait(struct foreground *foreground, int *out_status)
{
    struct pollfd waits[] = {{.fd = foreground->signals, .events = POLLIN},
                             {.fd = foreground->timer, .events = POLLIN},
                             {.fd = foreground->channel.file, .events = POLLIN}};
    enum foreground_end end = FOREGROUND_ENDED;
    int status = 0;
    while (waitpid(foreground->supervisor, &status, WNOHANG) == 0) {
        waits[2].fd = foreground->channel.file;
        if (poll(waits, sizeof waits / sizeof waits[0], /* timeout= */ -1) < 0)
            continue;
        if (waits[1].revents != 0 && is_late(foreground)) {
            end = FOREGROUND_LATE;
            foreground->killed_ms = host_boot_ms();
            (void)kill(foreground->supervisor, SIGKILL);
            (void)waitpid(foreground->supervisor, &status, /* options= */ 0);
            break;
        }
        receive_from_supervisor(foreground);
        foreground_read_signals(foreground);
    }
    if (foreground->channel.file >= 0)
        receive_from_supervisor(foreground); /* its last messages */
    if (end == FOREGROUND_ENDED &&
        (!WIFEXITED(status) || atomic_load(&foreground->channel.page->group) != 0))
        end = FOREGROUND_ORPHANED;
    if (end != FOREGROUND_ENDED)
        kill_rest(foreground);
    *out_status = WEXITSTATUS(status);
    return end;
}

void foreground_done(struct foreground *foreground)
{
    int signal = atomic_load(&foreground->channel.page->killed_by);
    foreground_take_terminal(foreground);
    /* Without a separate group, the rest of the job, such as a script, would have received it. */
    if (foreground->had_terminal && (signal == SIGINT || signal == SIGQUIT))
        (void)kill(/* our group */ 0, signal);
    if (foreground->alive >= 0)
        (void)close(foreground->alive);
    channel_close(&foreground->channel);
}
