/* SPDX-License-Identifier: Apache-2.0 */
/* See daemon_kit.h. */
#include "daemon_kit.h"

#include "base/check.h"
#include "base/text.h"
#include "face/daemon/http_face.h"
#include "process/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { KIT_MOST_MS = 20000, FLAT_SIZE = 2 << 20, SETTLE_TURNS = 10 };

static void (*kit_reader)(const struct daemon_line *line);

void kit_read_log(void (*reader)(const struct daemon_line *line))
{
    kit_reader = reader;
}

static void kit_log(void *user, const struct daemon_line *line)
{
    (void)user;
    if (kit_reader != NULL)
        kit_reader(line);
}

static const struct daemon_options kit_options = {
    .connections_max = 100, .store = "memory:", .log = kit_log};

static struct daemon *kit_open(const char *url, const struct daemon_options *with)
{
    struct lh_client *client = NULL;
    struct lh_report report = LH_REPORT_INIT;
    struct lh_open_options options = LH_OPEN_OPTIONS_INIT;
    options.own_loop = true;
    if (lh_open(url, &options, &client, &report) != LH_OK) {
        fprintf(stderr, "%s\n", report.text);
        abort();
    }
    struct daemon *daemon = daemon_new(&client, with);
    ASSERT(daemon != NULL);
    return daemon;
}

struct daemon *kit_daemon_on(const char *url)
{
    return kit_open(url, &kit_options);
}

struct daemon *kit_daemon_with(const struct daemon_options *with)
{
    return kit_open("memory:", with);
}

struct daemon *kit_daemon_new(void)
{
    return kit_daemon_on("memory:");
}

void kit_daemon_turn(struct daemon *daemon, int most_ms)
{
    poller_wait(daemon->poller, most_ms);
    poller_step(daemon->poller);
}

/* ---- peers ---- */

static struct peer *peer_open(struct daemon *daemon, enum connection_protocol protocol)
{
    int pair[2];
    struct peer *peer = calloc(1, sizeof *peer);
    int failed = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair);
    if (peer == NULL || failed != 0)
        abort();
    peer->connection = connection_open(daemon, pair[0], pair[0], "peer", protocol,
                                       /* tls= */ NULL);
    ASSERT(peer->connection != NULL);
    peer->daemon = daemon;
    peer->file = pair[1];
    return peer;
}

struct peer *peer_from(struct daemon *daemon, const struct listener_peer *from)
{
    struct peer *peer = peer_new(daemon);
    auth_start(peer->connection, from);
    return peer;
}

struct peer *peer_new(struct daemon *daemon)
{
    return peer_open(daemon, CONNECTION_RESP);
}

struct peer *peer_new_web(struct daemon *daemon)
{
    if (daemon->http == NULL)
        daemon->http = http_face_new(daemon);
    ASSERT(daemon->http != NULL);
    return peer_open(daemon, CONNECTION_HTTP);
}

void peer_free(struct peer *peer)
{
    struct daemon *daemon = peer->daemon;
    uint64_t number = daemon->last_connection;
    (void)close(peer->file);
    free(peer);
    for (int i = 0; i < SETTLE_TURNS; i++) /* its end, and what follows from it */
        kit_daemon_turn(daemon, 0);
    ASSERT(daemon->last_connection == number);
}

void peer_leave(struct peer **peer)
{
    if (*peer != NULL)
        peer_free(*peer);
    *peer = NULL;
}

struct daemon_connection *kit_connection(const struct daemon *daemon, uint64_t number)
{
    struct list_node *node = daemon->connections.first;
    for (; node != NULL; node = node->next) {
        struct daemon_connection *found = LIST_ENTRY(node, struct daemon_connection, node);
        if (found->number == number)
            return found;
    }
    return NULL;
}

void peer_receive(struct peer *peer)
{
    while (!peer->ended && peer->length < sizeof peer->bytes) {
        ssize_t got =
            recv(peer->file, peer->bytes + peer->length, sizeof peer->bytes - peer->length, 0);
        if (got > 0)
            peer->length += (size_t)got;
        else if (got == 0 || (errno != EAGAIN && errno != EINTR))
            peer->ended = true;
        else if (errno == EAGAIN)
            return;
    }
}

