/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the GitHub driver. No other file includes it. */
#ifndef LEASEHOLD_STORE_GITHUB_GITHUB_INTERNAL_H
#define LEASEHOLD_STORE_GITHUB_GITHUB_INTERNAL_H

#include "base/list.h"
#include "http/github_api.h"
#include "store/pending.h"

enum {
    GITHUB_STORE_MAGIC = 0x61D8,
    GITHUB_SHA = 40,
    GITHUB_ETAG_MAX = 127,
    GITHUB_PATH = 64 + GITHUB_PATH_NAME_MAX,
    GITHUB_MESSAGE_MAX = 80 * 1024, /* a record and the lines around it */
    GITHUB_REQUESTS_MAX = 1024,     /* in flight; more are refused */
    GITHUB_HEADS_MAX = 2048,        /* keys whose head is cached */
    GITHUB_WORKERS_MAX = 256,       /* other workers whose heartbeat is cached */
    GITHUB_BUCKETS = 256,
    GITHUB_MARGIN_MS = 3000, /* two dates of whole seconds, and the servers' clocks */
    GITHUB_QUEUE_MAX = 32,
    GITHUB_WHY = 512,
};

#define GITHUB_MALFORMED "the reply of GitHub lacks what it must contain"

struct diagnosis;
struct github;
struct github_operation;

/* A commit of a key: what its message says. `bytes` is NULL if the key is vacant. */
struct github_commit {
    uint64_t revision;
    int64_t time_ms; /* the server's date of the commit */
    const char *bytes;
    size_t length;
};

/* The head of a key's ref, as last read or written. Commits never change, so it stays true until
 * the ref moves. */
struct github_head {
    struct list_node node, in_bucket; /* `node`: the least recently used first */
    char name[GITHUB_NAME_MAX + 1];   /* of the ref */
    unsigned users;                   /* operations that use it now */
    bool known;                       /* the fields below are those of the ref */
    char sha[GITHUB_SHA + 1];         /* "": there is no ref */
    char etag[GITHUB_ETAG_MAX + 1];
    uint64_t revision; /* of the head, or the highest that was seen before the ref was deleted */
    int64_t time_ms;
    char *bytes; /* NULL: vacant */
    size_t length;
    bool is_no_pull;  /* the key is not the number of a pull request */
    bool held;        /* by a bound grant of our session */
    bool shown;       /* github_show.c has shown that grant */
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

enum { GITHUB_SHOWS_MAX = 64 };

/* The grants that are shown on issues; see github_show.c. */
struct github_show;

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
    struct list buckets[GITHUB_BUCKETS];
    struct github_peer peers[GITHUB_WORKERS_MAX];
    size_t peer_hand;
    struct github_worker worker;
    struct github_watch watch;
    struct github_show *show; /* NULL: nothing was shown yet */
    uint64_t writes;          /* number of our commits; makes them distinct */
    char why[GITHUB_WHY];
    char message[GITHUB_MESSAGE_MAX];
    uint64_t dead[GRANTS_MAX + 1], ended[GRANTS_MAX];
    struct record scratch;
};

/* github_commit.c: the message of a commit */
/* The message of a write; `bytes` NULL: the key becomes vacant. */
void github_commit_message(const struct store_request *request, uint64_t revision,
                           const char *unique, struct text *out);
/* NULL, or why the commit is not one of ours. `out` points into the JSON. */
const char *github_commit_parse(const json_t *commit, struct github_commit *out);
/* The body of the request that makes the tree of all our commits. */
json_t *github_tree_body(void);
/* The name of a commit or tree, of 40 hexadecimal digits: it becomes a part of paths. "": it has
 * none. */
