/* SPDX-License-Identifier: Apache-2.0 */
/* See endpoint.h. */
#include "endpoint.h"

#include "suite_clock.h"

#include "base/check.h"
#include "store/translate.h"
#include "wire/record_codec.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { ANSWER_WITHIN_MS = 10000, TIMEOUT_MS = 5000, NAP_MS = 10, REQUESTS_MAX = 4096 };

/*
 * A request in flight; kept until the store is closed, to detect a second reply. The data that it
 * points to is freed at the first callback, as store.h allows.
 */
struct pending {
    struct pending *next;
    struct endpoint *endpoint;
    struct pending *then; /* submitted from the callback */
    struct packet packet;
    enum store_verb verb;
    size_t of; /* its index among those sent together */
    bool finished;
    char holder[HOLDER_MAX + 1], request[REQUEST_MAX + 1]; /* of the summary */
};

static int64_t site_now_ms(void *owner)
{
    (void)owner;
    return suite_now_ms();
}

/* Requests and replies in packets. */

void packet_put_request(struct packet *packet, const struct store_request *request)
{
    packet_put(packet, request->verb);
    packet_put_text(packet, request->key);
    packet_put(packet, request->condition.kind);
    packet_put(packet, request->condition.revision);
    packet_put(packet, request->condition.token);
    packet_put_bytes(packet, request->bytes, request->length);
    packet_put(packet, (uint64_t)request->ttl_ms);
    packet_put(packet, (uint64_t)request->retention_ms);
    packet_put(packet, request->session);
    packet_put(packet, request->bound ? 1 : 0);
    packet_put_bytes(packet, request->wake, request->wake_count * sizeof request->wake[0]);
    packet_put(packet, request->given_count);
    packet_put(packet, request->spare_count);
}

static struct store_request next_request(struct packet *packet)
{
    struct store_request request = {.verb = (enum store_verb)packet_next(packet)};
    size_t size = 0;
    request.key = packet_next_text(packet);
    request.condition.kind = (enum condition_kind)packet_next(packet);
    request.condition.revision = packet_next(packet);
    request.condition.token = packet_next(packet);
    request.bytes = packet_next_bytes(packet, &request.length);
    request.ttl_ms = (int64_t)packet_next(packet);
    request.retention_ms = (int64_t)packet_next(packet);
    request.session = packet_next(packet);
    request.bound = packet_next(packet) != 0;
    request.wake = packet_next_bytes(packet, &size);
    request.wake_count = size / sizeof request.wake[0];
    request.given_count = packet_next(packet);
    request.spare_count = packet_next(packet);
    return request;
}

static void put_answer(struct packet *packet, size_t of, const struct store_reply *reply)
{
    packet_put(packet, of);
    packet_put(packet, reply->result);
    packet_put(packet, reply->more ? 1 : 0);
    packet_put(packet, reply->present ? 1 : 0);
    packet_put(packet, reply->written.revision);
    packet_put(packet, (uint64_t)reply->written.time_ms);
    packet_put(packet, reply->written.epoch);
    packet_put(packet, (uint64_t)reply->now_ms);
    packet_put_text(packet, reply->key);
    packet_put_bytes(packet, reply->present ? reply->bytes : NULL, reply->length);
    packet_put_bytes(packet, reply->dead_sessions,
                     reply->dead_count * sizeof reply->dead_sessions[0]);
    packet_put_bytes(packet, reply->ended_tokens,
                     reply->ended_count * sizeof reply->ended_tokens[0]);
    packet_put(packet, reply->cooling_over ? 1 : 0);
    packet_put(packet, reply->delay_over ? 1 : 0);
    packet_put(packet, (uint64_t)reply->alive_ms);
    packet_put_text(packet, reply->why);
}

void packet_next_answer(struct packet *packet, size_t *out_of, struct store_reply *out)
{
    size_t size = 0;
    *out_of = packet_next(packet);
    *out = (struct store_reply){.result = (enum reply_status)packet_next(packet)};
    out->more = packet_next(packet) != 0;
    out->present = packet_next(packet) != 0;
    out->written.revision = packet_next(packet);
    out->written.time_ms = (int64_t)packet_next(packet);
    out->written.epoch = (uint16_t)packet_next(packet);
    out->now_ms = (int64_t)packet_next(packet);
    out->key = packet_next_text(packet);
    out->bytes = packet_next_bytes(packet, &out->length);
    out->dead_sessions = packet_next_bytes(packet, &size);
    out->dead_count = size / sizeof out->dead_sessions[0];
    out->ended_tokens = packet_next_bytes(packet, &size);
    out->ended_count = size / sizeof out->ended_tokens[0];
    out->cooling_over = packet_next(packet) != 0;
    out->delay_over = packet_next(packet) != 0;
    out->alive_ms = (int64_t)packet_next(packet);
    out->why = packet_next_text(packet);
}

