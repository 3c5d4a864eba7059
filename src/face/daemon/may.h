/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Permissions: the one function that every path of the daemon asks before it reads or changes a
 * key, and before it shows one in a list, a watch or a history. Pure.
 */
#ifndef LEASEHOLD_FACE_DAEMON_MAY_H
#define LEASEHOLD_FACE_DAEMON_MAY_H

#include <stdbool.h>
#include <stddef.h>

enum may_verb {
    MAY_ALWAYS = 0,  /* names no key: PING */
    MAY_READ = 1,    /* status, list, watch, history */
    MAY_TAKE = 2,    /* acquire, begin, mark, advance */
    MAY_RENEW = 4,   /* renew, release, finish, abandon */
    MAY_OPERATE = 8, /* break, clear, set a watermark */
};

/* The verbs, as bits, that are allowed for keys of the store that begin with these bytes. "": all
 * keys. */
struct may_right {
    unsigned verbs;
    const char *prefix;
};

struct may_identity {
    const char *name;
    const struct may_right *rights;
    size_t right_count;
};

/* The identity of every connection as long as no credentials are configured. */
extern const struct may_identity may_everything;

/* True if any of the rights allows this verb for this key. */
bool may(const struct may_identity *who, enum may_verb verb, const char *key);

#endif
