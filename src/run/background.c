/* SPDX-License-Identifier: Apache-2.0 */
/* See background.h. */
#include "run/background.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { END_MS = 700 }; /* for a release after the target's end */

int background_open(struct background *background, pid_t target)
{
    struct pollfd wait = {.events = POLLIN};
    *background = (struct background){.channel = -1, .limit_status = BACKGROUND_LATE};
    for (int file = STDERR_FILENO + 1; file < BACKGROUND_FILES; file++)
        background->inherited[file] = fcntl(file, F_GETFD) >= 0;
    background->target = wait.fd = pidfd_open(target, /* flags= */ 0);
    if (background->target < 0)
        return -errno;
    return poll(&wait, 1, /* timeout= */ 0) > 0 ? -ESRCH : 0; /* a zombie is readable */
}

/* ---- fork ---- */

static int become_background(struct background *background, int ends[2])
{
    (void)close(ends[0]);
    background->channel = ends[1];
    if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) != 0)
        return -errno;
    return getppid() == background->foreground ? 1 : -EOWNERDEAD;
}

int background_fork(struct background *background)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    /* If our parent left SIGCHLD ignored, the kernel would discard the status. */
    (void)signal(SIGCHLD, SIG_DFL);
    background->foreground = getpid();
    background->process = fork();
    if (background->process == 0)
        return become_background(background, ends);
    (void)close(ends[1]);
    background->channel = ends[0];
    return background->process > 0 ? 0 : -errno;
}

/* ---- in the background ---- */

static void *background_limit_thread(void *user)
{
    struct background *background = user;
    const struct timespec rest = {.tv_nsec = END_MS * 1000000L};
    struct pollfd wait = {.fd = background->target, .events = POLLIN};
    while (poll(&wait, 1, /* timeout= */ -1) <= 0) {
    }
    (void)nanosleep(&rest, NULL);
    _exit(atomic_load(&background->limit_status));
}

int background_limit(struct background *background)
{
    pthread_t thread;
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int error =
        pthread_create(&thread, /* attributes= */ NULL, background_limit_thread, background);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error != 0 ? -error : -pthread_detach(thread);
}

bool background_detach(struct background *background)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++)
        (void)dup2(nothing, file);
    (void)close(nothing);
    for (int file = STDERR_FILENO + 1; file < BACKGROUND_FILES; file++) {
        if (background->inherited[file])
            (void)close(file);
    }
    (void)prctl(PR_SET_PDEATHSIG, /* none */ 0);
    atomic_store(&background->limit_status, 0); /* before the foreground process exits with 0 */
    bool told = write(background->channel, "", 1) == 1;
    (void)close(background->channel);
    return told;
}

void background_signal_target(const struct background *background, int signal)
{
    (void)pidfd_send_signal(background->target, signal, NULL, /* flags= */ 0);
}

/* ---- in the foreground ---- */

bool background_succeeded(const struct background *background, int *out_status)
{
    char byte;
    if (read(background->channel, &byte, 1) == 1)
        return true;
    (void)waitpid(background->process, out_status, /* options= */ 0);
    return false;
}
