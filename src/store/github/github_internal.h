/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the GitHub driver. No other file includes it. */
#ifndef LEASEHOLD_STORE_GITHUB_GITHUB_INTERNAL_H
#define LEASEHOLD_STORE_GITHUB_GITHUB_INTERNAL_H

#include "base/list.h"
#include "http/github_api.h"
#include "store/issues/issue_board.h"
#include "store/pending.h"
#include "wire/github_commit.h"

enum {
    GITHUB_STORE_MAGIC = 0x61D8,
    GITHUB_PATH = 64 + GITHUB_PATH_NAME_MAX,
    GITHUB_MESSAGE_MAX = 80 * 1024, /* a record and the lines around it */
    GITHUB_REQUESTS_MAX = 1024,     /* in flight; more are refused */
    GITHUB_HEADS_MAX = 2048,        /* keys whose head is cached */
    GITHUB_WORKERS_MAX = 256,       /* other workers whose heartbeat is cached */
    GITHUB_MARGIN_MS = 3000,        /* two dates of whole seconds, and the servers' clocks */
    GITHUB_QUEUE_MAX = 32,
    GITHUB_TITLE = 1024,
    GITHUB_UNIQUE = 48,
    GITHUB_WHY = 512,
};

#define GITHUB_MALFORMED "the reply of GitHub lacks what it must contain"

struct diagnosis;
struct github;
struct github_operation;

/* Handles the reply to a request of an operation. */
typedef void github_handler(struct github_operation *operation, const struct github_reply *reply);

/* The head of a key's ref, as last read or written. Commits never change, so it stays true until
 * the ref moves. */
struct github_head {
    struct list_node node;          /* the least recently used first */
    char name[GITHUB_NAME_MAX + 1]; /* of the ref */
    unsigned users;                 /* operations that use it now */
    bool known;                     /* the fields below are those of the ref */
    char sha[GITHUB_SHA + 1];       /* "": there is no ref */
    char etag[GITHUB_ETAG_MAX + 1];
    uint64_t revision; /* of the head, or the highest that was seen before the ref was deleted */
    int64_t time_ms;
    char *bytes; /* NULL: vacant */
    size_t length;
    bool is_no_pull;  /* the key is not the number of a pull request */
    bool held;        /* by a bound grant of our session */
    uint64_t watched; /* the revision that was last delivered to watchers */
    char *key;        /* of the record; NULL: it has none yet */
};

/* The last heartbeat of another worker. */
struct github_peer {
    uint64_t session; /* 0: unused */
    char sha[GITHUB_SHA + 1];
    int64_t beat_ms, stale_ms; /* by the server's date; −1: it has no ref */
    uint64_t read_by;          /* the number of the operation that read it last */
};

enum github_worker_state {
    WORKER_NONE,     /* holds nothing */
    WORKER_STARTING, /* its ref is created */
    WORKER_ALIVE,
    WORKER_RETIRING, /* its ref is deleted */
    WORKER_ENDED,    /* past its deadline, or its ref is gone: never revived */
};

/* Our own worker: one ref, moved by heartbeats while the session has bound grants. */
struct github_worker {
    enum github_worker_state state;
    struct github_request request;
    struct list waiting;      /* operations that need it, by base.in_queue */
    char sha[GITHUB_SHA + 1]; /* of the heartbeat in flight */
    int64_t sent_ms;          /* when the heartbeat in flight was sent */
    int64_t alive_ms;         /* when the last heartbeat that arrived was sent */
    unsigned failures;
    bool exists;    /* the ref may exist already: it is moved */
    size_t held;    /* heads with `held` */
    size_t pending; /* operations that bind a grant */
    /* At the start, if the account has too many workers: which of them are alive? */
    json_t *refs;
    size_t index, live;
    struct poller_timer timer;
    char why[GITHUB_WHY]; /* why it did not start, or has ended */
};

/* GitHub reports no changes: all watchers share one poll. */
struct github_watch {
    struct watchers watchers;
    struct poller_timer timer;
    bool polling, begun; /* begun: a first poll has noted all revisions */
};

struct github {
    uint32_t magic;
    struct github_url url;
    struct store_callbacks callbacks;
    struct github_api *api;
    struct poller *poller;
    struct pending_set pending;
    struct poller_timer wake_timer;
    bool checked;              /* the repository exists, and we may write to it */
    char tree[GITHUB_SHA + 1]; /* of all our commits; "": unknown */
    struct list heads;
    size_t head_count;
    struct github_peer peers[GITHUB_WORKERS_MAX];
    size_t peer_hand;
    struct github_worker worker;
    struct github_watch watch;
    struct issue_board *board; /* NULL: nothing was shown yet */
    uint64_t writes;           /* number of our commits; makes them distinct */
    char why[GITHUB_WHY];
    char message[GITHUB_MESSAGE_MAX];
    uint64_t dead[GRANTS_MAX + 1], ended[GRANTS_MAX];
    struct record scratch;
};

