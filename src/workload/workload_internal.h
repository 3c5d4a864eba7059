/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the workload files. No other file includes it. */
#ifndef LEASEHOLD_WORKLOAD_WORKLOAD_INTERNAL_H
#define LEASEHOLD_WORKLOAD_WORKLOAD_INTERNAL_H

#include "core/record.h"
#include "http/kube_api.h"
#include "workload/workload.h"

enum {
    WORKLOADS_MAGIC = 0x301c1,
    PATH_SIZE = 512,
    WARNINGS_MAX = 32,          /* distinct ones; later ones are dropped */
    OBJECT_REPLY_MAX = 8 << 20, /* bytes of one reply, or of one change */
    WORKLOAD_CACHE_MAX = 16384, /* cached objects; beyond it a query sends a request */
};

/* The last known state of an object. */
struct cached_object {
    char name[K8S_NAME_MAX + 1];
    char key[KEY_MAX + 1];
    struct workload_view view;
};

/* The cache of watched objects. */
struct workload_cache {
    char selector[PATH_SIZE]; /* of the watch; empty: no watch */
    char revision[32];        /* to resume from; empty: list first */
    struct json_request watch;
    int64_t watch_until_ms;     /* the server has ended it by then */
    struct cached_object **all; /* sorted by name */
    size_t count, room;
    struct workload_view followed; /* last known state of the followed object … */
    bool followed_seen;            /* … it was in the list being read */
    bool followed_gone;            /* … it was deleted, or is missing in a whole list */
    bool complete;                 /* the last list was complete, and no change was missed since */
    bool overflowed;               /* some objects did not fit */
    int64_t down_since_ms;         /* 0: the watch works */
    int64_t not_before_ms;
    struct backoff backoff;
};

struct workloads {
    uint32_t magic;
    struct k8s_url url;
    struct kube_api kube;
    json_t *manifest;
    char path[PATH_SIZE]; /* of the kind's objects; empty: not discovered yet */
    bool namespaced;
    char *holder, *holder_label, *done_when, *failed_when, *ended_at;
    struct end_rules rules;
    int64_t timeout_ms;
    bool watch;
    workloads_warn *warn;
    void *warn_user;
    uint64_t warned[WARNINGS_MAX]; /* hashes of the reported warnings */
    size_t warned_count;
    int watch_s;                 /* length of one watch */
    int64_t date_ms, date_at_ms; /* the API server's clock at its last reply; 0: unknown */
    struct workload_cache cache;
    struct poller_timer alarm; /* wake-up time of workloads_wait() */
};

/* workload_api.c */
/* Sends the request until a reply or the timeout; sets timeout and maximum size. Retries requests
 * without a reply and temporary refusals: all our changes are idempotent. */
void workloads_call(struct workloads *workloads, const struct json_call *call,
                    struct json_result *reply);
/* A callback of the API. */
void workloads_on_warning(void *user, const char *text);
/* Waits for an event, at most until then. */
void workloads_wait(struct workloads *workloads, int64_t until_ms);
/* The API server's clock now. */
int64_t workloads_now_ms(const struct workloads *workloads);
/* Finds the path of the kind, once. False with a result. */
bool workloads_discover(struct workloads *workloads, struct workload_result *result);
/* The call or the manifest is wrong. Returns false. */
bool workloads_usage(struct workload_result *result, const char *message);
/* A manifest in YAML or JSON; NULL with a result. */
json_t *workloads_parse_manifest(const char *manifest, struct workload_result *result);
/* Converts an error of the API server to a result. */
void workloads_fail(const struct json_result *reply, struct workload_result *result);

/* workload_cache.c */
/* From now on watches the objects of the selector (URL-encoded). */
void workload_cache_watch(struct workloads *workloads, const char *selector);
void workload_cache_done(struct workloads *workloads);
/* Applies received changes; reopens the watch if it ended. Does not wait for changes. */
void workload_cache_refresh(struct workloads *workloads);
/* NULL: no such object, if the cache is complete. */
const struct cached_object *workload_cache_find(const struct workloads *workloads,
                                                const char *name);
/* Applies the state of a reply before the watch reports it. */
void workload_cache_put(struct workloads *workloads, const json_t *object);
void workload_cache_remove(struct workloads *workloads, const char *name);

#endif
