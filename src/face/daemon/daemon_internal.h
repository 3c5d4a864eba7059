/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the daemon. One thread. A connection has slots, one per command, in which
 * replies wait for their turn; an acquisition outlives its slot and its connection until the
 * library has called back.
 */
#ifndef LEASEHOLD_FACE_DAEMON_DAEMON_INTERNAL_H
#define LEASEHOLD_FACE_DAEMON_DAEMON_INTERNAL_H

#include "base/list.h"
#include "face/daemon/credentials.h"
#include "face/daemon/daemon.h"
#include "face/daemon/may.h"
#include "leasehold_admin.h"
#include "leasehold_once.h"
#include "net/listener.h"
#include "net/poller.h"
#include "net/stream.h"
#include "net/tls_server.h"
#include "runtime/table.h"
#include "wire/metrics.h"
#include "wire/json_members.h"
#include "wire/resp_command.h"
#include "wire/resp_reply.h"

enum {
    CONNECTION_IN_MAX = 1 << 20,  /* unread bytes of a connection … */
    CONNECTION_OUT_MAX = 1 << 20, /* … and unsent ones */
    CONNECTION_NAME_MAX = 64,
    BUFFERED_MAX = 256 << 20, /* of all connections */
    PIPELINE_MAX = 1024,      /* commands of a connection without a reply */
    COMMAND_BULK_MAX = 16 * 1024,
    COMMAND_MAX = 64 * 1024,
    WAITERS_LIMIT = 100000,
    WATCHES_LIMIT = 256,
    REQUEST_IDS_LIMIT = 200000,
    HANDSHAKE_MS = 10000, /* of TLS */
    KEEP_PLACE_MS = 5000, /* for a client that lost its connection and repeats its request id */
    VIEW_REPLY_SIZE = 8 * 1024, /* without the encoded record */
    REPLY_SIZE = 8 * 1024 + COMMAND_BULK_MAX,
    KEY_BUCKETS = 64,
    BEFORE_AUTH_BYTES = 4096,     /* of a command, and unsent ones, before AUTH */
    BEFORE_AUTH_CONNECTIONS = 64, /* of one address */
    BEFORE_AUTH_MS = 10000,
    AUTH_TRIES = 5,   /* wrong ones of a connection */
    MEMORY_BURST = 6, /* connections: below the 7 blocks of a size that malloc keeps at hand */
    WORDS_META_MAX = 16,
    API_VERSION = 1,
    HOLDS_SLOTS = 32768, /* of the table of grants for the metrics … */
    HOLDS_MAX = 24576,   /* … and how many of them are used */
    DAEMON_METRICS_SIZE = METRICS_TEXT_MAX + 16 * 1024,
};

enum connection_protocol { CONNECTION_RESP, CONNECTION_HTTP };

struct daemon_connection;
struct daemon_slot;
struct daemon_verb;
struct acquisition;
struct daemon_claim;
struct request_id;
struct http_connection;
struct http_face;

/* Arguments, NUL-terminated. */
struct daemon_args {
    size_t count;
    size_t positional;   /* of them behind the name, before the words; set by the dispatch … */
    bool has_positional; /* … unless it is known */
    const char *text[RESP_ARGS_MAX];
};

/* The words of a command: "WAIT 500". Bits of `given` are those of enum daemon_word. */
enum daemon_word {
    WORD_WAIT = 1 << 0,
    WORD_ASYNC = 1 << 1,
    WORD_SHARED = 1 << 2,
    WORD_LIMIT = 1 << 3,
    WORD_PRIORITY = 1 << 4,
    WORD_COOLDOWN = 1 << 5,
    WORD_LOCKDELAY = 1 << 6,
    WORD_META = 1 << 7,
    WORD_ID = 1 << 8,
    WORD_BIND = 1 << 9,
    WORD_CACHED = 1 << 10,
    WORD_RAW = 1 << 11,
    WORD_AFTER = 1 << 12,
    WORD_COUNT = 1 << 13,
    WORD_NOW = 1 << 14,
    WORD_PAYLOAD = 1 << 15,
    WORD_KEEP = 1 << 16,
    WORD_STATUS = 1 << 17,
    WORD_RESULT = 1 << 18,
    WORD_OVERLAP = 1 << 19,
    WORD_ORDER = 1 << 20,
};

