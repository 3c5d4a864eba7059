/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to one Redis: opens, signs on, comes back after a loss, and gives every command
 * its reply, in order. A command whose reply did not come is told so; it is never sent again. Knows
 * nothing of records.
 */
#ifndef LEASEHOLD_STORE_REDIS_REDIS_CONNECTION_H
#define LEASEHOLD_STORE_REDIS_REDIS_CONNECTION_H

#include "core/lease.h"
#include "net/backoff.h"
#include "net/stream.h"
#include "store/redis/redis_credentials.h"
#include "wire/resp.h"

/* How a command went wrong. */
struct conn_error {
    enum reply_status result; /* trouble: it may have happened; or denied */
    bool refused;             /* trouble: no connection was accepted, so nothing was sent */
    const char *why;
    bool of_record; /* what stands under the key's name cannot be read; the server is fine */
};

/* A command on its way, in its sender's memory. `reply`: one of both; a reply may be an error. */
struct conn_call {
    struct conn_call *next;
    bool subscribes; /* in RESP3 and on a connection that listens, its reply is pushed */
    void (*reply)(struct conn_call *call, const struct resp_item *item, struct resp_walk *walk,
                  const struct conn_error *error);
};

enum conn_state {
    CONN_IDLE,    /* is not wanted, or waits before it tries again */
    CONN_OPENING, /* until the stream is open and we have signed on */
    CONN_READY,
};

struct conn_callbacks {
    /* It can be written to. */
    void (*ready)(void *owner);
    /* It is gone; the calls have heard so already. Also when it could not be opened. */
    void (*lost)(void *owner, const struct conn_error *error);
    /* Something that is no reply; false when it makes no sense. */
    bool (*pushed)(void *owner, struct resp_walk *walk, size_t count);
    /* Whereto? Answered by conn_open_at(), or by conn_abort(). NULL: the host that is known. */
    void (*locate)(void *owner);
    void *owner;
};

struct redis_conn {
    struct poller *poller;
    const struct redis_url *url;
    struct credentials *credentials; /* NULL: nobody signs on */
    struct credentials_user user;
    struct conn_callbacks callbacks;
    struct redis_host host;
    int64_t timeout_ms;
    bool wanted;
    bool listens;   /* RESP2, and all that comes is pushed */
    bool clustered; /* it said so */
    bool refused;   /* the connection, so that nothing was sent */
    enum conn_state state;
    unsigned protocol;
    struct stream *stream;
    struct resp resp;
    struct conn_call *first, **last;
    struct conn_call handshake;
    int step;        /* of signing on */
    bool waits_auth; /* open, until there are credentials to sign on with */
    bool reauth;     /* again, while it is used */
    struct backoff backoff;
    struct poller_timer retry;
    int64_t retry_at_ms;
    int64_t last_reply_ms; /* when it last said anything */
    char why[320];
};

void conn_init(struct redis_conn *conn, struct poller *poller, const struct redis_url *url,
               struct credentials *credentials, const struct conn_callbacks *callbacks,
               uint64_t seed);
void conn_done(struct redis_conn *conn);
/* Opens it when it is not open; after a loss, not before a pause. It is wanted until it is lost. */
void conn_open(struct redis_conn *conn);
void conn_open_at(struct redis_conn *conn, const char *host, size_t length, uint16_t port);
/* Ends the connection, for the reason given. */
void conn_abort(struct redis_conn *conn, enum reply_status result, const char *why);
/* A pushed "subscribe" is the reply to the oldest call. False when that is no subscription. */
bool conn_confirm(struct redis_conn *conn);
/* What an error of Redis means, with words for people. */
struct conn_error conn_explain(struct redis_conn *conn, const struct resp_item *item);

/* One command: so many words, then each of them. The call's reply comes later, never within. */
void conn_begin(struct redis_conn *conn, struct conn_call *call, size_t args);
void conn_arg_bytes(struct redis_conn *conn, const char *bytes, size_t length);
void conn_arg(struct redis_conn *conn, const char *word);
/* Words as they travel. */
void conn_arg_raw(struct redis_conn *conn, const char *args);
/* One whose reply nobody needs; false when out of memory. */
bool conn_begin_noreply(struct redis_conn *conn, size_t args);
void conn_arg_int(struct redis_conn *conn, int64_t number);

#endif
