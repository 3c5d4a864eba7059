/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of one repository through GitHub's REST API. It adds the token, sends writes one at a
 * time and at a pace, and obeys the limits of the server and of the URL: when requests run short,
 * the kinds at the end of the list wait first. A request that a limit refused had no effect and is
 * sent again after the pause; one without a reply is not. All clients of the process with the same
 * server and token share pace, pause and counts. Independent of records and issues.
 */
#ifndef LEASEHOLD_HTTP_GITHUB_API_H
#define LEASEHOLD_HTTP_GITHUB_API_H

#include "http/json_api.h"
#include "wire/github_url.h"

/* The first are sent first. */
#define GITHUB_KIND_LIST(X)                                       \
    X(HEARTBEAT, "heartbeats") /* of the worker, its start too */ \
    X(RELEASE, "releases")                                        \
    X(GRANT, "grants") /* all other writes of records */          \
    X(READ, "reads")                                              \
    X(SHOW, "shows") /* for people */

enum github_kind {
#define GITHUB_KIND(name, text) GITHUB_##name,
    GITHUB_KIND_LIST(GITHUB_KIND)
#undef GITHUB_KIND
        GITHUB_KINDS
};

enum { GITHUB_SHA = 40, GITHUB_ETAG_MAX = 127 };

struct github_api;

struct github_call {
    const char *method; /* constant */
    const char *path;   /* below /repos/OWNER/REPO/, as in "git/refs"; with / in front: below the
                         * server's address. Copied */
    json_t *body;       /* the request takes it; NULL: none */
    enum github_kind kind;
    const char *etag;      /* GET: the copy that the caller has, or NULL. Copied */
    int64_t give_up_at_ms; /* by host_boot_ms(); 0: after the timeout of the client */
};

/* All fields are valid until the callback returns. */
struct github_reply {
    int status;          /* 0: none; 304: the caller's copy is current */
    bool refused;        /* status 0: nothing was sent */
    json_t *json;        /* NULL: none */
    int64_t now_ms;      /* the server's Date, whole seconds; or TIME_UNKNOWN */
    int64_t sent_ms;     /* by host_boot_ms(), before the request was sent; 0: it was not */
    const char *etag;    /* NULL: none */
    const char *next;    /* of a list: the path of the next page, for another call; NULL: none */
    const char *why;     /* the error; "" if the status is 2xx or 304 */
    int64_t retry_at_ms; /* status 0: a limit ends then, by host_boot_ms(); or 0 */
};

/* In the caller's memory, zero before the first use; idle again when `done` is called. */
struct github_request {
    struct github_api *api; /* NULL: idle */
    struct list_node node;
    struct json_request http;
    enum github_kind kind;
    bool write, sent;
    const char *method, *headers[4];
    char *path, *if_none_match;
    json_t *body;
    int64_t give_up_at_ms, sent_ms, short_until_ms;
    void (*done)(void *owner, const struct github_reply *reply);
    void *owner;
};

/* The server's limit as last seen, and the requests of this process in the last hour. */
struct github_usage {
    int64_t limit, left;         /* −1: unknown */
    int64_t reset_s;             /* seconds since 1970; −1: unknown */
    int64_t poll_interval_ms;    /* x-poll-interval; 0: none */
    int64_t paused_ms;           /* until requests are sent again; 0: now */
    unsigned sent[GITHUB_KINDS]; /* in the last hour */
    unsigned writes;             /* of these */
};

/* True if GITHUB_API_URL names this host: then tests may use short times. */
bool github_api_is_loopback(void);
/* False with a reason; then there is nothing to close. Sends nothing yet. Each time a request is
 * sent, the reply must arrive within the timeout. */
bool github_api_open(struct github_api **out, const struct github_url *url, int64_t timeout_ms,
                     struct text *why);
void github_api_close(struct github_api **api); /* requests in flight end without a callback */
struct poller *github_api_poller(struct github_api *api);
/* The part of ?writes= that this process may use in an hour. */
void github_api_limit_writes(struct github_api *api, unsigned per_hour);
void github_api_usage(struct github_api *api, struct github_usage *out);

/* Calls `done` later, never before it returns. */
void github_request_start(struct github_request *request, struct github_api *api,
                          const struct github_call *call,
                          void (*done)(void *owner, const struct github_reply *reply), void *owner);
void github_request_cancel(struct github_request *request); /* no callback follows; may be idle */

/* The reply to a call, kept for the caller. */
struct github_result {
    bool over;
    int status;
    json_t *json; /* belongs to the caller; NULL: none */
    int64_t now_ms;
    char etag[GITHUB_ETAG_MAX + 1]; /* "": none */
    char *next;                     /* belongs to the caller; NULL: none */
    int64_t retry_in_ms;            /* status 0: until a limit ends; or 0 */
    char why[JSON_WHY];
};
/* In `done`: copies the reply. */
void github_result_fill(struct github_result *out, const struct github_reply *reply);
/* Clears `out`, and fills it when the reply arrives. */
void github_request_start_result(struct github_request *request, struct github_api *api,
                                 const struct github_call *call, struct github_result *out);
/* Blocks: runs the poller until the reply. */
void github_api_call(struct github_api *api, const struct github_call *call,
                     struct github_result *out);
void github_result_done(struct github_result *result);

/* ---- replies ---- */

/* The value of a string member, or "". */
const char *github_string(const json_t *object, const char *name);
/* "2026-01-31T23:59:59Z", in milliseconds since 1970; −1 if it is not a time. */
int64_t github_time_ms(const char *string);
/* The name of a commit or tree, of 40 hexadecimal digits: it becomes a part of paths. "": it has
 * none. */
const char *github_sha(const json_t *object);
/* The server's date of a commit; −1: it has none. */
int64_t github_commit_time_ms(const json_t *commit);
/* True if the reply to a ref write says that the ref points to this commit now. */
bool github_ref_is_at(const struct github_reply *reply, const char *sha);

#endif