struct daemon_words {
    unsigned given;
    int64_t wait_ms, limit, priority, cooldown_ms, lock_delay_ms, count, keep_ms, status,
        overlap_ms;
    const char *id, *after, *payload, *result, *order;
    struct lh_meta meta[WORDS_META_MAX];
    size_t meta_count;
    char meta_text[2048];
};

struct daemon_counters {
    uint64_t connections, web_connections, commands, cut;
};

enum daemon_refusal_class {
    REFUSED_PROTOCOL, /* not RESP, or bytes that no command may have */
    REFUSED_COMMAND,  /* unknown, or with wrong arguments */
    REFUSED_NOT_AUTHENTICATED,
    REFUSED_CREDENTIAL, /* wrong */
    REFUSED_NOT_PERMITTED,
    REFUSED_CONNECTION,  /* beyond --max-connections */
    REFUSED_SLOW_CLIENT, /* cut */
    REFUSED_LIMIT,       /* too many waiters, watches or request ids */
    REFUSED_TLS,         /* the handshake failed */
    REFUSED_HTTP,        /* malformed */
    REFUSED_DRAINING,
    REFUSAL_CLASSES
};

struct daemon_refusals {
    uint64_t count;
    uint64_t unwritten; /* of those, since the last line */
    int64_t quiet_until_ms;
};

struct daemon_hold;
struct daemon_holds {
    struct daemon_hold *slots; /* NULL: none yet */
    size_t count;
    unsigned share; /* one of 2^share grants is kept */
    uint64_t seed, lost;
    uint64_t times[METRIC_HISTOGRAM]; /* of _lock_hold_duration_seconds */
};

struct daemon_probe {
    struct list waiters; /* struct probe_waiter */
    struct poller_timer deadline;
    bool in_flight, known, down;
    int64_t at_ms; /* when it became known */
    char why[LH_TEXT_SIZE];
};

struct daemon {
    struct lh_client *client;
    const struct daemon_options *options;
    struct poller *poller;
    struct poller_watch store_watch, signal_watch;
    struct poller_deferred turn_end;    /* one step of the store per turn */
    struct listener *tcp, *local, *web; /* RESP, RESP on a unix socket, HTTP */
    struct http_face *http;             /* NULL: not served */
    struct tls_server *tls;             /* of connections by TCP; NULL: none */
    struct list connections;
    size_t connection_count, web_count; /* all, and those of HTTP */
    size_t buffered;
    struct list free_slots, free_acquisitions; /* kept for reuse */
    struct list acquisitions;                  /* that wait or are in flight … */
    struct list waiting;                       /* … and those with WAIT, the oldest first */
    struct table request_ids;
    struct table bindings;            /* by key and token */
    struct credentials *credentials;  /* NULL: every peer may do everything */
    struct table before_auth;         /* by address: connections that must send AUTH */
    struct list claims, claim_queues; /* see verbs_claim.c */
    size_t claim_count, claim_queue_count;
    size_t waiters, watches;
    size_t calls; /* slots, renewals and releases that the library may still call back for */
    uint64_t last_connection;
    int64_t started_ms;
    struct daemon_counters counters;
    struct daemon_refusals refusals[REFUSAL_CLASSES];
    struct poller_timer refusals_timer;
    struct daemon_holds holds;
    struct daemon_probe probe;
    size_t other_files; /* open ones that are no connections, when they were counted last */
    bool stopping, store_readable;
    bool draining; /* a signal was received: no new grants */
    struct poller_timer drain_timer;
    int64_t drain_until_ms, drain_linger_ms;
    /* of the command that is being started; on the stack they would be zeroed every time */
    struct resp_command command;
    struct daemon_args args;
    struct daemon_words words;
    char arguments[COMMAND_MAX + RESP_ARGS_MAX], denied_key[LH_KEY_SIZE], refusal[768];
    char record[LH_RECORD_SIZE];
    struct lh_report report; /* of a call that could not be started */
    char reply[REPLY_SIZE];  /* that is being written */
};

