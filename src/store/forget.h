/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a store may forget a record: nobody holds it, nobody waits, what blocked it has ended by the
 * store's own clock, and the watermark that it waited for, if any, has passed. For stores that we
 * write ourselves, and those that we tidy up. Never by how full they are.
 */
#ifndef LEASEHOLD_STORE_FORGET_H
#define LEASEHOLD_STORE_FORGET_H

#include "store/condition.h"

/* What stands under another key of the same store; its bytes stay until the next call. */
typedef struct standing forget_find(void *owner, const char *key);

/* Does it wait for a watermark that has not passed yet? True also for what cannot be read. */
bool forget_awaits(const struct standing *standing, forget_find *find, void *owner,
                   struct record *scratch);

/* All of it, for a record of which only the bytes are known. */
bool forget_may(const struct standing *standing, forget_find *find, void *owner,
                struct record *scratch);

/*
 * The same where nobody else removes what the dead left behind: also a lock whose holders must have
 * ended, with the error of the store's clock added, and whose waiters would have taken it since.
 */
bool forget_leftover(const struct standing *standing, int64_t margin_ms, forget_find *find,
                     void *owner, struct record *scratch);

#endif
