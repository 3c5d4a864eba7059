/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process on a file store, with any number of leases at once: the core's steps, their requests
 * and the store's replies, as in a client. Makes no decisions and has no timer, since no benchmark
 * lasts as long as a third of its leases. Any error ends the program.
 */
#ifndef LEASEHOLD_TESTS_LEASES_H
#define LEASEHOLD_TESTS_LEASES_H

#include "store/store.h"

struct leases;

struct leases *leases_open(const char *path, uint64_t session, size_t most);
void leases_close(struct leases **leases);

/* Queues a request; wait_ms as in lease.h. The key is 32 bytes, made from the number. */
void leases_ask(struct leases *leases, size_t which, uint64_t key, int64_t wait_ms);
void leases_let_go(struct leases *leases, size_t which);
/* Sends all queued requests together. */
void leases_step(struct leases *leases);
/* Steps until that lease got this event, or ended; sleeps between steps until a notification. */
void leases_await(struct leases *leases, size_t which, enum lease_notify notify);

/* The first `count` leases, with keys from `first` on, in as few steps as possible. */
void leases_take(struct leases *leases, size_t count, uint64_t first);
void leases_give_back(struct leases *leases, size_t count);

#endif
