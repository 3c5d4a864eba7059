/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold, where the workload is the lock: an object of a Kubernetes cluster, of any kind (a Job,
 * a Tekton PipelineRun, ...), created under a name derived from its target. Its existence is the
 * lock, its deletion the release; the API server admits one creation. The object contains the whole
 * state: after a kill at any point a call with the same request id continues with it. Conditions
 * are written as for kubectl wait, separated by commas: condition=NAME[=STATUS] or
 * .path.to.member[=VALUE]. docs/workloads.md lists the guarantees.
 *
 * Threads: all calls block. Use a handle from one thread at a time. In a forked child every call
 * returns LH_LOST. Structs and reports are as in leasehold.h.
 */
#ifndef LEASEHOLD_WORKLOAD_H
#define LEASEHOLD_WORKLOAD_H

#include "leasehold.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lh_workloads; /* objects of one kind in one namespace */
struct lh_workload;  /* one object; see below */

/* A warning of the API server, such as about a deprecated kind; each text once. */
typedef void lh_workload_warn_fn(void *user, const char *text);
/* Once a second while the object is followed. since_ms: time since it started, or since it ended;
 * ends_in_ms: time until its cooldown or time limit ends. -1: unknown. */
typedef void lh_workload_progress_fn(void *user, const struct lh_workload *workload,
                                     int64_t since_ms, int64_t ends_in_ms);

struct lh_workloads_options {
    size_t size;
    const char *holder;       /* your name, shown to others; default "host:pid" */
    const char *holder_label; /* a label that also names the holder; NULL: none */
    const char *done_when;    /* conditions of an object that ended; NULL: those of Jobs, … */
    const char *failed_when;  /* … Pods, Tekton's runs and most custom resources */
    const char *ended_at;     /* paths of the end time, such as .status.completionTime */
    int64_t timeout_ms;       /* the API server may fail or not reply for this long; default 10 s */
    bool watch;               /* watch objects of this kind, so that a look needs no request */
    lh_workload_warn_fn *warn; /* NULL: warnings are dropped */
    void *user;                /* passed to warn */
};
#define LH_WORKLOADS_OPTIONS_INIT                                                               \
    {                                                                                           \
        sizeof(struct lh_workloads_options), NULL, NULL, NULL, NULL, NULL, 0, false, NULL, NULL \
    }

enum lh_until {
    LH_UNTIL_REMOVED, /* ended, cooled down, and deleted */
    LH_UNTIL_ENDED,   /* the next caller after the cooldown deletes it */
    LH_UNTIL_CREATED
};

struct lh_workload_options {
    size_t size;
    const char *manifest;   /* YAML or JSON; NULL: that of lh_workloads_open() */
    const char *request_id; /* a call with the same id continues; NULL: one is made */
    int64_t cooldown_ms;    /* counted from the end of the object; 0: none */
    int64_t time_limit_ms;  /* any caller removes an object that runs longer; 0: none */
    bool finalizer;         /* deleted by hand, it still keeps the lock for its cooldown */
    enum lh_until until;
    lh_workload_progress_fn *progress; /* may be NULL */
    void *user;                        /* passed to progress */
};
#define LH_WORKLOAD_OPTIONS_INIT                                                                  \
    {                                                                                             \
        sizeof(struct lh_workload_options), NULL, NULL, 300000, 0, false, LH_UNTIL_REMOVED, NULL, \
            NULL                                                                                  \
    }

enum lh_workload_state { LH_WORKLOAD_NONE, LH_WORKLOAD_RUNS, LH_WORKLOAD_DONE, LH_WORKLOAD_FAILED };

struct lh_workload {
    size_t size; /* set by LH_WORKLOAD_INIT; the library writes no further */
    enum lh_workload_state state;
    int status;    /* failed: the exit status of a Pod's command, otherwise 1 */
    bool cached;   /* from the watch cache: no request was sent */
    char name[64]; /* of the object */
    char uid[64];  /* empty: there was none */
};
#define LH_WORKLOAD_INIT                                               \
    {                                                                  \
        sizeof(struct lh_workload), LH_WORKLOAD_NONE, 0, false, "", "" \
    }

/* ---- opening ---- */

/* Sends no request to the API server. The manifest, YAML or JSON, has the kind of the objects; a
 * run without a manifest of its own creates it. */
enum lh_outcome lh_workloads_open(const char *url, const char *manifest,
                                  const struct lh_workloads_options *options,
                                  struct lh_workloads **out, struct lh_report *report);
/* Objects stay as they are. */
void lh_workloads_close(struct lh_workloads **workloads);

/* ---- one object ---- */

/* LH_OK: the object has reached `until`; out has its state. LH_BUSY, LH_COOLING: the object of
 * another request exists. LH_LOST: the object was deleted before it ended. */
enum lh_outcome lh_workload_run(struct lh_workloads *workloads, const char *target,
                                const struct lh_workload_options *options, struct lh_workload *out,
                                struct lh_report *report);
/* LH_OK: free; LH_BUSY; LH_COOLING. From the watch cache if there is one. Only a hint. */
enum lh_outcome lh_workload_look(struct lh_workloads *workloads, const char *target,
                                 struct lh_workload *out, struct lh_report *report);
/* Deletes the object in any state; with a request id only if it belongs to it (LH_STALE). */
enum lh_outcome lh_workload_remove(struct lh_workloads *workloads, const char *target,
                                   const char *request_id, struct lh_workload *out,
                                   struct lh_report *report);

/* ---- metrics ---- */

/* The metrics of lh_workload_run() on this handle, as lh_metrics() of leasehold_admin.h writes
 * those of a client, without gauges: each run is an attempt. */
enum lh_outcome lh_workloads_metrics(struct lh_workloads *workloads, const char *prefix, char *out,
                                     size_t size, size_t *out_length, struct lh_report *report);

#ifdef __cplusplus
}
#endif

#endif
