/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to one Redis: opens, signs on, comes back after a loss, and gives every command
 * its reply, in order. A command whose reply did not come is told so; it is never sent again. Knows
 * nothing of records.
 */
#ifndef LEASEHOLD_STORE_REDIS_LINK_H
#define LEASEHOLD_STORE_REDIS_LINK_H

#include "core/lease.h"
#include "io/backoff.h"
#include "io/stream.h"
#include "store/redis/credentials.h"
#include "wire/resp.h"

/* How a command went wrong. */
struct link_error {
    enum answer result; /* trouble: it may have happened; or denied */
    bool refused;       /* trouble: no connection was accepted, so nothing was sent */
    const char *why;
    bool of_record; /* what stands under the key's name cannot be read; the server is fine */
};

/* A command on its way, in its sender's memory. `reply`: one of both; a reply may be an error. */
struct link_call {
    struct link_call *next;
    bool subscribes; /* in RESP3 and on a connection that listens, its reply is pushed */
    void (*reply)(struct link_call *call, const struct resp_item *item, struct resp_walk *walk,
                  const struct link_error *error);
};

enum link_state {
    LINK_RESTING, /* is not wanted, or waits before it tries again */
    LINK_OPENING, /* until the stream is open and we have signed on */
    LINK_READY,
};

struct link_site {
    /* It can be written to. */
    void (*ready)(void *owner);
    /* It is gone; the calls have heard so already. Also when it could not be opened. */
    void (*lost)(void *owner, const struct link_error *error);
    /* Something that is no reply; false when it makes no sense. */
    bool (*pushed)(void *owner, struct resp_walk *walk, size_t count);
    /* Whereto? Answered by link_open_at(), or by link_cut(). NULL: the host that is known. */
    void (*locate)(void *owner);
    void *owner;
};

struct link {
    struct net *net;
    const struct redis_url *url;
    struct credentials *credentials; /* NULL: nobody signs on */
    struct credentials_user user;
    struct link_site site;
    struct redis_host host;
    int64_t patience_ms;
    bool wanted;
    bool listens;   /* RESP2, and all that comes is pushed */
    bool clustered; /* it said so */
    bool refused;   /* the connection, so that nothing was sent */
    enum link_state state;
    unsigned protocol;
    struct stream *stream;
    struct resp resp;
    struct link_call *first, **last;
    struct link_call signing;
    int step;   /* of signing on */
    bool halts; /* open, until there are credentials to sign on with */
    bool signs; /* again, while it is used */
    struct backoff backoff;
    struct net_timer again;
    int64_t rests_until_ms;
    int64_t last_word_ms; /* when it last said anything */
    char why[320];
};

void link_init(struct link *link, struct net *net, const struct redis_url *url,
               struct credentials *credentials, const struct link_site *site, uint64_t seed);
void link_done(struct link *link);
/* Opens it when it is not open; after a loss, not before a pause. It is wanted until it is lost. */
void link_want(struct link *link);
void link_open_at(struct link *link, const char *host, size_t length, uint16_t port);
/* Ends the connection, for the reason given. */
void link_cut(struct link *link, enum answer result, const char *why);
/* A pushed "subscribe" is the reply to the oldest call. False when that is no subscription. */
bool link_confirm(struct link *link);
/* What an error of Redis means, with words for people. */
struct link_error link_explain(struct link *link, const struct resp_item *item);

/* One command: so many words, then each of them. The call's reply comes later, never within. */
void link_begin(struct link *link, struct link_call *call, size_t words);
void link_word(struct link *link, const char *bytes, size_t length);
void link_say(struct link *link, const char *word);
/* Words as they travel. */
void link_made(struct link *link, const char *words);
/* One whose reply nobody needs; false when memory is short. */
bool link_begin_unheard(struct link *link, size_t words);
void link_number(struct link *link, int64_t number);

#endif
