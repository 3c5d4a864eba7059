/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identifies the peer of a connection: by its user id, its certificate or AUTH. Without credentials
 * everybody who can connect may do everything. With credentials a peer that is not known yet has no
 * right, little memory and little time, and an address has few such peers. A reload keeps a
 * connection if its name and secret are still there, with the rights that they have now.
 */
#include "face/daemon/daemon_internal.h"

#include "process/host.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WRONG_PASS "invalid username-password pair or user is disabled."

/* The connections of one address before AUTH. */
struct auth_address {
    struct table_node node;
    size_t count;
    char name[LISTENER_ADDRESS_MAX];
};

/* ---- before AUTH ---- */

/* An IPv6 peer usually has a whole network of 64 bits; a user of this host has only its id. */
static void auth_address_name(const struct listener_peer *peer, char out[LISTENER_ADDRESS_MAX])
{
    struct in6_addr six;
    if (peer->local) {
        (void)snprintf(out, LISTENER_ADDRESS_MAX, "uid:%u", peer->uid);
    } else if (inet_pton(AF_INET6, peer->address, &six) == 1) {
        memset(six.s6_addr + 8, 0, 8);
        (void)inet_ntop(AF_INET6, &six, out, LISTENER_ADDRESS_MAX);
    } else {
        text_copy(out, LISTENER_ADDRESS_MAX, peer->address);
    }
}

static struct auth_address *auth_address_find(const struct daemon *daemon, const char *name)
{
    return (struct auth_address *)table_find(&daemon->before_auth, name);
}

/* NULL when out of memory. */
static struct auth_address *auth_address_count(struct daemon *daemon, const char *name)
{
    struct auth_address *address = auth_address_find(daemon, name);
    if (address == NULL) {
        address = calloc(1, sizeof *address);
        if (address == NULL)
            return NULL;
        text_copy(address->name, sizeof address->name, name);
        table_put(&daemon->before_auth, &address->node, address->name);
    }
    address->count++;
    return address;
}

static void auth_on_timeout(void *owner)
{
    struct daemon_connection *connection = owner;
    if (connection->ending)
        return;                     /* the stream has a limit of its own */
    if (connection->http != NULL) { /* no response without a request */
        connection_end_after_replies(connection);
        return;
    }
    struct daemon_slot *slot = connection_slot(connection);
    if (slot == NULL) {
        connection_end(connection, CONNECTION_CUT);
        return;
    }
    slot_reply_error(slot, "NOAUTH", "Authentication required within 10 s.");
    connection_end_after_replies(connection);
}

/* The connection is known, or ends. */
static void auth_leave_address(struct daemon_connection *connection)
{
    struct daemon *daemon = connection->daemon;
    struct auth *auth = &connection->auth;
    struct auth_address *address = auth->address;
    auth->needed = false;
    auth->address = NULL;
    if (auth->timer.due != NULL)
        poller_call_at(daemon->poller, &auth->timer, POLLER_NEVER);
    if (address == NULL || --address->count > 0)
        return;
    table_remove(&daemon->before_auth, &address->node);
    free(address);
}

static void auth_require(struct daemon_connection *connection)
{
    struct auth *auth = &connection->auth;
    char name[LISTENER_ADDRESS_MAX];
    connection->who = &may_nothing;
    auth->login = NULL;
    if (auth->needed)
        return; /* its time goes on */
    auth->needed = true;
    auth_address_name(&auth->peer, name);
    auth->address = auth_address_count(connection->daemon, name);
    auth->timer =
        (struct poller_timer){.at_ms = POLLER_NEVER, .due = auth_on_timeout, .owner = connection};
    poller_call_at(connection->daemon->poller, &auth->timer, host_boot_ms() + BEFORE_AUTH_MS);
    if (auth->address == NULL) /* out of memory */
        connection_end_after_replies(connection);
}

bool auth_allows_verb(const struct daemon_connection *connection, const struct daemon_verb *verb)
{
    if (!connection->auth.needed || MAY_HOLE(BEFORE_AUTH))
        return true;
    return verb != NULL && (verb->run == verb_auth || verb->run == verb_hello ||
                            verb->run == verb_quit || verb->run == verb_reset);
}

