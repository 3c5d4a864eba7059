/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record as a Lease of coordination.k8s.io/v1. The record stands in an annotation, with the full
 * key in another; the spec says of it what kubectl and client-go expect to read. Whatever else a
 * Lease carries is kept. No I/O.
 */
#ifndef LEASEHOLD_STORE_K8S_OBJECT_H
#define LEASEHOLD_STORE_K8S_OBJECT_H

#include "store/store.h"

#include <jansson.h>

#define OBJECT_LABEL        "app.kubernetes.io/managed-by"
#define OBJECT_LABEL_VALUE  "leasehold"
#define OBJECT_HOLDER_WRITE "leasehold-holder" /* field managers: who grants or renews … */
#define OBJECT_WAITER_WRITE "leasehold-waiter" /* … and who only waits, cools or tidies up */

enum { OBJECT_UID_MAX = 40 };

enum object_state {
    OBJECT_VACANT,  /* a Lease that says nothing: nobody holds it, or who held it let go of it */
    OBJECT_OURS,    /* the annotated record counts */
    OBJECT_FOREIGN, /* another program holds it, by the rules of its own */
};

/* The words point into the JSON. */
struct object {
    enum object_state state;
    const char *name, *uid, *key; /* key: NULL when it was never ours */
    const char *holder;           /* of the spec; "" */
    const char *record;           /* OURS: the encoded record */
    int64_t duration_ms;          /* of the spec */
    uint64_t revision;            /* of the Lease as it stands */
    struct stamp written;         /* by which write of ours; by the last one, as far as it says */
    uint64_t print;               /* OURS: tells that write from others; 0: it cannot be told */
    bool made_by_us;
    bool shared;  /* other programs want it, too, or did once: it is not ours to delete */
    unsigned row; /* OURS and shared: see object_row() */
    bool leaving; /* somebody deleted it, and only finalizers keep it */
};

/* NULL, or what is wrong with it: then `out` says nothing. */
const char *object_read(const json_t *json, struct object *out);

/*
 * A foreign holder as a record that the rules can read; the length of its encoding, or 0. The
 * places are those of `beside`, a record that was never written (NULL: there are none).
 */
size_t object_foreign_record(const struct object *object, const char *key, const char *beside,
                             struct record *scratch, char *bytes, size_t size);
/* The foreign holder's grant in a record that was made from it; NULL when it is gone. */
const struct grant *object_foreign_grant(const struct object *object, struct record *record);

/* What a write is about. */
struct object_write {
    const char *name, *key;
    const char *bytes; /* the encoded record … */
    size_t length;
    const struct record *record; /* … and decoded */
    uint64_t session, number;    /* whose write, and which of them */
    int64_t wall_ms;             /* for people and other programs; we judge nothing by it */
    unsigned row;                /* see object_row() */
};

/* Does this write grant something? */
bool object_is_grant(const struct record *record);
/* Does this write grant or renew something? Its field manager's time is then a renewal's. */
bool object_is_renewal(const struct record *record);
/*
 * On a Lease that others want, too, our offers end after three in a row: then the record is
 * changed, so that nobody of ours comes in for some seconds. False: it is as it was.
 */
bool object_gives_way(const struct object *object, struct record *record);
/* One more than ours were granted it since the others had it, or could have had it; 0: nobody else
 * wants it. */
unsigned object_row(const struct object *object, const struct record *record, bool gives_way);
/* The Lease that shall stand. `before`: what stands there, or NULL for a new one; not changed.
 * NULL when memory is short. */
json_t *object_make(const json_t *before, const struct object_write *write);
/*
 * NULL, or the first member of ours that is not in `got`, the server's answer to a write, as it is
 * in `sent`: an admission webhook may change whatever it likes, and the server answers 201.
 */
const char *object_changed(const json_t *sent, const json_t *got);
/* Does nobody but the grant of this very write depend on the record? Then it may go again. */
bool object_is_only_grant(const struct record *record);
/* The same without us: for a Lease that is not ours to delete. */
json_t *object_vacate(const json_t *before);

/* What a deletion says: this Lease, as it was seen, or none. */
json_t *object_deletion(const struct object *object);

#endif
