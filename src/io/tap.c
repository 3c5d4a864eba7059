/* SPDX-License-Identifier: Apache-2.0 */
/* See tap.h. */
#include "io/tap.h"

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

/* 0, or why it takes no more. Who has closed our output does not want it: that is well. */
static int put(const char *bytes, size_t length)
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

/* How much may be read; 0: it is over. What others write into the pipe after the command has ended
 * is not waited for. */
static size_t wait_for_more(const struct tap *tap, int *left)
{
    struct pollfd waits[] = {{.fd = tap->from, .events = POLLIN},
                             {.fd = *left < 0 ? tap->stop : -1, .events = POLLIN}};
    if (*left < 0) {
        while (poll(waits, 2, /* timeout= */ -1) < 0) {
        }
        if (waits[1].revents != 0 && ioctl(tap->from, FIONREAD, left) != 0)
            *left = 0;
    }
    return *left < 0 || *left > PIECE ? PIECE : (size_t)*left;
}

static void *pass_on(void *argument)
{
    static char piece[PIECE];
    struct tap *tap = argument;
    const uint64_t one = 1;
    int left = -1; /* until the command has ended nobody knows */
    for (size_t most; (most = wait_for_more(tap, &left)) > 0;) {
        ssize_t got = read(tap->from, piece, most);
        if (got <= 0)
            break;
        last_line_add(&tap->line, piece, (size_t)got);
        left -= left > 0 ? (int)got : 0;
        int trouble = put(piece, (size_t)got);
        if (trouble != 0) {
            tap->trouble = trouble != EPIPE ? trouble : 0;
            break;
        }
    }
    (void)close(tap->from); /* who still writes hears of it as it would from our own output */
    (void)!write(tap->over, &one, sizeof one);
    return NULL;
}

static void close_all(const int *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (files[i] >= 0)
            (void)close(files[i]);
}

int tap_open(struct tap *tap)
{
    int files[4] = {-1, -1, -1, -1};
    *tap = (struct tap){0};
    int error = pipe2(files, O_CLOEXEC) == 0 ? 0 : errno;
    files[2] = eventfd(0, EFD_CLOEXEC);
    files[3] = eventfd(0, EFD_CLOEXEC);
    if (error == 0 && (files[2] < 0 || files[3] < 0))
        error = EMFILE;
    tap->from = files[0];
    tap->into = files[1];
    tap->stop = files[2];
    tap->over = files[3];
    if (error == 0)
        error = pthread_create(&tap->thread, NULL, pass_on, tap);
    if (error != 0)
        close_all(files, sizeof files / sizeof files[0]);
    return -error;
}

void tap_let_go(struct tap *tap)
{
    (void)close(tap->into);
    tap->into = -1;
}

void tap_stop(struct tap *tap)
{
    const uint64_t one = 1;
    if (!tap->stopped)
        (void)!write(tap->stop, &one, sizeof one);
    tap->stopped = true;
}

bool tap_is_over(struct tap *tap)
{
    struct pollfd over = {.fd = tap->over, .events = POLLIN};
    if (!tap->joined && poll(&over, 1, /* timeout= */ 0) > 0) {
        int error = pthread_join(tap->thread, NULL);
        ASSERT(error == 0);
        tap->joined = true;
    }
    return tap->joined;
}
