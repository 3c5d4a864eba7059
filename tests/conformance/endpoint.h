/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands behind a seat: one open store, and everything it said. A chair does what a packet
 * asks for and puts what came of it into another, the same way in the suite's own process and in
 * one of its own. It expects nothing; the cases do.
 */
#ifndef LEASEHOLD_TESTS_CONFORMANCE_ENDPOINT_H
#define LEASEHOLD_TESTS_CONFORMANCE_ENDPOINT_H

#include "packet.h"

#include "store/store.h"

enum endpoint_order {
    ENDPOINT_OPEN,    /* session */
    ENDPOINT_CLOSE,   /* */
    ENDPOINT_SUBMIT,  /* requests: all submitted, then stepped until each has its outcome */
    ENDPOINT_CHAIN,   /* requests: each submitted from the callback of the one before */
    ENDPOINT_DROP,    /* requests: submitted, and the store closed without a step */
    ENDPOINT_CHANGES, /* how many are wanted, for how long: what watches told since the last time */
    ENDPOINT_NOTICES, /* the same for site.notice */
    ENDPOINT_INHERITOR, /* a process that has inherited what keeps the session alive, and nothing
                           else */
};

struct endpoint {
    const struct store_driver *driver;
    const char *url;
    void *state; /* NULL while it is closed */
    struct pending *pendings;
    struct packet *out; /* of the order that is being carried out */
    size_t out_count, unanswered;
    struct packet changes, notices;
    size_t change_count, notice_count;
    const char *failure; /* words for what must never happen */
};

/* The outcome: words of failure (or NULL), the count of answers, the answers. */
void endpoint_serve(struct endpoint *endpoint, struct packet *in, struct packet *out);
void endpoint_done(struct endpoint *endpoint);

void packet_put_request(struct packet *packet, const struct store_request *request);
void packet_next_answer(struct packet *packet, size_t *out_of, struct store_reply *out);

#endif