/* The identity of a peer: see auth.c. All zero: it may do everything. */
struct auth {
    const struct login *login;    /* NULL: none */
    bool accepted;                /* from a socket; otherwise stdin */
    bool needed;                  /* AUTH, before anything else … */
    struct auth_address *address; /* … with its place there … */
    struct poller_timer timer;    /* … until then */
    unsigned wrong;               /* tries */
    char *certificate;            /* the verified name; NULL: none */
    struct listener_peer peer;
};

struct daemon_connection {
    struct daemon *daemon;
    struct list_node node;
    struct stream *stream;
    const struct may_identity *who;
    struct auth auth;
    uint64_t number;
    unsigned protocol; /* 2 or 3 */
    struct list slots; /* commands without a reply, in the order of their arrival */
    size_t slot_count;
    uint16_t keys_in_flight[KEY_BUCKETS]; /* by hash: a later command on the same key waits */
    struct daemon_slot *alone;            /* holds back all commands behind it */
    struct list acquisitions;             /* of this connection, asynchronous ones included */
    struct list bindings;
    struct list watches;
    size_t watch_count, buffered;
    bool handshaking;             /* TLS is not established yet */
    bool ending;                  /* no further command is read */
    bool input_over;              /* stdin has ended: ends when all commands have their replies */
    bool pausing;                 /* the stream is paused */
    bool idle;                    /* at the last review of the drain */
    struct http_connection *http; /* NULL: it speaks RESP */
    char name[CONNECTION_NAME_MAX + 1];
};

/* The place of a reply. */
struct daemon_slot {
    struct list_node node;                /* of the connection's, or of free ones */
    struct daemon_connection *connection; /* NULL: it has ended */
    struct daemon *daemon;
    const struct daemon_verb *verb;
    struct acquisition *acquisition; /* whose result is the reply; NULL: none */
    char *reply;                     /* finished before an earlier one; NULL: not finished */
    size_t reply_length;
    int bucket;    /* of its key, or -1 */
    uint64_t hold; /* hold_id() of the grant that the verb renews or ends; hold_key() of a claim */
    void *memory;  /* of the verb, freed with the slot */
    bool raw;
    bool unused; /* its acquisition and its connection have left it */
};

/* An acquisition in flight or waiting. The library calls back exactly once. */
struct acquisition {
    struct list_node node;       /* of the connection's; or of free ones */
    struct list_node in_all;     /* of the daemon's … */
    struct list_node in_waiting; /* … and if it waits, of those */
    struct daemon *daemon;
    struct daemon_connection *connection; /* NULL: it has ended */
    struct daemon_slot *slot;             /* NULL: asynchronous, or the connection has ended */
    struct lh_request *started;
    struct request_id *id; /* NULL: none */
    struct poller_timer keep_timer;
    int64_t ttl_ms, began_ms;
    bool asynchronous, binds, waits;
    bool drained;   /* cancelled because the daemon stops */
    char *shown_id; /* asynchronous: the id as the client wrote it */
    char holder[LH_HOLDER_SIZE];
};

enum daemon_keys {
    KEYS_NONE,
    KEYS_FIRST,   /* the first argument */
    KEYS_COUNTED, /* the first argument is their number */
    KEYS_PREFIX,  /* what it shows is filtered */
    KEYS_CHOSEN,  /* the verb finds them, and asks for each */
};

struct daemon_verb {
    const char *name; /* upper-case */
    enum may_verb may;
    enum daemon_keys keys;
    const char *prefix; /* of its keys in the store: "once:"; NULL: none */
    size_t args_min;    /* positional ones, which the words follow */
    size_t args_max;
    unsigned words;
    bool alone;      /* waits for all earlier commands, and later ones wait for it */
    bool subscriber; /* also after a subscription with RESP2 */
    void (*run)(struct daemon_slot *slot, const struct daemon_args *args,
                const struct daemon_words *words);
    const char *usage; /* its arguments */
};

