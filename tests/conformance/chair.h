/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands behind a seat: one open store, and everything it said. A chair does what a packet
 * asks for and puts what came of it into another, the same way in the suite's own process and in
 * one of its own. It expects nothing; the cases do.
 */
#ifndef LEASEHOLD_TESTS_CHAIR_H
#define LEASEHOLD_TESTS_CHAIR_H

#include "packet.h"

#include "store/store.h"

enum chair_order {
    CHAIR_OPEN,    /* session */
    CHAIR_CLOSE,   /* */
    CHAIR_ASK,     /* requests: all submitted, then stepped until each has its outcome */
    CHAIR_CHAIN,   /* requests: each submitted from the callback of the one before */
    CHAIR_DROP,    /* requests: submitted, and the store closed without a step */
    CHAIR_CHANGES, /* how many are wanted, for how long: what watches told since the last time */
    CHAIR_NOTICES, /* the same for site.notice */
    CHAIR_HEIR,    /* a process that has inherited what keeps the session alive, and nothing else */
};

struct chair {
    const struct store_driver *driver;
    const char *url;
    void *state; /* NULL while it is closed */
    struct errand *errands;
    struct packet *out; /* of the order that is being carried out */
    size_t out_count, unanswered;
    struct packet changes, notices;
    size_t change_count, notice_count;
    const char *failure; /* words for what must never happen */
};

/* The outcome: words of failure (or NULL), the count of answers, the answers. */
void chair_serve(struct chair *chair, struct packet *in, struct packet *out);
void chair_done(struct chair *chair);

void packet_put_request(struct packet *packet, const struct store_request *request);
void packet_next_answer(struct packet *packet, size_t *out_of, struct store_answer *out);

#endif
