/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that every Redis client sends: HELLO, CLIENT, INFO and others. They use no store. */
#include "face/daemon/daemon_internal.h"

#include "base/text.h"
#include "process/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static void slot_reply_ok(struct daemon_slot *slot)
{
    slot_reply_bytes(slot, "+OK\r\n", 5);
}

/* False: refused already. */
static bool session_check_name(struct daemon_slot *slot, const char *name)
{
    size_t length = strlen(name);
    if (length <= CONNECTION_NAME_MAX && text_is_clean(name, length) && strchr(name, ' ') == NULL)
        return true;
    slot_reply_error(slot, "ERR", "a name has at most 64 bytes, without spaces");
    return false;
}

/* ---- HELLO and AUTH ---- */

struct hello {
    int64_t protocol;
    const char *set_name, *auth_name, *secret; /* NULL: not given */
};

static void hello_reply(struct daemon_slot *slot)
{
    char bytes[1024];
    struct resp_reply reply;
    resp_reply_init(&reply, bytes, sizeof bytes, slot_protocol(slot));
    resp_reply_map(&reply, 8);
    reply_pair(&reply, "server", "leasehold");
    reply_pair(&reply, "version", lh_version());
    reply_pair_number(&reply, "api", API_VERSION);
    reply_pair_number(&reply, "proto", slot->connection->protocol);
    reply_pair_number(&reply, "id", (int64_t)slot->connection->number);
    reply_pair(&reply, "mode", "standalone");
    reply_pair(&reply, "role", "master");
    resp_reply_text(&reply, "modules");
    resp_reply_array(&reply, 0);
    slot_reply(slot, &reply);
}

/* False: refused already. */
static bool hello_parse(struct daemon_slot *slot, const struct daemon_args *args, struct hello *out)
{
    size_t at = 1;
    *out = (struct hello){.protocol = slot->connection->protocol};
    if (at < args->count && (!words_is_number(args->text[at++], &out->protocol) ||
                             out->protocol < 2 || out->protocol > 3)) {
        slot_reply_error(slot, "NOPROTO", "unsupported protocol version");
        return false;
    }
    while (at < args->count) {
        if (strcasecmp(args->text[at], "AUTH") == 0 && at + 2 < args->count) {
            out->auth_name = args->text[at + 1];
            out->secret = args->text[at + 2];
            at += 3;
        } else if (strcasecmp(args->text[at], "SETNAME") == 0 && at + 1 < args->count) {
            out->set_name = args->text[at + 1];
            at += 2;
        } else {
            slot_reply_error(slot, "ERR",
                             "syntax error; usage: HELLO [2|3 [AUTH name secret] [SETNAME name]]");
            return false;
        }
    }
    return out->set_name == NULL || session_check_name(slot, out->set_name);
}

/* Everything is checked before anything changes. */
void verb_hello(struct daemon_slot *slot, const struct daemon_args *args,
                const struct daemon_words *words)
{
    struct daemon_connection *connection = slot->connection;
    struct hello hello;
    (void)words;
    if (!hello_parse(slot, args, &hello))
        return;
    if (hello.protocol < 3 && connection->protocol >= 3 &&
        (connection->watch_count > 0 || connection->acquisitions.first != NULL)) {
        slot_reply_error(slot, "ERR",
                         "HELLO 2 is not possible while watching or waiting: pushes would look "
                         "like replies; use RESET");
        return;
    }
    if (hello.secret != NULL && !auth_login(slot, hello.auth_name, hello.secret))
        return;
    if (hello.set_name != NULL)
        text_copy(connection->name, sizeof connection->name, hello.set_name);
    connection->protocol = (unsigned)hello.protocol;
    hello_reply(slot);
}

void verb_auth(struct daemon_slot *slot, const struct daemon_args *args,
               const struct daemon_words *words)
{
    (void)words;
    if (auth_login(slot, args->count > 2 ? args->text[1] : NULL, args->text[args->count - 1]))
        slot_reply_ok(slot);
}

/* ---- PING and others ---- */

void verb_ping(struct daemon_slot *slot, const struct daemon_args *args,
               const struct daemon_words *words)
{
    struct resp_reply reply;
    (void)words;
    reply_begin(&reply, slot->daemon, slot_protocol(slot));
    if (slot->connection->protocol < 3 && slot->connection->watch_count > 0) {
        resp_reply_array(&reply, 2); /* as Redis to a subscriber */
        resp_reply_text(&reply, "pong");
        resp_reply_text(&reply, args->count > 1 ? args->text[1] : "");
    } else if (args->count > 1) {
        resp_reply_text(&reply, args->text[1]);
    } else {
        resp_reply_simple(&reply, "PONG");
    }
    slot_reply(slot, &reply);
}

void verb_echo(struct daemon_slot *slot, const struct daemon_args *args,
               const struct daemon_words *words)
{
    struct resp_reply reply;
    (void)words;
    reply_begin(&reply, slot->daemon, slot_protocol(slot));
    resp_reply_text(&reply, args->text[1]);
    slot_reply(slot, &reply);
}

