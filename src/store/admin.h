/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of operators to a store: diagnosis, the epoch, and the removal of records no longer
 * needed. A driver implements them in its slots of store.h and blocks meanwhile. A diagnosis
 * changes nothing and acquires no lock; its findings are for people, and no rule depends on them.
 */
#ifndef LEASEHOLD_STORE_ADMIN_H
#define LEASEHOLD_STORE_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

enum finding_level {
    FINDING_OK,
    FINDING_WARNING, /* locks work, but something weakens them */
    FINDING_PROBLEM  /* the store cannot be used */
};

struct finding {
    enum finding_level level;
    const char *about;  /* one word: "folder" … */
    const char *text;   /* the finding */
    const char *remedy; /* NULL: none, or the text says it */
};

/* Leftovers: records and objects that are no longer needed. */
struct collection {
    unsigned left, removed, taken; /* taken: in use again before its removal */
    char names[256];               /* of objects: the first of them, separated by commas */
    char why[512];                 /* why it ended early; empty: it did not … */
    bool usage;                    /* … because the call is wrong */
};

struct collect_options;

/* Collects the workload objects of a kind. Objects are above the stores, so the library passes this
 * function to the driver, which calls it with its connection. */
typedef void collect_objects_fn(void *connection, const struct collect_options *options,
                                struct collection *out);

struct collect_options {
    const char *kind;                               /* of workload objects, too; NULL: none */
    const char *done_when, *failed_when, *ended_at; /* how an object ends; NULL: the default */
    unsigned rate;                                  /* removals in a minute; 0: count only */
    int64_t timeout_ms;                             /* for one reply */
    collect_objects_fn *collect_objects;
};

/* The epoch of a store's tokens (docs/fencing.md, "After a restored backup"). */
struct epoch_options {
    uint16_t least;     /* raises the epoch to this one, unless it is higher already; 0: reads it */
    int64_t timeout_ms; /* for one reply; 0: the driver's default */
};

struct epoch_state {
    uint16_t epoch;
    uint64_t revision; /* grows with every write of the store, in one epoch … */
    int64_t now_ms;    /* … and its clock, in milliseconds since 1970 if it has one; or −1 */
    unsigned behind;   /* parts of the store that have an older epoch: raise it again */
    char kept[512];    /* where the epoch is kept: for people, and to tell stores apart */
};

/* The scope of a diagnosis, and the callback for its findings. */
struct diagnosis {
    const char *kind;    /* of workload objects, as in "jobs.batch"; NULL: none */
    int64_t timeout_ms;  /* for one reply; 0: the driver's default, which is also the most */
    bool creates_folder; /* a missing folder is none: the first lock creates it */
    bool events_only;    /* only whether Events can be written; a driver with `event` only */
    void (*on_finding)(const struct diagnosis *diagnosis, const struct finding *finding);
    /* Reads a key as a client does, and reports a finding about "rights"; `remedy` is for a client
     * that is denied. */
    void (*check_read)(const struct diagnosis *diagnosis, const char *url, const char *remedy);
    collect_objects_fn *collect_objects;
    void *owner; /* of these functions */
};

void diagnosis_report(const struct diagnosis *diagnosis, enum finding_level level,
                      const char *about, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
int64_t diagnosis_timeout_ms(const struct diagnosis *diagnosis, int64_t most_ms);

#endif
