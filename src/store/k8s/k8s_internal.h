/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the Kubernetes driver. No other file includes it. */
#ifndef LEASEHOLD_STORE_K8S_K8S_INTERNAL_H
#define LEASEHOLD_STORE_K8S_K8S_INTERNAL_H

#include "base/list.h"
#include "net/backoff.h"
#include "store/admin.h"
#include "store/k8s/kube_api.h"
#include "store/k8s/k8s_lease.h"
#include "store/pending.h"
#include "wire/k8s_url.h"

enum {
    K8S_MAGIC = 0x8885,
    LEASE_CACHE_SLOTS = 1024,    /* cached Leases */
    LEASE_CACHE_BYTES = 8 << 20, /* total of the cached Leases */
    LEASE_REPLY_MAX = 1 << 20,   /* bytes of one Lease in a reply */
    LIST_MAX = 16 << 20,         /* bytes of a page: above the maximum size of its Leases */
    PAGE = 50,                   /* Leases per page */
    PAGES_MAX = 2000,            /* per list */
    PAGE_PATH = 4096,
    K8S_REQUESTS_MAX = 4096,    /* in flight; more are refused */
    TIMEOUT_DEFAULT_MS = 10000, /* if the caller sets no timeout */
    MARGIN_MS = 2000,           /* two clocks with whole-second resolution */
    WHY_SIZE = 512,
};

struct k8s;

/* A Lease as last observed, the base of the next write: foreign fields must be preserved. */
struct cached_lease {
    char name[K8S_NAME_MAX + 1];
    json_t *json; /* NULL: not cached */
    size_t size;
    uint64_t revision;            /* 0: stale, the server has a newer one */
    uint64_t write_hash, written; /* our write that made it, and the revision of that write */
    enum k8s_lease_state state;
    bool awaited;       /* a waiter of this process is in its record … */
    char *local_record; /* … or, if another program holds it, only here; never written */
};

enum k8s_phase {
    PHASE_WAITING,  /* for earlier requests, or for a credential */
    PHASE_READING,  /* the object read is the reply */
    PHASE_CHECKING, /* the object read decides the next step */
    PHASE_WRITING,  /* create or replace */
    PHASE_DELETING,
    PHASE_UNDOING, /* removes an object that a webhook changed */
    PHASE_LISTING,
};

/* A store request in flight. */
struct k8s_request {
    struct pending base; /* first */
    struct k8s *k8s;
    char name[K8S_NAME_MAX + 1];
    enum k8s_phase phase;
    struct http_request *http;
    int64_t not_before_ms;
    unsigned refusals, rechecks;
    /* Of a write: the object sent; the revision it replaces (0: it creates); whether other programs
     * use the Lease; whether the write may be undone; the member that the server changed. */
    json_t *sent;
    uint64_t replaced;
    bool shared, undoable;
    const char *changed;
    /* Of a list: the continue token, and the number of pages read. */
    char *page;
    unsigned pages;
    size_t listed; /* bytes */
};

/* The one watch of the namespace, shared by all watchers. */
struct k8s_watch {
    struct watchers watchers;
    int64_t first_until_ms; /* requests wait that long for a watch that is being established */
    bool wanted;            /* required: opened, and reopened when it ends */
    bool known;             /* the revision to resume from is known … */
    uint64_t revision;      /* … and is this one */
    struct http_request *http;
    unsigned length_s;         /* the server ends it after one to two times this */
    struct poller_timer timer; /* opens it, or cancels it if the server has not ended it */
    struct backoff backoff;
    int64_t trouble_since_ms; /* 0: none */
};

typedef void collect_ended(void *owner, const struct collection *tally);

struct collector {
    struct poller_timer due;
    struct random random;
    struct http_request *http;
    int64_t step_ms; /* between two removals */
    unsigned doubled;
    json_t *page; /* the page being processed, or NULL … */
    size_t index;
    int64_t now_ms; /* … and the server's clock at the reply */
    char *next;     /* continue token of the list … */
    unsigned pages; /* … and the number of pages read */
    /* The cached watermark, and the name of the one to read. */
    json_t *mark;
    int64_t mark_at_ms;
    char mark_name[K8S_NAME_MAX + 1], wanted[K8S_NAME_MAX + 1]; /* names of Leases */
    struct k8s_url scheme;   /* the naming scheme of the Lease being judged */
    struct collection tally; /* of this round */
    bool count_only;         /* removes nothing */
    collect_ended *ended;    /* NULL: no callback */
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
    struct pending_set pending;
    uint64_t writes; /* number of our writes; makes them distinct */
    size_t events_in_flight;
    int64_t paused_until_ms; /* as the server requested */
    bool permitted;          /* the server has permitted a request before */
    struct k8s_watch watch;
    struct collector collector;
    struct {
        char name[K8S_NAME_MAX + 1], uid[K8S_UID_MAX + 1];
    } last_removed; /* the argument of the last lease_cache_remove() */
    size_t lease_cache_bytes, lease_cache_hand;
    struct cached_lease lease_cache[LEASE_CACHE_SLOTS];
    char why[WHY_SIZE];
    char encoded[RECORD_MAX + 1];
    struct record scratch;
};

