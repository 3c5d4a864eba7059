/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leasehold: ids that are done once, and watermarks. A claim of an id is a lease: it is renewed,
 * ends with its process, and can be lost. A finished id is remembered for keep_ms; until then each
 * claim returns LH_DONE. A watermark is a position in a source that only moves forward.
 *
 * Threads, reports and callbacks are as in leasehold.h. The _start functions do not block: LH_OK
 * means that done will be called once; their result structs must stay valid until then.
 */
#ifndef LEASEHOLD_ONCE_H
#define LEASEHOLD_ONCE_H

#include "leasehold.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { LH_RESULT_SIZE = 1025, LH_POSITION_SIZE = 1025 };

/* ---- ids ---- */

struct lh_once_options {
    size_t size;
    int64_t ttl_ms;      /* of the claim; default 5 min */
    int64_t wait_ms;     /* for a claim that runs elsewhere; 0: do not wait */
    const char *payload; /* a fingerprint, at most 64 bytes: another one is LH_MISMATCH */
    lh_lost_fn *on_lost; /* for claims with a handle */
    void *user;          /* passed to on_lost */
    const char *holder;
    const char *request_id; /* a repeated claim with the same id gets the same grant */
};
#define LH_ONCE_OPTIONS_INIT                                               \
    {                                                                      \
        sizeof(struct lh_once_options), 0, 0, NULL, NULL, NULL, NULL, NULL \
    }

struct lh_once {
    size_t size;                 /* set by LH_ONCE_INIT; the library writes no further */
    uint64_t token;              /* of a new claim */
    int status;                  /* LH_DONE: 0 is success */
    char result[LH_RESULT_SIZE]; /* LH_DONE: the text that was kept */
};
#define LH_ONCE_INIT                     \
    {                                    \
        sizeof(struct lh_once), 0, 0, "" \
    }

/* The record of a finished id. */
struct lh_completion {
    size_t size;
    int64_t keep_ms;       /* default 24 h */
    int status;            /* 0 to 255 */
    const char *result;    /* at most 1024 bytes */
    const char *watermark; /* also keep it until this watermark ... */
    const char *until;     /* ... is above this position */
};
#define LH_COMPLETION_INIT                                   \
    {                                                        \
        sizeof(struct lh_completion), 0, 0, NULL, NULL, NULL \
    }

/* Blocks. Exactly one claim of an id is LH_OK: do the work, then finish it. The others return
 * LH_BUSY while it runs and LH_DONE, with status and result in out (may be NULL), once it is
 * finished. lh_release() and lh_close() release the id unfinished. */
enum lh_outcome lh_once_claim(struct lh_client *client, const char *id,
                              const struct lh_once_options *options, struct lh_lease **out_claim,
                              struct lh_once *out, struct lh_report *report);
/* Blocks; frees the handle and sets *claim to NULL, unless the outcome is LH_USAGE. NULL means
 * success, kept for 24 h. LH_LOST: the completion is not remembered. */
enum lh_outcome lh_finish(struct lh_lease **claim, const struct lh_completion *completion,
                          struct lh_report *report);

/* Without a handle. Block. The claim lives by its TTL; out has its token, with which any process
 * can renew, finish or abandon it. */
enum lh_outcome lh_once_begin(struct lh_client *client, const char *id,
                              const struct lh_once_options *options, struct lh_once *out,
                              struct lh_report *report);
enum lh_outcome lh_once_renew(struct lh_client *client, const char *id, uint64_t token,
                              int64_t ttl_ms, struct lh_report *report);
enum lh_outcome lh_once_finish(struct lh_client *client, const char *id, uint64_t token,
                               const struct lh_completion *completion, struct lh_report *report);
enum lh_outcome lh_once_abandon(struct lh_client *client, const char *id, uint64_t token,
                                struct lh_report *report);
/* LH_OK: neither finished nor running; LH_BUSY: running; LH_DONE. */
enum lh_outcome lh_once_status(struct lh_client *client, const char *id, struct lh_once *out,
                               struct lh_report *report);
/* lh_mark() claims and finishes in one write: LH_OK when it is new, otherwise LH_BUSY or LH_DONE.
 * lh_seen() returns what lh_once_status() returns and changes nothing. */
enum lh_outcome lh_seen(struct lh_client *client, const char *id, struct lh_report *report);
enum lh_outcome lh_mark(struct lh_client *client, const char *id,
                        const struct lh_completion *completion, struct lh_report *report);

