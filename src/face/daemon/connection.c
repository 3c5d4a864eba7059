/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections: bytes in, commands out; replies in the order of the commands. Commands on different
 * keys run side by side; a command on a key that an earlier one still uses, or behind one that
 * waits, is left in the buffer. All buffers are limited, and a slow peer is cut.
 */
#include "face/daemon/http_face.h"

#include "base/check.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- memory ---- */

/* False if it grows and all connections together have too much. */
static bool connection_count_buffers(struct daemon_connection *connection)
{
    struct daemon *daemon = connection->daemon;
    size_t now = stream_buffered(connection->stream);
    daemon->buffered += now - connection->buffered;
    bool grows = now > connection->buffered;
    connection->buffered = now;
    return !grows || daemon->buffered <= BUFFERED_MAX;
}

bool connection_account(struct daemon_connection *connection)
{
    if (connection_count_buffers(connection))
        return true;
    connection_refused(connection, REFUSED_SLOW_CLIENT,
                       "the buffers of all connections exceed 256 MiB");
    connection_end(connection, CONNECTION_CUT);
    return false;
}

struct daemon_slot *connection_slot(struct daemon_connection *connection)
{
    struct daemon *daemon = connection->daemon;
    struct list_node *node = list_pop(&daemon->free_slots);
    struct daemon_slot *slot =
        node != NULL ? LIST_ENTRY(node, struct daemon_slot, node) : malloc(sizeof *slot);
    if (slot == NULL)
        return NULL;
    *slot = (struct daemon_slot){.connection = connection, .daemon = daemon, .bucket = -1};
    daemon->calls++;
    list_append(&connection->slots, &slot->node);
    connection->slot_count++;
    return slot;
}

struct daemon_slot *connection_slot_before(struct daemon_slot *slot)
{
    struct daemon_connection *connection = slot->connection;
    struct daemon_slot *before = connection_slot(connection);
    list_remove(&connection->slots, &slot->node);
    list_append(&connection->slots, &slot->node);
    return before;
}

static void slot_free(struct daemon_slot *slot)
{
    free(slot->reply);
    free(slot->memory);
    slot->reply = slot->memory = NULL;
    slot->daemon->calls--;
    list_prepend(&slot->daemon->free_slots, &slot->node);
}

void slots_free(struct daemon *daemon)
{
    for (struct list_node *node; (node = list_pop(&daemon->free_slots)) != NULL;)
        free(LIST_ENTRY(node, struct daemon_slot, node));
}

/* ---- replies ---- */

unsigned slot_protocol(const struct daemon_slot *slot)
{
    return slot->connection != NULL ? slot->connection->protocol : 2;
}

void connection_write(struct daemon_connection *connection, const char *bytes, size_t length)
{
    stream_write(connection->stream, bytes, length);
    (void)connection_count_buffers(connection); /* a later command is refused */
}

void connection_pause(struct daemon_connection *connection)
{
    connection->pausing = true;
    stream_set_paused(connection->stream, true);
}

void connection_resume(struct daemon_connection *connection)
{
    if (!connection->pausing || connection->ending)
        return;
    connection->pausing = false;
    stream_set_paused(connection->stream, false);
}

/* Sends the replies that now have their turn. */
static void connection_send_finished(struct daemon_connection *connection)
{
    for (;;) {
        struct daemon_slot *slot = LIST_ENTRY(connection->slots.first, struct daemon_slot, node);
        if (slot == NULL || slot->reply == NULL)
            break;
        connection_write(connection, slot->reply, slot->reply_length);
        list_remove(&connection->slots, &slot->node);
        connection->slot_count--;
        slot_free(slot);
    }
    if (connection->slot_count == 0 && connection->input_over)
        connection_end_after_replies(connection);
}

