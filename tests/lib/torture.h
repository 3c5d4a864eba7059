/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lib_torture.c and its scenes share. A scene is one verb of the library, or a few that belong
 * together: prepared with memory, acted without, judged with memory again.
 */
#ifndef LEASEHOLD_TESTS_TORTURE_H
#define LEASEHOLD_TESTS_TORTURE_H

#include "leasehold.h"

#include <stdatomic.h>

enum { STAGE_LEASES = 4, SCENES = 30 };

#define SEEN(outcome) (1U << (outcome))

struct stage {
    const char *url, *new_url; /* of the store, and of one that does not exist yet */
    bool is_file, listens;
    struct lh_client *client;
    struct lh_client *other; /* another one on the same file, or NULL */
    struct lh_lease *leases[STAGE_LEASES];
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

struct scene {
    const char *name;
    void (*prepare)(struct stage *stage); /* NULL: opens the client, no more */
    void (*act)(struct stage *stage);
    unsigned also;  /* outcomes beside ok, failed and unavailable */
    bool file_only; /* needs another client, or a history */
    bool own_loop;
    bool leaves;  /* a grant of nobody's may stay behind under "a" */
    bool unbegun; /* the scene opens its client itself */
};

extern const struct scene scenes[SCENES];

/* As the scenes open it: with or without events. */
enum lh_outcome stage_open(struct stage *stage, const char *url, bool own_loop);

#endif
