/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lease options with their own copies of all strings: the caller's may be freed while the lease
 * still runs. Copies only; validates nothing.
 */
#ifndef LEASEHOLD_RUNTIME_LEASE_OPTIONS_H
#define LEASEHOLD_RUNTIME_LEASE_OPTIONS_H

#include "core/lease.h"

/* The size in bytes of all strings, meta and completion; the key is stored elsewhere. */
size_t lease_options_size(const struct lease_options *options);
/* `storage` has that size and is aligned for any struct. The copy's key is `key` itself. */
void lease_options_copy(struct lease_options *to, const struct lease_options *from, const char *key,
                        char *storage);

#endif
