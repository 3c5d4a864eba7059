/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the Redis driver (redis_driver.c, redis_codec.c, redis_pubsub.c …); not
 * for use elsewhere. */
#ifndef LEASEHOLD_STORE_REDIS_REDIS_INTERNAL_H
#define LEASEHOLD_STORE_REDIS_REDIS_INTERNAL_H

#include "base/random.h"
#include "store/pending.h"
#include "store/redis/redis_connection.h"
#include "wire/redis_names.h"

enum {
    CHANNEL_NAME_MAX = 64,
    FOREIGN_NAME_SHOWN = 100,
    DELIVERED_SLOTS = 1024, /* keys whose last reported revision is kept */
    SHOWN_SLOTS = 64,
    SCRIPT_MAX = 16 * 1024,
    WAKE_RECORD_MAX = 8 * 1024, /* a longer record is not sent with a wake message … */
    WAKE_SESSIONS_MAX = 8,      /* … nor is any, to more sessions than this */
};

/* redis_script.c */
void redis_script(struct text *out);   /* at most SCRIPT_MAX with the NUL */
extern const char redis_script_call[]; /* the first arguments of every call, encoded */

struct redis;
struct redis_op;
struct listing;
struct txn;

/* A known server; without a cluster, the only one. */
struct node {
    struct node *next;
    struct redis *redis;
    struct redis_conn conn;
    uint8_t index;
    bool serves;             /* master of some slots, by the last map */
    struct txn *txn;         /* without scripts: the transaction in flight; others wait */
    int64_t clock_offset_ms; /* its clock minus ours; 0: unknown */
    struct list queued;      /* until it is connected */
};

/* The script's reply. */
struct snapshot {
    bool holds; /* the condition held, or it was a read */
    bool wrote;
    bool unreadable; /* the record does not begin with a revision and a time */
    int64_t now_ms;
    struct stamp written; /* revision 0: there is no record of ours */
    const char *bytes;
    size_t length;
    bool foreign; /* another program's value is under the plain name … */
    const char *value;
    size_t value_length;
    int64_t pttl_ms; /* … for this time; −1: without a TTL */
};

/* Ends a query of our own, with a snapshot or an error. The key is valid until it returns. */
typedef void redis_query_done(void *caller, const char *key, const struct snapshot *snapshot,
                              const struct conn_error *error);

/* A command of our own for a hash slot. It belongs to its sender, and is sent again only after a
 * redirection. */
struct slot_call {
    unsigned slot;
    void (*send)(struct slot_call *slot_call, struct redis_conn *conn, struct conn_call *call);
    /* With an item that is no error, or with an error. */
    void (*end)(struct slot_call *slot_call, const struct resp_item *item, struct resp_walk *walk,
                const struct conn_error *error);
};

/* A request in flight: of the store's user, or a query of our own. */
struct redis_op {
    struct pending base; /* first; in a queue of the driver or of a node until it is sent */
    struct conn_call call;
    struct redis *redis;
    struct node *node;       /* the destination; NULL while unknown */
    struct redis_conn *conn; /* where it was sent; NULL while it waits */
    unsigned redirects;
    bool asking;                 /* the slot is being migrated there */
    bool reloaded;               /* resent because the server did not have the script */
    bool migrates;               /* resent because not all keys of the slot are there */
    bool waits_behind;           /* the write queues first behind a foreign lock */
    bool leaves_free;            /* the write leaves no holder */
    bool breaks;                 /* it breaks a foreign lock */
    redis_query_done *query;     /* NULL: not a query of our own */
    char *key;                   /* of a query; owned */
    bool again;                  /* query of a change: the key changed again meanwhile … */
    uint64_t newest;             /* … to this revision; 0: unknown */
    struct listing *listing;     /* of a list */
    struct slot_call *slot_call; /* a command of our own */
};

static inline struct redis_op *redis_op_of(struct conn_call *call)
{
    return (struct redis_op *)(void *)((char *)call - offsetof(struct redis_op, call));
}

enum pubsub_state { PUBSUB_OFF, PUBSUB_PENDING, PUBSUB_ON };

struct pubsub_channel {
    struct conn_call call; /* first */
    struct redis *redis;
    bool wanted;
    enum pubsub_state state;
    char name[CHANNEL_NAME_MAX];
};

/* A key that we wait for and that has a foreign lock. */
struct foreign_lock {
    struct list_node node;
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
    struct redis_conn pubsub;   /* for RESP2, which needs a connection for pub/sub */
    struct redis_conn sentinel; /* to a Sentinel */
    struct conn_call sentinel_call;
    unsigned turn;            /* index of the host to try next */
    unsigned sentinels_asked; /* for the connection that is being opened */
    /* Consecutive refused connections; and those of the Sentinels asked. */
    size_t refusals, sentinel_refusals;
    size_t node_count;
    uint8_t slots[REDIS_SLOTS]; /* node index per slot; 0: query the first */
    bool mapping, mapped;
    struct conn_call map_call;
    struct pending_set pending;
    struct list queued; /* for the next step */
    bool submitted;     /* requests, since the last step */
    struct pubsub_channel wake, changes;
    struct watchers watchers;
    struct {
        uint64_t key, revision;
    } delivered[DELIVERED_SLOTS];
    struct list foreign_locks;
    size_t foreign_count;
    struct {
        uint64_t key, revision;
    } shown[SHOWN_SLOTS]; /* keys whose foreign lock was reported to the core */
    struct list listings;
    uint64_t foreign_session; /* identifies the grants that stand for foreign locks */
    char why[160];            /* of the last reply, if composed for it */
    struct record scratch;
    char encoded[RECORD_MAX + 1];
};

