/* SPDX-License-Identifier: Apache-2.0 */
/*
 * k8s://[namespace][?prefix=…&names=auto|hash|plain&skew=5s&context=…&events=on&collect=30] and the
 * names that keys have as Leases. Pure: a name depends on the URL and the key alone, so that every
 * replica and every script computes the same one.
 */
#ifndef LEASEHOLD_WIRE_K8S_URL_H
#define LEASEHOLD_WIRE_K8S_URL_H

#include "base/text.h"

enum { K8S_NAME_MAX = 63, K8S_PREFIX_MAX = 40, K8S_CONTEXT_MAX = 255, K8S_SKEW_MAX_MS = 3600000 };

enum k8s_names {
    K8S_NAMES_AUTO, /* the key itself when it is a valid name, otherwise hashed */
    K8S_NAMES_HASH, /* 16 digits of the key's SHA-256; with the prefix "wfe-" unless one is given */
    K8S_NAMES_PLAIN, /* the key itself; others are refused */
};

struct k8s_url {
    char namespace[K8S_NAME_MAX + 1]; /* empty: where the configuration says */
    char prefix[K8S_PREFIX_MAX + 1];
    char context[K8S_CONTEXT_MAX + 1];
    enum k8s_names names;
    int64_t skew_ms; /* that two API servers' clocks may be apart */
    bool skew_given; /* … as the URL says; otherwise the default */
    bool events;     /* what happens to a lock is also told as Events */
    /* Leases that nobody needs any more, removed in a minute at most; 0: none. */
    uint32_t collect;
};

/* False with words in `why`, when it is no such URL. */
bool k8s_url_parse(const char *url, struct k8s_url *out, struct text *why);

/*
 * False when the key has no name: PLAIN, and it is none. A hashed name of AUTO begins with "lh-"
 * behind the prefix and has 40 digits; a key that looks like one is hashed, too, so that two keys
 * never meet there.
 */
bool k8s_name_of(const struct k8s_url *url, const char *key, char out[K8S_NAME_MAX + 1]);
/* The way of naming, and the prefix, under which the key has this name; false: there is none. The
 * rest of `out` stays as it is. */
bool k8s_scheme_of(const char *name, const char *key, struct k8s_url *out);

#endif