/* Callbacks of the store. */

static void submit(struct pending *pending);

static void finish(struct pending *pending)
{
    pending->finished = true;
    pending->endpoint->unanswered--;
    packet_done(&pending->packet);
    if (pending->then != NULL)
        submit(pending->then);
}

static void on_reply(void *caller, const struct store_reply *reply)
{
    struct pending *pending = caller;
    struct endpoint *endpoint = pending->endpoint;
    bool watches = pending->verb == VERB_STORE_WATCH;
    if (pending->finished && watches) {
        put_answer(&endpoint->changes, pending->of, reply);
        endpoint->change_count++;
    } else if (pending->finished || endpoint->out == NULL) {
        endpoint->failure = "a request was answered twice, or after it was over";
    } else {
        put_answer(endpoint->out, pending->of, reply);
        endpoint->out_count++;
        if (watches || !reply->more)
            finish(pending);
    }
}

/* Cases write bytes of their own, so the summary is made here; of no record it is empty. */
static void summarize(struct pending *pending, struct store_request *request)
{
    static struct record record;
    struct codec_error error;
    struct store_summary *summary = &request->summary;
    if (request->length == 0 ||
        record_decode(request->bytes, request->length, &record, &error) != DECODE_OK)
        return;
    summarize_record(&record, pending->endpoint->session, summary);
    text_copy(pending->holder, sizeof pending->holder, summary->holder);
    text_copy(pending->request, sizeof pending->request, summary->request);
    summary->holder = pending->holder;
    summary->request = pending->request;
}

static void submit(struct pending *pending)
{
    struct endpoint *endpoint = pending->endpoint;
    pending->packet.at = 0;
    struct store_request request = next_request(&pending->packet);
    summarize(pending, &request);
    endpoint->driver->submit(endpoint->state, &request, on_reply, pending);
}

static void on_notice(void *owner, const char *key, const struct store_reply *stands)
{
    struct endpoint *endpoint = owner;
    struct store_reply notify = stands != NULL ? *stands : (struct store_reply){0};
    notify.key = key;
    put_answer(&endpoint->notices, /* of= */ 0, &notify);
    endpoint->notice_count++;
}

/* Steps the driver. If it had nothing to do, waits for it, but not long. */
static void step(struct endpoint *endpoint, bool idle)
{
    const struct store_driver *driver = endpoint->driver;
    if (idle && driver->fd != NULL) {
        struct pollfd wait = {.fd = driver->fd(endpoint->state), .events = POLLIN};
        (void)poll(&wait, 1, NAP_MS);
    } else if (idle) {
        suite_sleep(1);
    }
    if (driver->step != NULL)
        driver->step(endpoint->state);
}

/* Orders. */

static void open_store(struct endpoint *endpoint, uint64_t session)
{
    static char text[512];
    struct text why;
    struct store_callbacks site = {.clock = {.now_ms = site_now_ms},
                                   .session = session,
                                   .timeout_ms = TIMEOUT_MS,
                                   .notice = on_notice,
                                   .owner = endpoint};
    ASSERT(endpoint->state == NULL);
    endpoint->session = session;
    text_init(&why, text, sizeof text);
    endpoint->state = malloc(endpoint->driver->state_size);
    ASSERT(endpoint->state != NULL);
    if (endpoint->driver->open(endpoint->state, endpoint->url, &site, &why))
        return;
    endpoint->failure = why.length > 0 ? text : "open failed and did not say why";
    free(endpoint->state);
    endpoint->state = NULL;
}

static void close_store(struct endpoint *endpoint)
{
    if (endpoint->state != NULL)
        endpoint->driver->close(endpoint->state);
    free(endpoint->state);
    endpoint->state = NULL;
    while (endpoint->pendings != NULL) {
        struct pending *pending = endpoint->pendings;
        endpoint->pendings = pending->next;
        packet_done(&pending->packet);
        free(pending);
    }
    packet_clear(&endpoint->changes);
    packet_clear(&endpoint->notices);
    endpoint->change_count = endpoint->notice_count = 0;
}

static struct pending *pending_new(struct endpoint *endpoint, const struct store_request *request,
                                   size_t of)
{
    struct pending *pending = malloc(sizeof *pending);
    if (pending == NULL)
        abort();
    *pending = (struct pending){
        .next = endpoint->pendings, .endpoint = endpoint, .verb = request->verb, .of = of};
    packet_put_request(&pending->packet, request);
    endpoint->pendings = pending;
    return pending;
}