/* ---- daemon.c ---- */
/* Without sockets and signals. Takes over the client. NULL when out of memory or descriptors. */
struct daemon *daemon_new(struct lh_client **client, const struct daemon_options *options);
void daemon_free(struct daemon *daemon);
/* Something was started: the store is stepped at the end of this turn. */
void daemon_turn(struct daemon *daemon);
/* Releases a grant for which nobody waits. */
void daemon_release(struct daemon *daemon, const char *key, uint64_t token);

/* ---- daemon_log.c ---- */
void daemon_log(const struct daemon *daemon, enum daemon_level level, const char *event,
                const char *text);
/* Counts it, and writes a line unless the class had one within the last second. `peer` and
 * `identity` may be NULL. `text` has no key, no secret and no bytes of the client, except for 40
 * clean ones of a command's name. */
void daemon_refused(struct daemon *daemon, enum daemon_refusal_class class, const char *peer,
                    const char *identity, const char *text);
void connection_refused(struct daemon_connection *connection, enum daemon_refusal_class class,
                        const char *text);
const char *refusal_class_name(enum daemon_refusal_class class);
/* Malformed, or not permitted. */
uint64_t refusals_of_commands(const struct daemon *daemon);
/* Writes what is left. */
void daemon_log_done(struct daemon *daemon);

/* ---- auth.c ---- */
/* Reads the file of credentials, if there is one. False with the reason. */
bool auth_load(struct daemon *daemon, struct text *why);
/* Reads it again. If that fails, the previous credentials stay. Connections whose credential is
 * gone are cut. */
void auth_reload(struct daemon *daemon);
/* False, with the reason, if others could reach it without TLS and credentials. */
bool auth_check_listener(const struct daemon *daemon, const struct listener *listener,
                         struct text *why);
/* NULL, or the reply for a peer whose connection is refused. */
const char *auth_refusal(const struct daemon *daemon, const struct listener_peer *peer);
/* A new connection that was accepted. */
void auth_start(struct daemon_connection *connection, const struct listener_peer *peer);
/* The name in its client certificate, which was verified. */
void auth_on_certificate(struct daemon_connection *connection, const char *name);
/* As if AUTH had not been sent. */
void auth_restart(struct daemon_connection *connection);
void auth_end(struct daemon_connection *connection);
/* False: AUTH is needed before that verb. NULL: an unknown one. */
bool auth_allows_verb(const struct daemon_connection *connection, const struct daemon_verb *verb);
/* `name` NULL: any. Wipes the secret. False: refused already. */
bool auth_login(struct daemon_slot *slot, const char *name, const char *secret);
/* From now on the peer has this login of daemon->credentials; NULL: it may do everything. */
void auth_use(struct daemon_connection *connection, const struct login *login);

/* ---- daemon_tls.c ---- */
/* Reads the files of TLS, if there are any. False with the reason. */
bool daemon_start_tls(struct daemon *daemon, struct text *why);
/* Reads them again. If that fails, the previous ones stay. */
void daemon_reload_tls(struct daemon *daemon);

/* ---- connection.c ---- */
/* Takes ownership of the files. NULL when out of memory. */
struct daemon_connection *connection_open(struct daemon *daemon, int in, int out, const char *name,
                                          enum connection_protocol protocol,
                                          struct tls_server *tls);
