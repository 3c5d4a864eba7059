/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record as a Lease of coordination.k8s.io/v1. One annotation contains the record, another the
 * full key; the spec contains the fields that kubectl and client-go read. All other members of a
 * Lease are preserved. No I/O.
 */
#ifndef LEASEHOLD_STORE_K8S_K8S_LEASE_H
#define LEASEHOLD_STORE_K8S_K8S_LEASE_H

#include "store/store.h"

#include <jansson.h>

#define K8S_LEASE_LABEL       "app.kubernetes.io/managed-by"
#define K8S_LEASE_LABEL_VALUE "leasehold"
#define K8S_LEASE_SELECTOR    "labelSelector=app.kubernetes.io%2Fmanaged-by%3Dleasehold"
#define K8S_HOLDER_MANAGER    "leasehold-holder" /* field managers: of grants and renewals … */
#define K8S_WAITER_MANAGER    "leasehold-waiter" /* … and of all other writes */

enum { K8S_UID_MAX = 40 };

enum k8s_lease_state {
    K8S_LEASE_VACANT,  /* an empty Lease: never held, or released */
    K8S_LEASE_OURS,    /* the annotated record is valid */
    K8S_LEASE_FOREIGN, /* another program holds it, by its own rules */
};

/* The strings point into the JSON. */
struct k8s_lease {
    enum k8s_lease_state state;
    const char *name, *uid, *key; /* key: NULL if it was never ours */
    const char *holder;           /* of the spec; "" */
    const char *record;           /* OURS: the encoded record */
    int64_t duration_ms;          /* of the spec */
    uint64_t revision;            /* of the Lease, current */
    struct stamp written;         /* our write that made it, or our last one if that is unknown */
    uint64_t write_hash;          /* OURS: identifies that write; 0: unknown */
    bool made_by_us;
    bool shared;      /* other programs use it, or did once: we must not delete it */
    unsigned streak;  /* OURS and shared: see k8s_lease_streak() */
    bool terminating; /* deleted, and kept only by finalizers */
};

/* NULL, or the reason why the Lease is invalid: then `out` is undefined. */
const char *k8s_lease_parse(const json_t *json, struct k8s_lease *out);

/*
 * Makes a record of a foreign holder, as input of the lease rules; returns the length of its
 * encoding, or 0. Its waiters are those of `local_record`, which was never written (NULL: none).
 */
size_t k8s_lease_foreign_record(const struct k8s_lease *lease, const char *key,
                                const char *local_record, struct record *scratch, char *bytes,
                                size_t size);
/* True if this is the request id of the foreign holder's grant in that record. */
bool k8s_lease_is_foreign_grant(const struct k8s_lease *lease, const char *request);

/* An epoch in an annotation; an empty text is epoch 0. */
bool k8s_epoch_parse(const char *text, uint16_t *out);

/* The input of a write. */
struct k8s_lease_write {
    const char *name, *key;
    const char *bytes; /* the encoded record … */
    size_t length;
    const struct store_summary *summary; /* … and what it contains */
    uint64_t session, number; /* the writer's session, and the number of the write in it */
    int64_t wall_ms;          /* for people and other programs; no decision depends on it */
    unsigned streak;          /* see k8s_lease_streak() */
    uint16_t epoch;           /* of the write */
};

/* The field manager of a write: if it grants or renews, the manager's time is a renewal. */
const char *k8s_lease_manager(const struct store_summary *summary);
/*
 * On a shared Lease we stop offering it to our own waiters after three grants in a row: then the
 * second function changes the record so that no client of ours acquires it for some seconds.
 */
bool k8s_lease_gives_way(const struct k8s_lease *lease, const struct store_summary *summary);
void k8s_lease_give_way(struct record *record);
/* The number of our grants since other programs held it, or could have, plus one; 0 if no other
 * program uses it. */
unsigned k8s_lease_streak(const struct k8s_lease *lease, const struct store_summary *summary,
                          bool gives_way);
/* The Lease to write. `before`: the current Lease, not changed; NULL for a new one. NULL when out
 * of memory. */
json_t *k8s_lease_make(const json_t *before, const struct k8s_lease_write *write);
/*
 * NULL, or the first member of ours that differs between `sent` and `got`, the server's reply to
 * the write: an admission webhook may change any member, and the server still replies 201.
 */
const char *k8s_lease_changed(const json_t *sent, const json_t *got);
/* True if only the grant of this write depends on the record: then the write may be undone. */
bool k8s_lease_is_only_grant(const struct store_summary *summary);
/* The Lease without our members, if we must not delete it. */
json_t *k8s_lease_vacate(const json_t *before);

/* The options of a deletion: only this Lease, at this revision. */
json_t *k8s_lease_delete_options(const struct k8s_lease *lease);

#endif
