/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides when a store may remove a record: the record has no holder and no waiter, all that
 * blocked it has ended by the store's clock, and its watermark, if any, has passed. For stores that
 * we write ourselves, and those that we clean up. How full the store is must not matter.
 */
#ifndef LEASEHOLD_STORE_EXPIRY_H
#define LEASEHOLD_STORE_EXPIRY_H

#include "store/condition.h"

/* The current record of another key in the same store. Its bytes are valid until the next call. */
typedef struct stored_record expiry_find(void *owner, const char *key);

/* True if the record waits for a watermark that has not passed, or cannot be decoded. */
bool expiry_awaits_watermark(const struct stored_record *stored, expiry_find *find, void *owner,
                             struct record *scratch);

/* True if the record may be removed, judged by its bytes alone. */
bool expiry_is_due(const struct stored_record *stored, expiry_find *find, void *owner,
                   struct record *scratch);

/*
 * As expiry_is_due(), where no other process removes the records of dead clients: also true for a
 * lock whose holders expired, clock error included, and whose waiters would have acquired it since.
 */
bool expiry_is_leftover(const struct stored_record *stored, int64_t margin_ms, expiry_find *find,
                        void *owner, struct record *scratch);

#endif
