/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record as a Lease of coordination.k8s.io/v1. The record stands in an annotation, with the full
 * key in another; the spec says of it what kubectl and client-go expect to read. Whatever else a
 * Lease carries is kept. No I/O.
 */
#ifndef LEASEHOLD_STORE_K8S_K8S_LEASE_H
#define LEASEHOLD_STORE_K8S_K8S_LEASE_H

#include "store/store.h"

#include <jansson.h>

#define K8S_LEASE_LABEL       "app.kubernetes.io/managed-by"
#define K8S_LEASE_LABEL_VALUE "leasehold"
#define K8S_HOLDER_MANAGER    "leasehold-holder" /* field managers: who grants or renews … */
#define K8S_WAITER_MANAGER    "leasehold-waiter" /* … and who only waits, cools or tidies up */

enum { K8S_UID_MAX = 40 };

enum k8s_lease_state {
    K8S_LEASE_VACANT,  /* a Lease that says nothing: nobody holds it, or who held it let go of it */
    K8S_LEASE_OURS,    /* the annotated record counts */
    K8S_LEASE_FOREIGN, /* another program holds it, by the rules of its own */
};

/* The words point into the JSON. */
struct k8s_lease {
    enum k8s_lease_state state;
    const char *name, *uid, *key; /* key: NULL when it was never ours */
    const char *holder;           /* of the spec; "" */
    const char *record;           /* OURS: the encoded record */
    int64_t duration_ms;          /* of the spec */
    uint64_t revision;            /* of the Lease as it stands */
    struct stamp written;         /* by which write of ours; by the last one, as far as it says */
    uint64_t write_hash;          /* OURS: tells that write from others; 0: it cannot be told */
    bool made_by_us;
    bool shared;      /* other programs want it, too, or did once: it is not ours to delete */
    unsigned streak;  /* OURS and shared: see k8s_lease_streak() */
    bool terminating; /* somebody deleted it, and only finalizers keep it */
};

/* NULL, or what is wrong with it: then `out` says nothing. */
const char *k8s_lease_parse(const json_t *json, struct k8s_lease *out);

/*
 * A foreign holder as a record that the rules can read; the length of its encoding, or 0. The
 * places are those of `beside`, a record that was never written (NULL: there are none).
 */
size_t k8s_lease_foreign_record(const struct k8s_lease *lease, const char *key,
                                const char *local_record, struct record *scratch, char *bytes,
                                size_t size);
/* The foreign holder's grant in a record that was made from it; NULL when it is gone. */
const struct grant *k8s_lease_foreign_grant(const struct k8s_lease *lease, struct record *record);

/* What a write is about. */
struct k8s_lease_write {
    const char *name, *key;
    const char *bytes; /* the encoded record … */
    size_t length;
    const struct record *record; /* … and decoded */
    uint64_t session, number;    /* whose write, and which of them */
    int64_t wall_ms;             /* for people and other programs; we judge nothing by it */
    unsigned streak;             /* see k8s_lease_streak() */
};

/* Does this write grant something? */
bool k8s_lease_is_grant(const struct record *record);
/* Does this write grant or renew something? Its field manager's time is then a renewal's. */
bool k8s_lease_is_renewal(const struct record *record);
/*
 * On a Lease that others want, too, our offers end after three in a row: then the record is
 * changed, so that nobody of ours comes in for some seconds. False: it is as it was.
 */
bool k8s_lease_gives_way(const struct k8s_lease *lease, struct record *record);
/* One more than ours were granted it since the others had it, or could have had it; 0: nobody else
 * wants it. */
unsigned k8s_lease_streak(const struct k8s_lease *lease, const struct record *record,
                          bool gives_way);
/* The Lease that shall stand. `before`: what stands there, or NULL for a new one; not changed.
 * NULL when out of memory. */
json_t *k8s_lease_make(const json_t *before, const struct k8s_lease_write *write);
/*
 * NULL, or the first member of ours that is not in `got`, the server's answer to a write, as it is
 * in `sent`: an admission webhook may change whatever it likes, and the server answers 201.
 */
const char *k8s_lease_changed(const json_t *sent, const json_t *got);
/* Does nobody but the grant of this very write depend on the record? Then it may go again. */
bool k8s_lease_is_only_grant(const struct record *record);
/* The same without us: for a Lease that is not ours to delete. */
json_t *k8s_lease_vacate(const json_t *before);

/* What a deletion says: this Lease, as it was seen, or none. */
json_t *k8s_lease_delete_options(const struct k8s_lease *lease);

#endif
