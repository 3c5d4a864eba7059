/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files that make up the driver of Redis: redis_driver.c, redis_codec.c,
 * redis_pubsub.c, redis_list.c … */
#ifndef LEASEHOLD_STORE_REDIS_REDIS_INTERNAL_H
#define LEASEHOLD_STORE_REDIS_REDIS_INTERNAL_H

#include "base/random.h"
#include "store/redis/redis_connection.h"
#include "store/store.h"
#include "wire/redis_names.h"

enum {
    CHANNEL_NAME_MAX = 64,
    FOREIGN_NAME_SHOWN = 100,
    DELIVERED_SLOTS = 1024, /* keys of which it is known what was told last */
    SHOWN_SLOTS = 64,
    SCRIPT_MAX = 16 * 1024,
    WAKE_RECORD_MAX = 8 * 1024, /* a longer record is not sent to those who are woken … */
    WAKE_SESSIONS_MAX = 8,      /* … nor is it when there are more of them */
};

/* redis_script.c */
void redis_script(struct text *out);   /* at most SCRIPT_MAX with its end */
extern const char redis_script_call[]; /* the first words of every call, made already */

struct redis;
struct redis_op;
struct listing;
struct txn;

/* A server that we know; of a plain Redis, the only one. */
struct node {
    struct node *next;
    struct redis *redis;
    struct redis_conn conn;
    uint8_t index;
    bool serves;             /* a master of slots, by the last map */
    struct txn *txn;         /* without scripts: of the request on its way; the others wait */
    int64_t clock_offset_ms; /* of its clock before ours; 0: not known */
    struct redis_op *first_queued, **last_queued;
};

/* What the script said. */
struct snapshot {
    bool holds; /* read, or written */
    bool wrote;
    bool unreadable; /* the record does not begin with a revision and a time */
    int64_t now_ms;
    struct stamp written; /* revision 0: there is no record of ours */
    const char *bytes;
    size_t length;
    bool foreign; /* somebody else's value stands under the plain name … */
    const char *value;
    size_t value_length;
    int64_t pttl_ms; /* … for so long; −1: without an end */
};

/* A look of our own has ended: one of both is there. The key stays until it returns. */
typedef void redis_query_done(void *caller, const char *key, const struct snapshot *snapshot,
                              const struct conn_error *error);

/* A request on its way; of the seam's user, or a look of our own. */
struct redis_op {
    struct conn_call call; /* first */
    struct redis *redis;
    struct redis_op *next, *prev; /* of all, in the order of their deadlines */
    struct redis_op *next_queued;
    struct node *node;       /* which it goes to; NULL while that is not known */
    struct redis_conn *conn; /* on which it was sent; NULL while it waits */
    unsigned redirects;
    bool asking;       /* the slot is on its way there */
    bool reloaded;     /* was sent again, because the script was not there */
    bool waits_behind; /* the write takes a place behind a stranger, and ours is the first */
    bool leaves_free;  /* the write leaves nobody who holds */
    bool breaks;       /* it breaks a stranger's hold */
    int64_t deadline_ms;
    struct store_request request;
    store_done *done; /* NULL: a look of our own … */
    void *caller;     /* … with this in its place */
    redis_query_done *query;
    struct listing *listing; /* of a list */
    char key[];              /* of a look */
};

enum pubsub_state { PUBSUB_OFF, PUBSUB_PENDING, PUBSUB_ON };

struct pubsub_channel {
    struct conn_call call; /* first */
    struct redis *redis;
    bool wanted;
    enum pubsub_state state;
    char name[CHANNEL_NAME_MAX];
};

struct key_watch {
    struct key_watch *next;
    store_done *done;
    void *caller;
    bool confirmed;
    char prefix[KEY_MAX + 1];
};

/* A key that changed, being looked at. */
struct change {
    struct change *next;
    struct redis *redis;
    bool again;      /* it changed once more meanwhile … */
    uint64_t newest; /* … to this revision, or, with 0, to who knows what */
    char key[KEY_MAX + 1];
};

/* A key that we wait for and a stranger holds. */
struct foreign_lock {
    struct foreign_lock *next;
    struct redis *redis;
    struct poller_timer poll;
    char key[KEY_MAX + 1];
};

struct redis {
    uint32_t magic;
    struct store_callbacks callbacks;
    int64_t timeout_ms;
    struct redis_url url;
    struct credentials credentials;
    struct poller *poller;
    struct random random;
    struct node main;           /* the first of all nodes */
    struct redis_conn pubsub;   /* where RESP2 does not let one connection do both */
    struct redis_conn sentinel; /* to a Sentinel */
    struct conn_call sentinel_call;
    unsigned turn;            /* which host is tried next */
    unsigned sentinels_asked; /* Sentinels, for the connection that is being opened */
    /* Connections that were refused, one after the other; and by Sentinels, of those asked. */
    size_t refusals, sentinel_refusals;
    size_t node_count;
    uint8_t slots[REDIS_SLOTS]; /* the node of each, by index; 0: ask the first */
    bool mapping, mapped;
    struct conn_call map_call;
    struct redis_op *first_op, *last_op;
    struct redis_op *first_queued, **last_queued;
    bool submitted; /* something, since the last step */
    struct poller_timer overdue;
    struct pubsub_channel wake, changes;
    struct key_watch *key_watches;
    struct change *first_change;
    size_t change_count;
    struct {
        uint64_t key, revision;
    } delivered[DELIVERED_SLOTS];
    struct foreign_lock *foreign_locks;
    size_t foreign_count;
    struct {
        uint64_t key, revision;
    } shown[SHOWN_SLOTS]; /* keys of which the core was told that a stranger holds them */
    struct listing *listings;
    uint64_t foreign_session; /* how we know again whom we showed the core */
    char why[160];            /* of the last answer, if it was made for it */
    struct record scratch;
    char encoded[RECORD_MAX + 1];
};

