/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Kubernetes object that is a lock: its members that we write, and their interpretation. The
 * object contains all state that a restart needs: its target, holder, cooldown and time limit. No
 * I/O, no clock.
 */
#ifndef LEASEHOLD_WORKLOAD_WORKLOAD_OBJECT_H
#define LEASEHOLD_WORKLOAD_WORKLOAD_OBJECT_H

#include "base/text.h"
#include "workload/workload_end.h"

#define WORKLOAD_LABEL        "app.kubernetes.io/managed-by" /* the selector of the watch … */
#define WORKLOAD_LABEL_VALUE  "leasehold-k8s-run"            /* … which excludes our Leases */
#define WORKLOAD_SELECTOR     "labelSelector=app.kubernetes.io%2Fmanaged-by%3D" WORKLOAD_LABEL_VALUE
#define WORKLOAD_HOLDER_LABEL "leasehold/holder"
#define WORKLOAD_FINALIZER    "leasehold/cooldown"

enum { WORKLOAD_FIELD_MAX = 128, WORKLOAD_LABEL_MAX = 63 };

/* The lock data of a new object. */
struct workload_spec {
    const char *name, *namespace; /* namespace NULL: the kind has none */
    const char *target, *holder, *request;
    const char *holder_label; /* in addition to our own; NULL: none */
    int64_t cooldown_ms;
    int64_t limit_ms; /* 0: none */
    bool finalizer;
};

/* The object to create; NULL with a reason if the manifest is unusable. `manifest` is unchanged. */
json_t *workload_make(const json_t *manifest, const struct workload_spec *spec, struct text *why);

/* The lock state of an object. */
struct workload_view {
    char uid[64], revision[32];
    char holder[WORKLOAD_FIELD_MAX + 1], request[WORKLOAD_FIELD_MAX + 1];
    bool ours;        /* made by leasehold, for `target` … */
    bool collides;    /* … or by leasehold, for another target */
    bool finalizer;   /* it has our finalizer */
    bool terminating; /* deleted, and kept only by finalizers */
    enum end_state state;
    int status;            /* END_FAILED: exit status of its command, or 1 */
    int64_t created_at_ms; /* all by the cluster's clocks */
    int64_t ended_at_ms;   /* −1 while it runs */
    int64_t cooldown_ms;   /* −1: not given */
    int64_t limit_ms;      /* 0: none */
};

/* False if it is not such an object. `holder_label` as above. */
bool workload_read(const json_t *object, const struct end_rules *rules, const char *target,
                   const char *holder_label, struct workload_view *out);

enum workload_verdict {
    WORKLOAD_BUSY,
    WORKLOAD_COOLING,
    WORKLOAD_OVERDUE, /* exceeded its time limit: to be removed */
    WORKLOAD_OVER,    /* ended, and its cooldown is over: to be removed */
};

/*
 * The verdict at `now_ms` of the API server's clock. Both clocks have whole seconds, so a cooldown
 * ends up to one second late, never early. If the end is in the future, the remaining time is at
 * most the cooldown. `cooldown_ms` applies if the object has none. An object that is not ours is
 * never removed: busy or cooling. `out_left_ms`: time until the verdict changes; −1: never.
 */
enum workload_verdict workload_judge(const struct workload_view *view, int64_t cooldown_ms,
                                     int64_t now_ms, int64_t *out_left_ms);

/* The finalizers without ours, as a merge patch for that revision. NULL: out of memory. */
json_t *workload_finalizer_patch(const json_t *object);

/* The options of a deletion: only this object, at the judged revision; with its dependents. */
json_t *workload_delete_options(const struct workload_view *view);

#endif
