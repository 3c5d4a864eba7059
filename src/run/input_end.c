/* SPDX-License-Identifier: Apache-2.0 */
/* See input_end.h. */
#include "run/input_end.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum { NULL_MAJOR = 1, NULL_MINOR = 3 };

struct input_end {
    int input;
    int event;
};

/* The terminal belongs to another job. SIGTTIN is blocked, so a read fails instead of stopping us,
 * and a stopped process would renew nothing. */
static bool input_is_in_background(int input)
{
    pid_t group = tcgetpgrp(input);
    return group > 0 && group != getpgrp();
}

/* True if the input may have more. */
static bool input_discard(int input)
{
    static char bytes[4096];
    const struct timespec second = {.tv_sec = 1};
    struct pollfd wait = {.fd = input, .events = POLLIN};
    ssize_t length = read(input, bytes, sizeof bytes);
    if (length >= 0 || errno == EINTR)
        return length != 0;
    if (errno == EAGAIN)
        return poll(&wait, 1, /* timeout= */ -1) >= 0 || errno == EINTR;
    if (errno == EIO && input_is_in_background(input))
        return nanosleep(&second, NULL) == 0;
    return false;
}

static void *input_end_thread(void *user)
{
    const struct input_end *end = user;
    while (input_discard(end->input)) {
    }
    (void)eventfd_write(end->event, 1);
    return NULL;
}

int input_end_watch(int input)
{
    static struct input_end end;
    pthread_t thread;
    sigset_t all, before;
    end = (struct input_end){.input = input, .event = eventfd(0, EFD_CLOEXEC)};
    if (end.event < 0)
        return -errno;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, /* attributes= */ NULL, input_end_thread, &end);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        error = pthread_detach(thread);
    return error == 0 ? end.event : -error;
}

bool input_is_null(int input)
{
    struct stat file;
    return fstat(input, &file) == 0 && S_ISCHR(file.st_mode) &&
           file.st_rdev == makedev(NULL_MAJOR, NULL_MINOR);
}
