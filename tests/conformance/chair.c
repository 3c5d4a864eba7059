/* SPDX-License-Identifier: Apache-2.0 */
/* See chair.h. */
#include "chair.h"

#include "nature.h"

#include "base/check.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { ANSWER_WITHIN_MS = 10000, PATIENCE_MS = 5000, NAP_MS = 10, REQUESTS_MAX = 4096 };

/*
 * A request on its way; kept until the store is closed, to notice who is answered twice. But what
 * it points to is gone with the first callback, as the seam allows.
 */
struct errand {
    struct errand *next;
    struct chair *chair;
    struct errand *then; /* to be submitted from our callback */
    struct packet packet;
    enum store_verb verb;
    size_t of; /* its number among those asked together */
    bool finished;
};

static int64_t now_of_site(void *owner)
{
    (void)owner;
    return suite_now_ms();
}

/* Requests and answers in packets. */

void packet_put_request(struct packet *packet, const struct store_request *request)
{
    packet_put(packet, request->verb);
    packet_put_words(packet, request->key);
    packet_put(packet, request->condition.kind);
    packet_put(packet, request->condition.revision);
    packet_put(packet, request->condition.token);
    packet_put_bytes(packet, request->bytes, request->length);
    packet_put(packet, (uint64_t)request->ttl_ms);
    packet_put(packet, (uint64_t)request->lives_ms);
    packet_put(packet, request->session);
    packet_put(packet, request->bound ? 1 : 0);
    packet_put_bytes(packet, request->poke, request->poke_count * sizeof request->poke[0]);
}

static struct store_request next_request(struct packet *packet)
{
    struct store_request request = {.verb = (enum store_verb)packet_next(packet)};
    size_t size = 0;
    request.key = packet_next_words(packet);
    request.condition.kind = (enum condition_kind)packet_next(packet);
    request.condition.revision = packet_next(packet);
    request.condition.token = packet_next(packet);
    request.bytes = packet_next_bytes(packet, &request.length);
    request.ttl_ms = (int64_t)packet_next(packet);
    request.lives_ms = (int64_t)packet_next(packet);
    request.session = packet_next(packet);
    request.bound = packet_next(packet) != 0;
    request.poke = packet_next_bytes(packet, &size);
    request.poke_count = size / sizeof request.poke[0];
    return request;
}

static void put_answer(struct packet *packet, size_t of, const struct store_answer *answer)
{
    packet_put(packet, of);
    packet_put(packet, answer->result);
    packet_put(packet, answer->more ? 1 : 0);
    packet_put(packet, answer->present ? 1 : 0);
    packet_put(packet, answer->written.revision);
    packet_put(packet, (uint64_t)answer->written.time_ms);
    packet_put(packet, answer->written.epoch);
    packet_put(packet, (uint64_t)answer->now_ms);
    packet_put_words(packet, answer->key);
    packet_put_bytes(packet, answer->present ? answer->bytes : NULL, answer->length);
    packet_put_bytes(packet, answer->dead_sessions,
                     answer->dead_count * sizeof answer->dead_sessions[0]);
    packet_put_bytes(packet, answer->ended_tokens,
                     answer->ended_count * sizeof answer->ended_tokens[0]);
    packet_put(packet, answer->cooling_over ? 1 : 0);
    packet_put(packet, answer->delay_over ? 1 : 0);
    packet_put_words(packet, answer->why);
}

void packet_next_answer(struct packet *packet, size_t *out_of, struct store_answer *out)
{
    size_t size = 0;
    *out_of = packet_next(packet);
    *out = (struct store_answer){.result = (enum answer)packet_next(packet)};
    out->more = packet_next(packet) != 0;
    out->present = packet_next(packet) != 0;
    out->written.revision = packet_next(packet);
    out->written.time_ms = (int64_t)packet_next(packet);
    out->written.epoch = (uint16_t)packet_next(packet);
    out->now_ms = (int64_t)packet_next(packet);
    out->key = packet_next_words(packet);
    out->bytes = packet_next_bytes(packet, &out->length);
    out->dead_sessions = packet_next_bytes(packet, &size);
    out->dead_count = size / sizeof out->dead_sessions[0];
    out->ended_tokens = packet_next_bytes(packet, &size);
    out->ended_count = size / sizeof out->ended_tokens[0];
    out->cooling_over = packet_next(packet) != 0;
    out->delay_over = packet_next(packet) != 0;
    out->why = packet_next_words(packet);
}

