/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LOCK.CLAIM: the next free issue of a github:// store. The library chooses it, and asks before it
 * takes one, so that nobody gets an issue whose key it may not take (D5). A queue is a handle of
 * the library, one per label and order; the least recently used one is closed for another.
 */
#include "face/daemon/daemon_internal.h"

#include "base/text.h"
#include "leasehold_github.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CLAIM_QUEUES_MAX = 32, CLAIMS_LIMIT = 1000, CLAIM_LABEL_MAX = 100 };

/* The issues with one label. */
struct claim_queue {
    struct list_node node; /* of the daemon's; the last one was used last */
    struct daemon *daemon;
    struct lh_claims *claims;
    struct poller_watch watch;
    size_t in_flight;
    enum lh_claim_order order;
    char label[CLAIM_LABEL_MAX + 1];
};

/* In flight. Belongs to its slot, which outlives the connection until the library has called back.
 */
struct daemon_claim {
    struct list_node node; /* of the daemon's */
    struct daemon_slot *slot;
    struct claim_queue *queue;
    struct lh_claim_request *started;
    struct request_id *id; /* NULL: none */
    struct lh_claim issue;
    int64_t ttl_ms;
    bool binds, waits, cancelled, drained;
    char holder[LH_HOLDER_SIZE];
};

/* ---- queues ---- */

static void claim_queue_on_ready(void *owner, unsigned what)
{
    struct claim_queue *queue = owner;
    (void)what;
    (void)lh_claims_step(queue->claims);
    daemon_turn(queue->daemon);
}

/* It has left the list. */
static void claim_queue_free(struct claim_queue *queue)
{
    struct daemon *daemon = queue->daemon;
    daemon->claim_queue_count--;
    if (queue->watch.poller != NULL)
        (void)poller_watch(daemon->poller, &queue->watch, 0);
    lh_claims_close(&queue->claims);
    free(queue);
}

/* False if all of them are in use. */
static bool claim_queues_make_room(struct daemon *daemon)
{
    struct list_node *node = daemon->claim_queues.first;
    if (daemon->claim_queue_count < CLAIM_QUEUES_MAX)
        return true;
    while (node != NULL && LIST_ENTRY(node, struct claim_queue, node)->in_flight > 0)
        node = node->next;
    if (node == NULL)
        return false;
    list_remove(&daemon->claim_queues, node);
    claim_queue_free(LIST_ENTRY(node, struct claim_queue, node));
    return true;
}

static struct claim_queue *claim_queue_find(const struct daemon *daemon, const char *label,
                                            enum lh_claim_order order)
{
    for (struct list_node *node = daemon->claim_queues.first; node != NULL; node = node->next) {
        struct claim_queue *queue = LIST_ENTRY(node, struct claim_queue, node);
        if (queue->order == order && strcmp(queue->label, label) == 0)
            return queue;
    }
    return NULL;
}

/* NULL with a report. */
static struct claim_queue *claim_queue_new(struct daemon *daemon, const char *label,
                                           enum lh_claim_order order, struct lh_report *report)
{
    struct lh_claims_options options = LH_CLAIMS_OPTIONS_INIT;
    struct claim_queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL) {
        report->outcome = LH_FAILED;
        text_copy(report->text, sizeof report->text, "failed: out of memory");
        return NULL;
    }
    options.label = label;
    options.order = order;
    if (lh_claims_open(daemon->client, &options, &queue->claims, report) != LH_OK) {
        free(queue);
        return NULL;
    }
    queue->daemon = daemon;
    queue->order = order;
    text_copy(queue->label, sizeof queue->label, label);
    queue->watch = (struct poller_watch){
        .file = lh_claims_fd(queue->claims), .ready = claim_queue_on_ready, .owner = queue};
    daemon->claim_queue_count++;
    if (queue->watch.file >= 0 && poller_watch(daemon->poller, &queue->watch, POLLER_READ)) {
        list_append(&daemon->claim_queues, &queue->node);
        return queue;
    }
    claim_queue_free(queue);
    report->outcome = LH_FAILED;
    text_copy(report->text, sizeof report->text, "failed: out of memory or descriptors");
    return NULL;
}

void claims_free(struct daemon *daemon)
{
    for (struct list_node *node; (node = list_pop(&daemon->claim_queues)) != NULL;)
        claim_queue_free(LIST_ENTRY(node, struct claim_queue, node));
}

/* ---- the result ---- */

static void claim_reply(const struct daemon_claim *claim, const struct lh_report *report,
                        const char *key)
{
    struct resp_reply reply;
    struct lh_report shown = *report;
    bool granted = report->outcome == LH_OK;
    if (report->outcome == LH_USAGE) {
        slot_reply_report(claim->slot, report);
        return;
    }
    if (granted) {
        shown.since_ms = 0;
        shown.ends_in_ms = claim->ttl_ms;
        text_copy(shown.holder, sizeof shown.holder, claim->holder);
    }
    reply_begin(&reply, claim->slot->daemon, slot_protocol(claim->slot));
    reply_report(&reply, &shown, granted ? 4 : 0);
    if (granted) {
        reply_pair_number(&reply, "issue", (int64_t)claim->issue.number);
        reply_pair(&reply, "title", claim->issue.title);
        reply_pair(&reply, "url", claim->issue.url);
        reply_pair(&reply, "key", key);
    }
    slot_reply(claim->slot, &reply);
}