static void peer_drop(struct peer *peer, size_t length)
{
    memmove(peer->bytes, peer->bytes + length, peer->length - length);
    peer->length -= length;
}

void peer_send_bytes(struct peer *peer, const char *bytes, size_t length)
{
    int64_t until_ms = host_boot_ms() + KIT_MOST_MS;
    while (length > 0 && !peer->ended && host_boot_ms() < until_ms) {
        ssize_t sent = send(peer->file, bytes, length, MSG_NOSIGNAL);
        if (sent > 0) {
            bytes += sent;
            length -= (size_t)sent;
        } else if (errno != EAGAIN && errno != EINTR) {
            return; /* the daemon has closed it; what it wrote before can still be read */
        }
        kit_daemon_turn(peer->daemon, 0);
        peer_receive(peer);
    }
}

void peer_send(struct peer *peer, const char *command)
{
    char bytes[16 * 1024];
    struct resp_reply out;
    size_t count = 1;
    for (const char *at = command; *at != '\0'; at++)
        count += *at == ' ' ? 1 : 0;
    resp_reply_init(&out, bytes, sizeof bytes, 2);
    resp_reply_array(&out, count);
    for (const char *at = command;; at++) {
        char argument[8 * 1024];
        size_t length = strcspn(at, " ");
        ASSERT(length < sizeof argument);
        for (size_t i = 0; i < length; i++)
            argument[i] = (char)(at[i] == '~' ? ' ' : at[i]);
        resp_reply_bytes(&out, argument, length);
        at += length;
        if (*at == '\0')
            break;
    }
    ASSERT(!out.overflow);
    peer_send_bytes(peer, bytes, out.length);
}

/* ---- replies ---- */

/* NOLINTNEXTLINE(misc-no-recursion): a message has at most 8 levels */
static void flatten(struct resp_walk *walk, struct text *out)
{
    struct resp_item item;
    static const char *const opens[] = {[RESP_LIST] = "[", [RESP_MAP] = "{", [RESP_PUSH] = ">["};
    bool there = resp_next(walk, &item);
    ASSERT(there && item.kind != RESP_ATTRIBUTE);
    switch (item.kind) {
    case RESP_TEXT:
        text_add_bytes(out, item.text, item.length);
        return;
    case RESP_ERROR:
        text_add(out, "-");
        text_add_bytes(out, item.text, item.length);
        return;
    case RESP_NUMBER:
        text_add_i64(out, item.number);
        return;
    case RESP_NULL:
        text_add(out, "nil");
        return;
    case RESP_LIST:
    case RESP_MAP:
    case RESP_PUSH:
    case RESP_ATTRIBUTE:
        break;
    }
    text_add(out, opens[item.kind]);
    for (size_t i = 0; i < item.count; i++) {
        text_add(out, i > 0 ? " " : "");
        flatten(walk, out);
    }
    text_add(out, item.kind == RESP_MAP ? "}" : "]");
}

/* The length of the first message; 0: incomplete. */
static size_t peer_whole(const struct peer *peer)
{
    struct resp resp = {.bulk_max = PEER_BYTES, .items_max = 100000};
    size_t length = 0;
    enum resp_result result = resp_feed(&resp, peer->bytes, peer->length, &length);
    if (result == RESP_BROKEN)
        fprintf(stderr, "not RESP: %s: %.*s\n", resp.wrong, (int)peer->length, peer->bytes);
    ASSERT(result != RESP_BROKEN);
    return result == RESP_WHOLE ? length : 0;
}

bool peer_has_message(struct peer *peer)
{
    peer_receive(peer);
    return peer_whole(peer) > 0;
}

const char *peer_message(struct peer *peer)
{
    static char flat[FLAT_SIZE];
    int64_t until_ms = host_boot_ms() + KIT_MOST_MS;
    size_t length = 0;
    struct text out;
    for (;;) {
        peer_receive(peer);
        length = peer_whole(peer);
        if (length > 0)
            break;
        if (peer->ended || host_boot_ms() >= until_ms)
            return NULL;
        kit_daemon_turn(peer->daemon, 20);
    }
    struct resp_walk walk = {.bytes = peer->bytes, .length = length};
    text_init(&out, flat, sizeof flat);
    flatten(&walk, &out);
    peer_drop(peer, length);
    return flat;
}

