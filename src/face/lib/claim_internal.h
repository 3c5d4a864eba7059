/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of leasehold_github.h: claim.c decides, claim_issues.c talks to the server.
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
};

/* Sleeps for that long, or until the server replies; steps a client that has no thread: its writes
 * may go ahead of ours. */
void claim_wait(struct lh_claims *claims, int64_t most_ms);
/* LH_OK with the issue, which the caller frees; or the report says why. */
enum lh_outcome claim_read_issue(struct lh_claims *claims, const char *key, json_t **out,
                                 struct lh_report *report);
/* Reads the open issues with our label into claims->issues. */
enum lh_outcome claim_read_issues(struct lh_claims *claims, struct lh_report *report);
/* When the issue got our label last, by the server's clock; −1: unknown. */
enum lh_outcome claim_read_labelled(struct lh_claims *claims, const char *key, int64_t *out_ms,
                                    struct lh_report *report);
/* Removes our label, which may be gone, and adds the done label. `heals`: instead of a worker that
 * was killed, so that people may still see it as held. */
enum lh_outcome claim_change_labels(struct lh_claims *claims, const char *key, bool heals,
                                    struct lh_report *report);
bool claim_has_label(const json_t *issue, const char *label);
/* The highest of its labels; 0: none states one. */
int32_t claim_priority(const json_t *issue);
/* NULL: there is no such item. */
const json_t *claim_page_item(const struct claim_pages *pages, size_t index);
void claim_pages_done(struct claim_pages *pages);

#endif