void verb_client(struct daemon_slot *slot, const struct daemon_args *args,
                 const struct daemon_words *words)
{
    struct daemon_connection *connection = slot->connection;
    const char *what = args->text[1];
    struct resp_reply reply;
    char bytes[256];
    (void)words;
    resp_reply_init(&reply, bytes, sizeof bytes, slot_protocol(slot));
    if (strcasecmp(what, "ID") == 0) {
        resp_reply_number(&reply, (int64_t)connection->number);
        slot_reply(slot, &reply);
    } else if (strcasecmp(what, "GETNAME") == 0) {
        resp_reply_text(&reply, connection->name);
        slot_reply(slot, &reply);
    } else if (strcasecmp(what, "SETNAME") == 0 && args->count == 3) {
        if (session_check_name(slot, args->text[2])) {
            text_copy(connection->name, sizeof connection->name, args->text[2]);
            slot_reply_ok(slot);
        }
    } else if (strcasecmp(what, "SETINFO") == 0 && args->count == 4) {
        slot_reply_ok(slot);
    } else {
        slot_reply_error(slot, "ERR", "usage: CLIENT ID|GETNAME|SETNAME name|SETINFO name value");
    }
}

/* Clients ask for the table of Redis; an empty one is valid. */
void verb_command(struct daemon_slot *slot, const struct daemon_args *args,
                  const struct daemon_words *words)
{
    struct resp_reply reply;
    char bytes[4096];
    const char *what = args->count > 1 ? args->text[1] : "";
    size_t count = 0;
    (void)words;
    while (verb_at(count) != NULL)
        count++;
    resp_reply_init(&reply, bytes, sizeof bytes, slot_protocol(slot));
    if (strcasecmp(what, "COUNT") == 0) {
        resp_reply_number(&reply, (int64_t)count);
    } else if (strcasecmp(what, "LIST") == 0) {
        resp_reply_array(&reply, count);
        for (size_t i = 0; i < count; i++)
            resp_reply_text(&reply, verb_at(i)->name);
    } else if (strcasecmp(what, "DOCS") == 0) {
        resp_reply_map(&reply, 0);
    } else {
        resp_reply_array(&reply, 0);
    }
    slot_reply(slot, &reply);
}

/* The store's URL and the load are for those who may read every key. */
static void info_write_all(const struct daemon *daemon, struct text *out)
{
    char bytes[2048];
    (void)snprintf(bytes, sizeof bytes,
                   "process_id:%ld\r\nstore:%.900s\r\n\r\n"
                   "# Clients\r\nconnected_clients:%zu\r\nmaxclients:%zu\r\nblocked_clients:%zu\r\n"
                   "watches:%zu\r\nbuffered_bytes:%zu\r\n\r\n"
                   "# Stats\r\ntotal_connections_received:%llu\r\ntotal_commands_processed:%llu\r\n"
                   "refused_commands:%llu\r\ncut_connections:%llu\r\n",
                   (long)getpid(), daemon->options->store, daemon->connection_count,
                   daemon->options->connections_max, daemon->waiters, daemon->watches,
                   daemon->buffered, (unsigned long long)daemon->counters.connections,
                   (unsigned long long)daemon->counters.commands,
                   (unsigned long long)refusals_of_commands(daemon),
                   (unsigned long long)daemon->counters.cut);
    text_add(out, bytes);
}

void verb_info(struct daemon_slot *slot, const struct daemon_args *args,
               const struct daemon_words *words)
{
    const struct daemon *daemon = slot->daemon;
    char bytes[2560], encoded[2700];
    struct resp_reply reply;
    struct text text;
    (void)args;
    (void)words;
    text_init(&text, bytes, sizeof bytes);
    TEXT_JOIN(&text, "# Server\r\nserver:leasehold\r\nversion:", lh_version(), "\r\napi:");
    text_add_u64(&text, API_VERSION);
    text_add(&text, "\r\nuptime_in_seconds:");
    text_add_i64(&text, (host_boot_ms() - daemon->started_ms) / 1000);
    text_add(&text, "\r\nloading:0\r\n");
    if (may(slot->connection->who, MAY_READ, /* every key: */ "") || MAY_HOLE(INFO))
        info_write_all(daemon, &text);
    resp_reply_init(&reply, encoded, sizeof encoded, slot_protocol(slot));
    resp_reply_text(&reply, bytes);
    slot_reply(slot, &reply);
}

/* The peer ends the connection: its bound grants are released. */
void verb_quit(struct daemon_slot *slot, const struct daemon_args *args,
               const struct daemon_words *words)
{
    struct daemon_connection *connection = slot->connection;
    (void)args;
    (void)words;
    slot_reply_ok(slot);
    bindings_end(connection, /* release= */ true);
    connection_end_after_replies(connection);
}

void verb_reset(struct daemon_slot *slot, const struct daemon_args *args,
                const struct daemon_words *words)
{
    struct daemon_connection *connection = slot->connection;
    (void)args;
    (void)words;
    watches_end_all(connection);
    acquisitions_orphan(connection);
    bindings_end(connection, /* release= */ true);
    connection->protocol = 2;
    connection->name[0] = '\0';
    auth_restart(connection);
    slot_reply_bytes(slot, "+RESET\r\n", 8);
}
