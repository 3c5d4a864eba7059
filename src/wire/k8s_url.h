/* SPDX-License-Identifier: Apache-2.0 */
/*
 * k8s://[namespace][?prefix=…&names=auto|hash|plain&skew=5s&context=…&events=on&collect=30] and the
 * Lease names of keys. Pure: a name depends only on the URL and the key, so that every replica and
 * every script computes the same one.
 */
#ifndef LEASEHOLD_WIRE_K8S_URL_H
#define LEASEHOLD_WIRE_K8S_URL_H

#include "base/text.h"

/* Not the name of any key: this Lease has the epoch of the store. */
#define K8S_EPOCH_LEASE "leasehold-epoch"

enum { K8S_NAME_MAX = 63, K8S_PREFIX_MAX = 40, K8S_CONTEXT_MAX = 255, K8S_SKEW_MAX_MS = 3600000 };

enum k8s_names {
    K8S_NAMES_AUTO, /* the key itself if it is a valid name, otherwise hashed */
    K8S_NAMES_HASH, /* 16 digits of the key's SHA-256; with the prefix "wfe-" unless one is given */
    K8S_NAMES_PLAIN, /* the key itself; other keys are refused */
};

struct k8s_url {
    char namespace[K8S_NAME_MAX + 1]; /* empty: from the configuration */
    char prefix[K8S_PREFIX_MAX + 1];
    char context[K8S_CONTEXT_MAX + 1];
    enum k8s_names names;
    int64_t skew_ms; /* maximum difference of two API servers' clocks */
    bool skew_given; /* set by the URL; otherwise the default */
    bool events;     /* lock events are also reported as Kubernetes Events */
    /* Maximum number of unneeded Leases to remove per minute; 0: none. */
    uint32_t collect;
};

/* False with a reason in `why` if the URL is invalid. */
bool k8s_url_parse(const char *url, struct k8s_url *out, struct text *why);

/*
 * False if K8S_NAMES_PLAIN cannot name the key. With K8S_NAMES_AUTO, a hashed name is the prefix,
 * "lh-" and up to 40 digits; a key that begins with "lh-" is always hashed, so that two keys never
 * share a name. A key whose name would be K8S_EPOCH_LEASE is hashed or refused, too.
 */
bool k8s_name_of(const struct k8s_url *url, const char *key, char out[K8S_NAME_MAX + 1]);
/* The naming scheme and the prefix under which the key has this name; false if there is none. The
 * rest of `out` is unchanged. */
bool k8s_scheme_of(const char *name, const char *key, struct k8s_url *out);

#endif
