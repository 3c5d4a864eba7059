/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold, for tools of operators and for the side that a lock protects: which stores this
 * library has, which name a key has there, what is wrong with a store, the removal of what nobody
 * needs any more, and fencing. No call takes a lock, and none needs a client. All may block and may
 * be made from any thread. Options and reports may be NULL. docs/library.md lists the outcomes of
 * each function.
 */
#ifndef LEASEHOLD_ADMIN_H
#define LEASEHOLD_ADMIN_H

#include "leasehold.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { LH_NAME_SIZE = 1024 };

enum lh_finding_level {
    LH_FINDING_OK,
    LH_FINDING_WARNING, /* locks work, but something weakens them */
    LH_FINDING_PROBLEM  /* the store cannot be used */
};

struct lh_finding {
    enum lh_finding_level level;
    const char *about;  /* one word: "clock", "rights" … */
    const char *text;   /* what was found, in one line for people */
    const char *remedy; /* what to do; NULL: nothing, or the text says it */
};

/* Called within lh_diagnose(), once for each finding, which is valid until the function returns. */
typedef void lh_finding_fn(void *user, const struct lh_finding *finding);

struct lh_diagnose_options {
    size_t size;         /* of this struct: LH_DIAGNOSE_OPTIONS_INIT sets it */
    const char *kind;    /* k8s: also whether lh_workload_run() may use this kind: "jobs.batch" */
    int64_t timeout_ms;  /* for one answer of the store; 0, or above its limit: its limit, 2-5 s */
    bool creates_folder; /* file: you create a missing folder, so that is no problem */
    bool events_only;    /* only a warning when the URL wants Events that may not be written */
};
#define LH_DIAGNOSE_OPTIONS_INIT                                  \
    {                                                             \
        sizeof(struct lh_diagnose_options), NULL, 0, false, false \
    }

struct lh_collect_options {
    size_t size;           /* of this struct: LH_COLLECT_OPTIONS_INIT sets it */
    const char *kind;      /* k8s: also objects of lh_workload_run() of this kind: "jobs.batch" */
    const char *done_when; /* how such an object ends, as in struct lh_workloads_options */
    const char *failed_when;
    const char *ended_at;
    uint32_t rate;      /* removals in a minute, 60000 at most; 0: 600 */
    int64_t timeout_ms; /* for one answer of the store; 0: 10 s */
};
#define LH_COLLECT_OPTIONS_INIT                                         \
    {                                                                   \
        sizeof(struct lh_collect_options), NULL, NULL, NULL, NULL, 0, 0 \
    }

struct lh_collected {
    unsigned left, removed; /* found, and of them removed */
    unsigned taken;         /* used again before they were removed */
    bool partial;           /* it ended early, and the report says why */
};

/* ---- stores ---- */

/* The URL schemes that are built in, by number: "file" …; NULL beyond the last one. */
const char *lh_store_scheme(size_t index);
/* The name of a key in the store, for the store's own tools: a Redis key, the name of a Lease. out
 * holds `size` bytes, LH_NAME_SIZE are always enough, and is untouched unless LH_OK. The store is
 * not opened. */
enum lh_outcome lh_key_name(const char *url, const char *key, char *out, size_t size,
                            struct lh_report *report);

/* ---- diagnosis ---- */

/* Examines clock, store, permissions and settings. LH_OK says that it looked, not that all is well:
 * the findings say that. Changes nothing; a file store recovers as at every opening. */
enum lh_outcome lh_diagnose(const char *url, const struct lh_diagnose_options *options,
                            lh_finding_fn *fn, void *user, struct lh_report *report);

/* ---- collection ---- */

/* Removes locks whose holders died long ago, cooldowns and ids that are over, from a store that
 * does not forget by itself (k8s); elsewhere it finds nothing. Safe at any time, also twice at
 * once. *out is untouched when nothing was examined. */
enum lh_outcome lh_collect(const char *url, const struct lh_collect_options *options,
                           struct lh_collected *out, struct lh_report *report);

/* ---- fencing ---- */

/* For the side that is written to: admits a writer unless a higher token was seen. The file at
 * `path` keeps the highest token of each key; all writers use the same file. LH_OK: the token is on
 * the disk, and no other writer of the key is admitted until the descriptor and all its copies are
 * closed. It is yours to close; exec closes it. wait_ms, or LH_WAIT_FOREVER: for another writer. */
enum lh_outcome lh_check(const char *path, const char *key, uint64_t token, int64_t wait_ms,
                         int *out_fd, struct lh_report *report);

#ifdef __cplusplus
}
#endif

#endif