/* A late grant is treated as that of LOCK.ACQUIRE. */
static void claim_use_grant(const struct daemon_claim *claim, const char *key, uint64_t token)
{
    struct daemon *daemon = claim->slot->daemon;
    struct daemon_connection *connection = claim->slot->connection;
    hold_granted(daemon, hold_id(hold_key(daemon, "", key), token), claim->ttl_ms);
    if (connection == NULL && claim->id == NULL)
        daemon_release(daemon, key, token);
    else if (connection != NULL && claim->binds)
        binding_add(connection, key, token, claim->ttl_ms);
}

/* It is not in flight any more. */
static void claim_leave(struct daemon_claim *claim, bool granted)
{
    struct daemon *daemon = claim->slot->daemon;
    list_remove(&daemon->claims, &claim->node);
    daemon->claim_count--;
    daemon->waiters -= claim->waits ? 1 : 0;
    claim->queue->in_flight--;
    if (claim->id == NULL)
        return;
    claim->id->claim = NULL;
    claim->id->issue = granted ? claim->issue.number : 0;
    request_id_expire(claim->id, granted ? claim->ttl_ms : 0);
}

static void claim_on_done(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct daemon_claim *claim = user;
    struct lh_report shown = *report;
    char key[24];
    bool granted = report->outcome == LH_OK;
    (void)lease;
    (void)snprintf(key, sizeof key, "%llu", (unsigned long long)claim->issue.number);
    if (report->outcome == LH_BUSY && claim->drained)
        drain_report(&shown);
    else if (report->outcome == LH_BUSY)
        shown.refusal = lh_refusal_word(claim->cancelled ? LH_VERB_CANCEL
                                        : claim->waits   ? LH_VERB_WAIT
                                                         : LH_VERB_ACQUIRE,
                                        LH_BUSY);
    if (granted)
        claim_use_grant(claim, key, report->token);
    claim_leave(claim, granted);
    claim_reply(claim, &shown, key); /* frees it */
}

/* The library asks before it takes an issue. */
static bool claim_admits(void *user, uint64_t number)
{
    const struct daemon_claim *claim = user;
    const struct daemon_connection *connection = claim->slot->connection;
    char key[24];
    (void)snprintf(key, sizeof key, "%llu", (unsigned long long)number);
    return connection != NULL && may(connection->who, MAY_TAKE, key) &&
           (!claim->binds || may(connection->who, MAY_RENEW, key));
}

/* ---- cancel ---- */

void claim_cancel(struct daemon_claim *claim)
{
    claim->cancelled = true;
    lh_claim_cancel(claim->started);
    daemon_turn(claim->slot->daemon);
}

void claims_cancel(struct daemon_connection *connection, bool waiting_only)
{
    struct list_node *node = connection->daemon->claims.first;
    for (; node != NULL; node = node->next) {
        struct daemon_claim *claim = LIST_ENTRY(node, struct daemon_claim, node);
        if (claim->slot->connection == connection && (claim->waits || !waiting_only))
            claim_cancel(claim);
    }
}

void claims_drain(struct daemon *daemon)
{
    for (struct list_node *node = daemon->claims.first; node != NULL; node = node->next) {
        struct daemon_claim *claim = LIST_ENTRY(node, struct daemon_claim, node);
        claim->drained = true;
        if (claim->slot->connection != NULL)
            connection_refused(claim->slot->connection, REFUSED_DRAINING, "claims end");
        claim_cancel(claim);
    }
}

/* ---- start ---- */

static void claim_refuse(struct daemon_slot *slot, enum lh_outcome outcome, const char *text)
{
    struct lh_report report = LH_REPORT_INIT;
    report.outcome = outcome;
    report.refusal = lh_refusal_word(LH_VERB_ACQUIRE, outcome);
    text_copy(report.text, sizeof report.text, text);
    slot_reply_report(slot, &report);
}

/* NULL, or what is wrong. */
static const char *claim_prepare(const struct daemon_args *args, const struct daemon_words *words,
                                 struct lh_claim_options *options, enum lh_claim_order *order)
{
    const char *label = args->text[1];
    size_t length = strlen(label);
    if (length == 0 || length > CLAIM_LABEL_MAX || !text_is_clean(label, length) ||
        strchr(label, ',') != NULL)
        return "the label must have 1 to 100 bytes of UTF-8, without commas";
    if (!words_is_number(args->text[3], &options->ttl_ms) || options->ttl_ms < 1)
        return "ttl_ms must be a number of milliseconds above 0";
    if ((words->given & WORD_ID) != 0 &&
        (words->id[0] == '\0' || strlen(words->id) > REQUEST_ID_MAX))
        return "ID must have 1 to 256 bytes";
    if (words->order != NULL && strcasecmp(words->order, "priority-label") == 0)
        *order = LH_CLAIM_BY_PRIORITY;
    else if (words->order != NULL && strcasecmp(words->order, "number") != 0)
        return "ORDER needs number or priority-label";
    options->wait_ms = words->wait_ms;
    options->holder = args->text[2];
    options->meta = words->meta;
    options->meta_count = words->meta_count;
    options->admits = claim_admits;
    return NULL;
}