/* ---- who it is ---- */

static bool auth_is_own(const struct listener_peer *peer)
{
    return peer->local && (peer->uid == 0 || peer->uid == geteuid());
}

void auth_use(struct daemon_connection *connection, const struct login *login)
{
    auth_leave_address(connection);
    connection->auth.login = login;
    connection->who = login != NULL ? &login->identity : &may_everything;
}

/* The login of a peer that has not sent AUTH; NULL: none. */
static const struct login *auth_find_peer(const struct daemon *daemon, const struct auth *auth)
{
    const struct login *login = NULL;
    if (daemon->credentials == NULL)
        return NULL;
    if (auth->peer.local)
        login = credentials_by_uid(daemon->credentials, auth->peer.uid);
    if (login == NULL && auth->certificate != NULL)
        login = credentials_by_certificate(daemon->credentials, auth->certificate);
    return login;
}

void auth_restart(struct daemon_connection *connection)
{
    const struct auth *auth = &connection->auth;
    const struct daemon *daemon = connection->daemon;
    const struct login *login = auth->accepted ? auth_find_peer(daemon, auth) : NULL;
    if (login != NULL || !auth->accepted || daemon->credentials == NULL || auth_is_own(&auth->peer))
        auth_use(connection, login);
    else
        auth_require(connection);
}

const char *auth_refusal(const struct daemon *daemon, const struct listener_peer *peer)
{
    char name[LISTENER_ADDRESS_MAX];
    if (auth_is_own(peer))
        return NULL;
    if (daemon->credentials == NULL)
        return peer->local ? "-NOAUTH only root and the user of the daemon may use this socket; "
                             "see --tokens\r\n"
                           : NULL;
    if (peer->local && credentials_by_uid(daemon->credentials, peer->uid) != NULL)
        return NULL;
    auth_address_name(peer, name);
    const struct auth_address *address = auth_address_find(daemon, name);
    return address != NULL && address->count >= BEFORE_AUTH_CONNECTIONS
               ? "-ERR too many connections of this address before AUTH\r\n"
               : NULL;
}

void auth_start(struct daemon_connection *connection, const struct listener_peer *peer)
{
    connection->auth.accepted = true;
    connection->auth.peer = *peer;
    auth_restart(connection);
}

void auth_on_certificate(struct daemon_connection *connection, const char *name)
{
    struct auth *auth = &connection->auth;
    free(auth->certificate);
    auth->certificate = strdup(name);
    if (auth->needed)
        auth_restart(connection);
}

void auth_end(struct daemon_connection *connection)
{
    auth_leave_address(connection);
    free(connection->auth.certificate);
    connection->auth.certificate = NULL;
}

/* ---- AUTH ---- */

static void auth_wipe(struct daemon *daemon, const char *secret)
{
    if (secret >= daemon->arguments && secret < daemon->arguments + sizeof daemon->arguments)
        explicit_bzero(daemon->arguments + (secret - daemon->arguments), strlen(secret));
}

/* The same for an unknown name and a wrong secret. */
static void auth_refuse(struct daemon_slot *slot)
{
    struct daemon_connection *connection = slot->connection;
    connection_refused(connection, REFUSED_CREDENTIAL, "wrong name or secret");
    slot_reply_error(slot, "WRONGPASS", WRONG_PASS);
    if (++connection->auth.wrong >= AUTH_TRIES)
        connection_end_after_replies(connection);
}

static bool connection_is_in_use(const struct daemon_connection *connection)
{
    return connection->acquisitions.first != NULL || connection->bindings.first != NULL ||
           connection->watch_count > 0;
}

