/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ids of this host and boot, and the host's clock. All processes of one boot get the same ids
 * and the same clock, also in containers and in time namespaces.
 */
#ifndef LEASEHOLD_PROCESS_HOST_H
#define LEASEHOLD_PROCESS_HOST_H

#include "base/text.h"

enum { HOST_ID = 16 };

struct host_ids {
    unsigned char machine[HOST_ID]; /* zeros if it has none: then no other boot matches */
    unsigned char boot[HOST_ID];
};

/* False, with the reason, if /proc cannot be read, or if our clock is not comparable with that of
 * other processes (this process has unshared its time namespace, but not forked since). */
bool host_read(struct host_ids *out, struct text *why);

/* CLOCK_BOOTTIME without the offset of our time namespace. */
int64_t host_boot_ms(void);
int64_t host_boot_us(void);
int64_t host_wall_ms(void);
/* Sets a timerfd on CLOCK_BOOTTIME to a time of host_boot_ms(); INT64_MAX: never. */
void host_set_timer(int timer, int64_t at_ms);

#endif
