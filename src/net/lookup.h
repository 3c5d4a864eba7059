/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a name to its addresses, without ever holding up the caller: the system's own look-up, which
 * reads files and asks servers for as long as it likes, runs in a thread that lives no longer than
 * it. Who does not want the answer any more lets go, and the thread cleans up behind itself.
 */
#ifndef LEASEHOLD_NET_LOOKUP_H
#define LEASEHOLD_NET_LOOKUP_H

#include "net/poller.h"

#include <netdb.h>

enum {
    LOOKUPS_MOST = 16
}; /* of a process at the same time, those that nobody waits for included */

struct lookup;

/* Once, from a step; the look-up may be freed in it. An error of getaddrinfo() (`reason` is errno
 * with EAI_SYSTEM), or 0 and addresses, which are the callee's to free. */
typedef void lookup_done(void *owner, int error, int reason, struct addrinfo *addresses);

/* NULL when memory, descriptors or threads are short, or too many are on their way. */
struct lookup *lookup_new(struct poller *poller, const char *host, uint16_t port, lookup_done *done,
                          void *owner);
void lookup_free(struct lookup **lookup); /* NULL is fine */

/* What is an address already needs no look-up: NULL when it is a name. The caller's to free. */
struct addrinfo *lookup_address(const char *host, uint16_t port);

#endif
