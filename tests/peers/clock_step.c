/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LD_PRELOAD library for a server: shifts its wall clock by the content of the file
 * CLOCK_STEP_FILE, in seconds, with a sign and nine digits. The file may change at any time, and
 * the clock steps. (libfaketime does the same, but not with jemalloc, which Redis uses.)
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { DIGITS = 9, MICROSECOND_NS = 1000 };

static const volatile char *offset;

__attribute__((constructor)) static void find_offset(void)
{
    const char *path = getenv("CLOCK_STEP_FILE");
    int file = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *page = file < 0 ? MAP_FAILED : mmap(NULL, DIGITS + 1, PROT_READ, MAP_SHARED, file, 0);
    if (page == MAP_FAILED)
        abort();
    (void)close(file);
    offset = page;
}

static time_t seconds_off(void)
{
    time_t seconds = 0;
    if (offset == NULL)
        return 0;
    for (int i = 1; i <= DIGITS; i++)
        seconds = seconds * 10 + (offset[i] - '0');
    return offset[0] == '-' ? -seconds : seconds;
}

int clock_gettime(clockid_t clock_id, struct timespec *tp)
{
    int result = (int)syscall(SYS_clock_gettime, clock_id, tp);
    if (result == 0 && (clock_id == CLOCK_REALTIME || clock_id == CLOCK_REALTIME_COARSE))
        tp->tv_sec += seconds_off();
    return result;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
    struct timespec now;
    (void)tz;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    tv->tv_sec = now.tv_sec;
    tv->tv_usec = now.tv_nsec / MICROSECOND_NS;
    return result;
}

time_t time(time_t *timer)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (timer != NULL)
        *timer = now.tv_sec;
    return now.tv_sec;
}
