/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the Kubernetes driver share; nobody else includes it. */
#ifndef LEASEHOLD_STORE_K8S_K8S_INTERNAL_H
#define LEASEHOLD_STORE_K8S_K8S_INTERNAL_H

#include "net/backoff.h"
#include "store/k8s/kube_api.h"
#include "store/k8s/k8s_lease.h"
#include "wire/k8s_url.h"

enum {
    K8S_MAGIC = 0x8885,
    LEASE_CACHE_SLOTS = 1024,    /* Leases that we remember */
    LEASE_CACHE_BYTES = 8 << 20, /* of all of them */
    LEASE_REPLY_MAX = 1 << 20,   /* bytes of one Lease, as the server answers it */
    LIST_MAX = 16 << 20, /* of a page: more than its Leases can have, annotated to the limit */
    PAGE = 50,           /* Leases of a page */
    PAGES_MAX = 2000,    /* of a list */
    PAGE_PATH = 4096,
    K8S_REQUESTS_MAX = 4096,    /* on their way; more are refused */
    TIMEOUT_DEFAULT_MS = 10000, /* when nobody said how long */
    MARGIN_MS = 2000,           /* two clocks that tell whole seconds */
    WHY_SIZE = 512,
};

struct k8s;

/* A Lease as it was last seen, to write over it: what we do not know of it must stay. */
struct cached_lease {
    char name[K8S_NAME_MAX + 1];
    json_t *json; /* NULL: nothing is known */
    size_t size;
    uint64_t revision;            /* 0: no longer this one, by what the server says */
    uint64_t write_hash, written; /* which write of ours it is, and that one's revision */
    enum k8s_lease_state state;
    bool awaited;       /* a place of our own process is in it … */
    char *local_record; /* … or, while another program holds it, only here; never written */
};

enum k8s_phase {
    PHASE_WAITING,  /* for those before it, or for a credential */
    PHASE_READING,  /* what it reads is its answer */
    PHASE_CHECKING, /* what it reads decides how it goes on */
    PHASE_WRITING,  /* create or replace */
    PHASE_DELETING,
    PHASE_UNDOING, /* removes what came back changed */
    PHASE_LISTING,
    PHASE_OPENING, /* a watch, until it stands */
};

