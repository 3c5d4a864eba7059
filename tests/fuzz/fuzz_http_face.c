/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes at the HTTP face of a daemon on memory:, on two connections that take turns: the byte
 * 0x1e ends a turn. The oracle: every complete request, as httpd_request.h reads it, has exactly
 * one response, in order, with a valid status line, length and JSON, unless its connection waits or
 * streams events; and nothing is left when both have ended. Built with LH_FUZZ_PLANT the face has a
 * bug that this must find.
 */
#include "base/check.h"
#include "daemon_kit.h"
#include "face/daemon/http_face.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT_MOST = 4096, IDLE_TURNS = 12, TURN_END = 0x1e, BUFFERS_MOST = 4 * CONNECTION_IN_MAX };

static const struct httpd_limits limits = {.head_max = HTTP_HEAD_MAX, .body_max = HTTP_BODY_MAX};

/* A connection, what it was sent, and how much of that has its responses. */
struct fuzzed_web {
    struct peer *peer;
    uint64_t number;
    char bytes[INPUT_MOST];
    size_t length, at;
    bool continued; /* "100 Continue" was sent for the request at `at` */
    bool streams, closes;
};

static void web_open(struct fuzzed_web *web, struct daemon *daemon)
{
    web->peer = peer_new_web(daemon);
    web->number = daemon->last_connection;
    web->length = web->at = 0;
    web->continued = web->streams = web->closes = false;
}

/* The connection; NULL: it has ended. */
static const struct daemon_connection *web_connection(const struct fuzzed_web *web)
{
    return kit_connection(web->peer->daemon, web->number);
}

/* The first request without a response. */
static enum httpd_result web_request(const struct fuzzed_web *web, struct httpd_request *out)
{
    struct httpd_scan scan = {0};
    return httpd_request_feed(&scan, web->bytes + web->at, web->length - web->at, &limits, out);
}

static bool has_field(const char *head, size_t length, const char *line)
{
    return memmem(head, length, line, strlen(line)) != NULL;
}

/* An object; one that refuses has an outcome and a text. */
static void check_json(const char *body, size_t length, int status)
{
    static struct json_member members[HTTP_MEMBERS_MAX];
    static char json[2 * PEER_BYTES], memory[2 * PEER_BYTES];
    size_t count = 0;
    memcpy(json, body, length);
    json[length] = '\0';
    ASSERT(json_members_parse(json, members, HTTP_MEMBERS_MAX, memory, sizeof memory, &count));
    ASSERT(count > 0 && strcmp(members[0].name, "outcome") == 0);
    size_t outcome = strlen(members[0].value);
    for (size_t i = 1; status >= 400 && i < count; i++) {
        if (strcmp(members[i].name, "text") == 0)
            ASSERT(strncmp(members[i].value, members[0].value, outcome) == 0);
    }
}

static void check_response(struct fuzzed_web *web, const struct httpd_request *request,
                           enum httpd_result result, size_t length, int status)
{
    const char *bytes = web->peer->bytes;
    size_t head = (size_t)((const char *)memmem(bytes, length, "\r\n\r\n", 4) + 4 - bytes);
    bool json = has_field(bytes, head, "\r\nContent-Type: application/json\r\n");
    web->streams = has_field(bytes, head, "\r\nContent-Type: text/event-stream\r\n");
    web->closes = has_field(bytes, head, "\r\nConnection: close\r\n");
    ASSERT(result != HTTPD_MORE && status >= 200);
    ASSERT(result != HTTPD_BROKEN || (status == request->status && web->closes));
    ASSERT(result == HTTPD_BROKEN || request->keep_alive != web->closes || web->streams);
    ASSERT(!web->streams || (status == 200 && httpd_is(request->path, "/v1/watch")));
    if (json && length > head && (status >= 400 || !httpd_is(request->path, "/openapi.json")))
        check_json(bytes + head, length - head, status);
}

static void web_drop(struct fuzzed_web *web, size_t length)
{
    struct peer *peer = web->peer;
    memmove(peer->bytes, peer->bytes + length, peer->length - length);
    peer->length -= length;
}

/* Takes a response; false if none is complete. */
static bool web_take(struct fuzzed_web *web)
{
    struct httpd_request request;
    int status = 0;
    if (web->streams || web->peer->length == 0) {
        web->peer->length = 0; /* events */
        return false;
    }
    ASSERT(!web->closes);
    enum httpd_result result = web_request(web, &request);
    bool to_head = result == HTTPD_COMPLETE && httpd_is(request.method, "HEAD");
    size_t length = web_response(web->peer->bytes, web->peer->length, to_head, &status);
    if (length == 0)
        return false;
    if (status == 100) {
        ASSERT(!web->continued);
        web->continued = true;
    } else {
        check_response(web, &request, result, length, status);
        web->at += result == HTTPD_COMPLETE ? request.size : web->length - web->at;
        web->continued = false;
    }
    web_drop(web, length);
    return true;
}

/* Turns until nothing more comes. */
static void webs_settle(struct fuzzed_web both[2])
{
    struct daemon *daemon = both[0].peer->daemon;
    for (int idle = 0; idle < IDLE_TURNS; idle++) {
        bool full = false;
        for (int i = 0; i < 2; i++) {
            const struct daemon_connection *connection = web_connection(&both[i]);
            full = full || (connection != NULL && connection->http->full_since_ms != 0);
            ASSERT(connection == NULL || connection->buffered <= BUFFERS_MOST);
        }
        kit_daemon_turn(daemon, full ? HTTP_ROOM_MS : 0);
        idle = full ? 0 : idle;
        for (int i = 0; i < 2; i++) {
            peer_receive(both[i].peer);
            while (web_take(&both[i]))
                idle = 0;
        }
    }
}

/* Nothing is due: it waits for a lock, or for more bytes, or has ended. */
static void web_finish(const struct fuzzed_web *web)
{
    struct httpd_request request;
    const struct daemon_connection *connection = web_connection(web);
    ASSERT(web->peer->length == 0);
    if (web->streams || web->closes)
        return;
    bool open = connection != NULL && !connection->ending && connection->slot_count <= 1;
    ASSERT(open);
    if (open && connection->slot_count == 0)
        ASSERT(web_request(web, &request) == HTTPD_MORE);
}

/* NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fuzzed_web both[2];
    if (size == 0 || size > INPUT_MOST)
        return 0;
    struct daemon *daemon = kit_daemon_new();
    web_open(&both[0], daemon);
    web_open(&both[1], daemon);
    for (size_t at = 0, turn = 0; at < size; turn++) {
        struct fuzzed_web *web = &both[turn % 2];
        const uint8_t *end = memchr(data + at, TURN_END, size - at);
        size_t length = end != NULL ? (size_t)(end - data) - at : size - at;
        memcpy(web->bytes + web->length, data + at, length);
        web->length += length;
        peer_send_bytes(web->peer, (const char *)data + at, length);
        webs_settle(both);
        at += length + 1;
    }
    for (int i = 0; i < 2; i++)
        web_finish(&both[i]);
    peer_free(both[0].peer);
    peer_free(both[1].peer);
    ASSERT(daemon->connection_count == 0 && daemon->buffered == 0 && daemon->watches == 0);
    ASSERT(daemon->connections.first == NULL && daemon->waiters <= both[0].length);
    daemon_free(daemon);
    return 0;
}
