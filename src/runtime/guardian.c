/* SPDX-License-Identifier: Apache-2.0 */
/* See guardian.h. */
#include "runtime/guardian.h"

#include "base/check.h"
#include "io/family.h"
#include "io/host.h"

#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

int guardian_init(struct guardian *guardian)
{
    sigset_t all, child;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    (void)sigemptyset(&child);
    (void)sigaddset(&child, SIGCHLD);
    guardian->timer_ms = COMMAND_NEVER;
    guardian->timer = -1;
    guardian->signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (guardian->signals < 0)
        return -errno;
    /* A group of its own: who stops or kills the user's job does not mean us. */
    if (setpgid(/* pid= */ 0, /* pgid= */ 0) == 0 && family_adopt())
        return 0;
    int error = errno;
    (void)close(guardian->signals);
    return -error;
}

int guardian_start(struct guardian *guardian, const char *path, char *const *argv,
                   char *const *environment, int alive)
{
    struct link_page *page = guardian->link.page;
    struct program program = {.path = path,
                              .argv = argv,
                              .environment = environment,
                              .mask = &guardian->mask,
                              .terminal = guardian->terminal,
                              .in_front_of = guardian->terminal >= 0 ? guardian->front_group : -1,
                              .group = &page->group};
    int error = command_start(&guardian->command, &program);
    if (error != 0) {
        atomic_store(&page->group, 0);
        return error;
    }
    guardian->started = true;
    (void)link_send(&guardian->link, LINK_STARTED, guardian->command.group, alive);
    return 0;
}

bool guardian_is_on_hold(const struct guardian *guardian)
{
    return atomic_load(&guardian->link.page->on_hold) && !guardian->front_is_gone;
}

void guardian_promise(const struct guardian *guardian, int64_t last_moment_ms)
{
    atomic_store(&guardian->link.page->last_moment_ms, last_moment_ms);
}

bool guardian_is_over(const struct guardian *guardian)
{
    return guardian->started && guardian->command.state == COMMAND_OVER;
}

static void pass_on(struct guardian *guardian, int signal)
{
    if (guardian->started) {
        guardian->continued = signal == SIGCONT;
        command_pass(&guardian->command, signal);
    } else if (signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGTERM) {
        guardian->end_signal = signal;
    }
}

static void hear_front(struct guardian *guardian)
{
    struct link_message message;
    int nothing = -1, got;
    while ((got = link_receive(&guardian->link, &message, &nothing)) > 0)
        if (message.kind == LINK_SIGNAL)
            pass_on(guardian, message.value);
    if (got != 0)
        return;
    guardian->front_is_gone = true;
    link_close(&guardian->link);
    if (guardian->started)
        command_kill(&guardian->command, host_boot_ms());
}

/* The front stops itself and goes on together with the command, whoever made it do so. */
static void tell_stop(struct guardian *guardian, int before)
{
    const struct command *command = &guardian->command;
    if (guardian->front_is_gone || command->stopped_by == before)
        return;
    if (command->stopped_by != 0)
        (void)link_send(&guardian->link, LINK_STOPPED, command->stopped_by, /* file= */ -1);
    else if (!guardian->continued)
        (void)kill(guardian->front, SIGCONT);
    guardian->continued = false;
}

static void look(struct guardian *guardian)
{
    struct link_page *page = guardian->link.page;
    struct command *command = &guardian->command;
    struct signalfd_siginfo info;
    int64_t now_ms = host_boot_ms();
    while (read(guardian->signals, &info, sizeof info) > 0) {
    }
    if (!guardian->started)
        return;
    int before = command->stopped_by;
    command_look(command, now_ms);
    command_tick(command, now_ms);
    tell_stop(guardian, before);
    if (command->state != COMMAND_OVER)
        return;
    if (WIFSIGNALED(command->wait_status))
        atomic_store(&page->killed_by, WTERMSIG(command->wait_status));
    atomic_store(&page->last_moment_ms, LINK_NEVER);
    atomic_store(&page->group, 0);
}

static void set_timer(struct guardian *guardian)
{
    int64_t due_ms = guardian->started ? guardian->command.due_ms : COMMAND_NEVER;
    if (due_ms == guardian->timer_ms)
        return;
    /* Most commands never need it. On a clock that also runs in suspend. */
    if (guardian->timer < 0)
        guardian->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    ASSERT(guardian->timer >= 0);
    struct itimerspec when = {0};
    if (due_ms != COMMAND_NEVER) {
        int64_t length_ms = due_ms - host_boot_ms();
        when.it_value.tv_sec = length_ms > 0 ? length_ms / 1000 : 0;
        when.it_value.tv_nsec = length_ms > 0 ? length_ms % 1000 * 1000000 : 1;
    }
    int result = timerfd_settime(guardian->timer, /* flags= */ 0, &when, NULL);
    ASSERT(result == 0);
    guardian->timer_ms = due_ms;
}

void guardian_wait(struct guardian *guardian, int also)
{
    if (guardian_is_over(guardian))
        return;
    set_timer(guardian);
    struct pollfd waits[] = {{.fd = guardian->signals, .events = POLLIN},
                             {.fd = guardian->timer, .events = POLLIN},
                             {.fd = guardian->link.file, .events = POLLIN},
                             {.fd = also, .events = POLLIN}};
    if (poll(waits, sizeof waits / sizeof waits[0], /* timeout= */ -1) < 0)
        return;
    if (waits[1].revents != 0)
        guardian->timer_ms = 0; /* it has gone off, and is set anew */
    if (waits[2].revents != 0)
        hear_front(guardian);
    if (waits[0].revents != 0 || waits[1].revents != 0 || waits[2].revents != 0)
        look(guardian);
}
