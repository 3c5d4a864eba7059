/* SPDX-License-Identifier: Apache-2.0 */
/* One direction of a connection through the fault proxy; see proxy.h. */
#include "proxy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { CHUNK = 4096, WAITING_MOST = 256 * 1024 };

struct chunk {
    struct chunk *next;
    int64_t due_ms;
    size_t start, length;
    char bytes[CHUNK];
};

static const char *const ways[] = {[PROXY_UP] = "up", [PROXY_DOWN] = "down"};

void flow_init(struct flow *flow, int way, int from, int to)
{
    *flow = (struct flow){.way = way, .from = from, .to = to};
    flow->last = &flow->first;
}

static void drop_first(struct flow *flow)
{
    struct chunk *chunk = flow->first;
    flow->first = chunk->next;
    if (flow->first == NULL)
        flow->last = &flow->first;
    flow->waiting -= chunk->length;
    free(chunk);
}

void flow_done(struct flow *flow)
{
    while (flow->first != NULL)
        drop_first(flow);
}

bool flow_reads(const struct flow *flow)
{
    return !flow->ended && flow->waiting < WAITING_MOST;
}

bool flow_writes(const struct flow *flow, const struct proxy_faults *faults, int64_t now_ms)
{
    return flow->first != NULL && !faults->holds[flow->way] && flow->first->due_ms <= now_ms;
}

int64_t flow_due_ms(const struct flow *flow, const struct proxy_faults *faults)
{
    return flow->first != NULL && !faults->holds[flow->way] ? flow->first->due_ms : INT64_MAX;
}

bool flow_is_over(const struct flow *flow)
{
    return flow->ended && flow->first == NULL;
}

static int64_t draw_delay(struct proxy_faults *faults)
{
    int64_t width_ms = faults->delay_most_ms - faults->delay_least_ms;
    return faults->delay_least_ms + (int64_t)random_below(&faults->random, (uint64_t)width_ms + 1);
}

bool flow_read(struct flow *flow, struct proxy_faults *faults, struct proxy_counts *counts,
               int64_t now_ms)
{
    struct chunk *chunk = malloc(sizeof *chunk);
    if (chunk == NULL)
        return false;
    ssize_t got = recv(flow->from, chunk->bytes, sizeof chunk->bytes, 0);
    if (got <= 0 || faults->drops[flow->way]) {
        if (got > 0)
            counts->dropped[flow->way] += (uint64_t)got;
        free(chunk);
        flow->ended = got == 0;
        return got >= 0 || errno == EAGAIN || errno == EINTR;
    }
    chunk->next = NULL;
    chunk->start = 0;
    chunk->length = (size_t)got;
    chunk->due_ms = now_ms;
    if (faults->delay_most_ms > 0) {
        chunk->due_ms += draw_delay(faults);
        counts->delayed++;
    }
    *flow->last = chunk;
    flow->last = &chunk->next;
    flow->waiting += chunk->length;
    return true;
}

/* Bytes that may pass before the cut; the length when there is none. */
static size_t limit(struct flow *flow, const struct proxy_faults *faults, size_t length)
{
    uint64_t at = faults->cut_at[flow->way];
    if (flow->generation != faults->generation) {
        flow->generation = faults->generation;
        flow->counted = 0;
    }
    if (at == PROXY_NO_CUT || at - flow->counted > length)
        return length;
    return (size_t)(at - flow->counted);
}

bool flow_write(struct flow *flow, struct proxy_faults *faults, struct proxy_counts *counts,
                int64_t now_ms)
{
    while (flow_writes(flow, faults, now_ms)) {
        struct chunk *chunk = flow->first;
        bool cuts = faults->cut_at[flow->way] != PROXY_NO_CUT;
        size_t length = limit(flow, faults, chunk->length);
        ssize_t sent =
            length > 0 ? send(flow->to, chunk->bytes + chunk->start, length, MSG_NOSIGNAL) : 0;
        if (sent < 0)
            return errno == EAGAIN || errno == EINTR;
        flow->counted += (uint64_t)sent;
        counts->passed[flow->way] += (uint64_t)sent;
        chunk->start += (size_t)sent;
        chunk->length -= (size_t)sent;
        flow->waiting -= (size_t)sent;
        if (cuts && flow->counted == faults->cut_at[flow->way]) {
            printf("did cut %s %llu\n", ways[flow->way], (unsigned long long)flow->counted);
            faults->cut_at[flow->way] = PROXY_NO_CUT;
            return false;
        }
        if (chunk->length == 0)
            drop_first(flow);
    }
    return true;
}