void slot_reply_bytes(struct daemon_slot *slot, const char *bytes, size_t length)
{
    struct daemon_connection *connection = slot->connection;
    ASSERT(slot->reply == NULL && slot->acquisition == NULL);
    if (connection == NULL) {
        slot_free(slot);
        return;
    }
    if (slot->bucket >= 0)
        connection->keys_in_flight[slot->bucket]--;
    if (connection->alone == slot)
        connection->alone = NULL;
    if (connection->slots.first == &slot->node) {
        if (connection->http != NULL)
            http_reply(connection, bytes, length);
        else
            connection_write(connection, bytes, length);
        list_remove(&connection->slots, &slot->node);
        connection->slot_count--;
        slot_free(slot);
        connection_send_finished(connection);
    } else if ((slot->reply = malloc(length > 0 ? length : 1)) != NULL) {
        memcpy(slot->reply, bytes, length);
        slot->reply_length = length;
    } else {
        slot->unused = connection->ending = true; /* out of memory: the callers still use it */
        stream_end_after_flush(connection->stream);
    }
    connection_resume(connection);
}

void slot_reply(struct daemon_slot *slot, const struct resp_reply *reply)
{
    if (reply->overflow)
        slot_reply_error(slot, "ERR", "failed: the reply is too long");
    else
        slot_reply_bytes(slot, reply->bytes, reply->length);
}

void slot_reply_error(struct daemon_slot *slot, const char *code, const char *text)
{
    char bytes[1024];
    struct resp_reply reply;
    resp_reply_init(&reply, bytes, sizeof bytes, slot_protocol(slot));
    resp_reply_error(&reply, code, text);
    slot_reply_bytes(slot, reply.bytes, reply.length);
}

void connection_push(struct daemon_connection *connection, const struct resp_reply *reply)
{
    if (!connection->ending && !reply->overflow && connection->http == NULL)
        connection_write(connection, reply->bytes, reply->length);
}

/* ---- commands ---- */

static void connection_refuse(struct daemon_connection *connection, const char *wrong)
{
    struct daemon_slot *slot = connection_slot(connection);
    connection_refused(connection, REFUSED_PROTOCOL, wrong);
    if (slot != NULL)
        slot_reply_error(slot, "ERR", wrong);
    connection_end_after_replies(connection);
}

/* Starts the complete commands; returns the bytes that they took. */
static size_t connection_on_bytes(void *owner, const char *bytes, size_t length)
{
    static const struct resp_command_limits limits = {.bulk_max = COMMAND_BULK_MAX,
                                                      .total_max = COMMAND_MAX},
                                            before_auth = {.bulk_max = BEFORE_AUTH_BYTES,
                                                           .total_max = BEFORE_AUTH_BYTES};
    struct daemon_connection *connection = owner;
    struct resp_command *command = &connection->daemon->command;
    size_t used = 0;
    if (!connection_account(connection))
        return length;
    while (used < length && !connection->ending) {
        size_t size = 0;
        const char *wrong = NULL;
        if (connection->slot_count >= PIPELINE_MAX || connection->alone != NULL)
            break;
        enum resp_result result = resp_command_feed(
            bytes + used, length - used, connection->auth.needed ? &before_auth : &limits, command,
            &size, &wrong);
        if (result == RESP_MORE)
            return used;
        if (result == RESP_BROKEN) {
            connection_refuse(connection, wrong);
            return length;
        }
        if (command->count > 0 && !dispatch_command(connection, command))
            break;
        used += size;
        if (connection->auth.needed && stream_unsent(connection->stream) > BEFORE_AUTH_BYTES)
            connection_end_after_replies(connection);
    }
    if (connection->ending)
        return length;
    if (used < length)
        connection_pause(connection);
    return used;
}

/* ---- life ---- */

