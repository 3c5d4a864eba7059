/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the Kubernetes driver share; nobody else includes it. */
#ifndef LEASEHOLD_STORE_K8S_INSIDE_H
#define LEASEHOLD_STORE_K8S_INSIDE_H

#include "io/backoff.h"
#include "io/kube_ask.h"
#include "store/k8s/object.h"
#include "wire/k8s_url.h"

enum {
    K8S_MAGIC = 0x8885,
    MEMOS = 1024,          /* Leases that we remember */
    MEMOS_BYTES = 8 << 20, /* of all of them */
    ANSWER_MAX = 1 << 20,  /* bytes of one Lease, as the server answers it */
    LIST_MAX = 16 << 20,   /* of a page: more than its Leases can have, annotated to the limit */
    PAGE = 50,             /* Leases of a page */
    PAGES_MAX = 2000,      /* of a list */
    PAGE_PATH = 4096,
    ERRANDS_MAX = 4096,  /* on their way; more are refused */
    PATIENCE_MS = 10000, /* when nobody said how long */
    MARGIN_MS = 2000,    /* two clocks that tell whole seconds */
    WHY_SIZE = 512,
};

struct k8s;

/* A Lease as it was last seen, to write over it: what we do not know of it must stay. */
struct memo {
    char name[K8S_NAME_MAX + 1];
    json_t *json; /* NULL: nothing is known */
    size_t size;
    uint64_t revision;       /* 0: no longer this one, by what the server says */
    uint64_t print, written; /* which write of ours it is, and that one's revision */
    enum object_state state;
    bool awaited; /* a place of our own process is in it … */
    char *beside; /* … or, while another program holds it, only here: a record, never written */
};

enum errand_phase {
    ERRAND_WAITS,  /* for those before it, or for a credential */
    ERRAND_READS,  /* what it reads is its answer */
    ERRAND_LOOKS,  /* what it reads decides how it goes on */
    ERRAND_WRITES, /* create or replace */
    ERRAND_DELETES,
    ERRAND_UNDOES, /* removes what came back changed */
    ERRAND_LISTS,
    ERRAND_OPENS, /* a watch, until it stands */
};

/* A request of the seam on its way. */
struct errand {
    struct errand *next;
    struct k8s *k8s;
    struct store_request request; /* its words are the caller's, until it is answered */
    store_done *done;
    void *caller;
    char name[K8S_NAME_MAX + 1];
    uint64_t hash;
    enum errand_phase phase;
    struct http_request *http;
    int64_t give_up_at_ms, not_before_ms;
    unsigned refusals, looks;
    /* Of a write: what was sent, over which revision (0: it is new) of a Lease that others want
     * too, may it be removed again, and what was not as it was sent. */
    json_t *sent;
    uint64_t replaced;
    bool shared, undoable;
    const char *changed;
    /* Of a list: where it goes on, and how far it has come. */
    char *page;
    unsigned pages;
    size_t listed; /* bytes */
};

struct watcher {
    struct watcher *next;
    char prefix[KEY_MAX + 1];
    store_done *done;
    void *caller;
};

/* The one watch of the namespace that all who want to know share. */
struct k8s_watch {
    struct watcher *watchers;
    bool wanted;       /* by somebody: it is opened, and opened again */
    bool stands;       /* we know from where it goes on */
    uint64_t revision; /* … here */
    struct http_request *http;
    unsigned length_s;      /* the server ends it after that, and up to as much again */
    struct net_timer again; /* to be opened, or given up when the server has not ended it */
    struct backoff backoff;
    int64_t trouble_since_ms; /* 0: none */
};

/* What a round of the collector came to. */
struct collect_tally {
    unsigned left;           /* that nobody needs */
    unsigned removed, taken; /* of those; taken: somebody needs it again */
    const char *why;         /* it ended too early; NULL: it did not */
};

typedef void collect_ended(void *owner, const struct collect_tally *tally);

struct collector {
    struct net_timer due;
    struct random random;
    struct http_request *http;
    int64_t step_ms; /* between two removals */
    unsigned doubled;
    json_t *page; /* that is being looked at, or NULL … */
    size_t index;
    int64_t now_ms; /* … and the server's clock, when it was made */
    char *next;     /* where the list goes on … */
    unsigned pages; /* … and how far it has come */
    /* What was last read of a watermark, and the one that has to be. */
    json_t *mark;
    int64_t mark_at_ms;
    char mark_name[K8S_NAME_MAX + 1], wanted[K8S_NAME_MAX + 1]; /* of Leases */
    struct k8s_url scheme; /* that names the Lease which is judged */
    struct collect_tally tally;
    bool counts;          /* it removes nothing */
    collect_ended *ended; /* NULL: nobody waits for it */
    void *owner;
};

