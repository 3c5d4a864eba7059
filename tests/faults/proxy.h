/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A proxy between a client and its server that injects network faults on command: delay, cut at a
 * byte, hold, drop. proxy_flow.c carries bytes and applies the faults, proxy.c has the sockets and
 * the commands; proxy_kit.h is for tests that run it.
 */
#ifndef LEASEHOLD_TESTS_PROXY_H
#define LEASEHOLD_TESTS_PROXY_H

#include "base/random.h"

#include <stdbool.h>
#include <stddef.h>

enum { PROXY_UP, PROXY_DOWN, PROXY_WAYS }; /* client to server, server to client */

#define PROXY_NO_CUT UINT64_MAX

/* The faults to inject; all 0 but cut_at: none. */
struct proxy_faults {
    struct random random;
    int64_t delay_least_ms, delay_most_ms;
    bool holds[PROXY_WAYS];
    bool drops[PROXY_WAYS];
    /* The first connection that carried that many bytes since the command is cut, once. */
    uint64_t cut_at[PROXY_WAYS];
    unsigned generation; /* of the cuts: each one restarts the count */
};

struct proxy_counts {
    uint64_t connections, refused, cuts;
    uint64_t passed[PROXY_WAYS], dropped[PROXY_WAYS]; /* bytes */
    uint64_t delayed;                                 /* pieces */
};

struct chunk;

/* One direction of one connection. */
struct flow {
    int way, from, to;
    struct chunk *first, **last;
    size_t waiting; /* bytes */
    uint64_t counted;
    unsigned generation;
    bool ended, shut;
};

void flow_init(struct flow *flow, int way, int from, int to);
void flow_done(struct flow *flow);

/* True if it is ready to read, or to write now. */
bool flow_reads(const struct flow *flow);
bool flow_writes(const struct flow *flow, const struct proxy_faults *faults, int64_t now_ms);
/* When the next piece is due; INT64_MAX: none is delayed. */
int64_t flow_due_ms(const struct flow *flow, const struct proxy_faults *faults);
/* False: the connection is to be cut. */
bool flow_read(struct flow *flow, struct proxy_faults *faults, struct proxy_counts *counts,
               int64_t now_ms);
bool flow_write(struct flow *flow, struct proxy_faults *faults, struct proxy_counts *counts,
                int64_t now_ms);
/* True if everything was forwarded, and no more can come. */
bool flow_is_over(const struct flow *flow);

#endif