enum connection_end {
    CONNECTION_PEER_CLOSED, /* its bound grants are released */
    CONNECTION_CUT,         /* by us, or broken: its grants are left to their TTL (D1) */
};
void connection_end(struct daemon_connection *connection, enum connection_end end);
/* Ends it once everything written was sent. */
void connection_end_after_replies(struct daemon_connection *connection);
/* The reply of the slot, which is freed. Sent when all earlier ones were. */
void slot_reply(struct daemon_slot *slot, const struct resp_reply *reply);
void slot_reply_bytes(struct daemon_slot *slot, const char *bytes, size_t length);
/* Text after "-ERR ". */
void slot_reply_error(struct daemon_slot *slot, const char *code, const char *text);
/* A push, or with RESP2 a message of a subscriber. */
void connection_push(struct daemon_connection *connection, const struct resp_reply *reply);
unsigned slot_protocol(const struct daemon_slot *slot);
/* A new slot behind all others; NULL when out of memory. */
struct daemon_slot *connection_slot(struct daemon_connection *connection);
/* Behind all others but that one, which must be the last. */
struct daemon_slot *connection_slot_before(struct daemon_slot *slot);
/* Frees the slots that are kept for reuse. */
void slots_free(struct daemon *daemon);
/* Bytes that are no reply of a slot. */
void connection_write(struct daemon_connection *connection, const char *bytes, size_t length);
/* Counts the buffers of a connection. False: all together are too large, and it was cut. */
bool connection_account(struct daemon_connection *connection);
/* Reads no further bytes until a reply was sent, or it is resumed. */
void connection_pause(struct daemon_connection *connection);
void connection_resume(struct daemon_connection *connection);

/* ---- dispatch.c ---- */
/* By name in upper or lower case; NULL: none. */
const struct daemon_verb *verb_find(const char *name);
const struct daemon_verb *verb_at(size_t index);
/* NULL, or the key that the identity may not use. `out_key` is memory for it. */
const char *verb_denied_key(const struct daemon_verb *verb, const struct daemon_args *args,
                            const struct may_identity *who, char out_key[LH_KEY_SIZE]);
/* Starts the command. False: it must wait for an earlier one, and is passed again later. */
bool dispatch_command(struct daemon_connection *connection, const struct resp_command *command);
/* The same for arguments that another protocol made, valid until it returns. */
bool dispatch_args(struct daemon_connection *connection, struct daemon_args *args);

/* ---- words.c ---- */
/* False with a reason for the peer, which names fields of JSON instead of words with `as_fields`.
 * Words begin at args->text[from]. */
bool words_parse(const struct daemon_args *args, size_t from, unsigned allowed, bool as_fields,
                 struct daemon_words *out, struct text *why);
/* A word as a member of a JSON body; a bool stands for a word without a value. */
struct word_field {
    const char *name; /* NULL: only RESP has it */
    const char *word;
    unsigned bit;
    enum json_kind kind;
};
bool words_field_at(size_t index, struct word_field *out); /* false behind the last */
bool words_is_number(const char *text, int64_t *out);
bool words_is_token(const char *text, uint64_t *out);
/* The word's bit; 0: it is none. */
unsigned words_find(const char *text);

/* ---- replies.c ---- */
/* In the daemon's memory: it is sent before the next one begins. */
void reply_begin(struct resp_reply *out, struct daemon *daemon, unsigned protocol);
/* A map of outcome, token, holder, since_ms, ends_in_ms, text, and `more` pairs that follow. */
void reply_report(struct resp_reply *out, const struct lh_report *report, size_t more);
/* The same of a new grant, whose report does not name its holder and its TTL. */
void reply_granted(struct resp_reply *out, const struct lh_report *report, const char *holder,
                   int64_t ttl_ms, size_t more);
/* A map of a key; `outcome` NULL: as part of a list; `record` NULL: without the encoded record. */
void reply_view(struct resp_reply *out, const char *outcome, const struct lh_view *view,
                const char *record, size_t record_length);
void view_to_event_json(const struct lh_view *view, struct text *out);
/* The record of a view without its request ids; its length. */
size_t view_record_shown(const struct lh_view *view, char *out, size_t size);
void reply_pair(struct resp_reply *out, const char *name, const char *value);
void reply_pair_number(struct resp_reply *out, const char *name, int64_t value); /* -1: null */
void reply_pair_token(struct resp_reply *out, const char *name, uint64_t token); /* 0: null */
void slot_reply_report(struct daemon_slot *slot, const struct lh_report *report);
/* For started calls: if the outcome is not LH_OK, replies with the report. */
void slot_started(struct daemon_slot *slot, enum lh_outcome outcome,
                  const struct lh_report *report);
