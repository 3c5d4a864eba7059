/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes at a daemon on memory:. Input that begins with '*' is sent as it is. Any other is a
 * script: each line is a command, its words separated by spaces; '!' in front sends it on a second
 * connection, '~' alone closes that one. The oracle: every complete command has exactly one reply,
 * in order, unless the connection ended or waits; and nothing is left when all connections have
 * ended. Built with LH_FUZZ_PLANT the dispatch has a bug that this must find.
 */
#include "base/check.h"
#include "daemon_kit.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    INPUT_MOST = 4096,
    ARGUMENTS_MOST = 40,
    IDLE_TURNS = 12,
    BUFFERS_MOST = 4 * CONNECTION_IN_MAX,
    MARK_SIZE = 32
};
#define MARK "-end-of-command-"

/* A connection and what it was sent. */
struct fuzzed {
    struct peer *peer;
    uint64_t number;
    unsigned sent, answered;  /* marks, which follow each command of a script */
    size_t replies;           /* since the last mark */
    bool several[INPUT_MOST]; /* commands that may have more than one reply */
};

/* The connection; NULL: it has ended. */
static struct daemon_connection *fuzzed_connection(const struct fuzzed *fuzzed)
{
    return kit_connection(fuzzed->peer->daemon, fuzzed->number);
}

static void fuzzed_open(struct fuzzed *fuzzed, struct daemon *daemon)
{
    fuzzed->peer = peer_new(daemon);
    fuzzed->number = daemon->last_connection;
    fuzzed->sent = fuzzed->answered = 0;
    fuzzed->replies = 0;
}

/* Each channel has a reply of its own. */
static bool has_several_replies(const char *name, size_t length)
{
    static const char *const names[] = {"SUBSCRIBE", "UNSUBSCRIBE", "LOCK.UNWATCH"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i]) == length && strncasecmp(names[i], name, length) == 0)
            return true;
    }
    return false;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Events are no replies; with RESP3 those of a subscription are pushes. */
static bool is_event(const char *message)
{
    return begins(message, ">[lock.") || begins(message, "[message ") ||
           begins(message, ">[message ");
}

static void fuzzed_take(struct fuzzed *fuzzed, const char *message)
{
    char mark[MARK_SIZE];
    (void)snprintf(mark, sizeof mark, MARK "%u", fuzzed->answered);
    if (is_event(message))
        return;
    const char *text = message + (begins(message, "[pong ") ? 6 : 0);
    if (!begins(text, MARK)) {
        fuzzed->replies++;
        return;
    }
    ASSERT(begins(text, mark) && fuzzed->replies > 0);
    ASSERT(fuzzed->replies == 1 || fuzzed->several[fuzzed->answered]);
    fuzzed->answered++;
    fuzzed->replies = 0;
}

/* Turns until nothing more comes. */
static void fuzzed_settle(struct fuzzed *fuzzed)
{
    for (int idle = 0; idle < IDLE_TURNS; idle++) {
        kit_daemon_turn(fuzzed->peer->daemon, 0);
        while (peer_has_message(fuzzed->peer)) {
            fuzzed_take(fuzzed, peer_message(fuzzed->peer));
            idle = 0;
        }
    }
    const struct daemon_connection *connection = fuzzed_connection(fuzzed);
    if (connection != NULL) {
        ASSERT(connection->slot_count <= PIPELINE_MAX);
        ASSERT(connection->buffered <= BUFFERS_MOST);
    }
}

/* ---- scripts ---- */