const char *peer_ask(struct peer *peer, const char *command)
{
    peer_send(peer, command);
    const char *reply = peer_message(peer);
    return reply != NULL ? reply : "(nothing)";
}

/* ---- responses ---- */

/* The value of a field of the head; NULL: none. */
static const char *head_field(const char *head, const char *end, const char *name)
{
    for (const char *at = head; at < end;) {
        const char *line_end = memmem(at, (size_t)(end - at), "\r\n", 2);
        ASSERT(line_end != NULL);
        if (strncmp(at, name, strlen(name)) == 0)
            return at + strlen(name);
        at = line_end + 2;
    }
    return NULL;
}

size_t web_response(const char *bytes, size_t length, bool to_head, int *out_status)
{
    static const char first[] = "HTTP/1.1 ";
    const char *end = length > 0 ? memmem(bytes, length, "\r\n\r\n", 4) : NULL;
    if (end == NULL)
        return 0;
    ASSERT(strncmp(bytes, first, sizeof first - 1) == 0 && memchr(bytes, '\0', length) == NULL);
    char *behind = NULL;
    *out_status = (int)strtol(bytes + sizeof first - 1, &behind, 10);
    ASSERT(*out_status >= 100 && *out_status < 600 && *behind == ' ');
    size_t head = (size_t)(end + 4 - bytes);
    const char *value = head_field(bytes, end + 2, "Content-Length: ");
    if (value == NULL) {
        ASSERT(*out_status == 100 ||
               head_field(bytes, end + 2, "Content-Type: text/event-stream\r\n") != NULL);
        return head;
    }
    size_t body = strtoul(value, &behind, 10);
    ASSERT(behind > value && *behind == '\r');
    return to_head ? head : length - head >= body ? head + body : 0;
}

const char *peer_response(struct peer *peer)
{
    static char flat[FLAT_SIZE];
    int64_t until_ms = host_boot_ms() + KIT_MOST_MS;
    int status = 0;
    for (;;) {
        peer_receive(peer);
        size_t length = web_response(peer->bytes, peer->length, /* to_head= */ false, &status);
        if (length > 0) {
            const char *body = (const char *)memmem(peer->bytes, length, "\r\n\r\n", 4) + 4;
            (void)snprintf(flat, sizeof flat, "%d %.*s", status, (int)(peer->bytes + length - body),
                           body);
            peer_drop(peer, length);
            return flat;
        }
        if (peer->ended || host_boot_ms() >= until_ms)
            return NULL;
        kit_daemon_turn(peer->daemon, 20);
    }
}

const char *peer_ask_web(struct peer *peer, const char *text)
{
    peer_send_bytes(peer, text, strlen(text));
    const char *response = peer_response(peer);
    return response != NULL ? response : "(nothing)";
}

const char *peer_take_all(struct peer *peer)
{
    static char all[PEER_BYTES + 1];
    for (int i = 0; i < SETTLE_TURNS; i++) {
        kit_daemon_turn(peer->daemon, 0);
        peer_receive(peer);
    }
    (void)snprintf(all, sizeof all, "%.*s", (int)peer->length, peer->bytes);
    peer_drop(peer, peer->length);
    return all;
}

const char *reply_value(const char *flat, const char *name)
{
    static char value[1024];
    char wanted[64];
    (void)snprintf(wanted, sizeof wanted, "%s ", name);
    value[0] = '\0';
    for (const char *at = strstr(flat, wanted); at != NULL; at = strstr(at + 1, wanted)) {
        if (at > flat && at[-1] != ' ' && at[-1] != '{' && at[-1] != '[')
            continue;
        const char *from = at + strlen(wanted);
        (void)snprintf(value, sizeof value, "%.*s", (int)strcspn(from, " }]"), from);
        break;
    }
    return value;
}