static void connection_free(struct daemon_connection *connection)
{
    struct daemon *daemon = connection->daemon;
    for (struct list_node *node; (node = list_pop(&connection->slots)) != NULL;) {
        struct daemon_slot *slot = LIST_ENTRY(node, struct daemon_slot, node);
        slot->connection = NULL;
        if (slot->reply != NULL || slot->unused) /* otherwise a call in flight has it */
            slot_free(slot);
    }
    auth_end(connection);
    daemon->buffered -= connection->buffered;
    stream_free(&connection->stream);
    list_remove(&daemon->connections, &connection->node);
    daemon->connection_count--;
    if (daemon->options->stdio)
        daemon->stopping = true;
    free(connection);
}

void connection_end(struct daemon_connection *connection, enum connection_end end)
{
    if (connection->ending && connection->stream == NULL)
        return;
    connection->ending = true;
    if (end == CONNECTION_CUT)
        connection->daemon->counters.cut++;
    watches_end_all(connection);
    http_connection_free(connection);
    acquisitions_orphan(connection);
    bindings_end(connection, /* release= */ end == CONNECTION_PEER_CLOSED);
    connection_free(connection);
}

void connection_end_after_replies(struct daemon_connection *connection)
{
    connection->ending = true;
    if (connection->slot_count == 0)
        stream_end_after_flush(connection->stream);
    else
        connection->input_over = true;
}

static void connection_on_ended(void *owner, enum stream_end end, const char *why)
{
    struct daemon_connection *connection = owner;
    /* A drain ends connections that seem to have no bound grants; a renewal in flight may bind one.
     */
    bool closed = end == STREAM_CLOSED && !(connection->daemon->draining && connection->ending);
    if (end == STREAM_OVERFLOWED)
        connection_refused(connection, REFUSED_SLOW_CLIENT, why);
    else if (connection->handshaking && end != STREAM_CLOSED)
        connection_refused(connection, REFUSED_TLS, why);
    connection_end(connection, closed ? CONNECTION_PEER_CLOSED : CONNECTION_CUT);
}

/* The end of stdin: commands that were received get their replies, but nobody waits any longer. */
static void connection_on_input_over(void *owner)
{
    struct daemon_connection *connection = owner;
    acquisitions_stop_waiting(connection);
    connection_end_after_replies(connection);
}

/* The handshake of TLS is done. */
static void connection_on_opened(void *owner)
{
    struct daemon_connection *connection = owner;
    const char *name = stream_peer_name(connection->stream);
    connection->handshaking = false;
    if (name != NULL)
        auth_on_certificate(connection, name);
}

struct daemon_connection *connection_open(struct daemon *daemon, int in, int out, const char *name,
                                          enum connection_protocol protocol, struct tls_server *tls)
{
    struct daemon_connection *connection = calloc(1, sizeof *connection);
    bool http = protocol == CONNECTION_HTTP;
    struct stream_callbacks callbacks = {.opened = connection_on_opened,
                                         .bytes = http ? http_on_bytes : connection_on_bytes,
                                         .ended = connection_on_ended,
                                         .input_over = connection_on_input_over,
                                         .half_open = http ? http_is_half_open : NULL,
                                         .owner = connection,
                                         .in_max = CONNECTION_IN_MAX,
                                         .out_max = CONNECTION_OUT_MAX};
    if (connection != NULL)
        connection->stream =
            tls == NULL ? stream_adopt(daemon->poller, in, out, name, &callbacks)
                        : stream_adopt_tls(daemon->poller, in, name, tls, HANDSHAKE_MS, &callbacks);
    if (connection == NULL || connection->stream == NULL) {
        free(connection);
        (void)close(in);
        return NULL;
    }
    connection->daemon = daemon;
    connection->who = &may_everything;
    connection->handshaking = tls != NULL;
    connection->protocol = http ? 3 : 2;
    connection->number = ++daemon->last_connection;
    list_append(&daemon->connections, &connection->node);
    daemon->counters.connections++;
    daemon->connection_count++;
    if (!http || http_connection_new(connection))
        return connection;
    connection_end(connection, CONNECTION_CUT);
    return NULL;
}
