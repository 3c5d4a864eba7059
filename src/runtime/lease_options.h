/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lease options that keep their own words: the caller's may be gone when the lease still runs.
 * Copies only; checks nothing.
 */
#ifndef LEASEHOLD_RUNTIME_LEASE_OPTIONS_H
#define LEASEHOLD_RUNTIME_LEASE_OPTIONS_H

#include "core/lease.h"

/* How many bytes all the words, meta and deed take; the key is kept elsewhere. */
size_t lease_options_size(const struct lease_options *options);
/* `words` has room for so many, aligned as any struct. The copy's key is `key` itself. */
void lease_options_copy(struct lease_options *to, const struct lease_options *from, const char *key,
                        char *storage);

#endif
