/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workload is the lock: an object of any kind, created under the name that its target has. That
 * it exists is the lock, that it was deleted the release; the API server lets one creation pass.
 * Nothing is remembered here that the cluster does not say: after a kill at any point the next call
 * goes on where the object stands. Blocks; one thread at a time. Prints nothing.
 */
#ifndef LEASEHOLD_WORKLOAD_WORKLOAD_H
#define LEASEHOLD_WORKLOAD_WORKLOAD_H

#include "core/outcome.h"
#include "workload/workload_object.h"
#include "wire/k8s_url.h"

enum { WORKLOADS_TEXT = 256 };

struct workloads;

/* What the API server warns of; each text once. */
typedef void workloads_warn(void *user, const char *text);

/* All words are copied. */
struct workloads_options {
    const char *holder;
    const char *holder_label; /* beside our own; NULL: none */
    struct end_rules rules;
    int64_t timeout_ms;   /* for one thing asked of the API server, repeated until then */
    bool watch;           /* objects of this kind, so that a look costs no request */
    workloads_warn *warn; /* NULL: nobody hears of it */
    void *user;
};

/* What came of a call. */
struct workload_result {
    enum outcome outcome;
    bool usage;  /* the call or the manifest is wrong; `outcome` says nothing then */
    bool cached; /* from the watched copy: no request was made */
    char name[K8S_NAME_MAX + 1];
    struct workload_view view; /* of the object; empty uid: none was seen */
    int64_t since_ms;          /* −1 unknown: for how long it runs, or since when it is over */
    int64_t ends_in_ms;        /* −1 unknown: the cooldown, or the time limit of one that runs */
    char text[WORKLOADS_TEXT];
};

/* False, with an answer. The kind is that of the manifest (YAML or JSON), which is copied. */
bool workloads_open(const char *url, const char *manifest, const struct workloads_options *options,
                    struct workloads **out, struct workload_result *result);
void workloads_close(struct workloads **workloads_pointer); /* NULL is fine */

/* The object that is followed: a second later, or when something has changed. */
typedef void workloads_progress(void *user, const struct workload_result *result);

enum workloads_until { UNTIL_REMOVED, UNTIL_ENDED, UNTIL_CREATED };

struct workload_run {
    const char *target, *request;
    const char *manifest; /* NULL: the one that it was opened with */
    int64_t cooldown_ms;
    int64_t limit_ms; /* 0: none */
    bool finalizer;
    enum workloads_until until;
    workloads_progress *progress; /* NULL: nobody looks */
    void *user;
};

/*
 * Creates the object and follows it. OK: it got as far as `until`, and the view says how it ended.
 * BUSY, COOLING: another one's is there. LOST: it vanished before it ended. MISMATCH: the name is
 * taken for another target. An object with our request id is gone on with.
 */
void workloads_run(struct workloads *workloads, const struct workload_run *run,
                   struct workload_result *result);
/* As it stands: OK is free. From the watched copy when there is one. Decides nothing. */
void workloads_query(struct workloads *workloads, const char *target, int64_t cooldown_ms,
                     struct workload_result *result);
/* Deletes it, whatever it is at. `request`: only if it is that one's; NULL: anybody's. OK: it is
 * gone, or there was none. */
void workloads_remove(struct workloads *workloads, const char *target, const char *request,
                      struct workload_result *result);

#endif
