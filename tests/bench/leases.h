/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process on a file store, with as many leases at once as it likes: the core's steps, their
 * requests and the store's answers, as a client does them. Decides nothing and keeps no timer, for
 * no benchmark lasts as long as a third of its leases. Whatever goes wrong ends the program.
 */
#ifndef LEASEHOLD_TESTS_LEASES_H
#define LEASEHOLD_TESTS_LEASES_H

#include "store/store.h"

struct leases;

struct leases *leases_open(const char *path, uint64_t session, size_t most);
void leases_close(struct leases **leases);

/* Sends a request on its way; wait_ms as in lease.h. The key is 32 bytes, made of the number. */
void leases_ask(struct leases *leases, size_t which, uint64_t key, int64_t wait_ms);
void leases_let_go(struct leases *leases, size_t which);
/* All that is on its way goes together. */
void leases_step(struct leases *leases);
/* Steps until that one was told this, or ended; between steps it sleeps until others have news. */
void leases_await(struct leases *leases, size_t which, enum lease_notify notify);

/* The first `count` of them, with keys from `first` on, in as few steps as it takes. */
void leases_take(struct leases *leases, size_t count, uint64_t first);
void leases_give_back(struct leases *leases, size_t count);

#endif