/* False: refused already. */
static bool claim_use_id(struct daemon_slot *slot, const char *name, const struct daemon_args *args,
                         struct request_id **out)
{
    char queue[CLAIM_LABEL_MAX + 2]; /* no list of keys begins with a line end */
    struct request_id *id = request_id_find(slot->daemon, name);
    (void)snprintf(queue, sizeof queue, "\n%s", args->text[1]);
    if (id == NULL) {
        *out = request_id_new(slot->daemon, name, queue, args->text[2]);
        if (*out != NULL)
            return true;
        connection_refused(slot->connection, REFUSED_LIMIT, "too many request ids");
        claim_refuse(slot, LH_UNAVAILABLE,
                     "unavailable: too many request ids are in use; try later");
        return false;
    }
    if (strcmp(id->key, queue) != 0 || strcmp(id->holder, args->text[2]) != 0) {
        claim_refuse(slot, LH_MISMATCH,
                     "mismatch: this request id is in use for another key, label or holder");
        return false;
    }
    if (id->claim != NULL) {
        claim_refuse(slot, LH_BUSY, "busy: this request id is in use by another connection");
        return false;
    }
    request_id_keep(id);
    *out = id;
    return true;
}

static struct daemon_claim *claim_new(struct daemon_slot *slot, const struct daemon_args *args,
                                      const struct daemon_words *words, int64_t ttl_ms)
{
    struct daemon_claim *claim = calloc(1, sizeof *claim);
    if (claim == NULL)
        return NULL;
    claim->slot = slot;
    claim->issue = (struct lh_claim)LH_CLAIM_INIT;
    claim->ttl_ms = ttl_ms;
    claim->binds = (words->given & WORD_BIND) != 0;
    claim->waits = words->wait_ms != 0;
    size_t length = strnlen(args->text[2], sizeof claim->holder - 1);
    memcpy(claim->holder, args->text[2], length); /* too long: it is refused */
    slot->memory = claim;
    return claim;
}

static void claim_start(struct daemon_claim *claim, struct claim_queue *queue,
                        struct lh_claim_options *options)
{
    struct daemon *daemon = claim->slot->daemon;
    struct lh_report report = LH_REPORT_INIT;
    claim->queue = queue;
    queue->in_flight++;
    list_remove(&daemon->claim_queues, &queue->node);
    list_append(&daemon->claim_queues, &queue->node);
    list_append(&daemon->claims, &claim->node);
    daemon->claim_count++;
    daemon->waiters += claim->waits ? 1 : 0;
    if (claim->id != NULL) {
        claim->id->claim = claim;
        options->first = claim->id->issue;
    }
    options->user = claim;
    claim->started =
        lh_claim_begin_start(queue->claims, options, &claim->issue, claim_on_done, claim, &report);
    if (claim->started == NULL)
        claim_on_done(claim, NULL, &report);
    daemon_turn(daemon);
}

void verb_claim(struct daemon_slot *slot, const struct daemon_args *args,
                const struct daemon_words *words)
{
    struct daemon *daemon = slot->daemon;
    struct lh_claim_options options = LH_CLAIM_OPTIONS_INIT;
    struct lh_report report = LH_REPORT_INIT;
    enum lh_claim_order order = LH_CLAIM_BY_NUMBER;
    struct request_id *id = NULL;
    char name[65];
    if (drain_refuses(slot))
        return;
    if (strncmp(daemon->options->store, "github:", 7) != 0) {
        slot_reply_error(slot, "ERR", "LOCK.CLAIM needs a github:// store");
        return;
    }
    const char *wrong = claim_prepare(args, words, &options, &order);
    if (wrong != NULL) {
        slot_reply_error(slot, "ERR", wrong);
        return;
    }
    struct claim_queue *queue = claim_queue_find(daemon, args->text[1], order);
    if (daemon->claim_count >= CLAIMS_LIMIT || (queue == NULL && !claim_queues_make_room(daemon))) {
        connection_refused(slot->connection, REFUSED_LIMIT, "too many claims");
        claim_refuse(slot, LH_BUSY, "busy: queue full");
        return;
    }
    if (queue == NULL)
        queue = claim_queue_new(daemon, args->text[1], order, &report);
    if (queue == NULL) {
        slot_reply_report(slot, &report);
        return;
    }
    struct daemon_claim *claim = claim_new(slot, args, words, options.ttl_ms);
    if (claim == NULL) {
        slot_reply_error(slot, "ERR", "failed: out of memory");
        return;
    }
    if ((words->given & WORD_ID) != 0) {
        request_id_name(slot->connection->who, words->id, name);
        if (!claim_use_id(slot, name, args, &id))
            return;
        options.request_id = name;
        claim->id = id;
    }
    claim_start(claim, queue, &options);
}
