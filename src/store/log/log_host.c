/* SPDX-License-Identifier: Apache-2.0 */
/* See log_host.h; the reasons are in docs/file-store.md ("Time"). */
#include "store/log/log_host.h"

#include <string.h>

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
