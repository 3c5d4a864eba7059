/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a condition of the seam means, for stores that we write ourselves: they hold the standing
 * record in their hands, under their own lock, and know the time. Decides through core/rules.h.
 */
#ifndef LEASEHOLD_STORE_CONDITION_H
#define LEASEHOLD_STORE_CONDITION_H

#include "store/store.h"

/* What stands under the key; no bytes when nothing does. */
struct stored_record {
    const char *bytes;
    size_t length;
    struct stamp written;
    int64_t now_ms;
};

/* May the request be carried out? The scratch is used to look inside the record. */
bool condition_holds(const struct store_request *request, const struct stored_record *stored,
                     struct record *scratch);

/* The bytes that a swap under IF_GRANT writes: the standing record, that grant renewed. */
size_t condition_renewal(const struct store_request *request, const struct stored_record *stored,
                         struct record *scratch, char *bytes, size_t size);

#endif