/* A request of the seam on its way. */
struct k8s_request {
    struct k8s_request *next;
    struct k8s *k8s;
    struct store_request request; /* its words are the caller's, until it is answered */
    store_done *done;
    void *caller;
    char name[K8S_NAME_MAX + 1];
    uint64_t hash;
    enum k8s_phase phase;
    struct http_request *http;
    int64_t give_up_at_ms, not_before_ms;
    unsigned refusals, rechecks;
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

struct k8s_watcher {
    struct k8s_watcher *next;
    char prefix[KEY_MAX + 1];
    store_done *done;
    void *caller;
};

/* The one watch of the namespace that all who want to know share. */
struct k8s_watch {
    struct k8s_watcher *watchers;
    bool wanted;       /* by somebody: it is opened, and opened again */
    bool known;        /* we know from where it goes on */
    uint64_t revision; /* … here */
    struct http_request *http;
    unsigned length_s;         /* the server ends it after that, and up to as much again */
    struct poller_timer timer; /* to be opened, or given up when the server has not ended it */
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
    struct poller_timer due;
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
    bool count_only;      /* it removes nothing */
    collect_ended *ended; /* NULL: nobody waits for it */
    void *owner;
};

struct k8s {
    uint32_t magic;
    struct k8s_url url;
    struct kube_config config;
    struct store_callbacks callbacks;
    struct poller *poller;
    struct http *http;
    struct kube_login *login;
    struct poller_timer wake_timer;
    struct k8s_request *first, *last;
    size_t request_count;
    uint64_t writes;         /* of ours, so far: tells them apart */
    size_t events_in_flight; /* Events on their way */
    int64_t paused_until_ms; /* the server asked for it */
    bool permitted;          /* something was, once */
    struct k8s_watch watch;
    struct collector collector;
    struct {
        char name[K8S_NAME_MAX + 1], uid[K8S_UID_MAX + 1];
    } last_removed; /* the Lease that lease_cache_remove() was last about */
    size_t lease_cache_bytes, lease_cache_hand;
    struct cached_lease lease_cache[LEASE_CACHE_SLOTS];
    char why[WHY_SIZE];
    char encoded[RECORD_MAX + 1];
    struct record scratch;
};

/* k8s_request.c */
void k8s_request_add(struct k8s *k8s, const struct store_request *request, store_done *done,
                     void *caller);
void k8s_request_drop_all(struct k8s *k8s);
/* Starts what can start. */
void k8s_requests_start(struct k8s *k8s);
/* Answers it and lets it go; `answer` may be about anything. */
void k8s_request_finish(struct k8s_request *pending, const struct store_reply *reply);
void k8s_request_fail(struct k8s_request *pending, enum reply_status result, const char *why);
void k8s_request_finish_absent(struct k8s_request *pending, enum reply_status result,
                               int64_t date_s);
/* The body is taken over. An answer ends it, or carries it on. */
void k8s_request_send(struct k8s_request *pending, enum k8s_phase phase, const char *method,
                      const char *path, json_t *body);

/* k8s_list.c */
void k8s_list_page(struct k8s_request *pending);
void k8s_list_on_page(struct k8s_request *pending, const struct http_response *reply);

/* k8s_lease_cache.c */
struct cached_lease *lease_cache_find(struct k8s *k8s, const char *name);
/* The object is what was read of the JSON, which takes so many bytes. */
void lease_cache_put(struct k8s *k8s, json_t *json, size_t size, const struct k8s_lease *lease);
void lease_cache_remove(struct k8s *k8s, const char *name);
/* It has changed: whatever is seen next counts. */
void lease_cache_invalidate(struct k8s *k8s, const char *name);
/* As k8s_lease_parse(). Who labels or annotates a Lease moves its revision, not that of the record
 * in it: a write that we remember still counts as the one it was, and its tokens stay. */
const char *lease_cache_parse(struct k8s *k8s, const json_t *json, struct k8s_lease *out);
void lease_cache_clear(struct k8s *k8s);
/* Keeps what we wait for on a Lease that another program holds. False: out of memory. */
bool lease_cache_set_local(struct k8s *k8s, const char *name, const char *bytes, size_t length);

/* k8s_driver.c */
/* Asks the API server; `path` is what follows the namespace's Leases. NULL when it could not be
 * asked: `why` of the driver says it. */
struct http_request *k8s_call_leases(struct k8s *k8s, const char *method, const char *path,
                                     const json_t *body, size_t most, int64_t give_up_at_ms,
                                     const struct http_callbacks *callbacks);
/* The same for any place of the server. */
struct http_request *k8s_call(struct k8s *k8s, const char *method, const char *path,
                              const json_t *body, size_t most, int64_t give_up_at_ms,
                              const struct http_callbacks *callbacks);
/* How the answer fills in the object, under this key. */
struct store_reply k8s_lease_reply(struct k8s *k8s, const struct k8s_lease *lease, const char *key);
const char *k8s_explain(struct k8s *k8s, const struct http_response *reply);
/* The key of an object that was seen in a list or a watch; NULL when it is nothing to us. */
const char *k8s_key_of(const struct k8s *k8s, const struct k8s_lease *lease);
/* The same for a Lease of any user of ours: how it is named, in `scheme`. */
bool k8s_is_any_of_ours(const struct k8s_lease *lease, struct k8s_url *scheme);

/* Of the list of our Leases: where it begins, or goes on. */
void k8s_page_path(char out[PAGE_PATH], const char *next);

/* k8s_collect.c */
void collector_init(struct k8s *k8s, uint64_t seed);
void collector_done(struct k8s *k8s);
/* A round of it at once, for whom it is; at rate 0 only to see what there is. */
void collector_begin(struct k8s *k8s, unsigned rate, collect_ended *ended, void *owner);

/* k8s_event.c */
void k8s_event_send(void *state, const struct store_event *remark);
/* Waits a moment for those that are on their way. */
void k8s_events_drain(struct k8s *k8s);

/* k8s_watch.c */
void k8s_watch_add(struct k8s_request *pending);
/* Changes of Leases that we wait for are to be noticed from now on. */
void k8s_watch_require(struct k8s *k8s);
void k8s_watch_init(struct k8s *k8s, uint64_t seed);
void k8s_watch_done(struct k8s *k8s);

#endif
