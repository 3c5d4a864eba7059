/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last observation of each store by this host, so that `doctor` detects a restored backup: a
 * small file beside the default store, written by `doctor` and `epoch` only. It has no URL and no
 * secret, only a hash of the URL as it is shown. Losing it costs nothing but that notice.
 */
#ifndef LEASEHOLD_FACE_CLI_OBSERVED_H
#define LEASEHOLD_FACE_CLI_OBSERVED_H

#include "face/cli/cli.h"

struct observed {
    uint64_t epoch, revision;
    int64_t now_ms; /* the store's clock; -1: unknown */
    int64_t at_ms;  /* when, by the clock of this host */
};

/* False if nothing is known of this store, which `current` describes. */
bool observed_find(const struct context *context, const struct lh_epoch *current,
                   struct observed *out);
/* Replaces what is known of the store. Never creates the folder; a failure is not reported. */
void observed_keep(const struct context *context, const struct lh_epoch *current);

#endif
