/* SPDX-License-Identifier: Apache-2.0 */
/* The usage of this process: time, memory and descriptors, from /proc. For metrics. */
#ifndef LEASEHOLD_PROCESS_USAGE_H
#define LEASEHOLD_PROCESS_USAGE_H

#include <stddef.h>
#include <stdint.h>

struct usage {
    uint64_t cpu_us;
    uint64_t resident_bytes, virtual_bytes;
    uint64_t files_max;
    uint64_t started_us; /* since 1970 */
};

/* Values that cannot be read are 0. */
void usage_read(struct usage *out);
/* The number of open descriptors; 0 if /proc cannot be read. Before Linux 6.2 the time grows with
 * their number, about a microsecond for each. */
size_t usage_count_files(void);

#endif