static void submit_all(struct endpoint *endpoint, struct packet *in, bool chained)
{
    struct pending *pendings[REQUESTS_MAX];
    size_t count = packet_next(in);
    ASSERT(count <= REQUESTS_MAX);
    endpoint->unanswered = count;
    for (size_t i = 0; i < count; i++) {
        struct store_request request = next_request(in);
        pendings[i] = pending_new(endpoint, &request, i);
        if (chained && i > 0)
            pendings[i - 1]->then = pendings[i];
    }
    for (size_t i = 0; i < count && !(chained && i > 0); i++)
        submit(pendings[i]);
}

static void submit_and_wait(struct endpoint *endpoint, struct packet *in, bool chained)
{
    int64_t until_ms = suite_now_ms() + ANSWER_WITHIN_MS;
    submit_all(endpoint, in, chained);
    step(endpoint, /* idle= */ false);
    while (endpoint->unanswered > 0 && endpoint->driver->step != NULL && suite_now_ms() < until_ms)
        step(endpoint, /* idle= */ !chained);
    if (endpoint->unanswered == 0)
        return;
    close_store(endpoint); /* a later reply would come too late */
    endpoint->failure = "a request was not answered";
}

/* A duplicate, since a store closes its own descriptors in a child. The reply's index is the pid.
 * */
static void start_inheritor(struct endpoint *endpoint)
{
    enum { DESCRIPTORS = 1024, INHERITOR_S = 30 };
    int line = dup(endpoint->driver->liveness(endpoint->state));
    pid_t inheritor = fork();
    ASSERT(line >= 0 && inheritor >= 0);
    if (inheritor > 0) {
        (void)close(line);
        put_answer(endpoint->out, (size_t)inheritor, &(struct store_reply){0});
        endpoint->out_count++;
        return;
    }
    for (int file = 0; file < DESCRIPTORS; file++)
        if (file != line)
            (void)close(file);
    (void)alarm(INHERITOR_S);
    for (;;)
        (void)pause();
}

static void await(struct endpoint *endpoint, const size_t *count, size_t wanted, int64_t wait_ms)
{
    int64_t until_ms = suite_now_ms() + wait_ms;
    step(endpoint, /* idle= */ false);
    while (*count < wanted && suite_now_ms() < until_ms)
        step(endpoint, /* idle= */ true);
}

static void hand_out(struct packet *queue, size_t *count, struct packet *out, size_t *out_count)
{
    packet_put_packet(out, queue);
    *out_count += *count;
    packet_clear(queue);
    *count = 0;
}

/* Orders that need an open store. */
static void execute_open(struct endpoint *endpoint, enum endpoint_order order, struct packet *in,
                         struct packet *out)
{
    bool asks = order == ENDPOINT_SUBMIT || order == ENDPOINT_CHAIN || order == ENDPOINT_DROP;
    size_t wanted = asks ? 0 : packet_next(in);
    int64_t wait_ms = asks ? 0 : (int64_t)packet_next(in);
    if (order == ENDPOINT_DROP) {
        submit_all(endpoint, in, /* chained= */ false);
        close_store(endpoint);
    } else if (asks) {
        submit_and_wait(endpoint, in, order == ENDPOINT_CHAIN);
    } else if (order == ENDPOINT_CHANGES) {
        await(endpoint, &endpoint->change_count, wanted, wait_ms);
        hand_out(&endpoint->changes, &endpoint->change_count, out, &endpoint->out_count);
    } else if (order == ENDPOINT_NOTICES) {
        await(endpoint, &endpoint->notice_count, wanted, wait_ms);
        hand_out(&endpoint->notices, &endpoint->notice_count, out, &endpoint->out_count);
    } else {
        start_inheritor(endpoint);
    }
}

static void execute(struct endpoint *endpoint, enum endpoint_order order, struct packet *in,
                    struct packet *out)
{
    if (order == ENDPOINT_OPEN)
        open_store(endpoint, packet_next(in));
    else if (order == ENDPOINT_CLOSE)
        close_store(endpoint);
    else if (endpoint->state != NULL)
        execute_open(endpoint, order, in, out);
    else
        endpoint->failure = "the store is not open";
}

void endpoint_serve(struct endpoint *endpoint, struct packet *in, struct packet *out)
{
    struct packet answers = {0};
    enum endpoint_order order = (enum endpoint_order)packet_next(in);
    endpoint->out = &answers;
    endpoint->out_count = 0;
    execute(endpoint, order, in, &answers);
    endpoint->out = NULL;
    packet_clear(out);
    packet_put_text(out, endpoint->failure);
    packet_put(out, endpoint->out_count);
    packet_put_packet(out, &answers);
    packet_done(&answers);
    endpoint->failure = NULL;
}

void endpoint_done(struct endpoint *endpoint)
{
    close_store(endpoint);
    packet_done(&endpoint->changes);
    packet_done(&endpoint->notices);
}