/* An lh_done_fn whose user is the slot. */
void slot_on_done(void *user, struct lh_lease *lease, const struct lh_report *report);
/* The same after a renewal or a release of the grant slot->hold. */
void slot_on_renewed(void *user, struct lh_lease *lease, const struct lh_report *report);
void slot_on_released(void *user, struct lh_lease *lease, const struct lh_report *report);

/* ---- acquisitions.c ---- */
void verb_acquire(struct daemon_slot *slot, const struct daemon_args *args,
                  const struct daemon_words *words);
void verb_acquire_all(struct daemon_slot *slot, const struct daemon_args *args,
                      const struct daemon_words *words);
void verb_cancel(struct daemon_slot *slot, const struct daemon_args *args,
                 const struct daemon_words *words);
/* The connection has ended: waiters give up, or keep their place for a while if they have an id. */
void acquisitions_orphan(struct daemon_connection *connection);
/* Waiters give up and get their replies. */
void acquisitions_stop_waiting(struct daemon_connection *connection);
/* The daemon stops: waiters give up, and are told so. */
void acquisitions_drain(struct daemon *daemon);
/* At the end of the daemon: the first, then, when the library has called back, the second. */
void acquisitions_cancel_all(struct daemon *daemon);
void acquisitions_free(struct daemon *daemon);

/* ---- drain.c ---- */
/* Begins the orderly end: sets `draining`, and `stopping` when it is over. */
void drain_begin(struct daemon *daemon);
void drain_done(struct daemon *daemon);
/* The result of what would be a new grant. */
void drain_report(struct lh_report *out);
/* True if it has replied so, because the daemon stops. */
bool drain_refuses(struct daemon_slot *slot);

/* ---- request_ids.c ---- */
/* A request id in use: what was asked with it, and the acquisition that still waits. */
struct request_id {
    struct table_node node;
    struct daemon *daemon;
    struct poller_timer expiry;
    struct acquisition *acquisition; /* NULL: it has ended */
    struct daemon_claim *claim;      /* NULL: it has ended, or it is none … */
    uint64_t issue;                  /* … and got this one; 0: none */
    char *key, *holder;              /* keys are joined by line ends */
    char text[65];                   /* of identity and id: the id in the store */
};
enum { REQUEST_ID_MAX = 256 };
/* NULL, or what is wrong with the id of a command, if it has one. */
const char *request_id_wrong(const struct daemon_connection *connection,
                             const struct daemon_words *words);
/* The id in the store: equal for equal identity and id, and useless to readers of the store. */
void request_id_name(const struct may_identity *who, const char *id, char out[65]);
struct request_id *request_id_find(struct daemon *daemon, const char *name);
/* NULL when out of memory, or at the limit. */
struct request_id *request_id_new(struct daemon *daemon, const char *name, const char *key,
                                  const char *holder);
/* It does not expire: another acquisition uses it. */
void request_id_keep(struct request_id *id);
/* It is forgotten after that time, 0: at once. */
void request_id_expire(struct request_id *id, int64_t after_ms);
void request_ids_free(struct daemon *daemon);

/* ---- bindings.c ---- */
/* The daemon renews the grant until the connection ends; replaces a binding of the same grant. */
void binding_add(struct daemon_connection *connection, const char *key, uint64_t token,
                 int64_t ttl_ms);
void binding_remove(struct daemon *daemon, const char *key, uint64_t token);
/* Releases the grants, or leaves them to their TTL. */
void bindings_end(struct daemon_connection *connection, bool release);
/* Grants that the identity of the connection may no longer renew are left to their TTL. */
void bindings_check_rights(struct daemon_connection *connection);

/* ---- daemon_holds.c: grants, for the metrics ---- */
/* Of a key with the prefix of its verb, which may be ""; and of a grant of it. */
uint64_t hold_key(struct daemon *daemon, const char *prefix, const char *key);
uint64_t hold_id(uint64_t key, uint64_t token);
void hold_granted(struct daemon *daemon, uint64_t id, int64_t ttl_ms);
/* The result of a renewal: stale is a loss. `ttl_ms` if the report does not say when it ends. */
void hold_renewed(struct daemon *daemon, uint64_t id, const struct lh_report *report,
                  int64_t ttl_ms);
