/* SPDX-License-Identifier: Apache-2.0 */
/* See log_home.h; the reasons are in docs/file-store.md ("Time"). */
#include "wire/log_home.h"

#include "core/record.h"

#include <string.h>

static void put64(unsigned char *at, uint64_t number)
{
    for (int i = 0; i < 8; i++)
        at[i] = (unsigned char)(number >> (8 * i));
}

static uint64_t get64(const unsigned char *at)
{
    uint64_t number = 0;
    for (int i = 7; i >= 0; i--)
        number = number << 8 | at[i];
    return number;
}

void log_home_encode(const struct log_home *home, unsigned char *bytes)
{
    memcpy(bytes, home->machine, LOG_ID);
    memcpy(bytes + LOG_ID, home->boot, LOG_ID);
    put64(bytes + 32, (uint64_t)home->base_ms);
    put64(bytes + 40, home->foreign_before);
    put64(bytes + 48, home->epoch);
}

bool log_home_decode(const unsigned char *bytes, struct log_home *out)
{
    int64_t base_ms = (int64_t)get64(bytes + 32);
    uint64_t foreign_before = get64(bytes + 40), epoch = get64(bytes + 48);
    if (base_ms < -TIME_MAX_MS || base_ms > TIME_MAX_MS || foreign_before > REVISION_MAX + 1 ||
        epoch > EPOCH_MAX)
        return false;
    memcpy(out->machine, bytes, LOG_ID);
    memcpy(out->boot, bytes + LOG_ID, LOG_ID);
    out->base_ms = base_ms;
    out->foreign_before = foreign_before;
    out->epoch = (uint16_t)epoch;
    return true;
}

struct log_home log_home_next(const struct log_move *move)
{
    static const unsigned char nobody[LOG_ID];
    struct log_home home = move->last;
    bool same_boot = move->lived && memcmp(home.boot, move->boot, LOG_ID) == 0;
    bool same_host = move->lived && memcmp(home.machine, move->machine, LOG_ID) == 0 &&
                     memcmp(nobody, move->machine, LOG_ID) != 0;
    int64_t wall_ms = move->wall_ms > move->time_ms ? move->wall_ms : move->time_ms;
    if (!move->lived)
        home = (struct log_home){.base_ms = wall_ms - move->boot_ms};
    else if (!same_boot && same_host) /* nobody survived; a cooldown goes on by the time of day */
        home.base_ms = wall_ms - move->boot_ms;
    else if (!same_boot) /* whoever lives there has all the rest of its lease from now on */
        home.base_ms = move->time_ms - move->boot_ms;
    if (move->lived && (same_boot ? move->unseen : !same_host))
        home.foreign_before = move->revision + 1;
    memcpy(home.machine, move->machine, LOG_ID);
    memcpy(home.boot, move->boot, LOG_ID);
    return home;
}
