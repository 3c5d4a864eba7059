/* SPDX-License-Identifier: Apache-2.0 */
/* See front.h. */
#include "runtime/front.h"

#include "base/check.h"
#include "io/family.h"
#include "io/host.h"
#include "io/terminal.h"

#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What we are sent is meant for the command, but for the first and the last one: those are ours. */
static const int heard[] = {SIGCHLD, SIGHUP,  SIGINT,   SIGQUIT, SIGTERM, SIGUSR1,
                            SIGUSR2, SIGALRM, SIGWINCH, SIGTSTP, SIGCONT, SIGTTOU};

static sigset_t heard_set(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof heard / sizeof heard[0]; i++)
        (void)sigaddset(&set, heard[i]);
    return set;
}

/* ---- two processes of one ---- */

static int become_guardian(struct front *front, struct guardian *guardian, pid_t front_pid)
{
    link_close(&front->link);
    guardian->front = front_pid;
    guardian->front_group = front->group;
    guardian->terminal = front->shares_terminal ? -1 : front->terminal;
    int error = guardian_init(guardian);
    return error != 0 ? error : 1;
}

static int become_front(struct front *front, struct guardian *guardian, const sigset_t *set)
{
    link_close(&guardian->link);
    front->signals = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
    front->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return front->signals >= 0 && front->timer >= 0 && family_adopt() ? 0 : -errno;
}

int front_fork(struct front *front, struct guardian *guardian)
{
    sigset_t set = heard_set();
    pid_t self = getpid();
    *front = (struct front){.alive = -1, .group = getpgrp()};
    *guardian = (struct guardian){.terminal = -1};
    /* Ignored by whoever started us, it would take our children's ends from us. */
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigprocmask(SIG_BLOCK, &set, &guardian->mask);
    front->has_children = family_has_children();
    front->terminal = terminal_open();
    front->shares_terminal = front->terminal >= 0 && terminal_is_shared();
    int error = link_open(&front->link, &guardian->link);
    if (error != 0)
        return error;
    front->guardian = fork();
    if (front->guardian == 0)
        return become_guardian(front, guardian, self);
    return front->guardian > 0 ? become_front(front, guardian, &set) : -errno;
}

/* ---- the terminal and the job ---- */

/* By whoever started us, as nohup does it. The kernel queues it all the same: it is blocked. */
static bool is_ignored(int signal)
{
    struct sigaction action;
    return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static void pass_on(const struct front *front, int signal)
{
    bool waits = atomic_load(&front->link.page->group) == 0;
    /* A command can change its mind about what it ignores; who waits for its turn does not. */
    if (waits && is_ignored(signal))
        return;
    (void)link_send(&front->link, LINK_SIGNAL, signal, /* file= */ -1);
    /* Who waits for its turn looks at the link only later. */
    if (waits)
        (void)kill(front->guardian, signal == SIGQUIT ? SIGINT : signal);
}

static void show_command(struct front *front)
{
    if (front->command <= 0 || !terminal_is_in_front(front->terminal, front->group))
        return;
    terminal_bring_to_front(front->terminal, front->command);
    front->shown = true;
}

static void hide_command(const struct front *front)
{
    if (front->command > 0 && terminal_is_in_front(front->terminal, front->command))
        terminal_bring_to_front(front->terminal, front->group);
}

static void go_on(struct front *front)
{
    if (!front->shares_terminal)
        show_command(front);
    atomic_store(&front->link.page->on_hold, false);
    pass_on(front, SIGCONT);
}

/* Stops us with our whole job, as the user's shell expects it; without a terminal there is none,
 * and others of our group are not ours to stop. Comes back when that goes on. */
static void stop_job(struct front *front, int signal)
{
    sigset_t one, before, pending;
    hide_command(front);
    (void)sigemptyset(&one);
    (void)sigaddset(&one, signal);
    (void)kill(front->terminal >= 0 ? 0 /* our group */ : getpid(), signal);
    (void)sigprocmask(SIG_UNBLOCK, &one, &before); /* here */
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    /* Where no shell could make us go on, the kernel does not stop us. */
    if (sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) != 1)
        go_on(front);
}

static void command_stopped(struct front *front, int signal)
{
    bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
    if (front->terminal < 0)
        return;
    if (wants_terminal && terminal_is_in_front(front->terminal, front->group)) {
        show_command(front);
        pass_on(front, SIGCONT);
        return;
    }
    stop_job(front, signal == SIGSTOP ? SIGTSTP : signal);
}

/* ---- what happens ---- */

