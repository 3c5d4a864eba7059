/* SPDX-License-Identifier: Apache-2.0 */
/* See tee.h. */
#include "process/tee.h"

#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { PIECE = 65536 };

/* 0, or the errno of a failed write. A closed standard output is not an error. */
static int tee_write(const char *bytes, size_t length)
{
    while (length > 0) {
        struct pollfd room = {.fd = STDOUT_FILENO, .events = POLLOUT};
        ssize_t written = write(STDOUT_FILENO, bytes, length);
        if (written < 0 && errno == EAGAIN)
            (void)poll(&room, 1, /* timeout= */ -1);
        else if (written < 0)
            return errno == EBADF ? 0 : errno;
        if (written < 0)
            continue;
        bytes += written;
        length -= (size_t)written;
    }
    return 0;
}

/* Returns how many bytes may be read; 0: none are left. After the command has ended, only the bytes
 * already in the pipe count. */
static size_t wait_for_more(const struct tee *tee, int *left)
{
    struct pollfd waits[] = {{.fd = tee->from, .events = POLLIN},
                             {.fd = *left < 0 ? tee->stop : -1, .events = POLLIN}};
    if (*left < 0) {
        while (poll(waits, 2, /* timeout= */ -1) < 0) {
        }
        if (waits[1].revents != 0 && ioctl(tee->from, FIONREAD, left) != 0)
            *left = 0;
    }
    return *left < 0 || *left > PIECE ? PIECE : (size_t)*left;
}

static void *tee_thread(void *argument)
{
    static char piece[PIECE];
    struct tee *tee = argument;
    const uint64_t one = 1;
    int left = -1; /* unknown until the command has ended */
    for (size_t most; (most = wait_for_more(tee, &left)) > 0;) {
        ssize_t got = read(tee->from, piece, most);
        if (got <= 0)
            break;
        last_line_add(&tee->line, piece, (size_t)got);
        left -= left > 0 ? (int)got : 0;
        int trouble = tee_write(piece, (size_t)got);
        if (trouble != 0) {
            tee->trouble = trouble != EPIPE ? trouble : 0;
            break;
        }
    }
    (void)close(tee->from); /* remaining writers get EPIPE, as from our own output */
    (void)!write(tee->over, &one, sizeof one);
    return NULL;
}

int tee_open(struct tee *tee)
{
    int files[4] = {-1, -1, -1, -1};
    *tee = (struct tee){0};
    int error = pipe2(files, O_CLOEXEC) == 0 ? 0 : errno;
    files[2] = eventfd(0, EFD_CLOEXEC);
    files[3] = eventfd(0, EFD_CLOEXEC);
    if (error == 0 && (files[2] < 0 || files[3] < 0))
        error = EMFILE;
    tee->from = files[0];
    tee->into = files[1];
    tee->stop = files[2];
    tee->over = files[3];
    if (error == 0)
        error = pthread_create(&tee->thread, NULL, tee_thread, tee);
    for (size_t i = 0; error != 0 && i < sizeof files / sizeof files[0]; i++)
        if (files[i] >= 0)
            (void)close(files[i]);
    return -error;
}

void tee_close_pipe(struct tee *tee)
{
    (void)close(tee->into);
    tee->into = -1;
}

void tee_stop(struct tee *tee)
{
    const uint64_t one = 1;
    if (!tee->stopped)
        (void)!write(tee->stop, &one, sizeof one);
    tee->stopped = true;
}

bool tee_is_done(struct tee *tee)
{
    struct pollfd over = {.fd = tee->over, .events = POLLIN};
    if (!tee->joined && poll(&over, 1, /* timeout= */ 0) > 0) {
        int error = pthread_join(tee->thread, NULL);
        ASSERT(error == 0);
        tee->joined = true;
    }
    return tee->joined;
}
