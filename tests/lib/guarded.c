/* SPDX-License-Identifier: Apache-2.0 */
/* See guarded.h. */
#include "guarded.h"

void guarded_enter(struct guarded *guarded, const struct lh_lease *lease,
                   struct guarded_counts *counts)
{
    if (atomic_fetch_add(&guarded->inside, 1) != 0)
        atomic_fetch_add(&counts->overlaps, 1);
    if (guarded->first != guarded->second)
        atomic_fetch_add(&counts->torn, 1);
    guarded->first++;
    if (lease == NULL)
        return;
    if (lh_token(lease) <= guarded->last_token)
        atomic_fetch_add(&counts->shrunk, 1);
    guarded->last_token = lh_token(lease);
}

void guarded_leave(struct guarded *guarded, const struct lh_lease *lease,
                   struct guarded_counts *counts)
{
    if (lease != NULL && !lh_held(lease))
        atomic_fetch_add(&counts->unheld, 1);
    guarded->second++;
    atomic_fetch_sub(&guarded->inside, 1);
}