/* Sends the words of a line as one command, and a mark behind it. */
static void fuzzed_command(struct fuzzed *fuzzed, const char *line, size_t length)
{
    char bytes[2 * INPUT_MOST + ARGUMENTS_MOST * RESP_HEAD_MAX + 256], mark[MARK_SIZE];
    struct resp_reply out;
    size_t count = 1;
    for (size_t i = 0; i < length; i++)
        count += line[i] == ' ' ? 1 : 0;
    if (count > ARGUMENTS_MOST || memmem(line, length, MARK, strlen(MARK)) != NULL)
        return;
    resp_reply_init(&out, bytes, sizeof bytes, 2);
    resp_reply_array(&out, count);
    for (size_t from = 0, i = 0; i <= length; i++) {
        if (i < length && line[i] != ' ')
            continue;
        resp_reply_bytes(&out, line + from, i - from);
        from = i + 1;
    }
    const char *space = memchr(line, ' ', length);
    size_t name = space != NULL ? (size_t)(space - line) : length;
    fuzzed->several[fuzzed->sent] = has_several_replies(line, name);
    (void)snprintf(mark, sizeof mark, MARK "%u", fuzzed->sent++);
    resp_reply_array(&out, 2);
    resp_reply_text(&out, "PING");
    resp_reply_text(&out, mark);
    ASSERT(!out.overflow);
    peer_send_bytes(fuzzed->peer, bytes, out.length);
}

/* True if a command waits, so that those behind it have no replies yet. */
static bool fuzzed_waits(const struct fuzzed *fuzzed)
{
    const struct daemon_connection *connection = fuzzed_connection(fuzzed);
    return connection == NULL || connection->slot_count > 0 || connection->ending;
}

static void play_script(struct daemon *daemon, const char *text, size_t length)
{
    static struct fuzzed both[2];
    fuzzed_open(&both[0], daemon);
    fuzzed_open(&both[1], daemon);
    for (size_t at = 0; at < length;) {
        const char *line = text + at;
        const char *end = memchr(line, '\n', length - at);
        size_t size = end != NULL ? (size_t)(end - line) : length - at;
        bool second = size > 0 && line[0] == '!';
        at += size + 1;
        if (size == 1 && line[0] == '~') {
            peer_free(both[1].peer);
            fuzzed_open(&both[1], daemon);
        } else if (size > (second ? 1U : 0U)) {
            fuzzed_command(&both[second], line + second, size - second);
            fuzzed_settle(&both[second]);
        }
    }
    for (int i = 0; i < 2; i++) {
        fuzzed_settle(&both[i]);
        ASSERT(fuzzed_waits(&both[i]) || both[i].answered == both[i].sent);
        peer_free(both[i].peer);
    }
}

/* ---- bytes ---- */

static void play_bytes(struct daemon *daemon, const char *bytes, size_t length)
{
    static const struct resp_command_limits limits = {.bulk_max = COMMAND_BULK_MAX,
                                                      .total_max = COMMAND_MAX};
    static struct fuzzed fuzzed;
    struct resp_command command;
    size_t size = 0, commands = 0;
    const char *wrong = NULL;
    bool several = false;
    if (memmem(bytes, length, MARK, strlen(MARK)) != NULL)
        return;
    fuzzed_open(&fuzzed, daemon);
    peer_send_bytes(fuzzed.peer, bytes, length / 2); /* cut anywhere */
    peer_send_bytes(fuzzed.peer, bytes + length / 2, length - length / 2);
    for (size_t at = 0; at < length; at += size) {
        enum resp_result result =
            resp_command_feed(bytes + at, length - at, &limits, &command, &size, &wrong);
        if (result == RESP_MORE)
            break;
        commands += result == RESP_BROKEN || command.count > 0 ? 1 : 0;
        if (result == RESP_BROKEN)
            break;
        if (command.count > 0 && has_several_replies(command.args[0].text, command.args[0].length))
            several = true;
    }
    fuzzed_settle(&fuzzed);
    ASSERT(several || fuzzed.replies <= commands);
    ASSERT(several || fuzzed_waits(&fuzzed) || fuzzed.replies == commands);
    peer_free(fuzzed.peer);
}

/* NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    if (size == 0 || size > INPUT_MOST)
        return 0;
    struct daemon *daemon = kit_daemon_new();
    if (bytes[0] == '*')
        play_bytes(daemon, bytes, size);
    else
        play_script(daemon, bytes, size);
    ASSERT(daemon->connection_count == 0 && daemon->buffered == 0 && daemon->watches == 0);
    ASSERT(daemon->bindings.count == 0 && daemon->connections.first == NULL);
    daemon_free(daemon);
    return 0;
}
