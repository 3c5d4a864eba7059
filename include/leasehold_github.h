/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold, where the issues of a GitHub repository are a queue of work: a claim is the lock of
 * the next open issue with a label. The key is the issue's number, so lh_status() and others show
 * it. An issue succeeds once: its record says done before its label is removed, and if a worker is
 * killed between the two, the next one removes the label. An issue that gets the label again later
 * can be claimed again. A cooldown of such a key that another call started counts as done, too.
 *
 * Threads: calls block unless they say otherwise. Use a handle from one thread at a time. Structs,
 * reports and clients are as in leasehold.h; the client's store must be github://OWNER/REPO.
 */
#ifndef LEASEHOLD_GITHUB_H
#define LEASEHOLD_GITHUB_H

#include "leasehold.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lh_claims;        /* the issues with one label */
struct lh_claim_request; /* a started claim; the library's until done was called */

enum lh_claim_order {
    LH_CLAIM_BY_NUMBER,  /* the lowest first */
    LH_CLAIM_BY_PRIORITY /* by labels: the highest N of priority:N first; low is 1, medium 2, high
                            3, no such label 0; then by number */
};

struct lh_claims_options {
    size_t size;
    const char *label;      /* of issues to claim, removed on success; required, at most 100 bytes,
                             * without commas */
    const char *done_label; /* added on success; NULL: none */
    enum lh_claim_order order;
};
#define LH_CLAIMS_OPTIONS_INIT                                           \
    {                                                                    \
        sizeof(struct lh_claims_options), NULL, NULL, LH_CLAIM_BY_NUMBER \
    }

struct lh_claim_options {
    size_t size;
    int64_t wait_ms; /* for an issue; 0: do not wait; LH_WAIT_FOREVER */
    const char *holder;
    const struct lh_meta *meta; /* as in struct lh_acquire_options */
    size_t meta_count;
    lh_lost_fn *on_lost;
    void *user; /* passed to on_lost and admits */
    /* Called for each free issue, in turn, before it is taken: false passes it over. NULL: all. */
    bool (*admits)(void *user, uint64_t number);
    uint64_t first; /* an issue that is tried before all others; 0: none */
    /* Of lh_claim_begin_start() only. A repeat with the same id, holder and issue gets the same
     * grant: name that issue in `first`. */
    int64_t ttl_ms;
    const char *request_id;
};
#define LH_CLAIM_OPTIONS_INIT                                                           \
    {                                                                                   \
        sizeof(struct lh_claim_options), 0, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, NULL \
    }

enum { LH_TITLE_SIZE = 1025, LH_ISSUE_URL_SIZE = 513 };

struct lh_claim {
    size_t size;                 /* set by LH_CLAIM_INIT; the library writes no further */
    uint64_t number;             /* of the issue */
    int64_t requests_left;       /* of the server's limit, as last seen; -1: unknown */
    int64_t poll_ms;             /* LH_BUSY: call again after this time, not before */
    char title[LH_TITLE_SIZE];   /* UTF-8 without control characters, possibly cut */
    char url[LH_ISSUE_URL_SIZE]; /* for people; likewise */
};
#define LH_CLAIM_INIT                              \
    {                                              \
        sizeof(struct lh_claim), 0, -1, -1, "", "" \
    }

/* ---- claims ---- */

/* Opens no further store. Close it before the client. */
enum lh_outcome lh_claims_open(struct lh_client *client, const struct lh_claims_options *options,
                               struct lh_claims **out, struct lh_report *report);
/* Not within a callback. Started claims end: done is called with LH_BUSY. */
void lh_claims_close(struct lh_claims **claims);
/* The next free issue, of at most 1,000. LH_OK: the lease is yours. LH_BUSY: there is none. Nobody
 * else has it until lh_claim_finish(), lh_abandon() or a loss. */
enum lh_outcome lh_claim_next(struct lh_claims *claims, const struct lh_claim_options *options,
                              struct lh_lease **out_lease, struct lh_claim *out,
                              struct lh_report *report);
/* Frees the handle and sets *lease to NULL, unless the outcome is LH_USAGE. Success: the issue is
 * done, then its label is removed. Otherwise it stays in the queue. `text`, at most 1,000 bytes, is
 * for people; may be NULL. LH_LOST: the issue is not done. *out_done (may be NULL) is true if the
 * issue is done: with another outcome than LH_OK only its labels could not be changed. */
enum lh_outcome lh_claim_finish(struct lh_claims *claims, struct lh_lease **lease, bool success,
                                const char *text, bool *out_done, struct lh_report *report);

/* ---- without blocking, for a client with own_loop, in its thread ---- */

/* As lh_claim_next(), but the grant is unbound, as that of lh_once_begin(): it lives for ttl_ms,
 * and its token, in done's report, renews and releases it by the calls of leasehold.h. To finish
 * it, remove the label, then release it. done gets no lease, and is called from lh_step(),
 * lh_run(), lh_claims_step() or lh_claims_close(), not from within this call; *out is set before.
 * Claims of one handle run one after the other. NULL: done is not called, and the report says why.
 */
struct lh_claim_request *lh_claim_begin_start(struct lh_claims *claims,
                                              const struct lh_claim_options *options,
                                              struct lh_claim *out, lh_done_fn *done, void *user,
                                              struct lh_report *report);
/* Before done was called. Gives up; done is still called: LH_BUSY, or LH_OK if granted meanwhile,
 * which with a request_id is more likely: such a grant is not given back. */
void lh_claim_cancel(struct lh_claim_request *request);
/* Readable when lh_claims_step() has work to do, besides lh_fd(). -1: not with own_loop. */
int lh_claims_fd(const struct lh_claims *claims);
enum lh_outcome lh_claims_step(struct lh_claims *claims);

#ifdef __cplusplus
}
#endif

#endif
