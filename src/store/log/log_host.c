/* SPDX-License-Identifier: Apache-2.0 */
/* See log_host.h; the reasons are in docs/file-store.md ("Time"). */
#include "store/log/log_host.h"

#include "core/record.h"

#include <string.h>

static void host_put64(unsigned char *at, uint64_t number)
{
    for (int i = 0; i < 8; i++)
        at[i] = (unsigned char)(number >> (8 * i));
}

static uint64_t host_get64(const unsigned char *at)
{
    uint64_t number = 0;
    for (int i = 7; i >= 0; i--)
        number = number << 8 | at[i];
    return number;
}

void log_host_encode(const struct log_host *host, unsigned char *bytes)
{
    memcpy(bytes, host->machine, LOG_ID);
    memcpy(bytes + LOG_ID, host->boot, LOG_ID);
    host_put64(bytes + 32, (uint64_t)host->base_ms);
    host_put64(bytes + 40, host->foreign_before);
    host_put64(bytes + 48, host->epoch);
}

bool log_host_decode(const unsigned char *bytes, struct log_host *out)
{
    int64_t base_ms = (int64_t)host_get64(bytes + 32);
    uint64_t foreign_before = host_get64(bytes + 40), epoch = host_get64(bytes + 48);
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

struct log_host log_host_next(const struct log_host_change *move)
{
    static const unsigned char nobody[LOG_ID];
    struct log_host host = move->last;
    bool same_boot = move->existed && memcmp(host.boot, move->boot, LOG_ID) == 0;
    bool same_host = move->existed && memcmp(host.machine, move->machine, LOG_ID) == 0 &&
                     memcmp(nobody, move->machine, LOG_ID) != 0;
    int64_t wall_ms = move->wall_ms > move->time_ms ? move->wall_ms : move->time_ms;
    if (!move->existed)
        host = (struct log_host){.base_ms = wall_ms - move->boot_ms};
    else if (!same_boot && same_host) /* no process survived; cooldowns go on by wall time */
        host.base_ms = wall_ms - move->boot_ms;
    else if (!same_boot) /* live holders keep the full rest of their leases */
        host.base_ms = move->time_ms - move->boot_ms;
    if (move->existed && (same_boot ? move->unseen : !same_host))
        host.foreign_before = move->revision + 1;
    memcpy(host.machine, move->machine, LOG_ID);
    memcpy(host.boot, move->boot, LOG_ID);
    return host;
}
