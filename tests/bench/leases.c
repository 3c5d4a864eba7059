/* SPDX-License-Identifier: Apache-2.0 */
/* See leases.h. A reply is handled inside the store's callback, as store.h allows. */
#include "leases.h"

#include "process/host.h"
#include "rounds.h"
#include "store/translate.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BYTES = 32, TTL_MS = 120000, TIMEOUT_MS = 10000 };

struct one {
    struct leases *all;
    struct lease lease;
    struct lease_options options;
    struct observations observations;
    uint32_t serial;
    enum lease_notify notify;
    char key[KEY_BYTES + 1], request[48];
    /* valid until the store has replied */
    uint64_t wake[WAITERS_MAX];
    char bytes[RECORD_MAX];
};

struct leases {
    void *store;
    uint64_t session, number;
    struct store_facts facts;
    char holder[24];
    struct record record;
    struct lease_output output;
    size_t in_flight_count;
    size_t most;
    struct one ones[];
};

static int64_t now_ms(void *owner)
{
    (void)owner;
    return host_boot_ms();
}

static void receive(void *caller, const struct store_reply *reply);

static void step(struct one *one, const struct event *event)
{
    struct store_request request;
    struct leases *all = one->all;
    struct lease_output *out = &all->output;
    lease_step(&one->lease, event, &all->record, out, /* trace= */ NULL);
    if (out->notify != NOTIFY_NONE)
        one->notify = out->notify;
    if (out->notify == NOTIFY_ENDED && out->outcome != OUTCOME_OK)
        rounds_fail(one->key, out->why != NULL ? out->why : "did not end well");
    if (out->action == ACTION_NONE)
        return;
    translate_request(&one->lease, out, &all->record, one->bytes, sizeof one->bytes, &request);
    memcpy(one->wake, out->wake, out->wake_count * sizeof *out->wake);
    request.wake = one->wake;
    one->serial = out->serial;
    all->in_flight_count++;
    file_driver.submit(all->store, &request, receive, one);
}

static void receive(void *caller, const struct store_reply *reply)
{
    struct one *one = caller;
    const char *why = NULL;
    struct event event = {.kind = EVENT_REPLY, .now_ms = now_ms(NULL), .serial = one->serial};
    one->all->in_flight_count--;
    if (reply->result == REPLY_TROUBLE)
        rounds_fail(one->key, reply->why);
    translate_reply(reply, one->key, &one->all->record, &event, &why);
    if (why != NULL)
        rounds_fail(one->key, why);
    step(one, &event);
}

/* No reply is cached: waiters query, holders release by the token. */
static void step_lease(struct one *one, enum event_kind kind)
{
    struct event event = {.kind = kind, .now_ms = now_ms(NULL)};
    step(one, &event);
}

static void notice(void *owner, const char *key, const struct store_reply *stands)
{
    (void)stands;
    struct leases *all = owner;
    for (size_t i = 0; i < all->most; i++)
        if (all->ones[i].lease.state != LEASE_ENDED && strcmp(all->ones[i].key, key) == 0)
            step_lease(&all->ones[i], EVENT_NOTICE);
}

struct leases *leases_open(const char *path, uint64_t session, size_t most)
{
    char url[512], text[512];
    struct text why;
    struct leases *all = rounds_memory(sizeof *all + most * sizeof all->ones[0]);
    void *store = rounds_memory(file_driver.state_size);
    all->store = store;
    all->session = session;
    all->most = most;
    (void)snprintf(all->holder, sizeof all->holder, "worker-%" PRIu64, session);
    (void)snprintf(url, sizeof url, "file:%s", path);
    all->facts = store_facts_at(&file_driver, url);
    for (size_t i = 0; i < most; i++) {
        all->ones[i].all = all;
        all->ones[i].lease.state = LEASE_ENDED;
    }
    struct store_callbacks site = {.clock = {.now_ms = now_ms},
                                   .session = session,
                                   .timeout_ms = TIMEOUT_MS,
                                   .notice = notice,
                                   .owner = all};
    text_init(&why, text, sizeof text);
    if (!file_driver.open(store, url, &site, &why))
        rounds_fail("open", text);
    return all;
}

void leases_close(struct leases **leases)
{
    file_driver.close((*leases)->store);
    free((*leases)->store);
    free(*leases);
    *leases = NULL;
}

void leases_ask(struct leases *leases, size_t which, uint64_t key, int64_t wait_ms)
{
    struct one *one = &leases->ones[which];
    uint64_t number = ++leases->number;
    (void)snprintf(one->key, sizeof one->key, "key-%028" PRIu64, key);
    (void)snprintf(one->request, sizeof one->request, "%" PRIx64 "-%" PRIx64, leases->session,
                   number);
    one->options = (struct lease_options){.request = {.verb = VERB_ACQUIRE,
                                                      .key = one->key,
                                                      .holder = leases->holder,
                                                      .request = one->request,
                                                      .session = leases->session,
                                                      .ttl_ms = TTL_MS,
                                                      .bound = true,
                                                      .waits = wait_ms != 0},
                                          .facts = &leases->facts,
                                          .wait_ms = wait_ms,
                                          .timeout_ms = TIMEOUT_MS,
                                          .kill_grace_ms = 5000};
    one->notify = NOTIFY_NONE;
    one->observations.count = 0;
    lease_init(&one->lease, &one->options, &one->observations, number);
    step_lease(one, EVENT_START);
}

void leases_let_go(struct leases *leases, size_t which)
{
    step_lease(&leases->ones[which], EVENT_RELEASE);
}

void leases_step(struct leases *leases)
{
    file_driver.step(leases->store);
}

void leases_await(struct leases *leases, size_t which, enum lease_notify notify)
{
    const struct one *one = &leases->ones[which];
    struct pollfd news = {.fd = file_driver.fd(leases->store), .events = POLLIN};
    while (one->notify != notify) {
        if (one->notify == NOTIFY_ENDED)
            rounds_fail(one->key, "ended too early");
        if (leases->in_flight_count == 0 && poll(&news, 1, TIMEOUT_MS) <= 0)
            rounds_fail(one->key, "nobody wakes us");
        leases_step(leases);
    }
}

void leases_take(struct leases *leases, size_t count, uint64_t first)
{
    for (size_t i = 0; i < count; i++)
        leases_ask(leases, i, first + i, /* wait_ms= */ 0);
    for (size_t i = 0; i < count; i++)
        leases_await(leases, i, NOTIFY_HELD);
}

void leases_give_back(struct leases *leases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        leases_let_go(leases, i);
    for (size_t i = 0; i < count; i++)
        leases_await(leases, i, NOTIFY_ENDED);
}