/* github_worker.c */
void github_worker_init(struct github *github);
/* Deletes the ref, waiting for a short time. */
void github_worker_done(struct github *github);
/* True if grants may be bound to our session now. False: the operation is started again later, or
 * has failed. */
bool github_worker_ready(struct github *github, struct github_operation *operation);
bool github_worker_has_ended(struct github *github);
/* The head changed: counts the bound grants of our session. */
void github_worker_count(struct github *github, struct github_head *head);

/* github_head.c */
/* The head of that ref, made if it is not cached; NULL when out of memory. `users` keeps it. */
struct github_head *github_head_use(struct github *github, const char *name);
void github_head_release(struct github_head *head);
void github_heads_done(struct github *github);
/* The ref points to this commit; NULL: it is gone. Returns NULL, or why it is refused. */
const char *github_head_set(struct github *github, struct github_head *head, const char *sha,
                            const struct github_commit *commit);
/* The record of the head; NULL if it is vacant or cannot be decoded. */
struct record *github_head_record(struct github *github, const struct github_head *head);

/* github_request.c */
/* A store request in flight. */
struct github_operation {
    struct pending base; /* first */
    struct github *github;
    struct github_head *head;
    struct github_request http;
    github_handler *on_reply; /* NULL: it waits for earlier operations, or for our worker */
    int64_t now_ms;           /* the server's date in the last reply */
    bool waits_for_worker;    /* in worker.waiting, by base.in_queue */
    bool binds;               /* counted in worker.pending */
    bool written;
    bool checked;         /* the repository exists, though the ref of a known head does not */
    bool refused;         /* the server refused the ref write: its head decides why … */
    char why[GITHUB_WHY]; /* … if it has not changed, this text */
    bool tree_made;       /* by this operation */
    /* Of the ref, until its commit is read. */
    char read_sha[GITHUB_SHA + 1], etag[GITHUB_ETAG_MAX + 1];
    uint64_t read_revision; /* of the head when that commit was requested */
    uint64_t session;       /* of the holder that is examined */
    /* Of a write: the commit that the ref is to point to. */
    char sha[GITHUB_SHA + 1];
    struct github_commit commit;
    /* Of a list: the refs, the next one, and whether the hashed names were listed. */
    json_t *refs;
    size_t index;
    bool hashed;
};

/* store_driver.submit */
void github_operation_add(void *state, const struct store_request *request, store_done *done,
                          void *caller);
void github_operations_init(struct github *github);
void github_operations_start(void *state);
/* It waits no longer for the worker; `why` NULL: the worker is alive. */
void github_operation_resume(struct github_operation *operation, const char *why);
/* NULL, or which right is missing, by the reply about the repository. */
const char *github_repository_refusal(int status, const json_t *repository);
/* A text that no other commit has. */
void github_unique(struct github *github, char out[GITHUB_UNIQUE]);
/* Of the request for a commit; `parent` "": it has none. */
json_t *github_commit_body(const struct github *github, const char *message, const char *parent);
/* Creates a ref below refs/, or moves it if it exists. */
struct github_call github_ref_call(const char *refs, const char *name, const char *sha, bool exists,
                                   bool force, char path[GITHUB_PATH]);
/* NULL, or why the commit is not one of ours. `out` points into the JSON. */
const char *github_commit_parse(const json_t *commit, struct github_commit *out);
/* Sets kind and deadline of the call, and takes its body. */
void github_operation_send(struct github_operation *operation, github_handler *on_reply,
                           struct github_call call);
void github_operation_get(struct github_operation *operation, github_handler *on_reply,
                          const char *path);
void github_operation_read_commit(struct github_operation *operation, github_handler *on_reply,
                                  const char *sha);
github_handler github_operation_on_commit;
void github_operation_fail_by(struct github_operation *operation, const struct github_reply *reply);

/* github_judge.c: which holders of a record are dead, and what else has ended */
/* Fills in the reply's observations and returns true; or reads the heartbeat of a worker first, and
 * calls github_operation_judged() then. */
bool github_judge(struct github_operation *operation, struct store_reply *reply);
/* Date and stale time of the commit of a worker; false if it is not one. */
bool github_beat_parse(const json_t *commit, int64_t *out_beat_ms, int64_t *out_stale_ms);
/* The head is current: replies with it. False if a heartbeat must be read first. */
bool github_operation_report(struct github_operation *operation);
/* The same; a list goes on with the next key. */
void github_operation_judged(struct github_operation *operation);

/* github_list.c */
void github_list_begin(struct github_operation *operation);
void github_list_next(struct github_operation *operation);
void github_list_on_head(struct github_operation *operation);
void github_list_on_unreadable(struct github_operation *operation, const char *why);
void github_watch_init(struct github *github);
void github_watch_done(struct github *github);
void github_watch_add(struct github *github, struct github_operation *operation);
void github_history_begin(struct github_operation *operation);

/* github_diagnose.c */
void github_diagnose(const char *url, const struct diagnosis *diagnosis);

#endif
