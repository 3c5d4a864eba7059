/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a decision, on the in-memory store: bench_decisions [KEYS PAIRS]. It acquires and
 * releases random free keys beside KEYS held ones. scripts/bench.sh counts the instructions between
 * the two marks; run alone, the program prints nanoseconds.
 */
#include "store/translate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct bench {
    void *store;
    struct lease lease;
    struct lease_options options;
    struct observations observations;
    struct random random;
    struct store_reply reply;
    char key[40];
    char answered[4096];
    struct record record;
    struct lease_output output;
    char bytes[RECORD_MAX + 1];
};

static struct bench bench; /* large: kept off the stack */

static int64_t no_time(void *owner)
{
    (void)owner;
    return 1;
}

static void keep(void *caller, const struct store_reply *reply)
{
    struct bench *b = caller;
    b->reply = *reply;
    if (reply->length > sizeof b->answered)
        abort();
    if (reply->present)
        memcpy(b->answered, reply->bytes, reply->length);
    b->reply.bytes = b->answered;
}

/* One event, and the round trips that follow from it. */
static void step(struct bench *b, enum event_kind kind, bool known)
{
    struct event event = {.kind = kind, .now_ms = 1, .known = known};
    const char *why = NULL;
    if (known)
        translate_reply(&b->reply, b->key, &b->record, &event, &why);
    event.kind = kind;
    lease_step(&b->lease, &event, &b->record, &b->output, NULL);
    while (b->output.action != ACTION_NONE) {
        struct store_request request;
        struct event reply = {.kind = EVENT_REPLY, .now_ms = 1, .serial = b->output.serial};
        translate_request(&b->lease, &b->output, &b->record, b->bytes, sizeof b->bytes, &request);
        memory_driver.submit(b->store, &request, keep, b);
        translate_reply(&b->reply, b->key, &b->record, &reply, &why);
        lease_step(&b->lease, &reply, &b->record, &b->output, NULL);
    }
}

static void take(struct bench *b, uint64_t number)
{
    (void)snprintf(b->key, sizeof b->key, "key-%028" PRIu64, number);
    lease_init(&b->lease, &b->options, &b->observations, number);
    b->observations.count = 0;
    step(b, EVENT_START, /* known= */ false);
    if (!lease_held(&b->lease, 1))
        abort();
}

static void give_back(struct bench *b)
{
    step(b, EVENT_RELEASE, /* known= */ true);
    if (b->lease.state != LEASE_ENDED)
        abort();
}

/* Not inlined: the tool counts from entry to return. */
__attribute__((noinline)) void measured_pairs(struct bench *b, uint64_t keys, uint64_t pairs);
__attribute__((noinline)) void measured_pairs(struct bench *b, uint64_t keys, uint64_t pairs)
{
    for (uint64_t i = 0; i < pairs; i++) {
        take(b, keys + random_below(&b->random, keys));
        give_back(b);
    }
}

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void run(struct bench *b, uint64_t keys, uint64_t pairs)
{
    struct store_callbacks site = {.clock = {.now_ms = no_time}};
    struct text no_text = {0};
    b->store = malloc(memory_driver.state_size);
    if (b->store == NULL || !memory_driver.open(b->store, "memory:", &site, &no_text))
        abort();
    b->random.state = 1;
    for (uint64_t i = 0; i < keys; i++)
        take(b, i);
    double from = seconds();
    measured_pairs(b, keys, pairs);
    double took = seconds() - from;
    (void)printf("%9" PRIu64 " live keys: %7.0f ns per acquire+release\n", keys,
                 took * 1e9 / (double)pairs);
    memory_driver.close(b->store);
    free(b->store);
}

int main(int argc, char **argv)
{
    const struct store_facts facts = store_facts_at(&memory_driver, "memory:");
    bench.options = (struct lease_options){.request = {.verb = VERB_ACQUIRE,
                                                       .key = bench.key,
                                                       .holder = "worker-7",
                                                       .request = "4f1c0a9be2d37785",
                                                       .session = 7,
                                                       .ttl_ms = 30000,
                                                       .bound = true},
                                           .facts = &facts,
                                           .timeout_ms = 10000,
                                           .kill_grace_ms = 5000};
    if (argc == 3) {
        run(&bench, strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10));
        return 0;
    }
    for (uint64_t keys = 1000; keys <= 1000000; keys *= 10)
        run(&bench, keys, /* pairs= */ 200000);
    return 0;
}