/* k8s_request.c */
/* store_driver.submit */
void k8s_request_add(void *state, const struct store_request *request, store_done *done,
                     void *caller);
void k8s_requests_init(struct k8s *k8s);
/* Starts every request that can start. */
void k8s_requests_start(void *state);
/* Delivers the last reply. */
void k8s_request_finish(struct k8s_request *pending, const struct store_reply *reply);
void k8s_request_fail(struct k8s_request *pending, enum reply_status result, const char *why);
void k8s_request_finish_absent(struct k8s_request *pending, enum reply_status result,
                               int64_t date_s);
/* Takes ownership of `body`. The reply ends the request or moves it to its next phase. */
void k8s_request_send(struct k8s_request *pending, enum k8s_phase phase, const char *method,
                      const char *path, json_t *body);

/* k8s_list.c */
void k8s_list_page(struct k8s_request *pending);
void k8s_list_on_page(struct k8s_request *pending, const struct http_response *reply);

/* k8s_lease_cache.c */
struct cached_lease *lease_cache_find(struct k8s *k8s, const char *name);
/* `lease` is parsed from `json`, which takes `size` bytes of memory. */
void lease_cache_put(struct k8s *k8s, json_t *json, size_t size, const struct k8s_lease *lease);
void lease_cache_remove(struct k8s *k8s, const char *name);
/* The Lease has changed: the next observation replaces this one. */
void lease_cache_invalidate(struct k8s *k8s, const char *name);
/* As k8s_lease_parse(). A label or annotation of another client changes the revision of the Lease,
 * not that of its record: a cached write of ours keeps its revision, so its tokens stay valid. */
const char *lease_cache_parse(struct k8s *k8s, const json_t *json, struct k8s_lease *out);
void lease_cache_clear(struct k8s *k8s);
/* Keeps our waiters on a Lease that another program holds. False: out of memory. */
bool lease_cache_set_local(struct k8s *k8s, const char *name, const char *bytes, size_t length);

/* k8s_driver.c */
/* Sends a request; `path` follows the path of the namespace's Leases. NULL on failure, with the
 * reason in `why` of the driver. */
struct http_request *k8s_call_leases(struct k8s *k8s, const char *method, const char *path,
                                     const json_t *body, size_t most, int64_t give_up_at_ms,
                                     const struct http_callbacks *callbacks);
/* The same for any path of the server. */
struct http_request *k8s_call(struct k8s *k8s, const char *method, const char *path,
                              const json_t *body, size_t most, int64_t give_up_at_ms,
                              const struct http_callbacks *callbacks);
/* The reply that contains this Lease, under this key. */
struct store_reply k8s_lease_reply(struct k8s *k8s, const struct k8s_lease *lease, const char *key);
const char *k8s_explain(struct k8s *k8s, const struct http_response *reply);
/* The key of an object in a list or a watch; NULL if the object is not ours. */
const char *k8s_key_of(const struct k8s *k8s, const struct k8s_lease *lease);
/* The same for a Lease of any leasehold client; its naming scheme goes to `scheme`. */
bool k8s_is_any_of_ours(const struct k8s_lease *lease, struct k8s_url *scheme);

/* The path of the first page of our Leases, or of the page at `next`. */
void k8s_page_path(char out[PAGE_PATH], const char *next);

/* k8s_collect.c */
void collector_init(struct k8s *k8s, uint64_t seed);
void collector_done(struct k8s *k8s);
/* Starts a round at once and calls `ended` at its end; rate 0 only counts. */
void collector_begin(struct k8s *k8s, unsigned rate, collect_ended *ended, void *owner);

/* k8s_diagnose.c */
void k8s_diagnose(const char *url, const struct diagnosis *diagnosis);

/* k8s_probe.c */
struct k8s_probe {
    bool over;
    struct k8s_reply *reply;
    struct collection *collection;
    struct k8s k8s;
};
bool k8s_collect(const char *url, const struct collect_options *options, struct collection *out,
                 struct text *why);

/* k8s_event.c */
void k8s_event_send(void *state, const struct store_event *event);
/* Waits a short time for the Events in flight. */
void k8s_events_drain(struct k8s *k8s);

/* k8s_watch.c */
void k8s_watch_add(struct k8s_request *pending);
/* From now on changes of Leases with waiters of ours must be noticed. */
void k8s_watch_require(struct k8s *k8s);
void k8s_watch_init(struct k8s *k8s, uint64_t seed);
void k8s_watch_done(struct k8s *k8s);

#endif
