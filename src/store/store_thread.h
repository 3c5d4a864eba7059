/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store whose steps wait for a disk or for other processes, carried on in a thread beside its
 * caller: no deadline of a loop ever waits for a sync. What any number of threads submit while one
 * step is on its way travels together in the next one (group commit). Answers and notices come in
 * store_thread_step(), in the thread that calls it. Both ways are bounded: too many requests get
 * trouble, and a list or a watch waits until somebody listens.
 */
#ifndef LEASEHOLD_STORE_STORE_THREAD_H
#define LEASEHOLD_STORE_STORE_THREAD_H

#include "store/store.h"

struct store_thread;

/* NULL with words in `why` when the store cannot be opened. */
struct store_thread *store_thread_new(const struct store_driver *driver, const char *url,
                                      const struct store_callbacks *callbacks, struct text *why);
/* Waits for the step that is on its way; what is unanswered stays so. */
void store_thread_free(struct store_thread **thread);

/* From any thread; never waits. */
void store_thread_submit(struct store_thread *thread, const struct store_request *request,
                         store_done *done, void *caller);
/* Readable when a step has something to tell. */
int store_thread_fd(const struct store_thread *thread);
void store_thread_step(struct store_thread *thread);
/* See store_driver. */
int store_thread_liveness(struct store_thread *thread);

#endif