bool auth_login(struct daemon_slot *slot, const char *name, const char *secret)
{
    struct daemon_connection *connection = slot->connection;
    struct daemon *daemon = slot->daemon;
    if (daemon->credentials == NULL) {
        slot_reply_error(slot, "ERR",
                         "AUTH is not needed: this daemon has no credentials configured");
        return false;
    }
    if (name != NULL && strcmp(name, "default") == 0)
        name = NULL; /* clients send it when they know only a secret */
    if (MAY_HOLE(ANY_NAME))
        name = NULL;
    const struct login *login = credentials_by_secret(daemon->credentials, name, secret);
    auth_wipe(daemon, secret);
    if (login == NULL) {
        auth_refuse(slot);
        return false;
    }
    /* Request ids belong to the name (D4). */
    if (strcmp(login->name, connection->who->name) != 0 && connection_is_in_use(connection)) {
        slot_reply_error(slot, "ERR",
                         "AUTH with another name is not possible while waiting, watching or with "
                         "bound grants; use RESET or another connection");
        return false;
    }
    auth_use(connection, login);
    return true;
}

/* ---- the file ---- */

bool auth_load(struct daemon *daemon, struct text *why)
{
    if (daemon->options->tokens == NULL)
        return true;
    text_add(why, "usage: ");
    daemon->credentials = credentials_load(daemon->options->tokens, why);
    if (daemon->credentials == NULL)
        return false;
    text_clear(why);
    return true;
}

/* False: it must be cut, because its peer is nobody, or somebody else, now. */
static bool auth_renew(struct daemon_connection *connection)
{
    struct auth *auth = &connection->auth;
    if (auth->login == NULL)
        return auth->needed || auth_find_peer(connection->daemon, auth) == NULL;
    const struct login *login =
        credentials_find_again(connection->daemon->credentials, auth->login);
    if (login == NULL)
        return false;
    auth->login = login;
    connection->who = &login->identity;
    bindings_check_rights(connection);
    return true;
}

void auth_reload(struct daemon *daemon)
{
    char bytes[1024];
    struct text text;
    size_t cut = 0;
    text_init(&text, bytes, sizeof bytes);
    if (daemon->credentials == NULL)
        return;
    struct credentials *before = daemon->credentials,
                       *after = credentials_load(daemon->options->tokens, &text);
    if (after == NULL) {
        text_add(&text, "; the previous credentials stay");
        daemon_log(daemon, DAEMON_ERROR, "reload_failed", bytes);
        return;
    }
    daemon->credentials = after;
    for (struct list_node *node = daemon->connections.first, *next; node != NULL; node = next) {
        struct daemon_connection *connection = LIST_ENTRY(node, struct daemon_connection, node);
        next = node->next;
        if (auth_renew(connection) || MAY_HOLE(RELOAD))
            continue;
        connection->auth.login = NULL;
        connection->who = &may_nothing;
        connection_end(connection, CONNECTION_CUT);
        cut++;
    }
    if (!MAY_HOLE(RELOAD)) /* its connections still use it */
        credentials_free(&before);
    TEXT_JOIN(&text, daemon->options->tokens, ": ");
    text_add_u64(&text, credentials_count(after));
    text_add(&text, " credentials; connections cut: ");
    text_add_u64(&text, cut);
    daemon_log(daemon, DAEMON_INFO, "reloaded", bytes);
}

/* ---- sockets ---- */

bool auth_check_listener(const struct daemon *daemon, const struct listener *listener,
                         struct text *why)
{
    const struct daemon_options *options = daemon->options;
    char bytes[512];
    struct text text;
    bool guarded = options->tls_cert != NULL && options->tokens != NULL;
    if (listener_is_loopback(listener) || guarded)
        return true;
    if (!options->insecure) {
        text_add(why, "usage: ");
        listener_describe(listener, why);
        text_add(why, " is reachable from other hosts; give --tls-cert and --tokens, listen on "
                      "127.0.0.1, or accept the risk with --insecure");
        return false;
    }
    text_init(&text, bytes, sizeof bytes);
    listener_describe(listener, &text);
    TEXT_JOIN(&text, " is reachable from other hosts: ",
              options->tokens == NULL ? "whoever connects may do everything"
                                      : "secrets are sent without encryption");
    daemon_log(daemon, DAEMON_WARNING, "insecure", bytes);
    return true;
}
