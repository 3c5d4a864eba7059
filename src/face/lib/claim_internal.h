/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of leasehold_github.h: claim_steps.c decides, claim_issues.c talks to the
 * server, claim.c blocks, claim_start.c does not.
 */
#ifndef LEASEHOLD_FACE_LIB_CLAIM_INTERNAL_H
#define LEASEHOLD_FACE_LIB_CLAIM_INTERNAL_H

#include "face/lib/lib_internal.h"
#include "http/github_api.h"
#include "leasehold_github.h"

enum {
    CLAIMS_MAGIC = 0x155e5,
    CLAIM_PAGES = 10,
    CLAIM_ITEMS = 1000, /* 100 a page */
    CLAIM_LABEL_MAX = 100,
    CLAIM_KEY = 24,
    CLAIM_PATH = 512,
};

/* A list of issues or events, page by page. A page that did not change is not sent again. */
struct claim_pages {
    struct github_result at[CLAIM_PAGES];
};

struct lh_claims {
    uint32_t magic;
    struct lh_client *client;
    struct github_url url;
    struct github_api *api;
    char label[CLAIM_LABEL_MAX + 1], done_label[CLAIM_LABEL_MAX + 1];
    enum lh_claim_order order;
    struct claim_pages issues;
    uint64_t failed[CLAIM_ITEMS]; /* the last ones that failed here */
    size_t failed_count;
    struct list requests; /* started claims; one at a time is active, because `issues` is shared */
    struct lh_claim_request *active;
};

/* ---- claim_issues.c ---- */

enum claim_question {
    CLAIM_ASK_ISSUES, /* the open ones with our label, into claims->issues */
    CLAIM_ASK_ISSUE,
    CLAIM_ASK_LABELLED,  /* when it got our label last */
    CLAIM_CHANGE_LABELS, /* removes our label, which may be gone, and adds the done label */
};

/* One question to the server: a call, or several in a row. */
struct claim_exchange {
    struct lh_claims *claims;
    enum claim_question question;
    char key[CLAIM_KEY]; /* the issue */
    bool
        heals; /* labels: instead of a worker that was killed, so people may still see it as held */
    unsigned at; /* the call */
    struct github_request request;
    struct github_result reply;
    struct claim_pages events;
    bool over;
    void (*done)(void *owner, enum lh_outcome outcome); /* NULL: the caller waits for `over` */
    void *owner;
    enum lh_outcome outcome;
    struct lh_report report; /* unless LH_OK */
    json_t *issue;           /* of CLAIM_ASK_ISSUE, the caller's; or NULL */
    int64_t labelled_ms;     /* by the server's clock; −1: unknown */
};

/* The members up to `heals`, and `done`, are set. */
void claim_exchange_start(struct claim_exchange *exchange);
/* No callback follows. */
void claim_exchange_cancel(struct claim_exchange *exchange);
/* Starts it and blocks. */
enum lh_outcome claim_exchange_make(struct claim_exchange *exchange);
/* Sleeps for that long, or until the server replies; steps a client that has no thread: its writes
 * may go ahead of ours. */
void claim_wait(struct lh_claims *claims, int64_t most_ms);
bool claim_has_label(const json_t *issue, const char *label);
/* The highest of its labels; 0: none states one. */
int32_t claim_priority(const json_t *issue);
/* NULL: there is no such item. */
const json_t *claim_page_item(const struct claim_pages *pages, size_t index);

/* ---- claim_steps.c ---- */

/* The next step. Either the library does it, or an exchange. */
enum claim_step {
    CLAIM_LIST,    /* exchange: the issues */
    CLAIM_TAKE,    /* acquire the key */
    CLAIM_DATE,    /* read its history: when was it done? */
    CLAIM_EVENTS,  /* exchange: when did it get the label? */
    CLAIM_HEAL,    /* exchange: it is done, and still has its label */
    CLAIM_CLEAR,   /* it got the label again: clear the key */
    CLAIM_CHECK,   /* exchange: read the issue whose key is held */
    CLAIM_FINISH,  /* release as done: another worker did it meanwhile */
    CLAIM_UNLABEL, /* exchange: so remove its label */
    CLAIM_ABANDON, /* release: it is not for us */
    CLAIM_OVER
};

struct claim_candidate;

/* One search for an issue. */
struct claim_search {
    struct lh_claims *claims;
    bool (*admits)(void *user, uint64_t number); /* NULL: all */
    void *user;
    uint64_t first; /* is tried first; 0: none */
    bool keeps;     /* a grant is not given back because of a cancel */
    enum claim_step step;
    struct claim_candidate *candidates; /* NULL: none */
    size_t count, next;
    bool was_done, held, cancelled;
    int64_t done_ms;
    enum lh_outcome verdict; /* after CLAIM_ABANDON; at the end, the outcome */
    struct lh_claim found;
    struct lh_report report;
    struct claim_exchange exchange; /* its key is the candidate's */
};

/* Frees what an earlier search has left; the first step is CLAIM_LIST. */
void claim_search_begin(struct claim_search *search);
void claim_search_done(struct claim_search *search);
/* With the outcome of the current step, moves to the next one. At CLAIM_OVER verdict, report and
 * `found` are the result. */
void claim_search_step(struct claim_search *search, enum lh_outcome outcome,
                       const struct lh_report *report);
/* True if an exchange does the current step; it is prepared. */
bool claim_search_asks(struct claim_search *search);
/* An lh_view_fn for the history, whose user is done_ms. */
bool claim_find_done(void *user, const struct lh_view *view);

/* ---- claim.c ---- */

/* Up to an eighth earlier, so that workers do not poll together. */
int64_t claim_pause_ms(struct lh_claims *claims);
/* LH_OK, or what is wrong with the handle or the report. */
enum lh_outcome claims_admit(const struct lh_claims *claims, struct lh_report *report);
/* False with a report. */
bool claim_read_options(const struct lh_claim_options *options, const struct lh_claim *out,
                        struct lh_claim_options *known, struct lh_report *report);

/* ---- claim_start.c ---- */

/* At the end of the handle: `done` is called for all. */
void claim_requests_end(struct lh_claims *claims);

#endif