/* redis_driver.c */
/* Starts a query of our own; false if out of memory. */
bool redis_query(struct redis *redis, const char *key, redis_query_done *query, void *caller);
/* Sends a command to the node of its slot; false if out of memory. */
bool redis_call_slot(struct redis *redis, struct slot_call *slot_call);
/* Dispatches queued requests, up to the first that must wait for a subscription. */
void redis_flush(struct redis *redis);
/* Delivers the only reply and frees the request. */
void redis_op_end(struct redis_op *op, const struct snapshot *snapshot,
                  const struct conn_error *error);
/* Sends the request to its node now. */
void redis_op_send(struct redis_op *op);

/* redis_nodes.c */
void nodes_init(struct redis *redis, uint64_t seed);
void nodes_done(struct redis *redis);
struct node *node_for(struct redis *redis, unsigned slot);
/* The request is sent when the node is connected, or fails if that is impossible. */
void node_queue(struct node *node, struct redis_op *op);
void nodes_send(struct redis *redis, bool flush);
/* True if the reply is a redirection; the request is then queued for that node. */
bool node_redirects(struct redis_op *op, const struct resp_item *item);
/* Loads the cluster map; then calls list_on_map(). */
void nodes_map(struct redis *redis);

/* redis_sentinel.c */
void sentinel_init(struct redis *redis, uint64_t seed);
/* The `locate` callback of the main connection: queries the Sentinels for the master. */
void sentinel_locate(void *owner);

/* redis_codec.c */
/* A write, and how long the plain name must block other programs: for a duration from this write,
 * or until a time. Its pointers are valid until the next draft. */
struct draft {
    const char *bytes; /* without a length: deletes the record */
    size_t length;
    bool sole;          /* one grant and nothing else: the plain name has the record */
    bool knows_foreign; /* the core has seen the foreign lock */
    int64_t fresh_ms, until_ms;
    int64_t retention_ms; /* 0: no TTL; negative: this much longer than the plain name */
    const char *by;
};

void draft_make(struct redis *redis, struct redis_op *op, struct draft *out);
void wake_channel_name(const struct redis *redis, uint64_t session, char *out);
/* Sends the command of a swap, delete or query. False if the key has no valid name. */
bool command_send(struct redis *redis, struct redis_op *op, struct redis_conn *conn);
/* Sets record and stamp from "<revision> <time> <bytes>"; false if it is something else. */
bool snapshot_set_record(struct snapshot *snapshot, const char *text, size_t length);
/* False if the reply is malformed. */
bool snapshot_parse(const struct resp_item *item, struct resp_walk *walk, struct snapshot *out);
/* True if this can be the script's reply to the request. */
bool snapshot_fits(const struct redis_op *op, const struct snapshot *snapshot);
/* Fills the reply to a request or to a query for it; its pointers are valid until the next call. */
void snapshot_reply(struct redis *redis, const struct redis_op *op, const char *key,
                    const struct snapshot *snapshot, struct store_reply *out);
struct store_reply redis_error_reply(const struct conn_error *error);
/* The same for a query of our own, which may have found an unreadable record. */
void redis_query_reply(struct redis *redis, const char *key, const struct snapshot *snapshot,
                       const struct conn_error *error, struct store_reply *out);

/* redis_epoch.c */
enum { EPOCH_MARK_MAX = 32 };
enum reply_status redis_epoch(const char *url, const struct epoch_options *options,
                              struct epoch_state *out, struct text *why);
/* The name that a raise of the epoch writes in every slot, for transactions to watch. */
void redis_epoch_mark(unsigned slot, char out[EPOCH_MARK_MAX]);

/* redis_diagnose.c */
void redis_diagnose(const char *url, const struct diagnosis *diagnosis);

/* redis_pubsub.c */
struct redis_conn *pubsub_conn(struct redis *redis);
void pubsub_init(struct redis *redis);
/* True if all needed channels are subscribed, or cannot be. */
bool pubsub_is_settled(const struct redis *redis);
void pubsub_subscribe(struct redis *redis, struct pubsub_channel *channel);
void pubsub_ready(struct redis *redis);
void pubsub_lost(struct redis *redis, const struct conn_error *error);
bool pubsub_pushed(struct redis *redis, struct redis_conn *conn, struct resp_walk *walk,
                   size_t count);
void pubsub_watch(struct redis_op *op);

/* redis_foreign.c */
/* Polls a key with a foreign lock while our waiter is the first. */
void foreign_poll(struct redis *redis, const char *key);
void foreign_done(struct redis *redis);

/* redis_noscript.c */
/* Starts a transaction, at most one at a time per connection. */
bool txn_begin(struct node *node, struct redis_op *op);
void txn_free(struct txn *txn);

/* redis_list.c */
/* Takes ownership of the request. */
void list_begin(struct redis *redis, struct redis_op *op);
void list_send(struct redis_op *op, struct redis_conn *conn);
void list_fail(struct redis_op *op, const struct conn_error *error);
/* With an error if the map could not be loaded. */
void list_on_map(struct redis *redis, const struct conn_error *error);
void list_done(struct redis *redis);

#endif