/* ---- watermarks ---- */

struct lh_watermark {
    size_t size;                  /* set by LH_WATERMARK_INIT; the library writes no further */
    int64_t start_ms;             /* the store's time less the overlap, Unix time; -1: none */
    char value[LH_POSITION_SIZE]; /* the source's own position; "": none yet */
};
#define LH_WATERMARK_INIT                   \
    {                                       \
        sizeof(struct lh_watermark), -1, "" \
    }

/* Block. Read the source from the value on, handle everything, then advance from it to the position
 * that the source had at the beginning (or to start_ms, if the source has no clock or cursor). */
enum lh_outcome lh_watermark_begin(struct lh_client *client, const char *name, int64_t overlap_ms,
                                   struct lh_watermark *out, struct lh_report *report);
/* LH_OK: it was at `expected`, in its own order, and is now at `value`. LH_STALE: it was elsewhere,
 * or would move back: begin again. Each call has an id of its own that its retries share. */
enum lh_outcome lh_watermark_advance(struct lh_client *client, const char *name,
                                     const char *expected, const char *value,
                                     struct lh_report *report);
/* The same with an id of yours (NULL: one is made): a later call with the same id, expected and
 * value is also LH_OK, until another call moves the watermark. */
enum lh_outcome lh_watermark_advance_id(struct lh_client *client, const char *name,
                                        const char *expected, const char *value,
                                        const char *request_id, struct lh_report *report);
/* For operators: moves it anywhere and keeps the reason. */
enum lh_outcome lh_watermark_set(struct lh_client *client, const char *name, const char *value,
                                 const char *reason, struct lh_report *report);

/* ---- without blocking ---- */

struct lh_request *lh_once_claim_start(struct lh_client *client, const char *id,
                                       const struct lh_once_options *options, struct lh_once *out,
                                       lh_done_fn *done, void *user, struct lh_report *report);
/* done gets no lease: the token is in out. */
struct lh_request *lh_once_begin_start(struct lh_client *client, const char *id,
                                       const struct lh_once_options *options, struct lh_once *out,
                                       lh_done_fn *done, void *user, struct lh_report *report);
/* The handle is gone with LH_OK. */
enum lh_outcome lh_finish_start(struct lh_lease **claim, const struct lh_completion *completion,
                                lh_done_fn *done, void *user, struct lh_report *report);
enum lh_outcome lh_once_renew_start(struct lh_client *client, const char *id, uint64_t token,
                                    int64_t ttl_ms, lh_done_fn *done, void *user,
                                    struct lh_report *report);
enum lh_outcome lh_once_finish_start(struct lh_client *client, const char *id, uint64_t token,
                                     const struct lh_completion *completion, lh_done_fn *done,
                                     void *user, struct lh_report *report);
enum lh_outcome lh_once_abandon_start(struct lh_client *client, const char *id, uint64_t token,
                                      lh_done_fn *done, void *user, struct lh_report *report);
enum lh_outcome lh_once_status_start(struct lh_client *client, const char *id, struct lh_once *out,
                                     lh_done_fn *done, void *user, struct lh_report *report);
enum lh_outcome lh_seen_start(struct lh_client *client, const char *id, lh_done_fn *done,
                              void *user, struct lh_report *report);
enum lh_outcome lh_mark_start(struct lh_client *client, const char *id,
                              const struct lh_completion *completion, lh_done_fn *done, void *user,
                              struct lh_report *report);
enum lh_outcome lh_watermark_begin_start(struct lh_client *client, const char *name,
                                         int64_t overlap_ms, struct lh_watermark *out,
                                         lh_done_fn *done, void *user, struct lh_report *report);
enum lh_outcome lh_watermark_advance_start(struct lh_client *client, const char *name,
                                           const char *expected, const char *value,
                                           lh_done_fn *done, void *user, struct lh_report *report);
enum lh_outcome lh_watermark_advance_id_start(struct lh_client *client, const char *name,
                                              const char *expected, const char *value,
                                              const char *request_id, lh_done_fn *done, void *user,
                                              struct lh_report *report);
enum lh_outcome lh_watermark_set_start(struct lh_client *client, const char *name,
                                       const char *value, const char *reason, lh_done_fn *done,
                                       void *user, struct lh_report *report);

#ifdef __cplusplus
}
#endif

#endif
