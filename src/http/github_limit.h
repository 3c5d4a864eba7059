/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of one GitHub account in this process: pace and order of writes, pauses that the
 * server requests, and the requests of the last hour. All clients with the same server and token
 * share one, also from several threads. Must not send anything.
 */
#ifndef LEASEHOLD_HTTP_GITHUB_LIMIT_H
#define LEASEHOLD_HTTP_GITHUB_LIMIT_H

#include "http/github_api.h"

struct github_limit;

/* The limit of the account; NULL when out of memory. Each one needs a github_limit_put(). */
struct github_limit *github_limit_get(uint64_t account);
void github_limit_put(struct github_limit **limit); /* accepts NULL */

/* The share of one client. */
struct github_share {
    int64_t pace_ms;
    unsigned budget; /* 0: half of the server's limit */
    unsigned writes;
};

enum github_verdict {
    GITHUB_SEND,   /* it counts as sent; github_limit_end() must follow */
    GITHUB_WAIT,   /* for other writes */
    GITHUB_SHORT,  /* for its part of the last hour */
    GITHUB_PAUSED, /* for the server */
};

/* `client` is any address of its own. Without GITHUB_SEND, `out_at_ms` is the time to try again. */
enum github_verdict github_limit_begin(struct github_limit *limit, const void *client,
                                       const struct github_share *share, enum github_kind kind,
                                       bool write, int64_t *out_at_ms);
/* After the reply; NULL: there was none. True if a limit of the server refused the request, which
 * had no effect then; `out_at_ms` is the end of the pause. */
bool github_limit_end(struct github_limit *limit, bool write, const struct json_reply *reply,
                      int64_t *out_at_ms);
void github_limit_usage(struct github_limit *limit, struct github_usage *out);

#endif
