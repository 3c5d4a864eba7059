/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates the condition of a store request, for stores that we write ourselves: their drivers
 * have the current record, hold the store's lock and have its time. Decides through core/rules.h.
 */
#ifndef LEASEHOLD_STORE_CONDITION_H
#define LEASEHOLD_STORE_CONDITION_H

#include "store/store.h"

/* The current record of a key; `bytes` is NULL if there is none. */
struct stored_record {
    const char *bytes;
    size_t length;
    struct stamp written;
    int64_t now_ms;
};

/* True if the request may be carried out. The record is decoded into `scratch`. */
bool condition_holds(const struct store_request *request, const struct stored_record *stored,
                     struct record *scratch);

/* Encodes what a swap under IF_GRANT writes: the current record with that grant renewed. */
size_t condition_renewal(const struct store_request *request, const struct stored_record *stored,
                         struct record *scratch, char *bytes, size_t size);

#endif