/* What the store says. */

static void submit(struct errand *errand);

static void finish(struct errand *errand)
{
    errand->finished = true;
    errand->chair->unanswered--;
    packet_done(&errand->packet);
    if (errand->then != NULL)
        submit(errand->then);
}

static void hear(void *caller, const struct store_answer *answer)
{
    struct errand *errand = caller;
    struct chair *chair = errand->chair;
    bool watches = errand->verb == VERB_STORE_WATCH;
    if (errand->finished && watches) {
        put_answer(&chair->changes, errand->of, answer);
        chair->change_count++;
    } else if (errand->finished || chair->out == NULL) {
        chair->failure = "a request was answered twice, or after it was over";
    } else {
        put_answer(chair->out, errand->of, answer);
        chair->out_count++;
        if (watches || !answer->more)
            finish(errand);
    }
}

static void submit(struct errand *errand)
{
    struct chair *chair = errand->chair;
    errand->packet.at = 0;
    struct store_request request = next_request(&errand->packet);
    chair->driver->submit(chair->state, &request, hear, errand);
}

static void hear_notice(void *owner, const char *key, const struct store_answer *stands)
{
    struct chair *chair = owner;
    struct store_answer told = stands != NULL ? *stands : (struct store_answer){0};
    told.key = key;
    put_answer(&chair->notices, /* of= */ 0, &told);
    chair->notice_count++;
}

/* Lets the driver work; when it had nothing to do, waits until it might have, but not long. */
static void step(struct chair *chair, bool idle)
{
    const struct store_driver *driver = chair->driver;
    if (idle && driver->fd != NULL) {
        struct pollfd wait = {.fd = driver->fd(chair->state), .events = POLLIN};
        (void)poll(&wait, 1, NAP_MS);
    } else if (idle) {
        suite_sleep(1);
    }
    if (driver->step != NULL)
        driver->step(chair->state);
}

/* Orders. */

static void open_store(struct chair *chair, uint64_t session)
{
    static char words[512];
    struct text why;
    struct store_site site = {.clock = {.now_ms = now_of_site},
                              .session = session,
                              .patience_ms = PATIENCE_MS,
                              .notice = hear_notice,
                              .owner = chair};
    ASSERT(chair->state == NULL);
    text_init(&why, words, sizeof words);
    chair->state = malloc(chair->driver->state_size);
    ASSERT(chair->state != NULL);
    if (chair->driver->open(chair->state, chair->url, &site, &why))
        return;
    chair->failure = why.length > 0 ? words : "open failed and did not say why";
    free(chair->state);
    chair->state = NULL;
}

static void close_store(struct chair *chair)
{
    if (chair->state != NULL)
        chair->driver->close(chair->state);
    free(chair->state);
    chair->state = NULL;
    while (chair->errands != NULL) {
        struct errand *errand = chair->errands;
        chair->errands = errand->next;
        packet_done(&errand->packet);
        free(errand);
    }
    packet_clear(&chair->changes);
    packet_clear(&chair->notices);
    chair->change_count = chair->notice_count = 0;
}

static struct errand *new_errand(struct chair *chair, const struct store_request *request,
                                 size_t of)
{
    struct errand *errand = malloc(sizeof *errand);
    if (errand == NULL)
        abort();
    *errand =
        (struct errand){.next = chair->errands, .chair = chair, .verb = request->verb, .of = of};
    packet_put_request(&errand->packet, request);
    chair->errands = errand;
    return errand;
}

static void submit_all(struct chair *chair, struct packet *in, bool chained)
{
    struct errand *errands[REQUESTS_MAX];
    size_t count = packet_next(in);
    ASSERT(count <= REQUESTS_MAX);
    chair->unanswered = count;
    for (size_t i = 0; i < count; i++) {
        struct store_request request = next_request(in);
        errands[i] = new_errand(chair, &request, i);
        if (chained && i > 0)
            errands[i - 1]->then = errands[i];
    }
    for (size_t i = 0; i < count && !(chained && i > 0); i++)
        submit(errands[i]);
}

