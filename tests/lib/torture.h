/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lib_torture.c and its scenes share. A scene is one verb of the library, or a few that belong
 * together: prepared with memory, acted without, judged with memory again.
 */
#ifndef LEASEHOLD_TESTS_TORTURE_H
#define LEASEHOLD_TESTS_TORTURE_H

#include "leasehold.h"

#include <stdatomic.h>

enum { CONTEXT_LEASES = 4, SCENARIOS = 30 };

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
    atomic_uint seen;     /* outcomes of calls that were acted */
    unsigned started;     /* calls of count_done() that are due */
    atomic_uint done;     /* … that came */
    atomic_uint done_bad; /* … with an outcome that is none */
    atomic_uint views;
};

struct scenario {
    const char *name;
    void (*prepare)(struct context *context); /* NULL: opens the client, no more */
    void (*act)(struct context *context);
    unsigned also;  /* outcomes beside ok, failed and unavailable */
    bool file_only; /* needs another client, or a history */
    bool own_loop;
    bool leaves;  /* a grant of nobody's may stay behind under "a" */
    bool unbegun; /* the scene opens its client itself */
};

extern const struct scenario scenarios[SCENARIOS];

/* As the scenes open it: with or without events. */
enum lh_outcome context_open(struct context *context, const char *url, bool own_loop);

#endif
