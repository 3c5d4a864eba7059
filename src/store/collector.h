/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes records that are no longer in use from a store that expires none itself: the holder is
 * dead, the cooldown is over, or a done marker has expired. Long-lived processes run a round
 * rarely, at a random time, page by page, at a limited rate; a round ends when it meets another
 * collector. expiry.h judges a record, by the store's clock; the driver lists and removes, and must
 * remove a record only as it was judged.
 */
#ifndef LEASEHOLD_STORE_COLLECTOR_H
#define LEASEHOLD_STORE_COLLECTOR_H

#include "base/random.h"
#include "net/poller.h"
#include "store/admin.h"
#include "store/expiry.h"

struct collector_entry {
    struct stored_record record;
    int64_t margin_ms; /* error of the store's clock */
    uint64_t space;    /* the watermark of a record has the same; other spaces may reuse its key */
};

/* The functions of the driver. The first three start an operation: one of the functions below
 * reports its end, at once or later. */
struct collector_driver {
    void (*list)(void *owner, bool first); /* the first page, or the next one */
    void (*remove)(void *owner, size_t index);
    void (*read)(void *owner, const char *key); /* a watermark, in the space of the last entry */
    /* An entry of the page; false: it is not for this collector. */
    bool (*entry)(void *owner, size_t index, struct collector_entry *out);
};

typedef void collector_ended(void *user, const struct collection *tally);

struct collector {
    const struct collector_driver *driver;
    void *owner;
    struct poller *poller;
    struct record *scratch;
    struct poller_timer due;
    struct random random;
    int64_t step_ms; /* between two removals */
    unsigned doubled;
    bool working;  /* the driver has an operation */
    bool has_page; /* the page being processed … */
    bool more;     /* … is not the last one */
    bool begun;    /* a page of this round was read */
    size_t index, count;
    /* The last watermark that was read, and the key of the one to read next ("": none). */
    char *mark;
    int64_t mark_at_ms;
    uint64_t mark_space, space;
    char mark_key[KEY_MAX + 1], wanted[KEY_MAX + 1];
    struct collection tally; /* of this round */
    bool count_only;
    collector_ended *ended; /* NULL: a periodic round */
    void *user;
};

/* `rate`: removals in a minute; 0: no periodic rounds. `scratch` is used during callbacks only. */
void collector_init(struct collector *collector, const struct collector_driver *driver, void *owner,
                    struct poller *poller, struct record *scratch, uint64_t seed, unsigned rate);
void collector_done(struct collector *collector);
/* Starts a round at once, and calls `ended` at its end. Rate 0 only counts. */
void collector_begin(struct collector *collector, unsigned rate, collector_ended *ended,
                     void *user);
/* The same, and runs the poller until its end. */
void collector_run(struct collector *collector, unsigned rate, struct collection *out);

enum collector_removal { COLLECTOR_REMOVED, COLLECTOR_IN_USE, COLLECTOR_GONE };

void collector_on_page(struct collector *collector, size_t count, bool more);
void collector_on_removal(struct collector *collector, enum collector_removal removal);
void collector_on_watermark(struct collector *collector, const char *bytes, size_t length);
void collector_on_error(struct collector *collector, const char *why); /* of any; ends the round */

#endif