/* redis_driver.c */
/* A look of our own; false when out of memory. */
bool redis_query(struct redis *redis, const char *key, redis_query_done *query, void *caller);
/* More has to come for this request: its deadline begins anew. */
void redis_op_extend(struct redis_op *op);
/* It has had its last answer. */
void redis_op_free(struct redis_op *op);
/* Something may be sent now, or no more. */
void redis_flush(struct redis *redis);
/* Its only answer, and its end. */
void redis_op_end(struct redis_op *op, const struct snapshot *snapshot,
                  const struct conn_error *error);
/* Sends it now, to its node. */
void redis_op_send(struct redis_op *op);

/* redis_nodes.c */
void nodes_init(struct redis *redis, uint64_t seed);
void nodes_done(struct redis *redis);
struct node *node_for(struct redis *redis, unsigned slot);
/* Sent when the node can be written to, or told that it cannot. */
void node_queue(struct node *node, struct redis_op *op);
void nodes_send(struct redis *redis, bool flush);
/* True when the reply says where else to go, and the job goes there. */
bool node_redirects(struct redis_op *op, const struct resp_item *item);
/* Learns who serves what; list_on_map() hears when that is known. */
void nodes_map(struct redis *redis);

/* redis_sentinel.c */
void sentinel_init(struct redis *redis, uint64_t seed);
void sentinel_done(struct redis *redis);
/* As a link's locate: the Sentinels say who is the master. */
void sentinel_locate(void *owner);

/* redis_codec.c */
/* What is to be written, and for how long others must find the plain name taken: a length from this
 * write, or until a moment. What it points to stays until the next. */
struct draft {
    const char *bytes; /* none: the record is deleted */
    size_t length;
    bool knows_foreign; /* of a stranger who holds */
    int64_t fresh_ms, until_ms;
    int64_t retention_ms; /* 0: for ever; below 0: so much longer than the plain name */
    const char *by;
};

void draft_make(struct redis *redis, struct redis_op *op, struct draft *out);
void wake_channel_name(const struct redis *redis, uint64_t session, char *out);
/* The command of a swap, delete or look, as it is written. False when the key cannot be. */
bool command_send(struct redis *redis, struct redis_op *op, struct redis_conn *conn);
/* False when it makes no sense. */
bool snapshot_parse(const struct resp_item *item, struct resp_walk *walk, struct snapshot *out);
/* Can this be the script's reply to that request? */
bool snapshot_fits(const struct redis_op *op, const struct snapshot *snapshot);
/* Fills the answer of a request, or of a look for it; what it points to stays until the next. */
void snapshot_reply(struct redis *redis, const struct redis_op *op, const char *key,
                    const struct snapshot *snapshot, struct store_reply *out);
/* The same for a look of our own, which may have met a record that cannot be read. */
void redis_query_reply(struct redis *redis, const char *key, const struct snapshot *snapshot,
                       const struct conn_error *error, struct store_reply *out);

uint64_t redis_hash_of(const char *key);

/* redis_pubsub.c */
struct redis_conn *pubsub_conn(struct redis *redis);
void pubsub_init(struct redis *redis);
void pubsub_done(struct redis *redis);
/* Is everything heard that is wanted, or can it not be? */
bool pubsub_is_settled(const struct redis *redis);
void pubsub_subscribe(struct redis *redis, struct pubsub_channel *channel);
void pubsub_ready(struct redis *redis);
void pubsub_lost(struct redis *redis, const struct conn_error *error);
bool pubsub_pushed(struct redis *redis, struct redis_conn *conn, struct resp_walk *walk,
                   size_t count);
void pubsub_watch(struct redis *redis, const char *prefix, store_done *done, void *caller);

/* redis_foreign.c */
/* Who holds it is no client of ours: looks again and again, while our place is the first. */
void foreign_poll(struct redis *redis, const char *key);
void foreign_done(struct redis *redis);

/* redis_noscript.c: without scripts */
/* At most one at a time on a connection. */
bool txn_begin(struct node *node, struct redis_op *op);
void txn_free(struct txn *txn);

/* redis_list.c */
/* The job is its own then. */
void list_begin(struct redis *redis, struct redis_op *op);
void list_send(struct redis_op *op, struct redis_conn *conn);
void list_fail(struct redis_op *op, const struct conn_error *error);
/* With an error when it is not known who serves what. */
void list_on_map(struct redis *redis, const struct conn_error *error);
void list_done(struct redis *redis);

#endif
