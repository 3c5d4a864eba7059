/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/watch: changes as server-sent events. All subscribers share one watch of the store and
 * one ring of the last changes; the id of an event is this ring's name and a number, so that a
 * client that reconnects with Last-Event-ID goes on where it was, or learns that it missed
 * changes. Each subscriber gets only what may() lets it read.
 */
#include "face/daemon/http_face.h"

#include "base/text.h"
#include "process/host.h"
#include "wire/httpd_response.h"
#include "wire/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    EVENTS_RING = 4096,
    EVENTS_COMMENT_MS = 15000,
    EVENTS_LINGER_MS = 60000, /* without a subscriber, for one that reconnects */
    EVENT_TEXT_MAX = 4096,
};

struct http_event {
    char *json; /* NULL: none yet */
    char *key;
};

struct http_events {
    struct daemon *daemon;
    struct lh_watcher *watcher; /* NULL: not watching */
    bool ready;
    struct list subscribers; /* http_connection.subscriber */
    struct list waiting;     /* struct http_pending: until the watch is set up */
    struct poller_timer timer;
    uint64_t instance; /* of the ring */
    uint64_t last;     /* number of the newest event; the first one is 1 */
    int64_t idle_since_ms;
    struct http_event ring[EVENTS_RING];
};

/* A request until the watch is set up. */
struct http_pending {
    struct list_node node;
    struct daemon_slot *slot;
};

/* ---- the stream of a subscriber ---- */

static void event_write(struct daemon_connection *connection, uint64_t number, const char *name,
                        const char *json)
{
    const struct http_events *events = connection->daemon->http->events;
    char bytes[EVENT_TEXT_MAX + 256];
    int length =
        snprintf(bytes, sizeof bytes, "id: %016llx-%llu\nevent: %s\ndata: %s\n\n",
                 (unsigned long long)events->instance, (unsigned long long)number, name, json);
    if (length > 0 && (size_t)length < sizeof bytes)
        connection_write(connection, bytes, (size_t)length);
}

/* True if the subscriber may see the event. */
static bool event_is_for(const struct http_event *event, const struct daemon_connection *connection)
{
    const char *prefix = connection->http->prefix;
    return strncmp(event->key, prefix, strlen(prefix)) == 0 &&
           (may(connection->who, MAY_READ, event->key) || MAY_HOLE(EVENTS));
}

static void event_write_missed(struct daemon_connection *connection, uint64_t number)
{
    event_write(connection, number, "missed",
                "{\"text\":\"changes were missed: list the keys again\"}");
}

/* All of the ring at once would exceed the unsent bytes of a connection. */
void http_events_go_on(struct daemon_connection *connection)
{
    const struct http_events *events = connection->daemon->http->events;
    struct http_connection *http = connection->http;
    while (http->last_number < events->last) {
        if (events->last - http->last_number > EVENTS_RING) {
            event_write_missed(connection, events->last);
            break;
        }
        if (!http_has_room(connection))
            return;
        uint64_t number = ++http->last_number;
        const struct http_event *event = &events->ring[number % EVENTS_RING];
        if (event_is_for(event, connection))
            event_write(connection, number, "change", event->json);
    }
    http->replays = false;
}

void http_events_begin(struct daemon_connection *connection)
{
    struct http_events *events = connection->daemon->http->events;
    struct http_connection *http = connection->http;
    char head[512];
    struct text text;
    text_init(&text, head, sizeof head);
    httpd_response_start(&text, 200);
    httpd_response_field(&text, "Content-Type", "text/event-stream");
    httpd_response_field(&text, "Cache-Control", "no-store");
    httpd_response_field(&text, "X-Content-Type-Options", "nosniff");
    httpd_response_field(&text, "Connection", "close"); /* the end of the stream is its end */
    httpd_response_end(&text);
    connection_write(connection, head, text.length);
    if (http->head_only) {
        connection_end_after_replies(connection);
        return;
    }
    uint64_t last = http->last_number;
    bool goes_on = http->replays && last <= events->last && events->last - last <= EVENTS_RING;
    http->missed = http->missed || (http->replays && !goes_on);
    http->replays = goes_on;
    event_write(connection, goes_on ? last : events->last, "ready", "{\"outcome\":\"ok\"}");
    if (goes_on)
        http_events_go_on(connection);
    else if (http->missed)
        event_write_missed(connection, events->last);
}

