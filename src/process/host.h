/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which host and which boot this is, and its clock. All processes of one boot get the same ids and
 * the same clock, in containers and in time namespaces too.
 */
#ifndef LEASEHOLD_PROCESS_HOST_H
#define LEASEHOLD_PROCESS_HOST_H

#include "base/text.h"

enum { HOST_ID = 16 };

struct host_ids {
    unsigned char machine[HOST_ID]; /* zeros when it has none: then no other boot is "the same" */
    unsigned char boot[HOST_ID];
};

/* False, with words, when the system does not say (no /proc), or when our clock cannot be held
 * against the other processes' (a process that has left its time namespace, but not arrived). */
bool host_read(struct host_ids *out, struct text *why);

/* CLOCK_BOOTTIME without the offset of our time namespace. */
int64_t host_boot_ms(void);
int64_t host_boot_us(void);
int64_t host_wall_ms(void);

#endif
