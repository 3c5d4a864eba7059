/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a store may forget a record: nobody holds it, nobody waits, what blocked it has ended by the
 * store's own clock, and the watermark that it waited for, if any, has passed. For stores that we
 * write ourselves, and those that we tidy up. Never by how full they are.
 */
#ifndef LEASEHOLD_STORE_EXPIRY_H
#define LEASEHOLD_STORE_EXPIRY_H

#include "store/condition.h"

/* What stands under another key of the same store; its bytes stay until the next call. */
typedef struct stored_record expiry_find(void *owner, const char *key);

/* Does it wait for a watermark that has not passed yet? True also for what cannot be read. */
bool expiry_awaits_watermark(const struct stored_record *stored, expiry_find *find, void *owner,
                             struct record *scratch);

/* All of it, for a record of which only the bytes are known. */
bool expiry_is_due(const struct stored_record *stored, expiry_find *find, void *owner,
                   struct record *scratch);

/*
 * The same where nobody else removes what the dead left behind: also a lock whose holders must have
 * ended, with the error of the store's clock added, and whose waiters would have taken it since.
 */
bool expiry_is_leftover(const struct stored_record *stored, int64_t margin_ms, expiry_find *find,
                        void *owner, struct record *scratch);

#endif