/* ---- changes ---- */

static void events_clear(struct http_events *events)
{
    for (size_t i = 0; i < EVENTS_RING; i++) {
        free(events->ring[i].json);
        free(events->ring[i].key);
        events->ring[i] = (struct http_event){.json = NULL};
    }
    events->last = 0;
    if (getrandom(&events->instance, sizeof events->instance, 0) < 0)
        events->instance = (uint64_t)host_boot_ms();
}

/* The watch has ended: the streams end too, and later ids are those of another ring. */
static void events_end(struct http_events *events, const char *text)
{
    char json[1024];
    struct text out;
    text_init(&out, json, sizeof json);
    json_begin(&out);
    json_add_string(&out, "text", text);
    json_end(&out);
    for (struct list_node *node; (node = list_pop(&events->subscribers)) != NULL;) {
        struct http_connection *http = LIST_ENTRY(node, struct http_connection, subscriber);
        event_write(http->connection, events->last, "missed", json);
        http->streams = false;
        events->daemon->watches--;
        connection_end_after_replies(http->connection);
    }
    events->ready = false;
    (void)lh_unwatch_start(&events->watcher, NULL);
    daemon_turn(events->daemon);
    events_clear(events);
}

static void events_on_change(void *user, const struct lh_view *view, const struct lh_report *report)
{
    struct http_events *events = user;
    char json[EVENT_TEXT_MAX];
    struct text text;
    if (view == NULL) {
        events_end(events, report->text);
        return;
    }
    text_init(&text, json, sizeof json);
    view_to_event_json(view, &text);
    struct http_event *event = &events->ring[(events->last + 1) % EVENTS_RING];
    free(event->json);
    free(event->key);
    *event = (struct http_event){.json = strdup(json), .key = strdup(view->key)};
    if (event->json == NULL || event->key == NULL) {
        events_end(events, "the daemon is out of memory");
        return;
    }
    events->last++;
    for (struct list_node *node = events->subscribers.first, *next; node != NULL; node = next) {
        struct http_connection *http = LIST_ENTRY(node, struct http_connection, subscriber);
        next = node->next;
        if (!http->replays && event_is_for(event, http->connection))
            event_write(http->connection, events->last, "change", json);
    }
}

/* ---- subscribers ---- */

static void events_call_in(struct http_events *events, int64_t after_ms)
{
    poller_call_at(events->daemon->poller, &events->timer, host_boot_ms() + after_ms);
}

static void events_on_time(void *owner)
{
    struct http_events *events = owner;
    for (struct list_node *node = events->subscribers.first, *next; node != NULL; node = next) {
        next = node->next;
        connection_write(LIST_ENTRY(node, struct http_connection, subscriber)->connection, ":\n\n",
                         3);
    }
    bool idle = events->subscribers.first == NULL && events->waiting.first == NULL;
    if (idle && host_boot_ms() - events->idle_since_ms >= EVENTS_LINGER_MS) {
        if (events->watcher != NULL)
            events_end(events, "");
        return;
    }
    events_call_in(events, EVENTS_COMMENT_MS);
}

static void events_subscribe(struct http_events *events, struct daemon_connection *connection)
{
    connection->http->streams = true;
    list_append(&events->subscribers, &connection->http->subscriber);
}

/* Answers all that wait for the watch. */
static void events_on_ready(void *user, struct lh_lease *lease, const struct lh_report *report)
{
    struct http_events *events = user;
    (void)lease;
    events->ready = report->outcome == LH_OK;
    if (!events->ready)
        (void)lh_unwatch_start(&events->watcher, NULL);
    for (struct list_node *node; (node = list_pop(&events->waiting)) != NULL;) {
        struct http_pending *pending = LIST_ENTRY(node, struct http_pending, node);
        struct daemon_slot *slot = pending->slot;
        free(pending);
        if (slot->connection != NULL && events->ready)
            events_subscribe(events, slot->connection);
        else
            events->daemon->watches--;
        slot_reply_report(slot, report);
    }
}

static void events_start(struct http_events *events)
{
    struct lh_report report = LH_REPORT_INIT;
    events_clear(events);
    if (lh_watch_start(events->daemon->client, "", events_on_change, events_on_ready, events,
                       &events->watcher, &report) != LH_OK)
        events_on_ready(events, NULL, &report);
    else
        daemon_turn(events->daemon);
}

