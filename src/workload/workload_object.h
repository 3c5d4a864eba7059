/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Kubernetes object that is a lock: what we write into it, and what it says. All that anybody
 * needs to know after a restart stands in the object itself: for which target it is, whose it is,
 * for how long it cools down and how long it may run. No I/O, no clock.
 */
#ifndef LEASEHOLD_WORKLOAD_WORKLOAD_OBJECT_H
#define LEASEHOLD_WORKLOAD_WORKLOAD_OBJECT_H

#include "base/text.h"
#include "workload/workload_end.h"

#define WORKLOAD_LABEL        "app.kubernetes.io/managed-by" /* what the watch selects by … */
#define WORKLOAD_LABEL_VALUE  "leasehold-k8s-run"            /* … apart from our Leases */
#define WORKLOAD_HOLDER_LABEL "leasehold/holder"
#define WORKLOAD_FINALIZER    "leasehold/cooldown"

enum { WORKLOAD_FIELD_MAX = 128, WORKLOAD_LABEL_MAX = 63 };

/* For whom, and how long. */
struct workload_spec {
    const char *name, *namespace; /* namespace NULL: the kind has none */
    const char *target, *holder, *request;
    const char *holder_label; /* beside our own; NULL: none */
    int64_t cooldown_ms;
    int64_t limit_ms; /* 0: none */
    bool finalizer;
};

/* The object to create; NULL with words when the manifest cannot be used. `manifest` stays. */
json_t *workload_make(const json_t *manifest, const struct workload_spec *spec, struct text *why);

/* What is known of an object. */
struct workload_view {
    char uid[64], revision[32];
    char holder[WORKLOAD_FIELD_MAX + 1], request[WORKLOAD_FIELD_MAX + 1];
    bool ours;        /* made by us, for `target` … */
    bool collides;    /* … or by us, for another one */
    bool finalizer;   /* ours is in it */
    bool terminating; /* somebody deleted it, and only finalizers keep it */
    enum end_state state;
    int status;            /* END_FAILED: that of the command in it, or 1 */
    int64_t created_at_ms; /* all by the cluster's clocks */
    int64_t ended_at_ms;   /* unless it runs */
    int64_t cooldown_ms;   /* −1: it does not say */
    int64_t limit_ms;      /* 0: none */
};

/* False when it is no such object. `holder_label` as above. */
bool workload_read(const json_t *object, const struct end_rules *rules, const char *target,
                   const char *holder_label, struct workload_view *out);

enum workload_verdict {
    WORKLOAD_BUSY,
    WORKLOAD_COOLING,
    WORKLOAD_OVERDUE, /* ran longer than it may: it is to be removed */
    WORKLOAD_OVER,    /* ended, and its cooldown too: it is to be removed */
};

/*
 * What that means at `now_ms` of the API server's clock. Both clocks tell whole seconds, so a
 * cooldown ends one second later rather than too early; of one whose end is still to come no more
 * is told to be left than it is long. `cooldown_ms` counts where the object says nothing. What is
 * not ours is never to be removed: busy, or cooling. `out_left_ms`: until the verdict changes by
 * itself; −1: never.
 */
enum workload_verdict workload_judge(const struct workload_view *view, int64_t cooldown_ms,
                                     int64_t now_ms, int64_t *out_left_ms);

/* The finalizers without ours, for a merge patch under that revision. NULL: out of memory. */
json_t *workload_finalizer_patch(const json_t *object);

/* What a deletion says: this object, as it was judged, or none; with all that hangs on it. */
json_t *workload_delete_options(const struct workload_view *view);

#endif
