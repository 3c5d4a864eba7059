/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workload is the lock: an object of any kind, created under a name derived from its target.
 * Its existence is the lock, its deletion the release; the API server admits one creation. All
 * state is in the cluster: after a kill at any point the next call resumes from the object. Blocks;
 * one thread at a time. Prints nothing.
 */
#ifndef LEASEHOLD_WORKLOAD_WORKLOAD_H
#define LEASEHOLD_WORKLOAD_WORKLOAD_H

#include "core/outcome.h"
#include "workload/workload_object.h"
#include "wire/k8s_url.h"

enum { WORKLOADS_TEXT = 256 };

struct workloads;

/* A warning of the API server; each text is reported once. */
typedef void workloads_warn(void *user, const char *text);

/* All strings are copied. */
struct workloads_options {
    const char *holder;
    const char *holder_label; /* in addition to our own; NULL: none */
    struct end_rules rules;
    int64_t timeout_ms;   /* per request to the API server, including retries */
    bool watch;           /* watch objects of this kind, so that a query needs no request */
    workloads_warn *warn; /* NULL: none */
    void *user;
};

/* The result of a call. */
struct workload_result {
    enum outcome outcome;
    bool usage;  /* the call or the manifest is wrong; `outcome` is undefined then */
    bool cached; /* from the cache: no request was sent */
    char name[K8S_NAME_MAX + 1];
    struct workload_view view; /* of the object; empty uid: none was found */
    int64_t since_ms;          /* −1 unknown: time since its start, or since its end */
    int64_t ends_in_ms;  /* −1 unknown: of the cooldown, or of the time limit while it runs */
    int64_t acquired_us; /* of a run: when the object was ours, by the boot clock; 0: it was not */
    char text[WORKLOADS_TEXT];
};

/* False with a result. The manifest (YAML or JSON) is copied; its kind applies to all calls. */
bool workloads_open(const char *url, const char *manifest, const struct workloads_options *options,
                    struct workloads **out, struct workload_result *result);
void workloads_close(struct workloads **workloads_pointer); /* NULL is allowed */

/* Progress of a followed object: every second, and on each change. */
typedef void workloads_progress(void *user, const struct workload_result *result);

enum workloads_until { UNTIL_REMOVED, UNTIL_ENDED, UNTIL_CREATED };

struct workload_run {
    const char *target, *request;
    const char *manifest; /* NULL: the one passed to workloads_open() */
    int64_t cooldown_ms;
    int64_t limit_ms; /* 0: none */
    bool finalizer;
    enum workloads_until until;
    workloads_progress *progress; /* NULL: none */
    void *user;
};

/*
 * Creates the object and follows it. OK: it reached `until`, and the view contains its end. BUSY,
 * COOLING: an object of another request exists. LOST: it was deleted before its end. MISMATCH: the
 * name belongs to another target. An object with our request id is resumed.
 */
void workloads_run(struct workloads *workloads, const struct workload_run *run,
                   struct workload_result *result);
/* The current state: OK is free. From the cache if there is one. Decides nothing. */
void workloads_query(struct workloads *workloads, const char *target, int64_t cooldown_ms,
                     struct workload_result *result);
/* Deletes the object in any state. `request`: only an object of this request; NULL: of any. OK: it
 * is gone, or there was none. */
void workloads_remove(struct workloads *workloads, const char *target, const char *request,
                      struct workload_result *result);

#endif
