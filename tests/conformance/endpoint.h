/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The side of a client that has the store: one open store, and all of its replies. An endpoint
 * executes the order of one packet and puts the outcome into another, in the suite's own process or
 * in a child. It checks nothing; the cases do.
 */
#ifndef LEASEHOLD_TESTS_CONFORMANCE_ENDPOINT_H
#define LEASEHOLD_TESTS_CONFORMANCE_ENDPOINT_H

#include "packet.h"

#include "store/store.h"

enum endpoint_order {
    ENDPOINT_OPEN,      /* session */
    ENDPOINT_CLOSE,     /* */
    ENDPOINT_SUBMIT,    /* requests: all submitted, then stepped until each has its reply */
    ENDPOINT_CHAIN,     /* requests: each submitted from the callback of the previous one */
    ENDPOINT_DROP,      /* requests: submitted, and the store closed without a step */
    ENDPOINT_CHANGES,   /* count, timeout: changes from watches since the last order */
    ENDPOINT_NOTICES,   /* the same for the notice callback */
    ENDPOINT_INHERITOR, /* a process that inherits only the descriptor of the session */
};

struct endpoint {
    const struct store_driver *driver;
    const char *url;
    void *state; /* NULL while it is closed */
    uint64_t session;
    struct pending *pendings;
    struct packet *out; /* of the current order */
    size_t out_count, unanswered;
    struct packet changes, notices;
    size_t change_count, notice_count;
    const char *failure; /* a text for what must never happen */
};

/* The outcome: a failure text (or NULL), the number of replies, the replies. */
void endpoint_serve(struct endpoint *endpoint, struct packet *in, struct packet *out);
void endpoint_done(struct endpoint *endpoint);

void packet_put_request(struct packet *packet, const struct store_request *request);
void packet_next_answer(struct packet *packet, size_t *out_of, struct store_reply *out);

#endif
