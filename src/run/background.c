/* SPDX-License-Identifier: Apache-2.0 */
/* See background.h. */
#include "run/background.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { END_MS = 700 }; /* for a release after the target's end */
enum { PROBED_FILES = 1024 };

/* ---- inherited descriptors ---- */

static int inherited_add(struct background *background, int file)
{
    size_t size = (background->inherited_count + 1) * sizeof background->inherited[0];
    int *longer = realloc(background->inherited, size);
    if (longer == NULL)
        return -ENOMEM;
    background->inherited = longer;
    background->inherited[background->inherited_count++] = file;
    return 0;
}

static int inherited_add_open(struct background *background, int file)
{
    return fcntl(file, F_GETFD) >= 0 ? inherited_add(background, file) : 0;
}

static int is_descriptor_name(const struct dirent *entry)
{
    return entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
}

/* Where /proc is not mounted. */
static int inherited_probe(struct background *background)
{
    int error = 0;
    for (int file = STDERR_FILENO + 1; error == 0 && file < PROBED_FILES; file++)
        error = inherited_add_open(background, file);
    return error;
}

/* 0 or −errno. */
static int inherited_list(struct background *background)
{
    struct dirent **found = NULL;
    int error = 0, count = scandirat(AT_FDCWD, "/proc/self/fd", &found, is_descriptor_name, NULL);
    if (count < 0)
        return inherited_probe(background);
    for (int i = 0; i < count; i++) {
        /* The descriptor of the scan is closed by now. */
        int file = (int)strtol(found[i]->d_name, NULL, 10);
        if (error == 0 && file > STDERR_FILENO)
            error = inherited_add_open(background, file);
        free(found[i]);
    }
    free((void *)found);
    return error;
}

/* ---- the target ---- */

int background_open(struct background *background, pid_t target)
{
    struct pollfd wait = {.events = POLLIN};
    *background = (struct background){.channel = -1, .limit_status = BACKGROUND_LATE};
    int error = inherited_list(background);
    if (error != 0)
        return error;
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
    for (size_t i = 0; i < background->inherited_count; i++)
        (void)close(background->inherited[i]);
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