static void set_timer(const struct front *front)
{
    struct itimerspec when = {0};
    int64_t at_ms = atomic_load(&front->link.page->last_moment_ms);
    if (at_ms != LINK_NEVER) {
        int64_t length_ms = at_ms - host_boot_ms();
        when.it_value.tv_sec = length_ms > 0 ? length_ms / 1000 : 0;
        when.it_value.tv_nsec = length_ms > 0 ? length_ms % 1000 * 1000000 : 1;
    }
    int result = timerfd_settime(front->timer, /* flags= */ 0, &when, NULL);
    ASSERT(result == 0);
}

static void hear_guardian(struct front *front)
{
    struct link_message message;
    int file = -1, got;
    while ((got = link_receive(&front->link, &message, &file)) > 0) {
        if (message.kind == LINK_STARTED) {
            front->command = message.value;
            front->alive = file;
            front->shown = terminal_is_in_front(front->terminal, front->command);
            set_timer(front);
        } else if (message.kind == LINK_STOPPED) {
            command_stopped(front, message.value);
        }
    }
    if (got == 0)
        link_close(&front->link);
}

static void hear_signals(struct front *front)
{
    struct signalfd_siginfo info;
    while (read(front->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        int signal = (int)info.ssi_signo;
        if (signal == SIGCONT) {
            go_on(front);
        } else if (signal == SIGTSTP && atomic_load(&front->link.page->group) == 0) {
            atomic_store(&front->link.page->on_hold, true);
            stop_job(front, SIGTSTP);
        } else if (signal != SIGCHLD && signal != SIGTTOU) {
            pass_on(front, signal);
        }
    }
}

static bool is_late(const struct front *front)
{
    uint64_t count;
    if (read(front->timer, &count, sizeof count) < 0)
        return false;
    bool late = host_boot_ms() >= atomic_load(&front->link.page->last_moment_ms);
    if (!late)
        set_timer(front); /* it was renewed */
    return late;
}

/* ---- the end ---- */

/* All that we can find; when this process had children before, only the command's group. */
static bool collect_rest(const struct front *front, pid_t group)
{
    pid_t whom = front->has_children ? -group : -1, pid;
    while ((pid = waitpid(whom, NULL, WNOHANG)) > 0) {
    }
    return pid == 0 || (front->has_children && family_group_lives(group));
}

static void kill_rest(struct front *front)
{
    const struct timespec moment = {.tv_nsec = 20000000};
    sigset_t child;
    (void)sigemptyset(&child);
    (void)sigaddset(&child, SIGCHLD);
    for (;;) {
        pid_t group = atomic_load(&front->link.page->group); /* it may just have been born */
        if (group > 0)
            (void)kill(-group, SIGKILL);
        if (!front->has_children)
            family_kill();
        if ((front->has_children && group <= 0) || !collect_rest(front, group))
            return;
        (void)sigtimedwait(&child, NULL, &moment);
    }
}

enum front_end front_attend(struct front *front, int *out_status)
{
    struct pollfd waits[] = {{.fd = front->signals, .events = POLLIN},
                             {.fd = front->timer, .events = POLLIN},
                             {.fd = front->link.file, .events = POLLIN}};
    enum front_end end = FRONT_ENDED;
    int status = 0;
    while (waitpid(front->guardian, &status, WNOHANG) == 0) {
        waits[2].fd = front->link.file;
        if (poll(waits, sizeof waits / sizeof waits[0], /* timeout= */ -1) < 0)
            continue;
        if (waits[1].revents != 0 && is_late(front)) {
            end = FRONT_LATE;
            front->killed_ms = host_boot_ms();
            (void)kill(front->guardian, SIGKILL);
            (void)waitpid(front->guardian, &status, /* options= */ 0);
            break;
        }
        hear_guardian(front);
        hear_signals(front);
    }
    if (front->link.file >= 0)
        hear_guardian(front); /* what it said last */
    if (end == FRONT_ENDED && (!WIFEXITED(status) || atomic_load(&front->link.page->group) != 0))
        end = FRONT_ALONE;
    if (end != FRONT_ENDED)
        kill_rest(front);
    *out_status = WEXITSTATUS(status);
    return end;
}

void front_done(struct front *front)
{
    int signal = atomic_load(&front->link.page->killed_by);
    hide_command(front);
    /* Others of our job, such as a script, would have got it, too. */
    if (front->shown && (signal == SIGINT || signal == SIGQUIT))
        (void)kill(/* our group */ 0, signal);
    if (front->alive >= 0)
        (void)close(front->alive);
    link_close(&front->link);
}
