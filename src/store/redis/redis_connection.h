/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to one Redis server: opens, authenticates, reconnects after a loss, and delivers
 * the reply to every command, in order. A command without a reply is reported as failed and must
 * not be sent again. Independent of records.
 */
#ifndef LEASEHOLD_STORE_REDIS_REDIS_CONNECTION_H
#define LEASEHOLD_STORE_REDIS_REDIS_CONNECTION_H

#include "base/list.h"
#include "core/lease.h"
#include "net/backoff.h"
#include "net/stream.h"
#include "store/redis/redis_credentials.h"
#include "wire/resp.h"

/* The failure of a command. */
struct conn_error {
    enum reply_status result; /* REPLY_TROUBLE: it may have been executed; or REPLY_DENIED */
    bool refused;             /* trouble: no connection was accepted, so nothing was sent */
    const char *why;
    bool of_record; /* the value of the key cannot be read; the server works */
};

extern const struct conn_error conn_no_memory;

/* A command in flight, or several in a row, owned by their sender. `reply` gets an item for each,
 * possibly an error; or once `error`, instead of all further items. */
struct conn_call {
    struct list_node node;
    unsigned pending; /* replies that have not arrived yet */
    bool subscribes;  /* in RESP3 and on a pub/sub connection, its reply is pushed */
    void (*reply)(struct conn_call *call, const struct resp_item *item, struct resp_walk *walk,
                  const struct conn_error *error);
};

enum conn_state {
    CONN_IDLE,    /* not needed, or waiting before the next attempt */
    CONN_OPENING, /* until the stream is open and authenticated */
    CONN_READY,
};

struct conn_callbacks {
    /* Commands can be sent. */
    void (*ready)(void *owner);
    /* The connection is lost or could not be opened; the calls have been notified already. */
    void (*lost)(void *owner, const struct conn_error *error);
    /* A push message; false if it is malformed. NULL: none is expected, and all are ignored. */
    bool (*pushed)(void *owner, struct resp_walk *walk, size_t count);
    /* Finds the address; ends with conn_open_at() or conn_abort(). NULL: use `host`. */
    void (*locate)(void *owner);
    void *owner;
};

struct redis_conn {
    struct poller *poller;
    const struct redis_url *url;
    struct credentials *credentials; /* NULL: no authentication */
    struct credentials_user user;
    struct conn_callbacks callbacks;
    struct url_host host;
    int64_t timeout_ms;
    bool wanted;
    bool listens;   /* RESP2 pub/sub connection: every message is pushed */
    bool clustered; /* as the server reported */
    bool refused;   /* the server refused the connection, so nothing was sent */
    enum conn_state state;
    unsigned protocol;
    struct stream *stream;
    struct resp resp;
    struct list calls; /* in flight, in order */
    struct conn_call handshake;
    int step;        /* of the handshake */
    bool waits_auth; /* open, but waiting for credentials */
    bool lacks_auth; /* closed, since there were no credentials */
    bool reauth;     /* authenticating again, while in use */
    struct backoff backoff;
    struct poller_timer retry;
    int64_t retry_at_ms;
    char why[320];
};

void conn_init(struct redis_conn *conn, struct poller *poller, const struct redis_url *url,
               struct credentials *credentials, const struct conn_callbacks *callbacks,
               uint64_t seed);
void conn_done(struct redis_conn *conn);
/* Opens the connection if needed; after a loss, not before the backoff ends. Needed until lost. */
void conn_open(struct redis_conn *conn);
void conn_open_at(struct redis_conn *conn, const char *host, size_t length, uint16_t port);
/* Closes the connection, for the given reason. */
void conn_abort(struct redis_conn *conn, enum reply_status result, const char *why);
/* A pushed "subscribe" is the reply to the oldest call. False if that call does not subscribe. */
bool conn_confirm(struct redis_conn *conn);
/* Translates an error reply of Redis into a result and a message. */
struct conn_error conn_explain(struct redis_conn *conn, const struct resp_item *item);

/* Sends a command of words. The reply comes later, never within. Without a call the reply is
 * ignored; false if out of memory for that. */
#define CONN_SEND(conn, call, ...) conn_send(conn, call, (const char *const[]){__VA_ARGS__, NULL})
bool conn_send(struct redis_conn *conn, struct conn_call *call, const char *const *words);
/* Begins a command of `args` arguments, added one by one. */
void conn_begin(struct redis_conn *conn, struct conn_call *call, size_t args);
void conn_arg_bytes(struct redis_conn *conn, const char *bytes, size_t length);
void conn_arg(struct redis_conn *conn, const char *word);
/* Arguments in wire format. */
void conn_arg_raw(struct redis_conn *conn, const char *args);
/* A command whose reply is ignored; false if out of memory. */
bool conn_begin_noreply(struct redis_conn *conn, size_t args);
void conn_arg_int(struct redis_conn *conn, int64_t number);

#endif
