/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by lib_torture.c and its scenes. A scene is one call of the library or a few: prepared
 * with memory, run without, checked with memory again.
 */
#ifndef LEASEHOLD_TESTS_TORTURE_H
#define LEASEHOLD_TESTS_TORTURE_H

#include "leasehold_admin.h"
#include "leasehold_once.h"

#include <stdatomic.h>

enum { CONTEXT_LEASES = 4, SCENARIOS = 31 };

#define SEEN(outcome) (1U << (outcome))

struct context {
    const char *url, *new_url; /* of the store, and of one that does not exist yet */
    bool is_file, listens;
    struct lh_client *client;
    struct lh_client *other; /* another one on the same file, or NULL */
    struct lh_lease *leases[CONTEXT_LEASES];
    struct lh_lease *of_other;
    struct lh_request *request;
    struct lh_watcher *watch;
    uint64_t token;
    atomic_uint seen;     /* outcomes of the scene's calls */
    unsigned started;     /* expected calls of count_done() */
    atomic_uint done;     /* … that were made */
    atomic_uint done_bad; /* … with an undefined outcome */
    atomic_uint views;
};

struct scenario {
    const char *name;
    void (*prepare)(struct context *context); /* NULL: only opens the client */
    void (*act)(struct context *context);
    unsigned also;  /* allowed outcomes besides ok, failed and unavailable */
    bool file_only; /* needs another client, or a history */
    bool own_loop;
    bool leaves;  /* "a" may stay held without a holder */
    bool unbegun; /* the scene opens its client itself */
};

extern const struct scenario scenarios[SCENARIOS];

/* Opens a client with or without events, as the variant requires. */
enum lh_outcome context_open(struct context *context, const char *url, bool own_loop);

#endif
