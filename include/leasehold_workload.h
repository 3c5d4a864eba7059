/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold, where the workload is the lock: an object of a Kubernetes cluster, of any kind (a Job,
 * a Tekton PipelineRun, ...), created under the name that its target has in the store. That it
 * exists is the lock, its deletion the release; the API server lets one creation pass. All that is
 * known stands in the object: kill the caller at any point, call again with the same request id,
 * and it goes on. Conditions are written as for kubectl wait, separated by commas:
 * condition=NAME[=STATUS] or .path.to.member[=VALUE]. docs/workloads.md says what holds.
 *
 * Threads. All calls block, and those with one handle come from one thread at a time. In a forked
 * child every call answers LH_LOST.
 */
#ifndef LEASEHOLD_WORKLOAD_H
#define LEASEHOLD_WORKLOAD_H

#include "leasehold.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lh_workloads; /* objects of one kind in one namespace */
struct lh_workload;  /* see below */

/* A warning of the API server, such as of a deprecated kind; each text once. */
typedef void lh_workload_warn_fn(void *user, const char *text);
/* The object as it is followed, once a second. since_ms: for how long it has run, or since it has
 * ended; ends_in_ms: until its cooldown or time limit is over. -1: unknown. */
typedef void lh_workload_progress_fn(void *user, const struct lh_workload *workload,
                                     int64_t since_ms, int64_t ends_in_ms);

struct lh_workloads_options {
    size_t size;              /* of this struct: LH_WORKLOADS_OPTIONS_INIT sets it */
    const char *holder;       /* who you are, shown to others: "host:pid" */
    const char *holder_label; /* that also has the holder, for other programs; NULL: none */
    const char *done_when; /* how it is told that one ended; NULL: as Jobs, Pods, Tekton's runs … */
    const char *failed_when;   /* … and most custom resources tell it */
    const char *ended_at;      /* and when: paths, such as .status.completionTime */
    int64_t timeout_ms;        /* how long the API server may be silent: 10 s */
    bool watch;                /* all objects of this kind, so that a look costs no request */
    lh_workload_warn_fn *warn; /* NULL: nobody hears of it */
    void *user;
};
#define LH_WORKLOADS_OPTIONS_INIT                                                               \
    {                                                                                           \
        sizeof(struct lh_workloads_options), NULL, NULL, NULL, NULL, NULL, 0, false, NULL, NULL \
    }

enum lh_until {
    LH_UNTIL_REMOVED, /* ended, cooled down, and deleted */
    LH_UNTIL_ENDED,   /* whoever wants the target after the cooldown deletes it */
    LH_UNTIL_CREATED
};

struct lh_workload_options {
    size_t size;            /* of this struct: LH_WORKLOAD_OPTIONS_INIT sets it */
    const char *manifest;   /* YAML or JSON; NULL: the one that was given at the opening */
    const char *request_id; /* the same one goes on with its object; NULL: one of its own */
    int64_t cooldown_ms;    /* counted from the end of the object; 0: none */
    int64_t time_limit_ms; /* an object that runs longer is removed, by whoever meets it; 0: none */
    bool finalizer;        /* deleted by hand, it still keeps the lock for its cooldown */
    enum lh_until until;
    lh_workload_progress_fn *progress; /* NULL: nobody looks */
    void *user;
};
#define LH_WORKLOAD_OPTIONS_INIT                                                                  \
    {                                                                                             \
        sizeof(struct lh_workload_options), NULL, NULL, 300000, 0, false, LH_UNTIL_REMOVED, NULL, \
            NULL                                                                                  \
    }

enum lh_workload_state { LH_WORKLOAD_NONE, LH_WORKLOAD_RUNS, LH_WORKLOAD_DONE, LH_WORKLOAD_FAILED };

struct lh_workload {
    char name[64]; /* of the object */
    char uid[64];  /* empty: there was none */
    enum lh_workload_state state;
    int status;  /* failed: the exit status of a Pod's command, otherwise 1 */
    bool cached; /* told from the watched copy: no request was made */
};

/* ---- opening ---- */

/* Asks nothing of the API server yet. The manifest, YAML or JSON, says the kind, and what is
 * created where run() is given no other. */
enum lh_outcome lh_workloads_open(const char *url, const char *manifest,
                                  const struct lh_workloads_options *options,
                                  struct lh_workloads **out, struct lh_report *report);
/* Objects stay as they are. */
void lh_workloads_close(struct lh_workloads **workloads);

/* ---- one object ---- */

/*
 * Returns when the object got as far as `until` says: LH_OK, and out says how it ended. LH_BUSY,
 * LH_COOLING: another one's is there. LH_LOST: somebody deleted it before it ended.
 */
enum lh_outcome lh_workload_run(struct lh_workloads *workloads, const char *target,
                                const struct lh_workload_options *options, struct lh_workload *out,
                                struct lh_report *report);
/* LH_OK: free; LH_BUSY; LH_COOLING. From the watched copy if there is one; decides nothing. */
enum lh_outcome lh_workload_look(struct lh_workloads *workloads, const char *target,
                                 struct lh_workload *out, struct lh_report *report);
/* Deletes it whatever it is at; with a request id only if it is that one's (LH_STALE). */
enum lh_outcome lh_workload_remove(struct lh_workloads *workloads, const char *target,
                                   const char *request_id, struct lh_workload *out,
                                   struct lh_report *report);

#ifdef __cplusplus
}
#endif

#endif