static struct http_events *events_of(struct daemon *daemon)
{
    struct http_events *events = daemon->http->events;
    if (events != NULL)
        return events;
    events = calloc(1, sizeof *events);
    if (events == NULL)
        return NULL;
    events->daemon = daemon;
    events->timer =
        (struct poller_timer){.at_ms = POLLER_NEVER, .due = events_on_time, .owner = events};
    daemon->http->events = events;
    return events;
}

/* "INSTANCE-NUMBER" of this ring. */
static bool events_is_our_id(const struct http_events *events, struct httpd_slice id,
                             int64_t *out_number)
{
    char text[64], instance[24];
    if (id.length >= sizeof text)
        return false;
    memcpy(text, id.bytes, id.length);
    text[id.length] = '\0';
    int length =
        snprintf(instance, sizeof instance, "%016llx-", (unsigned long long)events->instance);
    return strncmp(text, instance, (size_t)length) == 0 &&
           words_is_number(text + length, out_number) && *out_number >= 0;
}

static void events_read_last_id(const struct http_events *events, struct httpd_slice id,
                                struct http_connection *http)
{
    int64_t number = 0;
    http->missed = http->replays = false;
    if (id.bytes == NULL || id.length == 0)
        return;
    http->replays = events->watcher != NULL && events_is_our_id(events, id, &number);
    http->missed = !http->replays;
    http->last_number = (uint64_t)number;
}

/* The slot of a request that waits for the watch; NULL: refused already. */
static struct daemon_slot *events_await(struct daemon_connection *connection, const char *prefix)
{
    struct http_connection *http = connection->http;
    struct http_events *events = events_of(connection->daemon);
    struct http_pending *pending = malloc(sizeof *pending);
    struct daemon_slot *slot = NULL;
    free(http->prefix); /* of a watch that the store refused */
    http->prefix = strdup(prefix);
    if (events != NULL && http->prefix != NULL && pending != NULL)
        slot = connection_slot(connection);
    if (slot == NULL) {
        free(pending);
        http_refuse(connection, 500, "out of memory", NULL);
        return NULL;
    }
    pending->slot = slot;
    list_append(&events->waiting, &pending->node);
    connection->daemon->watches++;
    return slot;
}

void http_watch(struct daemon_connection *connection, const struct httpd_request *request)
{
    struct daemon *daemon = connection->daemon;
    const struct json_member *member = http_member(daemon->http, "prefix");
    const char *prefix = member != NULL ? member->value : "";
    size_t length = strlen(prefix);
    if (length >= LH_KEY_SIZE || !text_is_clean(prefix, length)) {
        http_refuse(connection, 400,
                    "prefix must be at most 512 bytes of UTF-8 without control characters", NULL);
        return;
    }
    if (daemon->watches >= WATCHES_LIMIT) {
        http_refuse(connection, 429, "too many watches; the daemon has at most 256",
                    "Retry-After: 10\r\n");
        return;
    }
    if (events_await(connection, prefix) == NULL)
        return;
    struct http_events *events = daemon->http->events;
    events_read_last_id(events, request->last_event_id, connection->http);
    if (events->timer.at_ms == POLLER_NEVER)
        events_call_in(events, EVENTS_COMMENT_MS);
    if (events->ready) {
        struct lh_report report = LH_REPORT_INIT;
        events_on_ready(events, NULL, &report);
    } else if (events->watcher == NULL) {
        events_start(events);
    }
}

void http_events_leave(struct daemon_connection *connection)
{
    struct http_events *events =
        connection->daemon->http != NULL ? connection->daemon->http->events : NULL;
    if (events == NULL || !connection->http->streams)
        return;
    list_remove(&events->subscribers, &connection->http->subscriber);
    connection->http->streams = false;
    connection->daemon->watches--;
    events->idle_since_ms = host_boot_ms();
}

void http_events_free(struct daemon *daemon)
{
    struct http_events *events = daemon->http->events;
    if (events == NULL)
        return;
    if (events->watcher != NULL)
        (void)lh_unwatch_start(&events->watcher, NULL);
    poller_call_at(daemon->poller, &events->timer, POLLER_NEVER);
    for (struct list_node *node; (node = list_pop(&events->waiting)) != NULL;)
        free(LIST_ENTRY(node, struct http_pending, node));
    events_clear(events);
    free(events);
    daemon->http->events = NULL;
}