struct k8s {
    uint32_t magic;
    struct k8s_url url;
    struct kube_config config;
    struct store_site site;
    struct net *net;
    struct http *http;
    struct kube_login *login;
    struct net_timer later;
    struct errand *first, *last;
    size_t errand_count;
    uint64_t writes;         /* of ours, so far: tells them apart */
    size_t remarks;          /* Events on their way */
    int64_t paused_until_ms; /* the server asked for it */
    bool permitted;          /* something was, once */
    struct k8s_watch watch;
    struct collector collector;
    struct {
        char name[K8S_NAME_MAX + 1], uid[OBJECT_UID_MAX + 1];
    } forgotten; /* the Lease that memo_forget() was last about */
    size_t memo_bytes, memo_hand;
    struct memo memos[MEMOS];
    char why[WHY_SIZE];
    char encoded[RECORD_MAX + 1];
    struct record scratch;
};

/* errand.c */
void errand_add(struct k8s *k8s, const struct store_request *request, store_done *done,
                void *caller);
void errand_drop_all(struct k8s *k8s);
/* Starts what can start. */
void errands_advance(struct k8s *k8s);
/* Answers it and lets it go; `answer` may be about anything. */
void errand_tell(struct errand *errand, const struct store_answer *answer);
void errand_tell_trouble(struct errand *errand, enum answer result, const char *why);
void errand_tell_absent(struct errand *errand, enum answer result, int64_t date_s);
/* The body is taken over. An answer ends it, or carries it on. */
void errand_ask(struct errand *errand, enum errand_phase phase, const char *method,
                const char *path, json_t *body);

/* lease_pages.c */
void lease_pages_begin(struct errand *errand);
void lease_pages_hear(struct errand *errand, const struct http_answer *answer);

/* memo.c */
struct memo *memo_of(struct k8s *k8s, const char *name);
/* The object is what was read of the JSON, which takes so many bytes. */
void memo_keep(struct k8s *k8s, json_t *json, size_t size, const struct object *object);
void memo_forget(struct k8s *k8s, const char *name);
/* It has changed: whatever is seen next counts. */
void memo_doubt(struct k8s *k8s, const char *name);
/* As object_read(). Who labels or annotates a Lease moves its revision, not that of the record in
 * it: a write that we remember still counts as the one it was, and its tokens stay. */
const char *memo_read(struct k8s *k8s, const json_t *json, struct object *out);
void memo_forget_all(struct k8s *k8s);
/* Keeps what we wait for on a Lease that another program holds. False: memory is short. */
bool memo_put_beside(struct k8s *k8s, const char *name, const char *bytes, size_t length);

/* driver.c */
/* Asks the API server; `path` is what follows the namespace's Leases. NULL when it could not be
 * asked: `why` of the driver says it. */
struct http_request *k8s_ask(struct k8s *k8s, const char *method, const char *path,
                             const json_t *body, size_t most, int64_t give_up_at_ms,
                             const struct http_site *site);
/* The same for any place of the server. */
struct http_request *k8s_ask_at(struct k8s *k8s, const char *method, const char *place,
                                const json_t *body, size_t most, int64_t give_up_at_ms,
                                const struct http_site *site);
/* How the answer fills in the object, under this key. */
struct store_answer k8s_answer(struct k8s *k8s, const struct object *object, const char *key);
const char *k8s_explain(struct k8s *k8s, const struct http_answer *answer);
/* The key of an object that was seen in a list or a watch; NULL when it is nothing to us. */
const char *k8s_key_of(const struct k8s *k8s, const struct object *object);
/* The same for a Lease of any user of ours: how it is named, in `scheme`. */
bool k8s_is_any_of_ours(const struct object *object, struct k8s_url *scheme);

/* Of the list of our Leases: where it begins, or goes on. */
void k8s_page_path(char out[PAGE_PATH], const char *next);

/* collect.c */
void collector_init(struct k8s *k8s, uint64_t seed);
void collector_done(struct k8s *k8s);
/* A round of it at once, for whom it is; at rate 0 only to see what there is. */
void collector_begin(struct k8s *k8s, unsigned rate, collect_ended *ended, void *owner);

/* remark.c */
void k8s_remark(void *state, const struct store_remark *remark);
/* Waits a moment for those that are on their way. */
void remarks_drain(struct k8s *k8s);

/* watch.c */
void watch_add(struct errand *errand);
/* Changes of Leases that we wait for are to be noticed from now on. */
void watch_want(struct k8s *k8s);
void watch_init(struct k8s *k8s, uint64_t seed);
void watch_done(struct k8s *k8s);

#endif
