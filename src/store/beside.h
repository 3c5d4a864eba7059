/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store whose steps wait for a disk or for other processes, carried on in a thread beside its
 * caller: no deadline of a loop ever waits for a sync. What any number of threads submit while one
 * step is on its way travels together in the next one (group commit). Answers and notices come in
 * beside_step(), in the thread that calls it. Both ways are bounded: too many requests get trouble,
 * and a list or a watch waits until somebody listens.
 */
#ifndef LEASEHOLD_STORE_BESIDE_H
#define LEASEHOLD_STORE_BESIDE_H

#include "store/store.h"

struct beside;

/* NULL with words in `why` when the store cannot be opened. */
struct beside *beside_new(const struct store_driver *driver, const char *url,
                          const struct store_site *site, struct text *why);
/* Waits for the step that is on its way; what is unanswered stays so. */
void beside_free(struct beside **beside);

/* From any thread; never waits. */
void beside_submit(struct beside *beside, const struct store_request *request, store_done *done,
                   void *caller);
/* Readable when a step has something to tell. */
int beside_fd(const struct beside *beside);
void beside_step(struct beside *beside);
/* See store_driver. */
int beside_liveness(struct beside *beside);

#endif
