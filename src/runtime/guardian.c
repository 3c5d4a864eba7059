/* SPDX-License-Identifier: Apache-2.0 */
/* See guardian.h. */
#include "runtime/guardian.h"

#include "base/check.h"
#include "io/family.h"
#include "io/host.h"

#include <errno.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Before the command is started, the front's signals come to us as such: whoever waits for a lock
 * hears them, or this does. */
static const int end_signals[] = {SIGHUP, SIGINT, SIGTERM};
enum { END_SIGNALS = sizeof end_signals / sizeof end_signals[0] };

static volatile sig_atomic_t heard;

static void hear(int signal)
{
    heard = signal;
}

static void set_signals(sigset_t *blocked)
{
    struct sigaction before, action = {.sa_handler = hear};
    (void)sigfillset(blocked);
    for (size_t i = 0; i < END_SIGNALS; i++) {
        (void)sigdelset(blocked, end_signals[i]);
        (void)sigaction(end_signals[i], NULL, &before);
        if (before.sa_handler != SIG_IGN)
            (void)sigaction(end_signals[i], &action, NULL);
    }
    (void)sigprocmask(SIG_SETMASK, blocked, NULL);
}

int guardian_init(struct guardian *guardian)
{
    sigset_t blocked, child;
    set_signals(&blocked);
    (void)sigemptyset(&child);
    (void)sigaddset(&child, SIGCHLD);
    guardian->timer_ms = JOB_NEVER;
    guardian->timer = -1;
    guardian->signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (guardian->signals < 0)
        return -errno;
    /* A group of its own: who stops or kills the user's job does not mean us. */
    if (setpgid(/* pid= */ 0, /* pgid= */ 0) == 0 && family_adopt() &&
        prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == guardian->front)
        return 0;
    int error = errno != 0 ? errno : EOWNERDEAD;
    (void)close(guardian->signals);
    return -error;
}

static void pass_on(struct guardian *guardian, int signal)
{
    if (guardian->started && !guardian_has_ended(guardian)) {
        guardian->continued = signal == SIGCONT;
        job_pass(&guardian->job, signal);
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
        job_kill(&guardian->job, host_boot_ms());
}

bool guardian_is_wanted(struct guardian *guardian)
{
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    hear_front(guardian);
    if (heard != 0)
        guardian->end_signal = heard;
    return guardian->end_signal == 0 && !guardian->front_is_gone;
}

int guardian_start(struct guardian *guardian, const char *path, char *const *argv,
                   char *const *environment, int alive)
{
    struct link_page *page = guardian->link.page;
    struct program program = {.path = path,
                              .argv = argv,
                              .environment = environment,
                              .out = guardian->tap != NULL ? guardian->tap->into : 0,
                              .mask = &guardian->mask,
                              .terminal = guardian->terminal,
                              .in_front_of = guardian->terminal >= 0 ? guardian->front_group : -1,
                              .group = &page->group};
    int error = job_start(&guardian->job, &program);
    if (guardian->tap != NULL)
        tap_let_go(guardian->tap);
    if (error != 0) {
        atomic_store(&page->group, 0);
        return error;
    }
    guardian->started = true;
    (void)link_send(&guardian->link, LINK_STARTED, guardian->job.group, alive);
    return 0;
}

bool guardian_is_on_hold(const struct guardian *guardian)
{
    return atomic_load(&guardian->link.page->on_hold) && !guardian->front_is_gone;
}

void guardian_promise(const struct guardian *guardian, int64_t last_moment_ms,
                      int64_t lease_ends_ms)
{
    atomic_store(&guardian->link.page->lease_ends_ms, lease_ends_ms);
    atomic_store(&guardian->link.page->last_moment_ms, last_moment_ms);
}

bool guardian_has_ended(const struct guardian *guardian)
{
    return guardian->started && guardian->job.state == JOB_OVER;
}

bool guardian_is_over(const struct guardian *guardian)
{
    bool waited_for =
        guardian->tap != NULL && guardian->end_signal == 0 && !guardian->front_is_gone;
    return guardian_has_ended(guardian) && (!waited_for || tap_is_over(guardian->tap));
}

/* The front stops itself and goes on together with the command, whoever made it do so. */
static void tell_stop(struct guardian *guardian, int before)
{
    const struct job *job = &guardian->job;
    if (guardian->front_is_gone || job->stopped_by == before)
        return;
    if (job->stopped_by != 0)
        (void)link_send(&guardian->link, LINK_STOPPED, job->stopped_by, /* file= */ -1);
    else if (!guardian->continued)
        (void)kill(guardian->front, SIGCONT);
    guardian->continued = false;
}

static void look(struct guardian *guardian)
{
    struct link_page *page = guardian->link.page;
    struct job *job = &guardian->job;
    struct signalfd_siginfo info;
    int64_t now_ms = host_boot_ms();
    while (read(guardian->signals, &info, sizeof info) > 0) {
    }
    if (!guardian->started)
        return;
    int before = job->stopped_by;
    job_look(job, now_ms);
    job_tick(job, now_ms);
    tell_stop(guardian, before);
    if (job->state != JOB_OVER)
        return;
    if (guardian->tap != NULL)
        tap_stop(guardian->tap);
    if (WIFSIGNALED(job->wait_status))
        atomic_store(&page->killed_by, WTERMSIG(job->wait_status));
    atomic_store(&page->last_moment_ms, LINK_NEVER);
    atomic_store(&page->group, 0);
}

static void set_timer(struct guardian *guardian)
{
    int64_t due_ms = guardian->started ? guardian->job.due_ms : JOB_NEVER;
    if (due_ms == guardian->timer_ms)
        return;
    /* Most commands never need it. On a clock that also runs in suspend. */
    if (guardian->timer < 0)
        guardian->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    ASSERT(guardian->timer >= 0);
    struct itimerspec when = {0};
    if (due_ms != JOB_NEVER) {
        int64_t length_ms = due_ms - host_boot_ms();
        when.it_value.tv_sec = length_ms > 0 ? length_ms / 1000 : 0;
        when.it_value.tv_nsec = length_ms > 0 ? length_ms % 1000 * 1000000 : 1;
    }
    int result = timerfd_settime(guardian->timer, /* flags= */ 0, &when, NULL);
    ASSERT(result == 0);
    guardian->timer_ms = due_ms;
}

bool guardian_wait(struct guardian *guardian, int also)
{
    set_timer(guardian);
    bool awaits_tap = guardian->tap != NULL && guardian_has_ended(guardian);
    struct pollfd waits[] = {{.fd = guardian->signals, .events = POLLIN},
                             {.fd = guardian->timer, .events = POLLIN},
                             {.fd = guardian->link.file, .events = POLLIN},
                             {.fd = also, .events = POLLIN},
                             {.fd = awaits_tap ? guardian->tap->over : -1, .events = POLLIN}};
    if (poll(waits, sizeof waits / sizeof waits[0], /* timeout= */ -1) < 0)
        return false;
    if (waits[1].revents != 0)
        guardian->timer_ms = 0; /* it has gone off, and is set anew */
    if (waits[2].revents != 0)
        hear_front(guardian);
    if (waits[0].revents != 0 || waits[1].revents != 0 || waits[2].revents != 0)
        look(guardian);
    return waits[3].revents != 0;
}