static void ask(struct chair *chair, struct packet *in, bool chained)
{
    int64_t until_ms = suite_now_ms() + ANSWER_WITHIN_MS;
    submit_all(chair, in, chained);
    step(chair, /* idle= */ false);
    while (chair->unanswered > 0 && chair->driver->step != NULL && suite_now_ms() < until_ms)
        step(chair, /* idle= */ !chained);
    if (chair->unanswered == 0)
        return;
    close_store(chair); /* what it could still say would come too late */
    chair->failure = "a request was not answered";
}

/* A descriptor of our own, as a store's own are closed in a child. The process's number is told as
 * that of a request. */
static void leave_heir(struct chair *chair)
{
    enum { DESCRIPTORS = 1024, HEIR_S = 30 };
    int line = dup(chair->driver->liveness(chair->state));
    pid_t heir = fork();
    ASSERT(line >= 0 && heir >= 0);
    if (heir > 0) {
        (void)close(line);
        put_answer(chair->out, (size_t)heir, &(struct store_answer){0});
        chair->out_count++;
        return;
    }
    for (int file = 0; file < DESCRIPTORS; file++)
        if (file != line)
            (void)close(file);
    (void)alarm(HEIR_S);
    for (;;)
        (void)pause();
}

static void await(struct chair *chair, const size_t *count, size_t wanted, int64_t wait_ms)
{
    int64_t until_ms = suite_now_ms() + wait_ms;
    step(chair, /* idle= */ false);
    while (*count < wanted && suite_now_ms() < until_ms)
        step(chair, /* idle= */ true);
}

static void hand_out(struct packet *queue, size_t *count, struct packet *out, size_t *out_count)
{
    packet_put_packet(out, queue);
    *out_count += *count;
    packet_clear(queue);
    *count = 0;
}

/* Orders about the store that is open. */
static void use(struct chair *chair, enum chair_order order, struct packet *in, struct packet *out)
{
    bool asks = order == CHAIR_ASK || order == CHAIR_CHAIN || order == CHAIR_DROP;
    size_t wanted = asks ? 0 : packet_next(in);
    int64_t wait_ms = asks ? 0 : (int64_t)packet_next(in);
    if (order == CHAIR_DROP) {
        submit_all(chair, in, /* chained= */ false);
        close_store(chair);
    } else if (asks) {
        ask(chair, in, order == CHAIR_CHAIN);
    } else if (order == CHAIR_CHANGES) {
        await(chair, &chair->change_count, wanted, wait_ms);
        hand_out(&chair->changes, &chair->change_count, out, &chair->out_count);
    } else if (order == CHAIR_NOTICES) {
        await(chair, &chair->notice_count, wanted, wait_ms);
        hand_out(&chair->notices, &chair->notice_count, out, &chair->out_count);
    } else {
        leave_heir(chair);
    }
}

static void obey(struct chair *chair, enum chair_order order, struct packet *in, struct packet *out)
{
    if (order == CHAIR_OPEN)
        open_store(chair, packet_next(in));
    else if (order == CHAIR_CLOSE)
        close_store(chair);
    else if (chair->state != NULL)
        use(chair, order, in, out);
    else
        chair->failure = "the store is not open";
}

void chair_serve(struct chair *chair, struct packet *in, struct packet *out)
{
    struct packet answers = {0};
    enum chair_order order = (enum chair_order)packet_next(in);
    chair->out = &answers;
    chair->out_count = 0;
    obey(chair, order, in, &answers);
    chair->out = NULL;
    packet_clear(out);
    packet_put_words(out, chair->failure);
    packet_put(out, chair->out_count);
    packet_put_packet(out, &answers);
    packet_done(&answers);
    chair->failure = NULL;
}

void chair_done(struct chair *chair)
{
    close_store(chair);
    packet_done(&chair->changes);
    packet_done(&chair->notices);
}
