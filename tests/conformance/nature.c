/* SPDX-License-Identifier: Apache-2.0 */
/* See nature.h. */
#include "nature.h"

#include "base/check.h"

#include <sys/random.h>
#include <time.h>

int64_t suite_now_ms(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void suite_sleep(int64_t ms)
{
    struct timespec nap = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&nap, &nap) != 0) {
        /* A signal cut it short. */
    }
}

uint64_t suite_random(void)
{
    uint64_t number = 0;
    ssize_t got = getrandom(&number, sizeof number, 0);
    ASSERT(got == sizeof number);
    return number;
}
