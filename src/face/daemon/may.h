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

/* The identity of a connection before AUTH. Its name is that of no credential. */
extern const struct may_identity may_nothing;

/* True if any of the rights allows this verb for this key. */
bool may(const struct may_identity *who, enum may_verb verb, const char *key);

/*
 * Planted holes: tests/e2e/serve_planted.sh proves that the table of rights finds each of them.
 * With -Dmutants=true the daemon contains all of them, and `serve --planted NAME` switches one on.
 * In every other build MAY_HOLE() is the constant false and leaves no code.
 */
#define MAY_HOLE_LIST(X)                                                    \
    X(DISPATCH, "commands that name a key ask for no right")                \
    X(SECOND_KEY, "only the first of several keys is asked for")            \
    X(HISTORY, "a history asks for no right")                               \
    X(LIST, "a list shows all keys")                                        \
    X(WATCH, "a watch shows all keys")                                      \
    X(BIND, "BIND asks for no right to renew")                              \
    X(INFO, "INFO shows the store to everybody")                            \
    X(BEFORE_AUTH, "commands before AUTH are answered")                     \
    X(ANY_NAME, "a secret is accepted with the name of another credential") \
    X(REQUEST_ID, "a request id of another name can be cancelled")          \
    X(RELOAD, "a removed credential keeps its connections")                 \
    X(HTTP_KEPT, "a request of HTTP has the rights of the one before it")   \
    X(EVENTS, "server-sent events show all keys")                           \
    X(METRICS, "everybody who is known reads the metrics")

#ifdef LH_MUTANTS
enum may_hole {
    HOLE_NONE,
#define MAY_HOLE_NAME(name, description) HOLE_##name,
    MAY_HOLE_LIST(MAY_HOLE_NAME)
#undef MAY_HOLE_NAME
        HOLE_COUNT
};
extern enum may_hole may_hole_on;
/* False if there is no hole of that name. */
bool may_plant(const char *name);
#define MAY_HOLE(name) (may_hole_on == HOLE_##name)
#else
#define MAY_HOLE(name) 0
#endif

#endif