/* The result of a release: stale is a loss if the grant is known and was not ended before. */
void hold_released(struct daemon *daemon, uint64_t id, enum lh_outcome outcome);
void hold_lost(struct daemon *daemon, uint64_t id);
/* Grants whose TTL is not over; above HOLDS_MAX an estimate. */
uint64_t holds_count(const struct daemon *daemon);
void holds_free(struct daemon *daemon);

/* ---- daemon_probe.c ---- */
/* One who asks whether the store answers; in the asker's memory. */
struct probe_waiter {
    struct list_node node;
    bool waits;
    void (*done)(void *user, bool up, const char *why);
    void *user;
};
/* Calls done(), at once if the last result is younger than 1 s, and within 2 s in any case. Not up
 * while the daemon is draining. */
void probe_ask(struct daemon *daemon, struct probe_waiter *waiter);
/* done() will not be called; also allowed after it was. */
void probe_cancel(struct daemon *daemon, struct probe_waiter *waiter);
/* Nobody waits for the result, but the metrics show it. */
void probe_refresh(struct daemon *daemon);
void probe_end(struct daemon *daemon);

/* ---- daemon_metrics.c ---- */
/* The text of /metrics, with the prefix of the options. `out` has DAEMON_METRICS_SIZE bytes. False
 * when out of memory. Starts a probe of the store if the last one is old: the next text has it. */
bool daemon_metrics_write(struct daemon *daemon, struct text *out);

/* ---- verbs_key.c ---- */
void verb_renew(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);
void verb_release(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);
void verb_status(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);
void verb_break(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);
void verb_clear(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);

/* ---- verbs_once.c ---- */
void verb_once_begin(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);
void verb_once_renew(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);
void verb_once_finish(struct daemon_slot *, const struct daemon_args *,
                      const struct daemon_words *);
void verb_once_abandon(struct daemon_slot *, const struct daemon_args *,
                       const struct daemon_words *);
void verb_once_status(struct daemon_slot *, const struct daemon_args *,
                      const struct daemon_words *);
void verb_once_mark(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);
void verb_watermark_get(struct daemon_slot *, const struct daemon_args *,
                        const struct daemon_words *);
void verb_watermark_begin(struct daemon_slot *, const struct daemon_args *,
                          const struct daemon_words *);
void verb_watermark_advance(struct daemon_slot *, const struct daemon_args *,
                            const struct daemon_words *);
void verb_watermark_set(struct daemon_slot *, const struct daemon_args *,
                        const struct daemon_words *);

/* ---- verbs_claim.c ---- */
void verb_claim(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);
/* The library still calls back. */
void claim_cancel(struct daemon_claim *claim);
/* Those of the connection, or of them those that wait. */
void claims_cancel(struct daemon_connection *connection, bool waiting_only);
/* The daemon stops: as acquisitions_drain(). */
void claims_drain(struct daemon *daemon);
/* When none is in flight any more. */
void claims_free(struct daemon *daemon);

/* ---- pages.c ---- */
void verb_list(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);
void verb_history(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);

/* ---- watches.c ---- */
void verb_watch(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);
void verb_unwatch(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);
void verb_subscribe(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);
void verb_unsubscribe(struct daemon_slot *, const struct daemon_args *,
                      const struct daemon_words *);
void watches_end_all(struct daemon_connection *connection);
/* The daemon stops: the watches end, and the peer gets a push. */
void watches_drain(struct daemon_connection *connection);

/* ---- verbs_session.c ---- */
void verb_hello(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);
void verb_auth(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);
void verb_ping(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);
void verb_echo(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);
void verb_client(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);
void verb_command(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);
void verb_info(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);
void verb_quit(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);
void verb_reset(struct daemon_slot *, const struct daemon_args *, const struct daemon_words *);

#endif
