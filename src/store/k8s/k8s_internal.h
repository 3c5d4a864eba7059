/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the Kubernetes driver. No other file includes it. */
#ifndef LEASEHOLD_STORE_K8S_K8S_INTERNAL_H
#define LEASEHOLD_STORE_K8S_K8S_INTERNAL_H

#include "base/list.h"
#include "http/kube_api.h"
#include "store/collector.h"
#include "store/k8s/k8s_lease.h"
#include "store/pending.h"
#include "wire/k8s_url.h"

enum {
    K8S_MAGIC = 0x8885,
    LEASE_CACHE_SLOTS = 1024,    /* cached Leases */
    LEASE_CACHE_BYTES = 8 << 20, /* total of the cached Leases */
    LEASE_REPLY_MAX = 1 << 20,   /* bytes of one Lease in a reply */
    LIST_MAX = 16 << 20,         /* bytes of a page: above the maximum size of its Leases */
    LEASES_PATH = 128,
    K8S_REQUESTS_MAX = 4096,    /* in flight; more are refused */
    EVENTS_MAX = 16,            /* in flight; more are dropped */
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

/* The one watch of the namespace, shared by all watchers. */
struct k8s_watch {
    struct watchers watchers;
    int64_t first_until_ms; /* requests wait that long for a watch that is being established */
    bool wanted;            /* required: opened, and reopened when it ends */
    bool known;             /* the revision to resume from is known … */
    uint64_t revision;      /* … and is this one */
    struct json_request http;
    unsigned length_s;         /* the server ends it after one to two times this */
    struct poller_timer timer; /* opens it, or cancels it if the server has not ended it */
    struct backoff backoff;
    int64_t trouble_since_ms; /* 0: none */
};

/* The driver's part of the collector. */
struct k8s_collect {
    struct json_request request;
    json_t *page;   /* the last page read … */
    int64_t now_ms; /* … and the server's clock at that time */
    struct json_pages pages;
    struct k8s_url scheme; /* the naming scheme of the Lease being judged */
};

/* The epoch of new grants, as last read; see k8s_epoch.c. */
struct k8s_epoch {
    uint16_t value;
    int64_t read_ms;    /* when the read was sent; 0: never */
    const void *reader; /* the request that reads it now */
};

struct k8s {
    uint32_t magic;
    struct k8s_url url;
    struct store_callbacks callbacks;
    struct kube_api kube;
    char leases[LEASES_PATH]; /* the path of the namespace's Leases */
    struct poller_timer wake_timer;
    struct pending_set pending;
    uint64_t writes; /* number of our writes; makes them distinct */
    struct k8s_epoch epoch;
    struct json_request events[EVENTS_MAX];
    struct k8s_watch watch;
    struct collector collector;
    struct k8s_collect collect;
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
/* The reply that contains this Lease, under this key. */
struct store_reply k8s_lease_reply(struct k8s *k8s, const struct k8s_lease *lease, const char *key);
/* The key of an object in a list or a watch; NULL if the object is not ours. */
const char *k8s_key_of(const struct k8s *k8s, const struct k8s_lease *lease);
/* The same for a Lease of any leasehold client; its naming scheme goes to `scheme`. */
bool k8s_is_any_of_ours(const struct k8s_lease *lease, struct k8s_url *scheme);

/* k8s_collect.c */
void k8s_collect_init(struct k8s *k8s, uint64_t seed);
void k8s_collect_done(struct k8s *k8s);

/* The driver, opened for requests that block. NULL with a reason. Sends nothing yet. */
struct k8s *k8s_admin_open(const char *url, int64_t timeout_ms, struct text *why);
void k8s_admin_close(struct k8s *k8s);
bool k8s_collect(const char *url, const struct collect_options *options, struct collection *out,
                 struct text *why);

/* k8s_diagnose.c */
void k8s_diagnose(const char *url, const struct diagnosis *diagnosis);

/* k8s_epoch.c */
enum {
    EPOCH_FRESH_MS = 5000,  /* no grant is sent with an epoch that was read earlier */
    EPOCH_REREAD_MS = 4000, /* it is read again before a grant, which so has time to be sent */
};
bool k8s_epoch_is_due(const struct k8s *k8s);
/* The path of its Lease. */
void k8s_epoch_path(const struct k8s *k8s, char out[LEASES_PATH + K8S_NAME_MAX + 2]);
/* Takes the Lease that was read by a request sent at that time; NULL: there is none. Returns NULL,
 * or what is wrong with it. */
const char *k8s_epoch_take(struct k8s *k8s, const json_t *lease, int64_t sent_ms);
/* A record of a later epoch proves that ours is outdated. */
void k8s_epoch_observe(struct k8s *k8s, uint16_t epoch);
enum reply_status k8s_epoch(const char *url, const struct epoch_options *options,
                            struct epoch_state *out, struct text *why);

/* k8s_event.c */
void k8s_event_send(void *state, const struct store_event *event);
/* Waits a short time for the Events in flight. */
void k8s_events_drain(struct k8s *k8s);

/* k8s_watch.c */
/* The request becomes a watcher. */
void k8s_watch_add(struct k8s *k8s, struct pending *pending);
/* From now on changes of Leases with waiters of ours must be noticed. */
void k8s_watch_require(struct k8s *k8s);
void k8s_watch_init(struct k8s *k8s, uint64_t seed);
void k8s_watch_done(struct k8s *k8s);

#endif
