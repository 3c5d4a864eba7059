/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves a name to its addresses and never blocks the caller: getaddrinfo(), which reads files
 * and queries servers without a time limit, runs in a thread that ends with it. A caller that no
 * longer needs the result frees the lookup, and the thread releases the rest.
 */
#ifndef LEASEHOLD_NET_LOOKUP_H
#define LEASEHOLD_NET_LOOKUP_H

#include "net/poller.h"

#include <netdb.h>

enum { LOOKUPS_MOST = 16 }; /* of a process at the same time, including abandoned ones */

struct lookup;

/* Called once, from a step; may free the lookup. `error` is of getaddrinfo() (with EAI_SYSTEM,
 * `reason` is errno), or 0 with addresses, which the callee must free. */
typedef void lookup_done(void *owner, int error, int reason, struct addrinfo *addresses);

/* NULL when out of memory, descriptors or threads, or if LOOKUPS_MOST are in flight. */
struct lookup *lookup_new(struct poller *poller, const char *host, uint16_t port, lookup_done *done,
                          void *owner);
void lookup_free(struct lookup **lookup); /* accepts NULL */

/* Parses a numeric address, which needs no lookup; NULL if it is a name. The caller frees it. */
struct addrinfo *lookup_address(const char *host, uint16_t port);

#endif
