/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LOCK.WATCH, and SUBSCRIBE with prefixes as channels for clients of RESP2. With RESP3 changes are
 * pushed as maps; with RESP2 they are messages of a subscriber, with JSON, and the connection then
 * accepts only commands of a subscriber, as with Redis.
 */
#include "face/daemon/daemon_internal.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct daemon_watch {
    struct list_node node; /* of its connection */
    struct daemon_connection *connection;
    struct lh_watcher *watcher;
    struct daemon_slot *slot; /* until it is set up */
    size_t number;            /* of the connection's watches when it was started */
    bool subscribed;          /* by SUBSCRIBE */
    char prefix[LH_KEY_SIZE];
};

/* It has left the list of its connection. */
static void watch_end(struct daemon_watch *watch)
{
    struct daemon_connection *connection = watch->connection;
    connection->watch_count--;
    connection->daemon->watches--;
    if (watch->watcher != NULL)
        (void)lh_unwatch_start(&watch->watcher, NULL);
    free(watch);
}

static void watch_remove(struct daemon_watch *watch)
{
    list_remove(&watch->connection->watches, &watch->node);
    watch_end(watch);
}

void watches_end_all(struct daemon_connection *connection)
{
    for (struct list_node *node; (node = list_pop(&connection->watches)) != NULL;) {
        struct daemon_watch *watch = LIST_ENTRY(node, struct daemon_watch, node);
        if (watch->slot != NULL)
            watch->slot->unused = true; /* no callback follows */
        watch_end(watch);
    }
    daemon_turn(connection->daemon);
}

/* ---- changes ---- */

static void watch_push_view(struct daemon_watch *watch, const struct lh_view *view)
{
    struct resp_reply reply;
    struct daemon_connection *connection = watch->connection;
    reply_begin(&reply, connection->daemon, connection->protocol);
    if (connection->protocol >= 3 && !watch->subscribed) {
        resp_reply_push(&reply, 3);
        resp_reply_text(&reply, "lock.event");
        resp_reply_text(&reply, watch->prefix);
        reply_view(&reply, /* outcome= */ NULL, view, NULL, 0);
    } else {
        char json[4096];
        struct text text;
        text_init(&text, json, sizeof json);
        view_to_event_json(view, &text);
        resp_reply_push(&reply, 3);
        resp_reply_text(&reply, "message");
        resp_reply_text(&reply, watch->prefix);
        resp_reply_bytes(&reply, json, text.length);
    }
    connection_push(connection, &reply);
}

/* The store's watch has ended: changes were missed, and the client must read and watch again. */
static void watch_push_end(struct daemon_watch *watch, const struct lh_report *report)
{
    struct resp_reply reply;
    struct daemon_connection *connection = watch->connection;
    reply_begin(&reply, connection->daemon, connection->protocol);
    resp_reply_push(&reply, 3);
    resp_reply_text(&reply, watch->subscribed || connection->protocol < 3 ? "unsubscribe"
                                                                          : "lock.watch_ended");
    resp_reply_text(&reply, watch->prefix);
    if (connection->protocol >= 3 && !watch->subscribed)
        reply_report(&reply, report, /* more= */ 0);
    else
        resp_reply_number(&reply, (int64_t)connection->watch_count - 1);
    connection_push(connection, &reply);
    watch_remove(watch);
}

static void watch_on_change(void *user, const struct lh_view *view, const struct lh_report *report)
{
    struct daemon_watch *watch = user;
    if (view == NULL)
        watch_push_end(watch, report);
    else if (may(watch->connection->who, MAY_READ, view->key) || MAY_HOLE(WATCH))
        watch_push_view(watch, view);
}

/* ---- start ---- */

static void reply_subscribed(struct resp_reply *out, const char *word, const char *prefix,
                             size_t count)
{
    resp_reply_push(out, 3);
    resp_reply_text(out, word);
    if (prefix != NULL)
        resp_reply_text(out, prefix);
    else
        resp_reply_null(out);
    resp_reply_number(out, (int64_t)count);
}

static void watch_reply_started(const struct daemon_watch *watch, struct daemon_slot *slot,
                                bool subscribed, const struct lh_report *report)
{
    struct resp_reply reply;
    reply_begin(&reply, slot->daemon, slot_protocol(slot));
    if (slot_protocol(slot) < 3 || subscribed)
        reply_subscribed(&reply, "subscribe", watch->prefix, watch->number);
    else
        reply_report(&reply, report, /* more= */ 0);
    slot_reply(slot, &reply);
}

static void watch_reply_refused(struct daemon_slot *slot, bool subscribed,
                                const struct lh_report *report)
{
    if (slot_protocol(slot) < 3 || subscribed) /* expects a subscription or an error */
        slot_reply_error(slot, "ERR", report->text);
    else
        slot_reply_report(slot, report);
}

static void watch_on_ready(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct daemon_watch *watch = user;
    struct daemon_slot *slot = watch->slot;
    (void)lease;
    watch->slot = NULL;
    if (report->outcome != LH_OK) {
        bool subscribed = watch->subscribed;
        watch_remove(watch);
        watch_reply_refused(slot, subscribed, report);
        return;
    }
    watch_reply_started(watch, slot, watch->subscribed, report);
}

