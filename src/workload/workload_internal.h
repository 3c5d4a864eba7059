/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the workloads share; nobody else includes it. */
#ifndef LEASEHOLD_WORKLOAD_WORKLOAD_INTERNAL_H
#define LEASEHOLD_WORKLOAD_WORKLOAD_INTERNAL_H

#include "core/record.h"
#include "net/backoff.h"
#include "store/k8s/kube_api.h"
#include "workload/workload.h"

enum {
    WORKLOADS_MAGIC = 0x301c1,
    PATH_SIZE = 512,
    WHY_SIZE = 512,
    WARNINGS_MAX = 32,          /* different ones; what comes then is not told */
    OBJECT_REPLY_MAX = 8 << 20, /* bytes of one answer, or of one change */
    WORKLOAD_CACHE_MAX = 16384, /* objects of the watched copy; beyond it a look asks */
};

/* What was last heard of an object. */
struct cached_object {
    char name[K8S_NAME_MAX + 1];
    char key[KEY_MAX + 1];
    struct workload_view view;
};

/* The watched copy. */
struct workload_cache {
    char selector[PATH_SIZE]; /* of the watch; empty: there is none */
    char revision[32];        /* from where it goes on; empty: to be listed first */
    struct http_request *watch;
    int64_t watch_until_ms;     /* the server has ended it by then */
    struct cached_object **all; /* sorted by name */
    size_t count, room;
    struct workload_view followed; /* what was last heard of the object with this uid … */
    bool followed_seen;            /* … in the list that is being read */
    bool followed_gone;            /* … and it was: deleted, or not in a whole list */
    bool complete;                 /* as of the last list, and no change was missed since */
    bool overflowed;               /* not all of them fit */
    int64_t down_since_ms;         /* 0: it is listened to */
    int64_t not_before_ms;
    struct backoff backoff;
};

struct workloads {
    uint32_t magic;
    struct k8s_url url;
    struct kube_config config;
    struct kube_login *login;
    struct poller *poller;
    struct http *http;
    json_t *manifest;
    char path[PATH_SIZE]; /* of the kind's objects; empty: not discovered yet */
    bool namespaced;
    char *holder, *holder_label, *done_when, *failed_when, *ended_at;
    struct end_rules rules;
    int64_t timeout_ms;
    bool watch;
    workloads_warn *warn;
    void *warn_user;
    uint64_t warned[WARNINGS_MAX]; /* hashes of what was told */
    size_t warned_count;
    bool permitted; /* something was, once: a server that has just started forbids everything */
    int watch_s;    /* how long the server lets one watch live */
    int64_t date_ms, date_at_ms; /* the API server's clock, when we last heard it; 0: never */
    struct workload_cache cache;
    struct poller_timer alarm; /* to be woken at */
};

/* One answer of the API server. */
struct api_reply {
    int status;
    json_t *json;                   /* NULL: none */
    char *warnings;                 /* a line each; NULL: none */
    int64_t retry_after_ms, date_s; /* −1: not said */
    bool over;
    char why[WHY_SIZE];
};

/* workload_api.c */
/* Until it is answered, or not answered in time; patience and size are ours. Repeats what was not
 * answered, or not accepted for a while: every change that we ask for is safe to be asked for
 * twice. */
void workloads_call(struct workloads *workloads, const struct kube_call *call,
                    struct api_reply *reply);
void api_reply_done(struct api_reply *reply);
/* Waits until something happened, at most until then. */
void workloads_wait(struct workloads *workloads, int64_t until_ms);
/* The API server's clock now. */
int64_t workloads_now_ms(const struct workloads *workloads);
void workloads_set_clock(struct workloads *workloads, int64_t date_s);
/* The path of the kind, asked for once. False with an answer. */
bool workloads_discover(struct workloads *workloads, struct workload_result *result);
/* What a refusal of the API server means. */
void workloads_fail(const struct api_reply *reply, struct workload_result *result);

/* workload_cache.c */
/* From now on those that the selector (of a query, escaped) names are watched. */
void workload_cache_watch(struct workloads *workloads, const char *selector);
void workload_cache_done(struct workloads *workloads);
/* Takes in what has come; opens the watch again when it ended. Does not wait. */
void workload_cache_refresh(struct workloads *workloads);
/* NULL: there is none, as far as the copy is complete. */
const struct cached_object *workload_cache_find(const struct workloads *workloads,
                                                const char *name);
/* What answers told us, before the watch does. */
void workload_cache_put(struct workloads *workloads, const json_t *object);
void workload_cache_remove(struct workloads *workloads, const char *name);

#endif