const char *github_sha(const json_t *object);
/* True if the reply to a ref write says that the ref points to this commit now. */
bool github_ref_is_at(const struct github_reply *reply, const char *sha);
/* A text that no other commit has. */
void github_commit_unique(struct github *github, char out[48]);
/* The same for the commit of a worker. */
void github_beat_message(uint64_t session, int64_t stale_ms, const char *unique, struct text *out);
const char *github_beat_parse(const json_t *commit, int64_t *out_beat_ms, int64_t *out_stale_ms);

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
void github_head_release(struct github *github, struct github_head *head);
void github_heads_done(struct github *github);
/* The ref is gone, or points to this commit. NULL, or why it is refused. */
void github_head_set_absent(struct github *github, struct github_head *head);
const char *github_head_set(struct github *github, struct github_head *head, const char *sha,
                            const struct github_commit *commit);
/* The record of the head; NULL if it is vacant or cannot be decoded. */
struct record *github_head_record(struct github *github, const struct github_head *head);

/* github_request.c */
enum github_phase {
    PHASE_WAITING,    /* for earlier operations, or for our worker */
    PHASE_REPOSITORY, /* the first request checks the repository */
    PHASE_REF,
    PHASE_COMMIT,
    PHASE_PEER_REF, /* is the holder alive? */
    PHASE_PEER_COMMIT,
    PHASE_ISSUE, /* is the key the number of a pull request? */
    PHASE_TREE,
    PHASE_WRITE_COMMIT,
    PHASE_WRITE_REF,
    PHASE_LIST,
    PHASE_HISTORY,
};

/* A store request in flight. */
struct github_operation {
    struct pending base; /* first */
    struct github *github;
    struct github_head *head;
    enum github_phase phase;
    struct github_request http;
    int64_t now_ms;        /* the server's date in the last reply */
    bool waits_for_worker; /* in worker.waiting, by base.in_queue */
    bool binds;            /* counted in worker.pending */
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
/* Takes ownership of `body`. */
void github_operation_send(struct github_operation *operation, enum github_phase phase,
                           const char *method, const char *path, const char *etag, json_t *body);
void github_operation_get(struct github_operation *operation, enum github_phase phase,
                          const char *path);
void github_operation_read_commit(struct github_operation *operation, enum github_phase phase,
                                  const char *sha);
void github_operation_finish(struct github_operation *operation, const struct store_reply *reply);
void github_operation_fail(struct github_operation *operation, enum reply_status result,
                           const char *why);
void github_operation_fail_by(struct github_operation *operation, const struct github_reply *reply);

/* github_judge.c: which holders of a record are dead, and what else has ended */
/* Fills in the reply's observations and returns true; or reads the heartbeat of a worker first, and
 * calls github_operation_judged() then. */
bool github_judge(struct github_operation *operation, struct store_reply *reply);
void github_judge_on_reply(struct github_operation *operation, const struct github_reply *reply);
/* The head is current: replies with it. False if a heartbeat must be read first. */
bool github_operation_report(struct github_operation *operation);
/* The same; a list goes on with the next key. */
void github_operation_judged(struct github_operation *operation);

/* github_list.c */
void github_list_begin(struct github_operation *operation);
void github_list_on_refs(struct github_operation *operation, const struct github_reply *reply);
void github_list_next(struct github_operation *operation);
void github_list_on_head(struct github_operation *operation);
void github_list_on_unreadable(struct github_operation *operation, const char *why);
void github_watch_init(struct github *github);
void github_watch_done(struct github *github);
void github_watch_add(struct github *github, struct github_operation *operation);
void github_history_begin(struct github_operation *operation);
void github_history_on_reply(struct github_operation *operation, const struct github_reply *reply);

/* github_show.c: assignee, label and comment on the issue of a key. No rule depends on it, and it
 * may be late or lost. */
/* Our session was granted the key, or its grant ended; `grant` NULL: it ended. */
void github_show_change(struct github *github, struct github_head *head, const struct grant *grant);
/* store_driver.event: how the holder's work ended, for the comment. */
void github_show_event(void *state, const struct store_event *event);
/* Waits a short time for what is in flight; frees everything. */
void github_show_done(struct github *github);

/* github_diagnose.c */
void github_diagnose(const char *url, const struct diagnosis *diagnosis);

#endif
