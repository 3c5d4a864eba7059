/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a store in a thread of its own if its steps wait for a disk or for other processes, so that
 * an event loop never waits for a sync. Requests that any threads submit during one step are sent
 * together in the next one (group commit). Replies and notifications are delivered by
 * store_thread_step(), in the thread that calls it. Both directions are bounded: excess requests
 * get REPLY_TROUBLE, and a list or a watch pauses until the caller takes its replies.
 */
#ifndef LEASEHOLD_STORE_STORE_THREAD_H
#define LEASEHOLD_STORE_STORE_THREAD_H

#include "store/store.h"

struct store_thread;

/* Returns NULL and sets `why` if the store cannot be opened. */
struct store_thread *store_thread_new(const struct store_driver *driver, const char *url,
                                      const struct store_callbacks *callbacks, struct text *why);
/* Waits for the step in progress; pending requests get no reply. */
void store_thread_free(struct store_thread **thread);

/* From any thread; never blocks. */
void store_thread_submit(struct store_thread *thread, const struct store_request *request,
                         store_done *done, void *caller);
/* The same, but the thread need not begin before store_thread_wake(): requests that are queued
 * until then share one step. */
void store_thread_queue(struct store_thread *thread, const struct store_request *request,
                        store_done *done, void *caller);
void store_thread_wake(struct store_thread *thread);
/* Readable when a step would deliver something. */
int store_thread_fd(const struct store_thread *thread);
void store_thread_step(struct store_thread *thread);
/* See store_driver. */
int store_thread_liveness(struct store_thread *thread);

#endif
