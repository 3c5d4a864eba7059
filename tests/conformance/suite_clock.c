/* SPDX-License-Identifier: Apache-2.0 */
/* See suite_clock.h. */
#include "suite_clock.h"

#include "base/check.h"
#include "core/record.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

#define DAY_MS ((int64_t)24 * 3600 * 1000)

static int64_t ahead_ms;

static int64_t clock_ms(clockid_t clock)
{
    struct timespec now = {0};
    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t suite_now_ms(void)
{
    return clock_ms(CLOCK_BOOTTIME) + ahead_ms;
}

bool suite_set_clock(const char *position)
{
    const struct {
        const char *name;
        int64_t at_ms;
    } positions[] = {
        {"zero", 0}, {"largest", TIME_MAX_MS - 30 * DAY_MS}, {"today", clock_ms(CLOCK_REALTIME)}};
    for (size_t i = 0; i < sizeof positions / sizeof positions[0]; i++) {
        if (strcmp(positions[i].name, position) != 0)
            continue;
        ahead_ms = positions[i].at_ms - clock_ms(CLOCK_BOOTTIME);
        return true;
    }
    return false;
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