void watches_drain(struct daemon_connection *connection)
{
    struct lh_report report;
    drain_report(&report);
    for (struct list_node *node; (node = connection->watches.first) != NULL;) {
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a watch that was freed has left the list */
        struct daemon_watch *watch = LIST_ENTRY(node, struct daemon_watch, node);
        if (watch->slot != NULL)
            watch_on_ready(watch, NULL, &report);
        else
            watch_push_end(watch, &report);
    }
    daemon_turn(connection->daemon);
}

static struct daemon_watch *watch_find(const struct daemon_connection *connection,
                                       const char *prefix)
{
    for (struct list_node *node = connection->watches.first; node != NULL; node = node->next) {
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a watch that was freed has left the list */
        struct daemon_watch *watch = LIST_ENTRY(node, struct daemon_watch, node);
        if (strcmp(watch->prefix, prefix) == 0)
            return watch;
    }
    return NULL;
}

static void watch_start(struct daemon_slot *slot, const char *prefix, bool subscribed)
{
    struct daemon_connection *connection = slot->connection;
    struct lh_report report = LH_REPORT_INIT;
    struct daemon_watch *watch = watch_find(connection, prefix);
    if (watch != NULL) {
        (void)snprintf(report.text, sizeof report.text, "ok: watching");
        watch->number = connection->watch_count;
        watch_reply_started(watch, slot, subscribed, &report);
        return;
    }
    if (connection->daemon->draining) {
        drain_report(&report);
        connection_refused(connection, REFUSED_DRAINING, report.text);
        watch_reply_refused(slot, subscribed, &report);
        return;
    }
    watch = connection->daemon->watches < WATCHES_LIMIT ? calloc(1, sizeof *watch) : NULL;
    if (watch == NULL) {
        connection_refused(connection, REFUSED_LIMIT, "too many watches");
        slot_reply_error(slot, "ERR", "too many watches; the daemon has at most 256");
        return;
    }
    watch->connection = connection;
    watch->slot = slot;
    watch->subscribed = subscribed;
    text_copy(watch->prefix, sizeof watch->prefix, prefix);
    list_append(&connection->watches, &watch->node);
    watch->number = ++connection->watch_count;
    connection->daemon->watches++;
    if (lh_watch_start(connection->daemon->client, prefix, watch_on_change, watch_on_ready, watch,
                       &watch->watcher, &report) != LH_OK)
        watch_on_ready(watch, NULL, &report);
    else
        daemon_turn(connection->daemon);
}

void verb_watch(struct daemon_slot *slot, const struct daemon_args *args,
                const struct daemon_words *words)
{
    (void)words;
    watch_start(slot, args->count > 1 ? args->text[1] : "", /* subscribed= */ false);
}

void verb_subscribe(struct daemon_slot *slot, const struct daemon_args *args,
                    const struct daemon_words *words)
{
    struct daemon_connection *connection = slot->connection;
    (void)words;
    for (size_t i = 1; i + 1 < args->count; i++) { /* each channel has its own reply */
        struct daemon_slot *further = connection_slot_before(slot);
        if (further == NULL) {
            slot_reply_error(slot, "ERR", "failed: out of memory");
            return;
        }
        watch_start(further, args->text[i], /* subscribed= */ true);
        if (connection->ending)
            return;
    }
    watch_start(slot, args->text[args->count - 1], /* subscribed= */ true);
}

/* ---- end ---- */

static void watch_reply_stop(struct daemon_slot *slot, const struct daemon_args *args)
{
    struct daemon_connection *connection = slot->connection;
    char bytes[16 * 1024];
    struct resp_reply reply;
    size_t replies = 0;
    resp_reply_init(&reply, bytes, sizeof bytes, connection->protocol);
    for (size_t i = 1; i < args->count; i++, replies++) {
        struct daemon_watch *watch = watch_find(connection, args->text[i]);
        if (watch != NULL)
            watch_remove(watch);
        reply_subscribed(&reply, "unsubscribe", args->text[i], connection->watch_count);
    }
    for (struct list_node *node;
         args->count == 1 && (node = list_pop(&connection->watches)) != NULL;) {
        struct daemon_watch *watch = LIST_ENTRY(node, struct daemon_watch, node);
        char prefix[LH_KEY_SIZE];
        text_copy(prefix, sizeof prefix, watch->prefix);
        watch_end(watch);
        reply_subscribed(&reply, "unsubscribe", prefix, connection->watch_count);
        replies++;
    }
    if (replies == 0)
        reply_subscribed(&reply, "unsubscribe", NULL, 0);
    slot_reply(slot, &reply);
}

void verb_unsubscribe(struct daemon_slot *slot, const struct daemon_args *args,
                      const struct daemon_words *words)
{
    (void)words;
    watch_reply_stop(slot, args);
    /* The slot is gone. */
}

void verb_unwatch(struct daemon_slot *slot, const struct daemon_args *args,
                  const struct daemon_words *words)
{
    struct daemon_connection *connection = slot->connection;
    struct lh_report report = LH_REPORT_INIT;
    (void)words;
    if (connection->protocol < 3) {
        watch_reply_stop(slot, args);
        return;
    }
    if (args->count == 1) {
        watches_end_all(connection);
    } else {
        struct daemon_watch *watch = watch_find(connection, args->text[1]);
        if (watch != NULL)
            watch_remove(watch);
    }
    struct text text;
    text_init(&text, report.text, sizeof report.text);
    text_add(&text, "ok: no longer watched");
    slot_reply_report(slot, &report);
}
